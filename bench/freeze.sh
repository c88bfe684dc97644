#!/usr/bin/env bash
# What freezing takes off W: of ZB-H1, whose even microbatches freeze a ratio on every stage, the share that parameter groups
# make of it, by multiply-adds, against the time that they really save. Mean and range over the stages.
#
#   bench/freeze.sh STAVE [STEPS]
set -eu
stave=$(readlink -f -- "$1")
steps=${2:-20}
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%-10s %10s %14s %12s %22s   %s\n' "asked for" "by groups" "of W's work" "of its time" "least to most" "loss, first and last"
for ratio in 0.1 0.25 0.5 0.75 0.9 1; do
  { cat schedules/zb_h1.sched; printf 'freeze W(s, m) = %s if m mod 2 == 0 else 0\n' "$ratio"; } >"$work/frozen.sched"
  "$stave" run "$work/frozen.sched" P=4 M=8 --width 128 --blocks 8 --steps "$steps" --clock virtual --json >"$work/out"
  python3 - "$work/out" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))
frozen = run["frozen"]
mean = lambda name: 100 * sum(each[name] for each in frozen) / len(frozen)
times = sorted(100 * each["time"] for each in frozen)
print("%8.0f %% %8.1f %% %12.1f %% %10.1f %% %12.1f to %5.1f %%   %.3f %.3f" % (
    mean("asked"), mean("groups"), mean("work"), mean("time"), times[0], times[-1], run["steps"][0]["loss"], run["steps"][-1]["loss"]))
END
done
