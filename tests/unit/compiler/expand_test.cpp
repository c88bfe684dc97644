#include "compiled.h"

using namespace stave;

TEST_CASE("1F1B for three devices and four microbatches") {
  const Built built = build(
      "schedule one(P = 3, M = 4)\ndevices P\nstages P\nmicrobatches M\nplace stage s on device s\n"
      "on device d {\n  let warmup = min(M, P - 1 - d)\n  repeat warmup { F(d, next) }\n"
      "  repeat M - warmup { F(d, next) B(d, next) }\n  repeat warmup { B(d, next) }\n}\n");
  CHECK(built.order(0) == "F(0, 0) F(0, 1) F(0, 2) B(0, 0) F(0, 3) B(0, 1) B(0, 2) B(0, 3)");
  CHECK(built.order(2) == "F(2, 0) B(2, 0) F(2, 1) B(2, 1) F(2, 2) B(2, 2) F(2, 3) B(2, 3)");
  CHECK(built.schedule().is_static());
  CHECK(built.schedule().expansion->parameters[1].text == "4");
}

TEST_CASE("what the training operations need") {
  const Built built = build(kTwo + kInOrder);
  CHECK(built.needs("F(0, 0)") == "");
  CHECK(built.needs("F(1, 1)") == "F(0, 1) by activation");
  CHECK(built.needs("I(0, 1)") == "I(1, 1) by gradient, F(0, 1)");
  CHECK(built.needs("I(1, 1)") == "F(1, 1)");
  CHECK(built.needs("W(1, 0)") == "I(1, 0)");
  CHECK(built.needs("B(1, 0)") == "");
  CHECK(built.schedule().device_of[built.op("W(1, 0)").value] == 1);
}

TEST_CASE("`next` goes by the order of the text, and counts B as its I and W") {
  const Built built = build(kTwo +
                            "on device d { F(d, next) F(d, next) I(d, next) B(d, 1) W(d, next) }\n");
  CHECK(built.order(0) == "F(0, 0) F(0, 1) I(0, 0) B(0, 1) W(0, 0)");
  const Built slots = build(kTwo + "on device d { F(d, next) at 5  F(d, next) at 0  B(d, 1) at 2  B(d, next) at 7 }");
  CHECK(slots.order(0) == "F(0, 1) B(0, 1) F(0, 0) B(0, 0)");
  const Built block = build(kTwo + "on device d { any { F(d, next) }  F(d, next)  B(d, next)  B(d, next) }");
  CHECK(block.order(0) == "F(0, 1) B(0, 0) B(0, 1) | any F(0, 0)");
}

TEST_CASE("`next` of a stage, and of a declared index") {
  const Built built = build(
      "schedule x\ndevices 1\nstages 2\nmicrobatches 1\nplace stage s on device 0\n"
      "op K(s in stages, k in 1 .. 4) after F(s, 0)\ncost K = 1\n"
      "on device d { F(next, 0) F(next, 0) B(1, 0) B(next, 0) repeat 3 { K(0, next) } K(1, next) K(1, *) }");
  CHECK(built.order(0) == "F(0, 0) F(1, 0) B(1, 0) B(0, 0) K(0, 1) K(0, 2) K(0, 3) K(1, 1) K(1, 2) K(1, 3)");
}

TEST_CASE("`*` is what is left: microbatches rising, in one its stages falling") {
  const Built built = build(
      "schedule x\ndevices 2\nstages 4\nmicrobatches 2\nplace stage s on device s mod 2\n"
      "on device d { F(d, 0) any { F(*, *) } fill { B(*, *) } limit activations <= 2 * d + 1 }");
  CHECK(built.order(0) == "F(0, 0) | any F(2, 0) F(2, 1) F(0, 1) | fill B(2, 0) B(0, 0) B(2, 1) B(0, 1) | limit 1");
  CHECK(built.order(1) == "F(1, 0) | any F(3, 0) F(3, 1) F(1, 1) | fill B(3, 0) B(1, 0) B(3, 1) B(1, 1) | limit 3");
  CHECK_FALSE(built.schedule().is_static());
}

