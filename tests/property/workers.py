"""Processes that examine seeds, one after another each. One that dies, or takes too long, costs its seed alone: it is named, with what
the process did, and another takes its place."""

import collections
import contextlib
import faulthandler
import itertools
import multiprocessing
import multiprocessing.connection
import signal
import tempfile
import time
import traceback

SECONDS = 1200  # of a seed, what it is shrunk in included
FRAMES = 5  # of the stack of what died


class Worker:
    def __init__(self, work):
        context = multiprocessing.get_context("fork")
        self.notes = tempfile.TemporaryFile("w+")  # what is being done, then the stack of a crash
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=self._serve, args=(work, other), daemon=True)
        self.process.start()
        other.close()
        self.seed, self.end = None, 0.0

    def _serve(self, work, pipe):
        faulthandler.enable(self.notes)
        for seed in iter(pipe.recv, None):
            try:
                pipe.send((work(seed, self._tell), ""))
            except Exception:
                pipe.send((None, traceback.format_exc(limit=-FRAMES)))

    def _tell(self, step):
        self.notes.seek(0)
        self.notes.truncate()
        self.notes.write(step + "\n")
        self.notes.flush()

    def start(self, seed):
        self.seed, self.end = seed, time.monotonic() + SECONDS
        self.pipe.send(seed)

    def result(self):
        """(result, "") of a worker that has one or is dead, or (None, how it ended)."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            return None, self._death()

    def stop(self):
        self.process.kill()
        return None, f"over {SECONDS} s, {self._death()}"

    def _death(self):
        self.process.join()
        code = self.process.exitcode
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        self.notes.seek(0)
        step, *rest = self.notes.read().splitlines() or ["nothing yet"]
        frames = [line.strip() for line in rest if line.startswith("  File")]
        return "; ".join([f"{how} while {step}", *frames[:FRAMES]])


def examine(work, seeds, jobs):
    """For each of the seeds, in order, (seed, (work(seed, tell), "")) or (seed, (None, how its process ended))."""
    seeds, idle, busy = iter(seeds), [], {}
    order, results = collections.deque(), {}
    while True:
        while order and order[0] in results:
            seed = order.popleft()
            yield seed, results.pop(seed)
        for seed in itertools.islice(seeds, min(jobs - len(busy), 4 * jobs - len(order))):
            idle = [worker for worker in idle if worker.process.is_alive()]
            worker = idle.pop() if idle else Worker(work)
            worker.start(seed)
            busy[worker.pipe] = worker
            order.append(seed)
        if not busy:
            break
        ready = multiprocessing.connection.wait(busy, max(0.0, min(worker.end for worker in busy.values()) - time.monotonic()))
        late = [pipe for pipe, worker in busy.items() if worker.end <= time.monotonic() and pipe not in ready]
        for pipe in [*ready, *late]:
            worker = busy.pop(pipe)
            results[worker.seed] = worker.stop() if pipe in late else worker.result()
            if worker.process.is_alive():
                idle.append(worker)
    for worker in idle:
        with contextlib.suppress(OSError):  # it is dead already
            worker.pipe.send(None)
