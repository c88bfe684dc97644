#!/usr/bin/env bash
# Stages of one's own on GPUs, on the stand-in: the same losses as the example's on the CPU, and what is refused.
#
#   own_stage.sh STAVE FOLDER-OF-STAND-INS LIBRARY-OF-THE-CPU LIBRARY-OF-GPUS
set -u
stave=$(readlink -f -- "$1")
LD_LIBRARY_PATH=$(readlink -f -- "$2")
export LD_LIBRARY_PATH FAKE_CUDA_DEVICES=4 FAKE_CUDA_STRICT=1
cpu=$(readlink -f -- "$3")
gpu=$(readlink -f -- "$4")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

failed=0
fail() {
  printf '%s\n' "$1"
  failed=$((failed + 1))
}
run() { timeout 120 "$stave" run "$@" >out 2>err || fail "$*: $(tail -n 3 err)"; }
losses() { grep -ohE '"loss":[0-9.e+-]+' "$1"; }
# Whether a log has the losses of another, $1 of them.
same() {
  [[ $(losses "$2" | wc -l) == "$1" ]] && cmp -s <(losses "$2") <(losses "$3") ||
    fail "$2 and $3 differ: $(losses "$2" | tr '\n' ' ') and $(losses "$3" | tr '\n' ' ')"
}
refused() {
  timeout 60 "$stave" run "${@:2}" >out 2>err
  local status=$?
  ((status == 2)) && grep -qF -- "$1" err || fail "${*:2}: status $status, $(cat err)"
}

for schedule in "zb_h1 P=4 M=8" "interleaved P=2 M=4" "pipedream_2bw P=2 M=6"; do
  read -ra words <<<"$schedule"
  # A schedule that updates weights itself clips nothing.
  [[ $schedule == pipedream* ]] || words+=(--clip 0.5)
  run "${words[@]}" --steps 6 --stage "$cpu" --clock virtual --log cpu
  run "${words[@]}" --steps 6 --stage "$gpu" --backend cuda --log local
  run "${words[@]}" --steps 6 --stage "$gpu" --backend cuda --transport nccl --log nccl
  same 6 cpu local
  same 6 cpu nccl
  rm -f cpu local nccl
done
run zb_h1 P=2 M=4 --replicas 2 --steps 4 --stage "$cpu" --clock virtual --log cpu
run zb_h1 P=2 M=4 --replicas 2 --steps 4 --stage "$gpu" --backend cuda --transport nccl --ranks 4 --log ranks
run zb_h1 P=2 M=4 --replicas 2 --steps 4 --stage "$gpu" --backend cuda --log local --checkpoint ck --checkpoint-every 2
same 4 cpu ranks
same 4 cpu local
rm -rf ck/step-00000004
run zb_h1 P=2 M=4 --replicas 2 --steps 4 --stage "$gpu" --backend cuda --log resumed --checkpoint ck --resume
tail -n 2 cpu >cpu.end
same 2 cpu.end resumed

refused "computes on the host: run it with --backend cpu" zb_h1 P=2 M=4 --steps 1 --stage "$cpu" --backend cuda
refused "computes on GPUs: run it with --backend cuda" zb_h1 P=2 M=4 --steps 1 --stage "$gpu"
refused "the width is 2 to 1024" zb_h1 P=2 M=4 --steps 1 --stage "$gpu" --backend cuda --stage-options width=1
refused "--graph replays calls" zb_h1 P=2 M=4 --steps 1 --stage "$gpu" --backend cuda --graph iter
refused "--verify compares with a run on the CPU" zb_h1 P=2 M=4 --steps 1 --stage "$gpu" --backend cuda --verify

printf '%d wrong\n' "$failed"
((failed == 0))