TEST_CASE("slots sort a block, by the text where they are equal") {
  const Built built = build(kTwo +
                            "on device d { any { for m in microbatches { F(d, m) at 1 - m  I(d, m) at 0 } } "
                            "fill { W(d, *) } }");
  CHECK(built.order(0) == "any I(0, 0) F(0, 1) I(0, 1) F(0, 0) | fill W(0, 0) W(0, 1)");
}

TEST_CASE("several orders of one device stand beside each other") {
  const Built built = build(kTwo +
                            "on device d { F(d, next) fill { W(d, 1) } }\non device d in 0 .. 2 { F(d, next) }\n"
                            "on device 0 { I(0, *) W(0, *) }\non device (P - 1) { I(1, *) W(1, *) }");
  CHECK(built.order(0) == "F(0, 0) | fill W(0, 1) | F(0, 1) | I(0, 0) I(0, 1) W(0, 0)");
}

TEST_CASE("functions that give ops") {
  const Built built = build(kTwo +
                            "let fwd(d) = F(d, next)\nlet one(d, k) = fwd(d) if k == 0 else B(d, next)\n"
                            "on device d { let all = one(d, 1)  fwd(d) one(d, 0) all() B(d, *) }");
  CHECK(built.order(1) == "F(1, 0) F(1, 1) B(1, 0) B(1, 1)");
}

TEST_CASE("declared ops: recomputation, added needs, ragged lists, conditions") {
  const Built built = build(
      kTwo +
      "op R(s in stages, m in microbatches) after F(s, m)\nI(s, m) after R(s, m)\ncost R = 1\n"
      "op U(s in stages, k in 0 .. M div 2) after W(s, 2 * k .. 2 * k + 2)\ncost U = 0\n"
      "op T(m in microbatches, j in 0 .. m) on device m after F(m, *)\ncost T = 3\n"
      "op C(d in devices) after C(d - 1) if d == 1\ncost C = 1\n"
      "on device d { for m in microbatches { F(d, m) R(d, m) B(d, m) } U(d, 0) T(*, *) C(*) }");
  CHECK(built.needs("I(0, 1)") == "I(1, 1) by gradient, F(0, 1), R(0, 1)");
  CHECK(built.needs("U(1, 0)") == "W(1, 0), W(1, 1)");
  CHECK(built.needs("T(1, 0)") == "F(1, 0), F(1, 1)");
  CHECK(built.needs("C(1)") == "");
  CHECK(built.order(0) == "F(0, 0) R(0, 0) B(0, 0) F(0, 1) R(0, 1) B(0, 1) U(0, 0)");
  CHECK(built.order(1) == "F(1, 0) R(1, 0) B(1, 0) F(1, 1) R(1, 1) B(1, 1) U(1, 0) T(1, 0) C(1)");
  CHECK_FALSE(built.schedule().op_exists(built.op("C(0)")));
  CHECK_FALSE(built.schedule().op_exists(built.op("T(0, 0)")));
}

TEST_CASE("an op declared again replaces the library's") {
  const Built built = build(kTwo + "op I(s in stages, m in microbatches, q in slices) after F(s, m)\n" + kInOrder);
  CHECK(built.needs("I(0, 1)") == "F(0, 1)");
  CHECK(built.needs("W(0, 1)") == "I(0, 1)");
}

TEST_CASE("who waits for a fused op waits for its parts; what it needs, its first part needs") {
  const Built built = build(kTwo +
                            "op X(s in stages, m in microbatches) after B(s, m)\ncost X = 1\n"
                            "op Y(s in stages, m in microbatches) after F(s, m)\ncost Y = 1\nB(s, m) after Y(s, m)\n"
                            "on device d { F(d, *) Y(d, *) B(d, *) X(d, *) }");
  CHECK(built.needs("X(0, 1)") == "I(0, 1), W(0, 1)");
  CHECK(built.needs("I(1, 1)") == "F(1, 1), Y(1, 1)");
}

