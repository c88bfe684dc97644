#!/usr/bin/env bash
# Every training schedule of the library on the stand-in for CUDA: over `local`, and where there are GPUs enough over `nccl` and
# over `ranks`, which is nccl between processes, the integer stages give the result of a sequential run exactly, and the
# transformer has the losses of the CPU within 1e-5. Two replicas of a schedule too, whose gradients are summed.
#
#   library.sh STAVE FOLDER-OF-STAND-INS WAYS [SCHEDULE...]
set -u
stave=$(readlink -f -- "$1")
stand_ins=$(readlink -f -- "$2")
read -r -a ways <<<"$3"
shift 3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
gpus=8

failed=0
tried=0

fail() {
  printf '%s: %s\n' "$1" "$2"
  failed=$((failed + 1))
}
# A strict process fails if it has misused the stand-ins.
on_gpus() { LD_LIBRARY_PATH=$stand_ins FAKE_CUDA_DEVICES=$gpus FAKE_CUDA_STRICT=1 timeout 120 "$stave" run "$@" --backend cuda; }

small=(--steps 2 --width 16 --heads 2 --sequence 32)
# compare NAME DEVICES ARGUMENT...: a schedule, and what else `run` is told.
compare() {
  local name=$1 count=$2 way transport
  shift 2
  rm -f cpu.log
  "$stave" run "$@" "${small[@]}" --log cpu.log >/dev/null 2>err || fail "$name" "$(cat err)"
  for way in "${ways[@]}"; do
    case $way in
      local) transport=(--transport local) ;;
      nccl) transport=(--transport nccl) ;;
      ranks) transport=(--transport nccl --ranks "$count") ;;
    esac
    [[ $way != local ]] && ((count > gpus)) && continue
    tried=$((tried + 1))
    on_gpus "$@" "${transport[@]}" --workload integer --steps 2 >out 2>err || fail "$name over $way" "$(tail -n 3 err)"
    grep -q "result equals the sequential run's: yes" out || fail "$name over $way" "another result"
    rm -f gpu.log
    on_gpus "$@" "${transport[@]}" "${small[@]}" --log gpu.log >out 2>err || fail "$name over $way" "$(tail -n 3 err)"
    paste <(grep -oE '"loss":[0-9.e+-]+' cpu.log) <(grep -oE '"loss":[0-9.e+-]+' gpu.log) |
      awk -F '[:\t]' 'function abs(x) { return x < 0 ? -x : x }
        NF != 4 || abs($2 - $4) > 1e-5 || $2 < 1 { wrong = 1 } END { exit wrong || NR != 2 }' ||
      fail "$name over $way" "other losses than the CPU"
  done
}

schedules=("$@")
if ((${#schedules[@]} == 0)); then
  mapfile -t schedules < <("$stave" list | grep -oE '^[a-z0-9_]+')
fi
for schedule in "${schedules[@]}"; do
  # It serves, and trains nothing.
  [[ $schedule == td_pipe ]] && continue
  count=$("$stave" table "$schedule" --format program | awk '$1 == "devices" && NF == 2 { print $2 - 1 }')
  compare "$schedule" "$count" "$schedule"
done
compare "two replicas of one_f_one_b" 4 one_f_one_b P=2 M=4 --replicas 2
compare "two replicas of zb_v" 4 zb_v P=2 M=4 --replicas 2
printf '%d runs of the library on the stand-in for CUDA, %d wrong\n' "$tried" "$failed"
((failed == 0 && tried > 0))
