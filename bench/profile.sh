#!/usr/bin/env bash
# Profile, predict, run: what a schedule of a profiled model is predicted to take, against a run: with four devices on the
# virtual clock, with two on the wall clock too. A shared machine is faster one second than the next, so both are done in turn,
# a few steps each, ROUNDS times. The least of them are compared, since neighbours only ever add, and the medians.
#
#   bench/profile.sh STAVE [ROUNDS]
set -eu
stave=$(readlink -f -- "$1")
rounds=${2:-30}
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for devices in 4 2; do
  clocks=virtual
  [ "$devices" = 4 ] || clocks="virtual wall"
  for schedule in one_f_one_b interleaved zb_h1 zb_v; do
    for round in $(seq "$rounds"); do
      "$stave" profile "$schedule" "P=$devices" M=8 --repeats 6 -o "$work/costs.toml"
      "$stave" simulate "$schedule" "P=$devices" M=8 --costs "$work/costs.toml" --json > "$work/predicted"
      for clock in $clocks; do
        "$stave" run "$schedule" "P=$devices" M=8 --costs "$work/costs.toml" --clock "$clock" --steps 7 --json > "$work/measured"
        mv -- "$work/measured" "$work/$schedule.$devices.$clock.$round.measured"
        cp -- "$work/predicted" "$work/$schedule.$devices.$clock.$round.predicted"
      done
    done
  done
done
python3 - "$work" "$rounds" <<'END'
import json, statistics, sys
work, rounds = sys.argv[1], int(sys.argv[2])
print("%-26s %34s   %34s   %s" % ("", "the least of all rounds", "their medians", "a round's own"))
print("%-26s %s   %s   %s" % ("schedule", *2 * ["%11s %11s %10s" % ("predicted", "measured", "difference")], "least to most"))
for devices, clock in ((4, "virtual"), (2, "virtual"), (2, "wall")):
    for schedule in ("one_f_one_b", "interleaved", "zb_h1", "zb_v"):
        pairs = []
        for i in range(1, rounds + 1):
            name = f"{work}/{schedule}.{devices}.{clock}.{i}"
            predicted = json.load(open(name + ".predicted"))["makespan"]
            measured = json.load(open(name + ".measured"))["measured"]["makespan"]
            pairs.append((predicted, measured))
        texts = []
        for typical in (min, statistics.median):
            predicted, measured = (typical(each) for each in zip(*pairs))
            texts.append("%8.2f ms %8.2f ms %+8.1f %%" % (predicted / 1e3, measured / 1e3, 100 * (measured / predicted - 1)))
        each = sorted(100 * (m / p - 1) for p, m in pairs)
        print("%-26s %s   %s   %+.1f to %+.1f %%" % (f"{schedule}, P={devices}, {clock}", *texts, each[0], each[-1]))
END
