#!/usr/bin/env bash
# Every training schedule of the library on ranks: over Gloo and MPI the integer stages give the result of a sequential run
# exactly, and the transformer has the losses of one process within 1e-5.
#
#   library.sh STAVE [SCHEDULE...]
set -u
stave=$(readlink -f -- "$1")
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# As root Open MPI wants to be asked twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_base_warn_component_unused=0
has_mpi=no
if command -v mpirun >/dev/null && mpirun --oversubscribe -n 1 "$stave" run one_f_one_b P=1 M=1 --workload integer --steps 1 \
  --transport mpi >/dev/null 2>&1; then
  has_mpi=yes
fi

failed=0
tried=0
fail() {
  printf '%s: %s\n' "$1" "$2"
  failed=$((failed + 1))
}

# Gloo or MPI, then the arguments of `run`.
ranks() {
  local transport=$1 count=$2
  shift 2
  if [[ $transport == gloo ]]; then
    timeout 60 "$stave" run "$@" --ranks "$count"
  else
    timeout 60 mpirun --oversubscribe -n "$count" "$stave" run "$@" --transport mpi
  fi
}

schedules=("$@")
if ((${#schedules[@]} == 0)); then
  mapfile -t schedules < <("$stave" list | grep -oE '^[a-z0-9_]+')
fi
for schedule in "${schedules[@]}"; do
  # It serves, and trains nothing.
  [[ $schedule == td_pipe ]] && continue
  tried=$((tried + 1))
  count=$("$stave" table "$schedule" --format program | awk '$1 == "devices" && NF == 2 { print $2 - 1 }')
  small=(--steps 2 --width 16 --heads 2 --sequence 32)
  "$stave" run "$schedule" "${small[@]}" --log "$schedule.inproc" >/dev/null 2>err || fail "$schedule" "$(cat err)"
  for transport in gloo mpi; do
    [[ $transport == mpi && $has_mpi == no ]] && continue
    ranks $transport "$count" "$schedule" --workload integer --steps 2 >out 2>err ||
      fail "$schedule over $transport" "$(tail -n 3 err)"
    grep -q "result equals the sequential run's: yes" out || fail "$schedule over $transport" "another result"
    [[ $transport == mpi ]] && continue
    ranks $transport "$count" "$schedule" "${small[@]}" --log "$schedule.$transport" >out 2>err ||
      fail "$schedule over $transport" "$(tail -n 3 err)"
    paste <(grep -oE '"loss":[0-9.e+-]+' "$schedule.inproc") <(grep -oE '"loss":[0-9.e+-]+' "$schedule.$transport") |
      awk -F '[:\t]' 'function abs(x) { return x < 0 ? -x : x }
        NF != 4 || abs($2 - $4) > 1e-5 || $2 < 1 { wrong = 1 } END { exit wrong || NR != 2 }' ||
      fail "$schedule over $transport" "other losses than one process"
  done
done
printf '%d schedules tried on ranks, %d wrong; MPI: %s\n' "$tried" "$failed" "$has_mpi"
((failed == 0 && tried > 0))
