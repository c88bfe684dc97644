#!/usr/bin/env bash
# Ranks of GPUs on the stand-in for CUDA: started by mpirun, with replicas, as graphs; and what a run over checkpoints comes to
# when its parts are ranks of GPUs and one process of the CPU.
#
#   starts.sh STAVE FOLDER-OF-STAND-INS
set -u
stave=$(readlink -f -- "$1")
LD_LIBRARY_PATH=$(readlink -f -- "$2")
export LD_LIBRARY_PATH FAKE_CUDA_DEVICES=4
data=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../schedules/zb_h1.sched
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

failed=0
fail() {
  printf '%s\n' "$1"
  failed=$((failed + 1))
}
# In "out" and "err".
run() { timeout 120 "$@" >out 2>err || fail "$*: $(tail -n 3 err)"; }
# Fewer GPUs than devices in one process.
FAKE_CUDA_DEVICES=3 timeout 60 "$stave" run zb_h1 P=4 M=4 --workload integer --steps 1 --backend cuda --transport nccl >out 2>err
[[ $? == 2 ]] && grep -qF "takes a GPU for each of the 4 devices, and there are 3; --transport local" err || fail "three GPUs: $(cat out err)"
losses() { grep -ohE '"loss":[0-9.e+-]+' "$@" | cut -d : -f 2; }
# Whether losses in two logs differ by 1e-5 at most, and are $1.
alike() {
  paste -d ' ' <(losses "$2") <(losses "$3") | awk -v due="$1" 'function abs(x) { return x < 0 ? -x : x }
    NF != 2 || $1 < 1 || abs($1 - $2) > 1e-5 { wrong = 1 } END { exit wrong || NR != due }' ||
    fail "$2 and $3 differ: $(losses "$2" "$3" | tr '\n' ' ')"
}
model=(--data "$data" --width 16 --heads 2 --sequence 32 --steps 4)
gpus=(--backend cuda --transport nccl)

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_base_warn_component_unused=0
has_mpi=no
if command -v mpirun >/dev/null && mpirun --oversubscribe -n 1 true >/dev/null 2>&1; then
  has_mpi=yes
  run mpirun --oversubscribe -n 4 "$stave" run one_f_one_b P=4 M=4 --workload integer --steps 2 "${gpus[@]}"
  grep -q "result equals the sequential run's: yes" out || fail "mpirun: $(cat out err)"
fi

run "$stave" run zb_h1 P=2 M=4 --replicas 2 "${model[@]}" "${gpus[@]}" --ranks 4 --verify
grep -q "gradients of step 1 equal the sequential run's: yes" out || fail "replicas: $(cat out)"

run "$stave" run zb_h1 P=4 M=4 "${model[@]}" --clock virtual --log cpu
run "$stave" run zb_h1 P=4 M=4 "${model[@]}" "${gpus[@]}" --ranks 4 --graph iter --log graph
alike 4 cpu graph

# Embedding and head tied, as processes, on one GPU where both are on one device, and with replicas; clipped, so that the norm
# must count them once.
tied=(--tied --clip 0.5)
run "$stave" run zb_h1 P=4 M=4 "${model[@]}" "${tied[@]}" --clock virtual --log tied
run "$stave" run zb_h1 P=4 M=4 "${model[@]}" "${tied[@]}" "${gpus[@]}" --ranks 4 --log tied.ranks
run "$stave" run zb_v P=2 M=4 "${model[@]}" "${tied[@]}" --backend cuda --transport local --log tied.local
alike 4 tied tied.ranks
alike 4 tied tied.local
run "$stave" run zb_h1 P=2 M=4 --replicas 2 "${model[@]}" "${tied[@]}" --clock virtual --log tied.replicas
run "$stave" run zb_h1 P=2 M=4 --replicas 2 "${model[@]}" "${tied[@]}" "${gpus[@]}" --ranks 4 --graph iter --log tied.both
alike 4 tied.replicas tied.both
cmp -s <(losses tied) <(losses cpu) && fail "tied as not"
grep -q '"bubble":null' tied.both || fail "the bubble of a replayed step: $(tail -n 1 tied.both)"

# The first two steps on the one, which is then ended at its checkpoint, the others on the other.
half() {
  "$stave" run zb_h1 P=4 M=4 "${model[@]}" --checkpoint "$1.ck" --checkpoint-every 2 --log "$1.first" "${@:2}" >out 2>err ||
    fail "$1: $(tail -n 3 err)"
  rm -rf "$1.ck/step-00000004"
}
half gpu "${gpus[@]}" --ranks 4
run "$stave" run zb_h1 P=4 M=4 "${model[@]}" --clock virtual --checkpoint gpu.ck --resume --log gpu.then
half cpus --clock virtual
run "$stave" run zb_h1 P=4 M=4 "${model[@]}" "${gpus[@]}" --ranks 4 --checkpoint cpus.ck --resume --log cpus.then
tail -n 2 cpu >cpu.end
alike 2 cpu.end gpu.then
alike 2 cpu.end cpus.then

printf '%d wrong; MPI: %s\n' "$failed" "$has_mpi"
((failed == 0))
