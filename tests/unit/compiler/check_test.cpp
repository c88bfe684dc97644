#include "compiled.h"

using namespace stave;

TEST_CASE("an unknown name comes with the nearest known one") {
  CHECK(said_of("on device d { let warmup = 1  repeat wormup { F(d, next) } }") ==
        "6:38 `wormup`: there is no name called `wormup` [unknown-name]\n  fix: did you mean `warmup`?\n");
  CHECK(said_of("on device d { FF(d, next) }") ==
        "6:15 `FF`: there is no op called `FF` [unknown-name]\n  fix: the ops are F, I, W, B, G, O\n");
  CHECK(said_of(kInOrder + "expect makspan == 6") ==
        "7:8 `makspan`: there is no name called `makspan` [unknown-name]\n  fix: did you mean `makespan`?\n");
  CHECK(said_of("on device d { F(d, next) limit activation <= 2 }") ==
        "6:32 `activation`: there is no limit of `activation` [unknown-name]\n  fix: did you mean `activations`?\n");
  CHECK(said_of(kInOrder + "cost mesage = 1") ==
        "7:6 `mesage`: there is no op or message called `mesage` [unknown-name]\n  fix: did you mean `message`?\n");
}

TEST_CASE("a name hides no other") {
  CHECK(said_of(kInOrder + "let P = 3") ==
        "7:5 `P`: `P` is a name already [name-hides]\n  1:14 `P`: already in view\n");
  CHECK(said_of("on device M { }").find("`M` is a name already [name-hides]") != std::string::npos);
  CHECK(said_of(kInOrder + "let W = 3").find("7:5 `W`: `W` is the letter of an op already [name-hides]") != std::string::npos);
  CHECK(said_of(kInOrder + "let sum = 3") == "7:5 `sum`: `sum` is a function already [name-hides]\n");
  CHECK(said_of(kInOrder + "let span = 3") == "7:5 `span`: `span` is a metric already [name-hides]\n");
  CHECK(said_of("on device d { for d in microbatches { F(d, d) } }").find("[name-hides]") != std::string::npos);
  CHECK(said_of("on device d { let x = 1 let x = 2 F(d, 0) }").find("[name-hides]") != std::string::npos);
  CHECK(said_of(kInOrder + "let f(P) = 1").find("[name-hides]") != std::string::npos);
  // One error, and none in the library's file.
  for (const std::string letter : {"F", "I", "W", "B", "G", "O"}) {
    const std::string said = build("schedule x(" + letter + " = 2)\ndevices 2\nstages 2\nmicrobatches 2\n"
                                   "place stage s on device s\n" + kInOrder).said();
    CHECK(said.find("1:12 `" + letter + "`: `" + letter + "` is the letter of an op already [name-hides]") == 0);
    CHECK(said.find("[", said.find("[name-hides]") + 1) == std::string::npos);
  }
}

TEST_CASE("kinds of op and names of messages are bounded") {
  // With the six of the library.
  std::string ops;
  for (int i = 0; i < 194; ++i) ops += "op X" + std::to_string(i) + "(s in stages) optional\n";
  CHECK(said_of(ops + kInOrder) == "");
  CHECK(said_of(ops + "op Y(s in stages)\nop Z(s in stages)\n" + kInOrder) ==
        "200:4 `Y`: more than 200 kinds of op, with those of `use` [too-many]\n");
  // With `activation` and `gradient`.
  std::string needs;
  for (int i = 0; i < 198; ++i) needs += "F(s, m) receives x" + std::to_string(i) + " from F(s - 1, m)\n";
  CHECK(said_of(needs + kInOrder) == "");
  CHECK(said_of(needs + "F(s, m) receives y from F(s - 1, m)\n" + kInOrder) ==
        "204:18 `y`: more than 200 names of messages [too-many]\n");
}

