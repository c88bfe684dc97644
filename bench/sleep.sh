#!/usr/bin/env bash
# Wall time of a schedule whose ops are sleeps of 5 ms, against the simulator's prediction.
#
#   bench/sleep.sh STAVE
set -eu
stave=$1
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.."
printf '%-14s %3s %3s %8s   %s\n' schedule P M message 'measured   predicted difference'
for schedule in one_f_one_b zb_h1; do
  for p in 4 8; do
    for message in 0 0.2; do
      line=$("$stave" run "schedules/$schedule.sched" P=$p M=$((2 * p)) --workload sleep --unit-ms 5 \
        --cost message=$message --steps 5 | grep '^makespan')
      printf '%-14s %3s %3s %5s ms  %s\n' "$schedule" "$p" $((2 * p)) "$(awk "BEGIN { print 5 * $message }")" \
        "$(sed 's/^makespan *//' <<<"$line")"
    done
  done
done
