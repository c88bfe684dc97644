#!/usr/bin/env bash
# Four ranks on this host, ops of 5 ms as sleeps, messages of 1 MiB, against the simulator's prediction: makespan, and how much
# of the time of the messages was hidden behind computing.
#
#   bench/ranks.sh STAVE
set -eu
stave=$1
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.."
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run=(run one_f_one_b P=4 M=8 --workload sleep --unit-ms 5 --message-kib 1024 --steps 10)
for message in 0 1/5; do
  for how in "one process" "gloo" "mpi" "mpi, synchronous"; do
    arguments=("${run[@]}" --cost "message=$message")
    case $how in
      "one process") lines=$("$stave" "${arguments[@]}") ;;
      gloo) lines=$("$stave" "${arguments[@]}" --ranks 4) ;;
      mpi) lines=$(mpirun --oversubscribe -n 4 "$stave" "${arguments[@]}" --transport mpi) ;;
      *) lines=$(mpirun --oversubscribe -n 4 "$stave" "${arguments[@]}" --transport mpi --rendezvous) ;;
    esac
    printf '%-17s message %-4s %s\n' "$how" "$message" "$(grep -E '^makespan|^messages' <<<"$lines" | tr -s ' ' | paste -sd ' ')"
  done
done
