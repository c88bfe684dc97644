#!/usr/bin/env bash
# Ranks under a real Slurm: a controller and two nodes on the loopback, for as long as the test runs.
#
#   slurm.sh STAVE SOURCE_FOLDER [FOLDER-OF-STAND-INS]
#
# With a folder of the stand-ins for CUDA, ranks of GPUs too.
# Needs root (slurmd starts tasks for users) and Debian's slurm-wlm and munge; says "skipped" and exits with 77 without.
# Nothing is written outside a folder of its own under /run, and every process it starts is ended by its number.
set -uo pipefail

stave=$(realpath "$1")
source_folder=$(realpath "$2")
stand_ins=${3:+$(realpath "$3")}
export PATH=$PATH:/usr/sbin

skip() {
  echo "skipped: $1"
  exit 77
}
for each in munged slurmctld slurmd srun sinfo; do
  command -v "$each" >/dev/null || skip "$each is not installed (Debian: slurm-wlm, munge)"
done
((EUID == 0)) || skip "only root can start a slurmd that starts tasks"
for each in gloo mpi; do
  if [[ $("$stave" run "$source_folder/schedules/gpipe.sched" P=2 M=2 --transport $each 2>&1) == *"has no transport"* ]]; then
    skip "stave was built without $each"
  fi
done
id munge >/dev/null 2>&1 || skip "there is no user munge"

folder=$(mktemp -d /run/stave-slurm.XXXXXX) || skip "no folder can be made under /run"
chmod 755 "$folder"
started=()
failures=0

# shellcheck disable=SC2317,SC2329
clean_up() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${started[@]}"; do
    for _ in {1..50}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null
  done
  rm -rf "$folder"
}
trap clean_up EXIT

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# munged, with a key of its own: nobody else's jobs are let in.
install -d -o munge -g munge -m 755 "$folder/munge"
dd if=/dev/urandom bs=1024 count=1 of="$folder/munge/key" status=none
chown munge:munge "$folder/munge/key"
chmod 400 "$folder/munge/key"
setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --key-file="$folder/munge/key" \
  --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" \
  --seed-file="$folder/munge/seed" >"$folder/munged.out" 2>&1 &
started+=($!)

# Ports that are free now, three in a row.
base=0
for port in {16821..17821..10}; do
  if ! (for p in $port $((port + 1)) $((port + 2)); do
    if (: </dev/tcp/127.0.0.1/"$p") 2>/dev/null; then exit 1; fi
  done); then continue; fi
  base=$port
  break
done
((base > 0)) || skip "no three ports in a row are free from 16821 on"

export SLURM_CONF=$folder/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=stave
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$((base + 2))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/linear
MpiDefault=none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$base-$((base + 1))] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
END
mkdir -p "$folder/state" "$folder/spool.n1" "$folder/spool.n2"

for _ in {1..50}; do [[ -S $folder/munge/socket ]] && break; sleep 0.1; done
slurmctld -D >"$folder/slurmctld.out" 2>&1 &
started+=($!)
for node in n1 n2; do
  slurmd -D -N $node >"$folder/slurmd.$node.out" 2>&1 &
  started+=($!)
done
is_up=0
for _ in {1..100}; do
  if [[ $(sinfo -h -t idle -o %D 2>/dev/null) == 2 ]]; then is_up=1; break; fi
  sleep 0.2
done
if ((is_up == 0)); then
  tail -n 5 "$folder"/*.out "$folder"/*.log "$folder"/munge/log
  skip "Slurm does not come up here"
fi

cd "$source_folder" || exit 1
# Names of these nodes are Slurm's alone: none resolves, so rank 0's address is said.
export MASTER_ADDR=127.0.0.1
run=("$stave" run schedules/one_f_one_b.sched P=4 M=8 --workload integer)

# What ranks say, then their status.
output=$folder/output
tell() {
  sed 's/^/    /' "$output"
}

echo "four ranks on two nodes, by Gloo"
timeout 60 srun -N 2 -n 4 "${run[@]}" --steps 3 --transport gloo >"$output" 2>&1
status=$?
if ((status != 0)) || ! grep -q "result equals the sequential run's: yes" "$output"; then
  fail "status $status"
  tell
fi

echo "two jobs at a time: each has a port of its own"
for i in 1 2; do
  timeout 60 srun -N 1 -n 4 "${run[@]}" --steps 2 --transport gloo >"$output.$i" 2>&1 &
  jobs[i]=$!
done
for i in 1 2; do
  if ! wait "${jobs[i]}"; then
    fail "job $i"
    sed 's/^/    /' "$output.$i"
  fi
done

if srun --mpi=list 2>&1 | grep -q pmix_v4; then
  echo "four ranks on a node, by MPI"
  timeout 60 srun --mpi=pmix_v4 -N 1 -n 4 "${run[@]}" --steps 3 --transport mpi >"$output" 2>&1
  status=$?
  if ((status != 0)) || ! grep -q "result equals the sequential run's: yes" "$output"; then
    fail "status $status"
    tell
  fi
else
  echo "skipped: MPI, as this Slurm has no pmix_v4"
fi

if [[ -n $stand_ins ]]; then
  # Both nodes are this host: a GPU of the one is one of the other.
  echo "four ranks of GPUs on a node; and on two that have the same GPUs"
  for nodes in 1 2; do
    LD_LIBRARY_PATH=$stand_ins FAKE_CUDA_DEVICES=4 timeout 60 srun -N $nodes -n 4 "${run[@]}" --steps 3 \
      --backend cuda --transport nccl >"$output" 2>&1
    status=$?
    if ((nodes == 1)); then
      ((status == 0)) && grep -q "result equals the sequential run's: yes" "$output" && continue
    else
      ((status == 2)) && grep -q 'it would be that of rank 0 too' "$output" && continue
    fi
    fail "$nodes nodes: status $status"
    tell
  done
else
  echo "skipped: ranks of GPUs, without the stand-ins for CUDA"
fi

echo "more ranks than the schedule has devices"
timeout 60 srun -N 2 -n 5 "${run[@]}" --steps 1 --transport gloo >"$output" 2>&1
status=$?
if ((status != 2)) || ! grep -q 'the schedule has 4 devices, one a rank, but srun has started 5 ranks' "$output"; then
  fail "status $status"
  tell
fi

echo "a rank that is killed: the others say which, and end"
began=$SECONDS
# shellcheck disable=SC2016
timeout 60 srun -N 2 -n 4 --kill-on-bad-exit=0 bash -c '
  "$@" &
  rank=$!
  if [[ $SLURM_PROCID == 2 ]]; then sleep 3; kill -KILL $rank; fi
  wait $rank' ranks "${run[@]}" --steps 100000 --transport gloo >"$output" 2>&1
status=$?
named=$(grep -c 'rank 2 is gone: it has closed its connection; it was at ' "$output")
if ((status == 0 || status == 124 || named < 3 || SECONDS - began > 20)); then
  fail "status $status, named by $named ranks, after $((SECONDS - began)) s"
  tell
fi

((failures == 0)) && echo "all well"
exit $((failures > 0))
