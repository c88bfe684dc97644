#!/usr/bin/env bash
# A file of the library over every P to 8 and M to 32 that its `require` admits, and chunks, waves, slices, groups and
# steps to 4: at the file's own costs, at random whole ones, and at those with messages. Nothing is stuck, every `expect`
# is true.
#
#   grid.sh STAVE FILE [SEED]
set -u
stave=$1
file=$2
seed=${3:-$(date +%s)}
RANDOM=$seed
echo "seed $seed"

# What varies, of the parameters that the file has. A group of interleaved 1F1B has P microbatches or more, and SlimPipe
# takes slices by the P.
declare -A last=([P]=8 [M]=32 [V]=4 [waves]=4 [Q]=4 [k]=4 [g]=4 [N]=8 [n]=16 [S]=8 [steps]=3 [phase]=4 [clients]=8
  [budget]=16 [delay]=2)
[[ $file == */slimpipe.sched ]] && last[Q]=8
parameters=$(sed -n '/^schedule /,/)/p' "$file" | tr -d '\n' | sed 's/^[^(]*(//; s/\[[^]]*\]//g')
over=()
while IFS='=' read -r name _; do
  name=${name//[[:space:]]/}
  [[ -n $name && -n ${last[$name]:-} ]] && over+=(--over "$name=1..${last[$name]}")
done < <(tr ',' '\n' <<<"$parameters")
[[ ${over[*]} == "--over P=1..8 --over M=1..32" ]] && over=(--over P=1..12 --over M=1..40)
# The microbatches of some are lists.
((${#over[@]} > 0)) || over=(--over P=1..8)

grid() {
  "$stave" check "$file" "${over[@]}" "$@" && return 0
  echo "failed with: ${over[*]} $*"
  exit 1
}

grid
training=1
grep -q '^use inference' "$file" && training=0
((training)) && grid --cost F=2,I=1,W=1
for messages in 0 0 1 1; do
  f=$((RANDOM % 20 + 1)) i=$((RANDOM % 20 + 1)) w=$((RANDOM % 20 + 1))
  costs="F=$f,I=$i,W=$w"
  ((training)) || costs="Prefill=$f,Decode=$i"
  grid --cost "$costs,message=$((messages * (RANDOM % 6 + 1)))"
done
