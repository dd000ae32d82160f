"""Programs that take turns at one model, in slices of some 20 ms, so that each has the same machine and the same clock.

The turns of a row run in a process of their own: what peers keep in memory goes with it, and one that crashes or does not
come to an end is left out of a second try, and takes nothing else with it.
"""

import math
import multiprocessing
import os
import signal
import time
from pathlib import Path

import peers
import ptc
import results

SLICE = 0.02  # seconds
TURNS = 13  # at least: the fourth smallest of 13 is below the median with 95 %
ATTEMPTS = 3  # at a row that is noisy
LIMIT = 600  # seconds without a word from the process: torch.compile takes minutes for some models
CONTEXT = multiprocessing.get_context("spawn")  # a fork would share what the parent's libraries hold


def slice_of(run):
    """The fastest run of a slice; the first one warms the caches and counts only if it is alone in filling the slice."""
    started = time.perf_counter()
    best = math.inf
    count = 0
    while True:
        before = time.perf_counter()
        run()
        after = time.perf_counter()
        count += 1
        if count > 1 or after - started > 10 * SLICE:
            best = min(best, after - before)
        if after - started >= SLICE and best < math.inf:
            return best


def take_turns(runs, seconds, tell=lambda: None):
    """Milliseconds of each, turn by turn; the order reverses every other turn. `tell` is called before each."""
    samples = {name: [] for name in runs}
    for run in runs.values():
        slice_of(run)
    end, turn = time.monotonic() + seconds, 0
    while turn < TURNS or time.monotonic() < end:
        tell()
        for name in list(runs)[:: -1 if turn % 2 else 1]:
            samples[name].append(slice_of(runs[name]) * 1e3)
        turn += 1
    return samples


def _pin(threads):
    """All threads of the process to as many cores; those that it starts later inherit that."""
    for task in Path("/proc/self/task").iterdir():
        try:
            os.sched_setaffinity(int(task.name), sorted(peers.CORES)[-threads:])
        except ProcessLookupError:
            pass  # it has ended


def _take(pipe, model, library, threads, seconds, wanted):
    """In the process of its own: tells through the pipe what it is at, and in the end ("samples", those)."""
    os.setsid()
    _pin(threads)  # before the peers look how many cores there are
    makers = {"ptc": lambda *_: ptc.load(library, threads=threads).prepare(**model.inputs)} | {peer: peers.RUNS[peer] for peer in wanted}
    runs = {}
    for name, make in makers.items():
        pipe.send(("making", name))
        try:
            run = make(model, threads)
            run()
            runs[name] = run
        except Exception as error:  # of any kind: it is another library's
            pipe.send(("fails", name, " ".join(str(error).split())[:300] or type(error).__name__))
    if "onnxruntime" in runs:
        runs["again"] = runs["onnxruntime"]
    _pin(threads)  # those, too, that a compiler was let loose for
    best = None
    for _ in range(ATTEMPTS if "ptc" in runs else 0):
        samples = take_turns(runs, seconds, lambda: pipe.send(("running", None)))
        best = samples if best is None else min(best, samples, key=results.noise)
        if results.noise(best) <= results.NOISY:
            break
    pipe.send(("samples", best))


def _try(model, library, threads, seconds, wanted):
    """The samples, and why peers have none: by peer, None for the process as a whole."""
    here, there = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=_take, args=(there, model, library, threads, seconds, wanted))
    child.start()
    there.close()
    making, reasons = None, {}
    try:
        while here.poll(LIMIT):
            kind, name, *reason = here.recv()
            if kind == "samples":
                child.join(LIMIT / 60)  # it takes its own compilers down
                return name, reasons
            if kind == "fails":
                reasons[name] = reason[0]
            else:
                making = name
        return None, {making: f"it takes more than {LIMIT} seconds"}
    except EOFError:
        child.join()
        return None, {making: f"its process ends with {child.exitcode}"}
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)  # compilers that it has started, too
        except ProcessLookupError:
            pass
        child.join()


def measure(model, library, threads, seconds, wanted):
    """Samples of ptc, the peers that can run the model, and onnxruntime once more ("again"); and why the others cannot."""
    left, why = list(wanted), {}
    while True:
        samples, reasons = _try(model, library, threads, seconds, left)
        why |= reasons
        if samples:
            return samples, why
        if not set(reasons) & set(left) or "ptc" in reasons:
            raise RuntimeError("; ".join(f"{name or 'measuring'}: {reason}" for name, reason in why.items()))
        left = [peer for peer in left if peer not in reasons]
