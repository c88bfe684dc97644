#!/usr/bin/env bash
# Ranks on two hosts, which are network namespaces with a link between them: by Gloo, and when the link goes silent.
#
#   link.sh STAVE SOURCE_FOLDER
#
# Needs root and ip (Debian: iproute2); says "skipped" and exits with 77 without, or where there may be no namespaces.
set -uo pipefail

stave=$(realpath "$1")
source_folder=$(realpath "$2")

skip() {
  echo "skipped: $1"
  exit 77
}
command -v ip >/dev/null || skip "ip is not installed (Debian: iproute2)"
((EUID == 0)) || skip "only root can make network namespaces"
if [[ $("$stave" run "$source_folder/schedules/gpipe.sched" P=2 M=2 --transport gloo 2>&1) == *"has no transport"* ]]; then
  skip "stave was built without gloo"
fi

left=stave-left-$$
right=stave-right-$$
folder=$(mktemp -d)
started=()
failures=0

# shellcheck disable=SC2317,SC2329
clean_up() {
  local pid
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  ip netns del "$left" 2>/dev/null
  ip netns del "$right" 2>/dev/null
  rm -rf "$folder"
}
trap clean_up EXIT

# 198.18.0.0/15 is for tests of networks (RFC 2544).
if ! { ip netns add $left && ip netns add $right &&
  ip -n $left link add veth0 type veth peer name veth0 netns $right &&
  ip -n $left address add 198.18.0.1/24 dev veth0 && ip -n $right address add 198.18.0.2/24 dev veth0 &&
  ip -n $left link set lo up && ip -n $right link set lo up &&
  ip -n $left link set veth0 up && ip -n $right link set veth0 up; } 2>"$folder/ip"; then
  skip "no namespaces with a link: $(head -n 1 "$folder/ip")"
fi

cd "$source_folder" || exit 1
export WORLD_SIZE=4 MASTER_ADDR=198.18.0.1 MASTER_PORT=29500 STAVE_TOKEN=of-this-test

# Ranks 0 and 1 on the left, 2 and 3 on the right.
start() {
  local rank host
  started=()
  for rank in 0 1 2 3; do
    host=$left
    ((rank < 2)) || host=$right
    RANK=$rank timeout -k 1 60 ip netns exec $host "$stave" run schedules/one_f_one_b.sched P=4 M=8 --workload integer \
      --transport gloo --clock virtual --steps "$1" >"$folder/$rank" 2>&1 &
    started+=($!)
  done
}

# Waits for all ranks, of which each must end with a status.
finish() {
  local rank status
  for rank in 0 1 2 3; do
    wait "${started[rank]}"
    status=$?
    ((status == $1)) && continue
    echo "FAILED: rank $rank has status $status, not $1"
    failures=$((failures + 1))
  done
}

# A line must stand in what a rank said.
said() {
  grep -qE "$2" "$folder/$1" && return
  echo "FAILED: rank $1 did not say: $2"
  sed 's/^/    /' "$folder/$1"
  failures=$((failures + 1))
}

echo "two hosts"
start 3
finish 0
said 0 "result equals the sequential run's: yes"

echo "the link goes silent: each host finds out of the other"
start 1000000
sleep 3
ip -n $right link set veth0 down
began=$SECONDS
finish 2
took=$((SECONDS - began))
for rank in 0 1; do said $rank '^stave: rank [23] has not been heard of for 3 s; it was at '; done
for rank in 2 3; do said $rank '^stave: rank 0 has not been heard of for 3 s; it was at '; done
if ((took > 10)); then
  echo "FAILED: that took $took s"
  failures=$((failures + 1))
fi

((failures == 0)) && echo "all well"
exit $((failures > 0))
