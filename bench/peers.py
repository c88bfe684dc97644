#!/usr/bin/env python3
"""Seconds that other programs take to order and price a schedule, against stave's in the same run.

    peers.py BENCH_STEPS [--victarry CHECKOUT] [--sail-sg CHECKOUT]

A peer is run from a checkout of its repository, which the caller has; without one it is skipped, and the output says so:
  --victarry  github.com/Victarry/PP-Schedule-Visualization: 1F1B, generated and executed
  --sail-sg   github.com/sail-sg/zero-bubble-pipeline-parallelism: the zero-bubble heuristic, all eight variants
stave's time is that of bench_steps: expand, order, prove, lower, simulate. Reading is not counted, neither of its text nor
of a peer's modules. Both are the best of five runs on one thread. Where a peer prices the same order, its makespan must be
stave's.
"""
import argparse
import importlib
import importlib.util
import pathlib
import re
import subprocess
import sys
import time
import types

SIZES = [(8, 64), (16, 64), (32, 256)]
RUNS = 5
# Of bench_steps: reading, and what goes beyond one price.
NOT_COUNTED = ("parse, check", "compile prices", "from a table to prices", "and to a Program", "price", "price 16 sets",
               "simulate, links", "total", "limit: one pass")


def best(run):
    """Seconds of the fastest run, and what it returns."""
    seconds, result = float("inf"), None
    for _ in range(RUNS):
        begin = time.perf_counter()
        result = run()
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds, result


def stave(steps, name, *parameters):
    """Seconds and makespan of a schedule of the library."""
    file = pathlib.Path(__file__).resolve().parent.parent / "schedules" / f"{name}.sched"
    seconds, makespan = float("inf"), None
    for _ in range(RUNS):
        text = subprocess.run([steps, file, *parameters], check=True, capture_output=True, text=True).stdout
        ops = int(re.search(r"(\d+) ops", text).group(1))
        rows = re.findall(r"^(.{22}) *[\d.]+ +([\d.]+) ", text, re.M)
        nanoseconds = sum(float(each) for step, each in rows if step.strip() not in NOT_COUNTED)
        seconds = min(seconds, nanoseconds * ops * 1e-9)
        makespan = int(re.search(r"^makespan (\d+)", text, re.M).group(1))
    return seconds, makespan


def module(name, file):
    """A file of a checkout as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, file)
    result = importlib.util.module_from_spec(spec)
    sys.modules[name] = result
    spec.loader.exec_module(result)
    return result


def victarry(checkout):
    sys.path.insert(0, str(checkout))
    model = importlib.import_module("src.execution_model")
    strategies = importlib.import_module("src.strategies")

    def run(devices, microbatches):
        config = model.ScheduleConfig(num_devices=devices, num_stages=devices, num_batches=microbatches)
        schedule = strategies.generate_1f1b_schedule(config)
        schedule.execute()
        return int(schedule.get_total_execution_time())

    return run


def sail_sg(checkout):
    # Its package asks for these, and the heuristic does not.
    for name in ("torch", "pulp"):
        sys.modules.setdefault(name, types.ModuleType(name)).__dict__.setdefault("Tensor", object)
    folder = checkout / "megatron/core/pipeline_parallel/zerobubble/scheduler"
    package = "megatron.core.pipeline_parallel.zerobubble.scheduler"
    graph = module(f"{package}.graph", folder / "graph.py")
    heuristic = module(f"{package}.zb", folder / "zb.py")

    def run(devices, microbatches, budget):
        same = lambda value: [value] * devices
        config = graph.GraphConfig(
            cost_f=same(1.0), cost_b=same(1.0), cost_w=same(1.0), cost_comm=0.0, mem_f=same(2), mem_b=same(-1),
            mem_w=same(-1), max_mem=same(2 * budget), n_stages=devices, n_micro=microbatches)
        built = heuristic.Graph.build_graph(devices, microbatches, config)
        return int(max(heuristic.initial_solution(built, print_result=False)[2]))

    return run


def row(name, devices, microbatches, peer, own, note=""):
    print(f"{name:<34} {devices:>3} {microbatches:>4} {peer * 1e3:>9.2f} ms {own * 1e3:>9.2f} ms {peer / own:>8.1f}{note}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2].strip())
    parser.add_argument("steps")
    parser.add_argument("--victarry", type=pathlib.Path)
    parser.add_argument("--sail-sg", type=pathlib.Path)
    options = parser.parse_args()
    print(f"{'peer':<34} {'P':>3} {'M':>4} {'peer':>12} {'stave':>12} {'ratio':>8}")
    wrong = 0
    if options.victarry is None:
        print("Victarry, 1F1B: skipped, --victarry names no checkout")
    else:
        run = victarry(options.victarry)
        sys.setrecursionlimit(1000000)
        for devices, microbatches in SIZES:
            seconds, makespan = best(lambda: run(devices, microbatches))
            own, expected = stave(options.steps, "one_f_one_b", f"P={devices}", f"M={microbatches}")
            differ = makespan != expected
            wrong += differ
            row("Victarry, 1F1B", devices, microbatches, seconds, own,
                f"   makespan {makespan}, and stave's is {expected}" if differ else "")
    if options.sail_sg is None:
        print("sail-sg, zero-bubble heuristic: skipped, --sail-sg names no checkout")
    else:
        run = sail_sg(options.sail_sg)
        for devices, microbatches in SIZES:
            for times in (1, 2):
                budget = times * devices
                seconds, makespan = best(lambda: run(devices, microbatches, budget))
                own, ours = stave(options.steps, "zero_bubble", f"P={devices}", f"M={microbatches}", f"budget={budget}")
                row(f"sail-sg, zero bubble, {times}p", devices, microbatches, seconds, own,
                    f"   makespan {makespan}, and of stave's order {ours}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
