#!/usr/bin/env bash
# Every training schedule of the library on the stand-in for CUDA: over `local`, and where there are GPUs enough over `nccl` and
# over `ranks`, which is nccl between processes, the integer stages give the result of a sequential run exactly, and the
# transformer has the losses of the CPU within 1e-5.
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
on_gpus() { LD_LIBRARY_PATH=$stand_ins FAKE_CUDA_DEVICES=$gpus timeout 120 "$stave" run "$@" --backend cuda; }

schedules=("$@")
if ((${#schedules[@]} == 0)); then
  mapfile -t schedules < <("$stave" list | grep -oE '^[a-z0-9_]+')
fi
for schedule in "${schedules[@]}"; do
  # It serves, and trains nothing.
  [[ $schedule == td_pipe ]] && continue
  small=(--steps 2 --width 16 --heads 2 --sequence 32)
  "$stave" run "$schedule" "${small[@]}" --log "$schedule.cpu" >/dev/null 2>err || fail "$schedule" "$(cat err)"
  count=$("$stave" table "$schedule" --format program | awk '$1 == "devices" && NF == 2 { print $2 - 1 }')
  for way in "${ways[@]}"; do
    case $way in
      local) transport=(--transport local) ;;
      nccl) transport=(--transport nccl) ;;
      ranks) transport=(--transport nccl --ranks "$count") ;;
    esac
    [[ $way != local ]] && ((count > gpus)) && continue
    tried=$((tried + 1))
    on_gpus "$schedule" "${transport[@]}" --workload integer --steps 2 >out 2>err ||
      fail "$schedule over $way" "$(tail -n 3 err)"
    grep -q "result equals the sequential run's: yes" out || fail "$schedule over $way" "another result"
    on_gpus "$schedule" "${transport[@]}" "${small[@]}" --log "$schedule.$way" >out 2>err ||
      fail "$schedule over $way" "$(tail -n 3 err)"
    paste <(grep -oE '"loss":[0-9.e+-]+' "$schedule.cpu") <(grep -oE '"loss":[0-9.e+-]+' "$schedule.$way") |
      awk -F '[:\t]' 'function abs(x) { return x < 0 ? -x : x }
        NF != 4 || abs($2 - $4) > 1e-5 || $2 < 1 { wrong = 1 } END { exit wrong || NR != 2 }' ||
      fail "$schedule over $way" "other losses than the CPU"
  done
done
printf '%d runs of the library on the stand-in for CUDA, %d wrong\n' "$tried" "$failed"
((failed == 0 && tried > 0))
