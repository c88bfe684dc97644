#!/usr/bin/env bash
# Ranks that are killed, or stopped, at any moment of a run over Gloo, or over what the options name, started one by one
# without a launcher: all others end within 10 s with status 2, say which rank it was and in which op, and the last
# checkpoint loads in one process on the CPU.
#
#   faults.sh STAVE KILLS STOPS [OPTION...]
set -u
stave=$(readlink -f -- "$1")
kills=$2
stops=$3
options=("${@:4}")
((${#options[@]} > 0)) || options=(--transport gloo --clock virtual)
work=$(mktemp -d) || exit 1
pids=()
# shellcheck disable=SC2317,SC2329
clean_up() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap clean_up EXIT
text=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../schedules/zb_h1.sched
cd "$work" || exit 1

failed=0
slowest=0
fail() {
  printf '%s\n' "$1"
  failed=$((failed + 1))
}
arguments=(zb_h1 P=4 M=4 --data "$text" --width 16 --heads 2 --sequence 32 --steps 100000 --checkpoint ck --checkpoint-every 5)

trial() {
  local signal=$1 victim=$((RANDOM % 4)) r began took
  rm -rf ck
  pids=()
  export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((23000 + RANDOM % 8000)) STAVE_TOKEN=of-this-test
  for r in 0 1 2 3; do
    RANK=$r "$stave" run "${arguments[@]}" "${options[@]}" --every 100000 >/dev/null 2>"err.$r" &
    pids+=($!)
  done
  # Any moment of it, but with a checkpoint to go on from.
  for ((r = 0; r < 600; ++r)); do
    compgen -G 'ck/step-*' >/dev/null && break
    sleep 0.05
  done
  sleep "0.$((RANDOM % 900 + 100))"
  kill -"$signal" "${pids[$victim]}" 2>/dev/null
  began=$(date +%s%N)
  for r in 0 1 2 3; do
    ((r == victim)) && continue
    wait "${pids[$r]}"
    local status=$?
    ((status == 2)) || fail "$signal of rank $victim: rank $r ended with status $status"
    grep -qE "^stave: rank $victim (is gone|has not been heard of for 3 s).*it was at .*step [0-9]+" "err.$r" ||
      fail "$signal of rank $victim: rank $r said: $(cat "err.$r")"
  done
  took=$((($(date +%s%N) - began) / 1000000))
  ((took > slowest)) && slowest=$took
  ((took <= 10000)) || fail "$signal of rank $victim: the others took $took ms"
  kill -KILL "${pids[$victim]}" 2>/dev/null
  { wait "${pids[$victim]}"; } 2>/dev/null
  timeout -s INT 3 "$stave" run "${arguments[@]}" --clock virtual --resume --every 1 >out 2>err
  grep -qE '^ +[0-9]+ +[0-9.]+' out || fail "$signal of rank $victim: the checkpoint does not load: $(head -n 1 err)"
}

for ((i = 0; i < kills; ++i)); do trial KILL; done
for ((i = 0; i < stops; ++i)); do trial STOP; done
printf '%d ranks killed, %d stopped; %d wrong; the others had ended after %d ms at most\n' "$kills" "$stops" "$failed" "$slowest"
((failed == 0))
