#!/usr/bin/env bash
# Every file of the library over every P in 1..12 and M in 1..40 that its `require` admits: at the file's own costs, and
# at random whole ones with and without messages. Nothing is stuck, every `expect` is true.
#
#   grid.sh STAVE FILE [SEED]
set -u
stave=$1
file=$2
seed=${3:-$(date +%s)}
RANDOM=$seed
echo "seed $seed"

grid() {
  "$stave" check "$file" --over P=1..12 --over M=1..40 "$@" && return 0
  echo "failed with: $*"
  exit 1
}

grid
for messages in 0 0 1 1 1; do
  f=$((RANDOM % 20 + 1)) i=$((RANDOM % 20 + 1)) w=$((RANDOM % 20 + 1))
  grid --cost "F=$f,I=$i,W=$w,message=$((messages * (RANDOM % 6)))"
done
