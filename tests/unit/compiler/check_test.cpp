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
        "7:5 `f`: `f` needs `g` needs `f`: this never ends [endless-call]\n");
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
  CHECK(said_of("route microbatch m = [0, 1]\n" + kInOrder) ==
        "6:1 `route microbatch m = [0, 1]`: routes of microbatches are not supported by this version [not-yet]\n");
  CHECK(said_of("on device d { F(d, 0) with B(d, 1) }").find("6:15 `F(d, 0) with B(d, 1)`: overlapped pairs") == 0);
  CHECK(said_of("slices 2\n" + kInOrder) ==
        "6:8 `2`: more than one slice is not supported by this version [not-yet]\n");
  CHECK(said_of("on device d { G(d) }").find("`G` is optional") != std::string::npos);
  CHECK(said_of("op Out(s in stages) on stream copy after F(s, *)\ncost Out = 1\non device d { Out(d) }").find(
            "`Out` runs on stream copy") != std::string::npos);
  CHECK(said_of("use \"other.sched\"\n" + kInOrder).find("[not-yet]") != std::string::npos);
  CHECK(said_of("use inference\n" + kInOrder).find("[not-yet]") != std::string::npos);
  CHECK(said_of("use trianing\n" + kInOrder).find("[unknown-name]") != std::string::npos);
  CHECK(said_of(kInOrder + "cost F after B = 1").find("[not-yet]") != std::string::npos);
  CHECK(said_of(kInOrder + "cost F with B = 1").find("[not-yet]") != std::string::npos);
  CHECK(said_of(kInOrder + "cost message(a, b) = 1").find("[not-yet]") != std::string::npos);
  CHECK(said_of(kInOrder + "freeze W <= 0.5").find("[not-yet]") != std::string::npos);
  CHECK(build("schedule x\ndevices 2\nstages 2\nmicrobatches 1\n"
              "place stage s of microbatch m on device s\n" + kInOrder)
            .said()
            .find("a place that depends on the microbatch") != std::string::npos);
  CHECK(build("schedule x\ndevices 2\nstages 2\nmicrobatches 1\nplace stage s on device [0, 1]\n" + kInOrder)
            .said()
            .find("a stage on several devices") != std::string::npos);
  CHECK(build(kTwo + "use training\n" + kInOrder).expanded.outcome == Outcome::Done);
}

TEST_CASE("fused ops carry their own indices") {
  CHECK(said_of("op X(s in stages, m in microbatches) op Y(s in stages, m in microbatches) = X(m, s)\n" + kInOrder)
            .find("[fused-op]") != std::string::npos);
  CHECK(said_of("op X(s in stages, m in microbatches, q in slices) = B(s, m, q)\n" + kInOrder).find("[fused-op]") !=
        std::string::npos);
}
