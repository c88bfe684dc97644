#!/usr/bin/env bash
# What goes wrong with ranks of GPUs, on the stand-in for CUDA: every rank ends with status 2 and says the same, which names
# the rank, where it was and why.
#
#   faults.sh STAVE FOLDER-OF-STAND-INS
set -u
stave=$(readlink -f -- "$1")
LD_LIBRARY_PATH=$(readlink -f -- "$2")
export LD_LIBRARY_PATH
work=$(mktemp -d) || exit 1
pids=()
# shellcheck disable=SC2317,SC2329
clean_up() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap clean_up EXIT
cd "$work" || exit 1

failed=0
fail() {
  printf '%s\n' "$1"
  failed=$((failed + 1))
}
# Starts rank $1 of 4, with the settings and arguments that follow.
start() {
  local rank=$1
  shift
  env RANK="$rank" "$@" --backend cuda --transport nccl >"out.$rank" 2>"err.$rank" &
  pids+=($!)
}
begin() {
  pids=()
  export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((23000 + RANDOM % 8000)) STAVE_TOKEN=of-this-test
}
# All ranks but $1 end with status 2 within 10 s, or $3, and each says $2.
all_say() {
  local began=$SECONDS r status
  for r in 0 1 2 3; do
    [[ $r == "$1" ]] && continue
    wait "${pids[$r]}"
    status=$?
    ((status == 2)) || fail "$2: rank $r ended with status $status"
    grep -qE "$2" "err.$r" || fail "$2: rank $r said: $(cat "err.$r")"
  done
  ((SECONDS - began <= ${3:-10})) || fail "$2: it took $((SECONDS - began)) s"
}
run=("$stave" run one_f_one_b P=4 M=4 --workload integer)
export FAKE_CUDA_DEVICES=4

# An error that NCCL finds by itself, on one rank.
begin
for r in 0 1 3; do start $r "${run[@]}" --steps 100000; done
start 2 FAKE_NCCL_FAIL_AFTER=60 "${run[@]}" --steps 100000
pids=("${pids[0]}" "${pids[1]}" "${pids[3]}" "${pids[2]}")
all_say none '^stave: rank 2: nccl: .*remote process exited'
grep -qE '^  device 2: .*(activation|gradient) of [FB]\(' err.2 || fail "rank 2 does not say where its lanes are: $(cat err.2)"

# A kernel that CUDA refuses.
begin
for r in 0 2 3; do start $r "${run[@]}" --steps 100000; done
start 1 FAKE_CUDA_FAIL_AFTER=400 "${run[@]}" --steps 100000
pids=("${pids[0]}" "${pids[3]}" "${pids[1]}" "${pids[2]}")
all_say none '^stave: rank 1: .*unspecified launch failure'

# A message that never ends, in a step after the first, of which nobody knows how long it takes.
begin
for r in 0 1 3; do start $r "${run[@]}" --steps 100000; done
start 2 FAKE_NCCL_STALL_AFTER=60 "${run[@]}" --steps 100000
all_say none '^stave: rank [0-3]: .*, step [0-9]+ has not ended after 1[0-9]\.[0-9] s; rank [0-3] ' 20
cat err.* | grep -qE '^  rank 2: .*, step [0-9]+, waits for rank [13]' ||
  fail "nobody says where rank 2 is: $(cat err.*)"

# Fewer GPUs than ranks; none; each its own; all the same one.
begin
for r in 0 1 2 3; do start $r FAKE_CUDA_DEVICES=2 "${run[@]}" --steps 1; done
all_say none "^stave: rank [0-3]: host $(uname -n) has 4 ranks, a GPU each, but rank 2 sees 2 GPUs"
begin
for r in 0 1 2 3; do start $r FAKE_CUDA_DEVICES=0 "${run[@]}" --steps 1; done
all_say none "^stave: rank [0-3]: host $(uname -n) has 4 ranks, a GPU each, but rank 0 sees 0 GPUs: no CUDA-capable device"
begin
for r in 0 1 2 3; do start $r FAKE_CUDA_DEVICES=1 "${run[@]}" --steps 1; done
all_say none "rank 1 sees 1 GPU, and it would be that of rank 0 too"
begin
for r in 0 1 2 3; do start $r FAKE_CUDA_DEVICES=1 FAKE_CUDA_FIRST_DEVICE=$r "${run[@]}" --steps 1; done
for r in 0 1 2 3; do wait "${pids[$r]}" || fail "a GPU of its own each: $(cat "err.$r")"; done
grep -q "result equals the sequential run's: yes" out.0 || fail "a GPU of its own each: $(cat out.0)"

# Other ranks than devices.
env -u WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT "$stave" run one_f_one_b P=4 M=4 --workload integer --steps 1 --backend cuda --transport nccl --ranks 3 >out 2>err
grep -q "the schedule has 4 devices, one a rank, but" err || fail "3 ranks: $(cat err)"

printf '%d wrong\n' "$failed"
((failed == 0))
