#!/usr/bin/env bash
# Profile, predict, run: what a schedule of a profiled model is predicted to take, against a run on the virtual clock. A shared
# machine is faster one minute than the next, so both are done in turn, ROUNDS times. The least of them are compared, since
# neighbours only ever add, and the medians.
#
#   bench/profile.sh STAVE [ROUNDS]
set -eu
stave=$(readlink -f -- "$1")
rounds=${2:-9}
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for schedule in one_f_one_b interleaved zb_h1 zb_v; do
  for round in $(seq "$rounds"); do
    "$stave" profile "$schedule" P=4 M=8 --repeats 8 -o "$work/costs.toml"
    "$stave" simulate "$schedule" P=4 M=8 --costs "$work/costs.toml" --json > "$work/$schedule.$round.predicted"
    "$stave" run "$schedule" P=4 M=8 --costs "$work/costs.toml" --clock virtual --steps 8 --json \
      > "$work/$schedule.$round.measured"
  done
done
python3 - "$work" "$rounds" <<'END'
import json, statistics, sys
work, rounds = sys.argv[1], int(sys.argv[2])
print("%-14s %34s   %34s   %s" % ("", "the least of all rounds", "their medians", "a round's own"))
print("%-14s %s   %s   %s" % ("schedule", *2 * ["%11s %11s %10s" % ("predicted", "measured", "difference")], "least to most"))
for schedule in ("one_f_one_b", "interleaved", "zb_h1", "zb_v"):
    pairs = []
    for i in range(1, rounds + 1):
        predicted = json.load(open(f"{work}/{schedule}.{i}.predicted"))["makespan"]
        measured = json.load(open(f"{work}/{schedule}.{i}.measured"))["measured"]["makespan"]
        pairs.append((predicted, measured))
    texts = []
    for typical in (min, statistics.median):
        predicted, measured = (typical(each) for each in zip(*pairs))
        texts.append("%8.2f ms %8.2f ms %+8.1f %%" % (predicted / 1e3, measured / 1e3, 100 * (measured / predicted - 1)))
    each = sorted(100 * (m / p - 1) for p, m in pairs)
    print("%-14s %s   %s   %+.1f to %+.1f %%" % (schedule, *texts, each[0], each[-1]))
END