TEST_CASE("tables") {
  const Built built = build(kTwo + "table {\n0: F0 F1 . B0 B1\n1: . F0 I0 F1 B1 1W0\n}");
  CHECK(built.order(0) == "F(0, 0) F(0, 1) B(0, 0) B(0, 1)");
  CHECK(built.order(1) == "F(1, 0) I(1, 0) F(1, 1) B(1, 1) W(1, 0)");
  const Origin origin = built.schedule().origins->of(DeviceId(1), built.op("W(1, 1)"), 0);
  CHECK(built.sources.text(origin.span) == "B1");
}

TEST_CASE("wrong tables") {
  CHECK(said_of("table {\n0: F0 1F1 B0 B1\n1: F0 B0 F1 B1\n}") ==
        "7:7 `1F1`: `F(1, 1)` runs on device 1, not on device 0 [wrong-device]\n"
        "  5:1 `place stage s on device s`: stage 1 is placed here\n");
  CHECK(said_of("table {\n0: F0 F2 B0 B1\n1: F0 B0 F1 B1\n}") ==
        "7:7 `F2`: there is no microbatch 2: they run from 0 to 1 [index-outside]\n");
  CHECK(said_of("table {\n0: F0 F1 B0 B1 W1\n1: F0 B0 F1 B1\n}") ==
        "7:16 `W1`: `W(0, 1)` is written a second time [repeated-op]\n  7:13 `B1`: written first here\n");
  CHECK(said_of("table {\n0: F0 F1 B0 B1\n}").find("device 1 has no order: the table has no row for it") !=
        std::string::npos);
  CHECK(said_of("table {\n0: F0 F1 B0 B1\n1: F0 F1 B0 B1\n2: F0\n}") ==
        "9:1 `2`: there is no device 2: they run from 0 to 1 [index-outside]\n");
  CHECK(said_of("table {\n0: F0 G0\n1: F0\n}").find("write `G(...)` [table-cell]") !=
        std::string::npos);
  CHECK(build("schedule x\ndevices 1\nstages 2\nmicrobatches 1\nplace stage s on device 0\ntable {\n0: F0\n}").said() ==
        "7:4 `F0`: device 0 has 2 stages: write which, as in `0F1` [table-cell]\n");
}

TEST_CASE("wrong orders name the loop values") {
  CHECK(said_of("on device d { for m in 0 .. 3 { F(d, m) } }") ==
        "6:38 `m`: there is no microbatch 2: they run from 0 to 1 [index-outside]\n  = on device 0, with m = 2\n");
  CHECK(said_of("on device d { for m in microbatches { F(d, m / 2) } }") ==
        "6:44 `m / 2`: microbatch must be whole, and is 1/2 [not-whole]\n  = on device 0, with m = 1\n");
  CHECK(said_of("on device d { F(1 - d, 0) }") ==
        "6:15 `F(1 - d, 0)`: `F(1, 0)` runs on device 1, not on device 0 [wrong-device]\n"
        "  5:1 `place stage s on device s`: stage 1 is placed here\n  = on device 0\n");
  CHECK(said_of("on device d { repeat 3 { F(d, next) } }") ==
        "6:31 `next`: no microbatch is left for `F(0, next)`: all 2 are written [no-next]\n  = on device 0\n");
  CHECK(said_of("on device d { for m in microbatches { F(d, 1) } }") ==
        "6:39 `F(d, 1)`: `F(0, 1)` is written a second time [repeated-op]\n"
        "  6:39 `F(d, 1)`: written first here, on device 0, with m = 0\n  = on device 0, with m = 1\n");
  CHECK(said_of("on device d { F(d, 0) at 1 + 1  F(d, 1) at 2 }") ==
        "6:33 `F(d, 1)`: `F(0, 0)` and `F(0, 1)` are both in slot 2 [same-slot]\n  6:15 `F(d, 0)`: F(0, 0)\n"
        "  = on device 0\n");
  CHECK(said_of("on device d { repeat d - 1 { } }").find("the number of turns is -1: it must not be negative") !=
        std::string::npos);
  CHECK(said_of("on device d { repeat 1 / 2 { } }").find("[not-whole]") != std::string::npos);
  CHECK(said_of("on device 0 { F(0, *) }").find("device 1 has no order [no-order]") != std::string::npos);
  CHECK(said_of("on device 2 { }").find("there is no device 2: they run from 0 to 1") != std::string::npos);
  CHECK(said_of("on device d in [0, 0] { }").find("device 0 is in this list twice") != std::string::npos);
}

