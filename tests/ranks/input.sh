#!/usr/bin/env bash
# Ranks that do not fit each other, and worlds that fail them: each ends with status 2 and says which rank, and why. An
# interrupt ends all of them after one step, with a checkpoint.
#
#   input.sh STAVE
set -u
stave=$(readlink -f -- "$1")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
text=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../schedules/zb_h1.sched
cd "$work" || exit 1
head -c 600 "$text" >one
head -c 601 "$text" >two
failed=0
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 STAVE_TOKEN=of-this-test
arguments=(run zb_h1 P=2 M=2 --width 16 --heads 2 --sequence 16 --clock virtual)

# Another port for every case.
port=$((20000 + RANDOM % 8000))
next() { export MASTER_PORT=$((++port)); }
rank() {
  local r=$1
  shift
  RANK=$r timeout 60 "$stave" "${arguments[@]}" --transport gloo "$@" >"out.$r" 2>"err.$r"
}
# What is wrong, the rank, the status that is due, and what its errors must say.
expect() {
  local what=$1 r=$2 due=$3 found=$4 says=$5
  ((found == due)) && { [[ -z $says ]] || grep -qF -- "$says" "err.$r"; } && return
  printf '%s: rank %s ended with status %s and said: %s\n' "$what" "$r" "$found" "$(cat "err.$r")"
  failed=$((failed + 1))
}
# Two ranks whose options differ; each says the same.
differ() {
  local what=$1 says=$2 status
  next
  rank 0 $3 &
  rank 1 $4
  expect "$what" 1 2 $? "$says"
  wait $!
  status=$?
  expect "$what" 0 2 "$status" "$says"
}

differ "other data" "rank 1 runs something else than rank 0: it has 'data " "--data one" "--data two"
differ "other rates" "it has 'learning-rate 0.003', rank 0 'learning-rate 0.1'" "--data one --learning-rate 0.1" "--data one"
differ "one with checkpoints" "it has 'checkpoint 0 false', rank 0 'checkpoint 150 false'" "--data one --checkpoint ck" "--data one"
differ "one tied" "it has 'tied true', rank 0 'tied false'" "--data one" "--data one --tied"

next
rank 0 --data one --steps 2000 &
first=$!
rank 1 --data one --steps 2000 &
second=$!
for ((i = 0; i < 300; ++i)); do
  grep -q ' step ' out.0 && break
  sleep 0.05
done
RANK=1 timeout 60 "$stave" "${arguments[@]}" --transport gloo --data one >out.2 2>err.2
expect "a rank taken twice" 2 2 $? "rank 1 is not let in: rank 1 is taken by another process"
wait "$first"
expect "the ranks beside it" 0 0 $? ""
wait "$second"
expect "the ranks beside it" 1 0 $? ""

MASTER_ADDR=no.such.host.invalid rank 1 --data one
expect "no such host" 1 2 $? "the address of rank 0, no.such.host.invalid, cannot be found"

unset WORLD_SIZE MASTER_ADDR MASTER_PORT
"$stave" "${arguments[@]}" --data one --ranks 3 >out.0 2>err.0
expect "too many ranks" 0 2 $? "stave: the schedule has 2 devices, one a rank, but --ranks has started 3 ranks"

"$stave" "${arguments[@]}" --data one --ranks 2 --replicas 2 >out.0 2>err.0
expect "too few ranks" 0 2 $? "stave: the schedule has 4 devices in 2 replicas, one a rank, but --ranks has started 2 ranks"

# A limit of the size of files is met as a full disk is: what stands there stays.
"$stave" "${arguments[@]}" --data one --tied --ranks 2 --steps 2 --checkpoint full >out.0 2>err.0
expect "a first checkpoint" 0 0 $? ""
(ulimit -f 20 && "$stave" "${arguments[@]}" --data one --tied --ranks 2 --steps 4 --checkpoint full --resume >out.0 2>err.0)
expect "a full disk" 0 2 $? "stave: rank 0: checkpoint full/.step-00000004.part/stage-0: File too large"
"$stave" "${arguments[@]}" --data one --tied --ranks 2 --steps 4 --checkpoint full --resume >out.0 2>err.0
expect "what stood there" 0 0 $? ""

# Until it takes steps.
"$stave" "${arguments[@]}" --data one --ranks 2 --steps 1000000 --checkpoint ended --checkpoint-every 20 --every 1 >out.0 2>err.0 &
run=$!
for ((i = 0; i < 600; ++i)); do
  compgen -G 'ended/step-*' >/dev/null && break
  sleep 0.05
done
kill -TERM "$run"
wait "$run"
expect "an interrupt" 0 143 $? "stave: interrupted; ends as soon as it can"
said=$(sed -n 's/^interrupted after step \([0-9]*\); its checkpoint is in ended$/\1/p' out.0)
[[ -n $said && -d ended/step-$(printf %08d "$said") ]] || {
  printf 'an interrupt: no checkpoint of step "%s" in %s\n' "$said" "$(ls ended)"
  failed=$((failed + 1))
}
"$stave" "${arguments[@]}" --data one --ranks 2 --steps $((said + 2)) --checkpoint ended --resume --every 1 >out.0 2>err.0
expect "what goes on from it" 0 0 $? ""
grep -qE "^ +$((said + 1)) " out.0 || {
  printf 'step %d does not follow: %s\n' "$((said + 1))" "$(cat out.0)"
  failed=$((failed + 1))
}

printf '%d wrong\n' "$failed"
((failed == 0))