TEST_CASE("an op that needs itself") {
  const auto needs = [](const std::string& declarations) { return said_of(declarations + "\n" + kInOrder); };
  CHECK(needs("F(s, m) after F(s, m)") ==
        "6:15 `F(s, m)`: `F(0, 0)` needs itself [needs-itself]\n  = no order can run what waits for itself\n");
  CHECK(needs("I(s, m) after B(s, m)").find("needs `B`, of which it is a part [needs-itself]") != std::string::npos);
  CHECK(needs("I(s, m) after W(s, m)").find("`I(1, 0)` needs `W(1, 0)`, which needs `I(1, 0)`") != std::string::npos);
  CHECK(needs("B(s, m) after W(s, m)").find("[needs-itself]") != std::string::npos);
  CHECK(needs("F(s, m) after B(s, m)").find("[needs-itself]") != std::string::npos);
  CHECK(needs("F(s, m) after F(s + 1, m)").find("`F(0, 0)` needs `F(1, 0)`, which needs `F(0, 0)`") !=
        std::string::npos);
  CHECK(needs("F(s, m) after F(s, *)").find("`F(0, 0)` needs itself") != std::string::npos);
  CHECK(needs("F(s, m) after F(m, s)").find("`F(0, 0)` needs itself") != std::string::npos);
  CHECK(needs("F(s, m) after F(s, m - 1), F(s, 0 .. m)") == "");
  // Needs of two directions, and yet no cycle: microbatches fall, stages rise.
  CHECK(needs("F(s, m) after F(s - 1, m + 1)") == "");
  CHECK(needs("op W(s in stages, m in microbatches, q in slices)\nI(s, m) after W(s, m)") ==
        "7:15 `W(s, m)`: `I(0, 0)` needs `W(0, 0)`, and `B` runs them the other way round [needs-itself]\n"
        "  schedules/std/training.sched:16:4 `B`: its parts are declared here\n");
}

TEST_CASE("no function calls itself") {
  CHECK(said_of("let f(k) = 1 if k < 1 else f(k - 1)\n" + kInOrder) ==
        "6:5 `f`: `f` needs itself: a function cannot call itself [endless-call]\n"
        "  fix: there is no recursion; `[e for i in list]`, `sum`, `min`, `max` repeat\n");
  CHECK(said_of("let a = b\nlet b = a\n" + kInOrder) ==
        "6:5 `a`: `a` needs `b`, which needs `a`: a value cannot be its own part [endless-call]\n");
}

TEST_CASE("comparisons do not chain") {
  CHECK(said_of("require 0 < P < 3\n" + kInOrder).find("fix: write `0 < P and P < 3`\n") != std::string::npos);
  CHECK(said_of("require (1 < P) == (P < 3) or P < 9\n" + kInOrder) == "");
}

TEST_CASE("names of two bodies, and those of the library, do not meet") {
  const Built built = build(kTwo +
                            "let q(k) = k\n"
                            "on device d { for k in 0 .. 1 { let x = 0 F(d, x) B(d, x) } for k in 1 .. 2 { let x = 1 "
                            "F(d, q(x)) B(d, x) } }");
  CHECK(built.order(0) == "F(0, 0) B(0, 0) F(0, 1) B(0, 1)");
}

TEST_CASE("what is given twice") {
  CHECK(said_of("devices 3\n" + kInOrder) ==
        "6:1 `devices 3`: `devices` is given twice [given-twice]\n  2:1 `devices P`: given first\n");
  CHECK(said_of("place stage s on device 0\n" + kInOrder).find("`place` is given twice") != std::string::npos);
  CHECK(said_of("op R(s in stages) op R(s in stages)\n" + kInOrder).find("op `R` is declared twice") !=
        std::string::npos);
  CHECK(said_of(kInOrder + "table {\n0: F0 B0 F1 B1\n1: F0 B0 F1 B1\n}").find("the order is given twice") !=
        std::string::npos);
  CHECK(said_of("table {\n0: F0 B0 F1 B1\n0: F0 B0 F1 B1\n}").find("device 0 has two rows [given-twice]") !=
        std::string::npos);
  CHECK(said_of("on device d { F(d, 0) limit activations <= 1 limit activations <= 2 }").find(
            "a device has one limit of a kind [given-twice]") != std::string::npos);
}

TEST_CASE("what every schedule needs") {
  CHECK(build("schedule x\ndevices 1\nmicrobatches 1\nplace stage s on device 0\non device d { }").said() ==
        "1:10 `x`: the schedule does not say how many stages there are [missing]\n  fix: add `stages 4`\n");
  CHECK(build("devices 1\nstages 1\nmicrobatches 1\nplace stage s on device 0\non device d { }").said().find(
            "the file does not say what the schedule is called [missing]") != std::string::npos);
  CHECK(build("schedule x\ndevices 1\nstages 1\nmicrobatches 1\non device d { F(0, 0) B(0, 0) }").said() ==
        "1:10 `x`: the schedule does not say on which device a stage lies [missing]\n"
        "  fix: add `place stage s on device s`\n");
  CHECK(said_of("").find("the schedule has no order") != std::string::npos);
}