TEST_CASE("loops that emit nothing, and ops without end, end in an error") {
  CHECK(said_of("on device d { for k in 0 .. 1000000000000000 { } }").find("[too-many-steps]") != std::string::npos);
  CHECK(said_of("on device d { repeat 1000000000000000 { repeat 1000000000000000 { } } }").find("[too-many-steps]") !=
        std::string::npos);
  CHECK(said_of("on device d { repeat 1000000000000000 { F(d, 0) } }").find("[repeated-op]") != std::string::npos);
}

TEST_CASE("counts") {
  CHECK(build(kTwo + kInOrder, {"P=0"}).said() ==
        "2:9 `P`: the number of devices is 0; it must be from 1 to 16384 [count]\n");
  CHECK(build(kTwo + kInOrder, {"M=1000000000000000"}).said().find("the number of microbatches is 1000000000000000") !=
        std::string::npos);
  CHECK(build(kTwo + kInOrder, {"P=1/2"}).said().find("[not-whole]") != std::string::npos);
  CHECK(build(kTwo + kInOrder, {"P=16384", "M=16777216"}).said().find("[too-many]") != std::string::npos);
  CHECK(build("schedule x\ndevices len(stages)\nstages len(devices)\nmicrobatches 1\nplace stage s on device s\n" +
              kInOrder)
            .said()
            .find("the number of devices depends on itself [circular]") != std::string::npos);
  CHECK(build("schedule x\ndevices 2\nstages [3, 4]\nmicrobatches 1\nplace stage s on device s\n" + kInOrder)
            .schedule()
            .stages == 2);
  CHECK(build(kTwo + kInOrder, {"P=3"}).schedule().devices == 3);
  CHECK(build("schedule x\ndevices 1\nstages 2\nmicrobatches 1\nplace stage s on device s\n" + kInOrder).said() ==
        "5:25 `s`: there is no device 1: they run from 0 to 0 [index-outside]\n  = with s = 1\n");
}

TEST_CASE("parameters") {
  const std::string text =
      "schedule x(P = 2, N = 2 * P, sizes = [1, 2])\nrequire N >= P \"too few\"\nrequire len(sizes) == P\n"
      "devices P\nstages P\nmicrobatches N\nplace stage s on device s\non device d { F(d, *) B(d, *) }";
  CHECK(build(text).schedule().microbatches == 4);
  CHECK(build(text, {"P=3", "sizes=[1, 2, 3]"}).schedule().microbatches == 6);
  const Built refused = build(text, {"N=1"});
  CHECK(refused.expanded.outcome == Outcome::Refused);
  CHECK(refused.said() == "2:9 `N >= P`: too few [require]\n  = with P = 2, N = 1, sizes = [1, 2]\n");
  CHECK(build(text, {"P=3"}).expanded.outcome == Outcome::Refused);
  const Built unknown = build(text, {"size=3"});
  CHECK(unknown.expanded.outcome == Outcome::WrongArgument);
  CHECK(unknown.expanded.failure.message == "schedule `x` has no parameter `size`: did you mean `sizes`?");
  CHECK(build(text, {"P=2", "P=3"}).expanded.outcome == Outcome::WrongArgument);
  CHECK_FALSE(read_argument("P").ok());
  CHECK_FALSE(read_argument("P=").ok());
  CHECK_FALSE(read_argument("P=Q").ok());
  CHECK_FALSE(read_argument("P=stages").ok());
  CHECK_FALSE(read_argument("P=1/0").ok());
  CHECK_FALSE(read_argument("P=1 == 1").ok());
  CHECK_FALSE(read_argument("P=99999999999999999999").ok());
  CHECK_FALSE(read_argument("P=0 .. 1000000000000").ok());
}

