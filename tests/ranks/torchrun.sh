#!/usr/bin/env bash
# Ranks under torchrun itself, which keeps MASTER_PORT for its own store: one agent, two agents of two ranks each, and a rank
# that is killed. Says "skipped" and exits with 77 where there is no torchrun.
#
#   torchrun.sh STAVE
set -u
stave=$(readlink -f -- "$1")
if ! command -v torchrun >/dev/null; then
  echo "skipped: torchrun is not installed (PyTorch)"
  exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

failed=0
fail() {
  printf '%s\n' "$1"
  sed 's/^/    /' "${@:2}"
  failed=$((failed + 1))
}
ranks=(timeout 120 torchrun --no-python)
run=("$stave" run one_f_one_b P=4 M=8 --workload integer --transport gloo)

echo "one agent"
"${ranks[@]}" --nproc-per-node 4 "${run[@]}" --steps 3 >out 2>&1 || fail "status $?" out
grep -q "result equals the sequential run's: yes" out || fail "no result" out

echo "two agents"
port=$((23000 + RANDOM % 8000))
for node in 0 1; do
  "${ranks[@]}" --nnodes 2 --node-rank $node --master-addr 127.0.0.1 --master-port $port --nproc-per-node 2 \
    "${run[@]}" --steps 3 >node$node 2>&1 &
  agents[node]=$!
done
for node in 0 1; do wait "${agents[node]}" || fail "node $node: status $?" node$node; done
grep -q "result equals the sequential run's: yes" node0 || fail "no result" node0 node1

echo "a rank that is killed"
# shellcheck disable=SC2016
"${ranks[@]}" --nproc-per-node 4 bash -c '
  "$@" &
  rank=$!
  if [[ $RANK == 2 ]]; then sleep 3; kill -KILL $rank; fi
  wait $rank' ranks "${run[@]}" --steps 100000 >out 2>&1 && fail "it ended well" out
grep -q "rank 2 is gone: it has closed its connection; it was at " out || fail "nobody names the rank" out

printf '%d wrong\n' "$failed"
((failed == 0))