TEST_CASE("functions that call each other for ever") {
  CHECK(said_of(kInOrder + "let f(k) = g(k)\nlet g(k) = f(k) + 1") ==
        "7:5 `f`: `f` needs `g`, which needs `f`: a function cannot call itself [endless-call]\n"
        "  fix: there is no recursion; `[e for i in list]`, `sum`, `min`, `max` repeat\n");
  CHECK(said_of(kInOrder + "let f(k) = f(k - 1) if k > 0 else 0").find("[endless-call]") != std::string::npos);
  CHECK(said_of(kInOrder + "let a = b\nlet b = a").find("[endless-call]") != std::string::npos);
  CHECK(said_of("on device d { let f(k) = f(k) F(d, f(0)) }").find("[endless-call]") != std::string::npos);
}

TEST_CASE("a long chain of functions is refused before it is run") {
  std::string lets = "let f0(k) = k\n";
  for (int i = 1; i < 20000; ++i) lets += fmt::format("let f{}(k)=f{}(k)\n", i, i - 1);
  CHECK(said_of(kInOrder + lets).find("[nested-too-deep]") != std::string::npos);
  std::string backwards;
  for (int i = 1; i < 20000; ++i) backwards += fmt::format("let f{}(k)=f{}(k)\n", i, i + 1);
  CHECK(said_of(kInOrder + backwards + "let f20000(k) = k\n").find("[nested-too-deep]") != std::string::npos);
}

TEST_CASE("a long sum is refused or added up") {
  std::string sum = "1";
  for (int i = 0; i < 100000; ++i) sum += "+1";
  CHECK(said_of(kInOrder + "let x = " + sum).find("[nested-too-deep]") != std::string::npos);
}

TEST_CASE("values, ops and metrics are told apart") {
  CHECK(said_of(kInOrder + "let x = F + 1") == "7:9 `F`: `F` is an op, and a value is needed here [op-as-value]\n");
  CHECK(said_of(kInOrder + "let x = makespan") ==
        "7:9 `makespan`: `makespan` is known of the result, and so in an `expect` only [misplaced]\n");
  CHECK(said_of("let two(k) = 2 * k\non device d { two(d) }").find("`two` is a value, and an op is needed here") !=
        std::string::npos);
  CHECK(said_of("let f(k) = F(k, next)\non device d { F(d, f(0)) }").find("[op-as-value]") != std::string::npos);
  CHECK(said_of("on device d { F(d) }") ==
        "6:15 `F(d)`: `F` has 3 indices, not 1 [argument-count]\n"
        "  schedules/std/training.sched:11:4 `F`: its indices are s, m, q\n");
  CHECK(said_of(kInOrder + "let x = len") == "7:9 `len`: `len` is a function: its values are missing [function-name]\n"
                                             "  fix: write `len(...)`\n");
  CHECK(said_of(kInOrder + "let x = P(3)").find("`P` is no function but a value [not-a-function]") !=
        std::string::npos);
}

TEST_CASE("slots on some statements only") {
  CHECK(said_of("on device d { for m in microbatches { F(d, m) at m } B(d, 0) B(d, 1) }") ==
        "6:54 `B(d, 0)`: some statements of this block have a slot and some have none [some-slots]\n"
        "  6:39 `F(d, m)`: with `at`\n");
}

TEST_CASE("what this version does not support is said where it stands") {
  CHECK(said_of("use trianing\n" + kInOrder).find("[unknown-name]") != std::string::npos);
  CHECK(said_of(kInOrder + "freeze W <= 0.5").find("[not-yet]") != std::string::npos);
  CHECK(build("schedule x\ndevices 2\nstages 2\nmicrobatches 1\nplace stage s on device [0, 1]\n" + kInOrder)
            .said()
            .find("replicas come from a place that depends on the microbatch") != std::string::npos);
  CHECK(build(kTwo + "use training\n" + kInOrder).expanded.outcome == Outcome::Done);
}

TEST_CASE("fused ops carry their own indices") {
  CHECK(said_of("op X(s in stages, m in microbatches) op Y(s in stages, m in microbatches) = X(m, s)\n" + kInOrder)
            .find("[fused-op]") != std::string::npos);
  CHECK(said_of("op X(s in stages, m in microbatches, q in slices) = B(s, m, q)\n" + kInOrder).find("[fused-op]") !=
        std::string::npos);
}