TEST_CASE("costs") {
  const std::string text = kTwo + kInOrder;
  CHECK(build(text).cost("B(0, 0)") == "2");
  CHECK(build(text + "cost F(s, m) = s + m / 2, I = 3\ncost W = I / 2\n").cost("F(1, 1)") == "3/2");
  CHECK(build(text + "cost I = 3\ncost W = I / 2\n").cost("B(1, 1)") == "9/2");
  CHECK(build(text + "cost W(s, m) = s + 1\n").cost("B(1, 1)") == "3");
  CHECK(build(text + "cost W(s, m) = s + 1\n").schedule().costs.duration[KindId(2)].values.size() == 2);
  CHECK(build(text + "cost B = 5\n").cost("B(1, 1)") == "5");
  CHECK(build(text + "cost F = 5\n", {}, "F=2,I=7/2").cost("F(1, 1)") == "2");
  CHECK(build(text + "cost F = 5\n", {}, "F=2,I=7/2").cost("B(1, 1)") == "9/2");
  CHECK(build(text, {}, "F(s, m)=s*P").cost("F(1, 0)") == "2");
  const auto message = [&](const std::string& lines, std::size_t payload) {
    return build(text + lines).schedule().costs.message.of(payload, 0, 1, 0);
  };
  CHECK(message("cost message = 1, activation = 2\n", 0) == 1);
  CHECK(message("cost message = 1, activation = 2\n", 1) == 2);
  CHECK(message("cost message = 1, activation = 2\n", 2) == 1);
  CHECK(message("cost message(a, b) = a + 2 * b, gradient = message(1, 0)\n", 1) == 2);
  CHECK(message("cost message(a, b) = a + 2 * b, gradient = message(1, 0)\n", 2) == 1);
  // Devices do not matter where the values are alike.
  CHECK(build(text + "cost message(a, b) = a + b\n").schedule().costs.message[1] == 1);
  CHECK(build(text + "cost activation = 2\n", {}, "message=3").schedule().costs.message[1] == 3);
  CHECK(build(text + "cost message(a, b) = a\n", {}, "message=3").schedule().costs.message.of(1, 1, 0, 0) == 3);
  CHECK(build(text, {}, "message(a, b)=a").schedule().costs.message.of(2, 1, 0, 0) == 1);
}

TEST_CASE("wrong costs") {
  const std::string text = kTwo + kInOrder;
  CHECK(build(text + "cost F(s, m) = 1 - s - m\n").said() ==
        "7:16 `1 - s - m`: the cost of `F` is -1; none may be below 0 with s = 1, m = 1 [negative-cost]\n");
  CHECK(build(text + "cost message = -1\n").said().find("[negative-cost]") != std::string::npos);
  CHECK(build(kTwo + "op R(s in stages)\non device d { F(d, *) B(d, *) R(d) }").said() ==
        "6:4 `R`: `R` has no cost [no-cost]\n");
  CHECK(build(text + "cost I(s, m) = s\ncost W = I\n").said() ==
        "8:10 `I`: the cost of `I` is not one number here [not-one-number]\n");
  CHECK(build(text, {}, "X=1").expanded.outcome == Outcome::WrongArgument);
  CHECK(build(text, {}, "F=").expanded.outcome == Outcome::WrongArgument);
  CHECK(build(text, {}, "F=-1").expanded.outcome == Outcome::Rejected);
}

TEST_CASE("freezing skips a share of the weight gradients") {
  const std::string text = kTwo + kInOrder + "cost F = 1, I = 1, W = 2\n";
  const Built built = build(text + "freeze W(s, m) = 0.5 if s < 1 else 0\n");
  CHECK(built.cost("W(0, 1)") == "1");
  CHECK(built.cost("W(1, 1)") == "2");
  CHECK(built.cost("B(0, 1)") == "2");
  CHECK(built.cost("B(1, 1)") == "3");
  CHECK(built.schedule().costs.freeze == std::vector<Rational>{*Rational::make(1, 2), *Rational::make(1, 2), 0, 0});
  CHECK(build(text + "cost B = 5\nfreeze W = 1\n").cost("B(1, 1)") == "3");
  CHECK(build(text + "freeze W = 2\n").said() ==
        "8:12 `2`: a freeze ratio is 2; it must be from 0 to 1 [freeze-ratio]\n");
  CHECK(build(text + "freeze F = 0.5\n").said().find("[freeze-target]") != std::string::npos);
  CHECK(build(text + "cost B = 1\nfreeze W = 1\n").said().find("[negative-cost]") != std::string::npos);
}

TEST_CASE("memory is taken at the start and given back at the end") {
  const Built built = build(kTwo + kInOrder + "memory F(s, m) = 2 + s, W = -1\nmemory weights(s) = 4 - s\n");
  const CostSet& costs = built.schedule().costs;
  const OpSet& ops = built.schedule().ops;
  const auto value = [&](const IdVector<KindId, IndexedValues>& of, const std::string& op) {
    const OpName name = ops.name(built.op(op));
    return of[name.kind][name].text();
  };
  CHECK(value(costs.memory_taken, "F(1, 0)") == "3");
  CHECK(value(costs.memory_given, "F(1, 0)") == "0");
  CHECK(value(costs.memory_given, "W(1, 0)") == "1");
  CHECK(value(costs.memory_given, "B(1, 0)") == "3/2");
  CHECK(value(costs.memory_taken, "B(1, 0)") == "0");
  CHECK(costs.weights == std::vector<Rational>{4, 3});
}

TEST_CASE("a let without a value is an error, unless a require refuses first") {
  const std::string text = kTwo + kInOrder + "require M > 1 \"two or more\"\nlet x = 1 / (M - 1)\n";
  CHECK(build(text).expanded.outcome == Outcome::Done);
  CHECK(build(text, {"M=1"}).expanded.outcome == Outcome::Refused);
  CHECK(build(kTwo + kInOrder + "let x = 1 / (M - 2)").said() == "7:14 `M - 2`: a division by zero [division-by-zero]\n");
}

TEST_CASE("origins say which turn of a loop wrote an op, and what `next` stood for") {
  const Built built = build(kTwo +
                            "on device d {\n  for k in 0 .. M { F(d, next) }\n  I(d, *)\n  for k in 0 .. M { W(d, k) }\n"
                            "}");
  const Origins& origins = *built.schedule().origins;
  const Origin next = origins.of(DeviceId(1), built.op("F(1, 1)"), 0);
  CHECK(built.sources.text(next.span) == "F(d, next)");
  CHECK(next.note == "on device 1, with k = 1, `next` being 1");
  CHECK(origins.of(DeviceId(0), built.op("I(0, 1)"), 0).note == "on device 0, `*` being 1");
  CHECK(origins.of(DeviceId(0), built.op("W(0, 1)"), 0).note == "on device 0, with k = 1");
  CHECK_FALSE(origins.of(DeviceId(0), built.op("W(0, 1)"), 1).span.valid());
  CHECK(built.sources.text(origins.need(built.op("F(1, 0)"), built.op("F(0, 0)"))) ==
        "receives activation from F(s - 1, m, q)");
  CHECK_FALSE(origins.need(built.op("F(0, 0)"), built.op("F(1, 0)")).valid());
}

TEST_CASE("slices that differ by microbatch") {
  const Built built = build(
      "schedule x\ndevices 1\nstages [7]\nmicrobatches [5, 4]\nslices [[3, 2], [4]]\nplace stage s on device 0\n"
      "on device d { any { F(*, *, *) } any { B(*, *, *) } }\n");
  CHECK(built.order(0) == "any F(0, 0, 0) F(0, 0, 1) F(0, 1, 0) | any B(0, 0, 0) B(0, 0, 1) B(0, 1, 0)");
  CHECK(built.needs("I(0, 0, 0)") == "F(0, 0, 0), I(0, 0, 1)");
  CHECK(built.needs("I(0, 1, 0)") == "F(0, 1, 0)");
  CHECK(built.needs("F(0, 1, 1)") == "");
  CHECK_FALSE(built.schedule().op_exists(built.op("F(0, 1, 1)")));
  CHECK(built.schedule().sizes == Sizes{{7}, {5, 4}, {{3, 2}, {4}}});
}
