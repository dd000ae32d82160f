"""Random graphs, compiled and compared with onnxruntime: whatever fuses must compute what was written.

    python tests/property/run.py                       the fixed seeds of the suite
    python tests/property/run.py --seeds 1000:1200     others, when fusion or planning changed
    python tests/property/run.py --seeds 1042 --keep . leaves the graph of a seed as seed1042.onnx
    python tests/property/run.py --device=emulated     on a GPU that is emulated; =cuda: on this machine's
    python tests/property/run.py --device=cuda --gpu=sm_90a --sanitizer=racecheck     under compute-sanitizer

One thread and two must give the same bits, on a GPU two runs.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads: the workers fork
    os.environ[name] = "1"

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "conformance"), str(ROOT / "tests" / "ptx")]
import devices  # noqa: E402
import execute  # noqa: E402
import graphs  # noqa: E402
import models  # noqa: E402
import onnx  # noqa: E402
import sanitizer  # noqa: E402
from execute import FAILED, PASS, ptc  # noqa: E402


WATCHED = 10  # seeds of a process under compute-sanitizer


def compare(path, feeds, library):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    expected = dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds)))
    one, two = (ptc.load(library, threads=n)(**feeds) for n in (1, 2))
    for name, wanted in expected.items():
        if problem := models.far_off(one[name], wanted):
            return [FAILED, "wrong", f"{name}: {problem}"]
        if one[name].tobytes() != two[name].tobytes():
            return [FAILED, "threads", f"{name}: one thread and two give other bits"]
    return [PASS, "", ""]


def check(seed, program, keep, flags):
    graph = graphs.Graph(seed)
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        path = Path(keep or folder) / f"seed{seed}.onnx"
        onnx.save(graph.model(), path)
        library = Path(folder) / "model.so"
        refused = execute.compile_model(program, path, library, ["-j1", *flags])
        return seed, refused or execute.isolated(compare, path, graph.feeds(), library)


def outcomes(seeds, program, args, flags):
    if args.in_process:
        execute.isolated = execute.on_device
        yield from (check(seed, program, args.keep, flags) for seed in seeds)
        return
    with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from pool.map(check, seeds, [program] * len(seeds), [args.keep] * len(seeds), [flags] * len(seeds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the program lies")
    parser.add_argument("--seeds", default="0:150", metavar="FROM[:TO]")
    parser.add_argument("--keep", type=Path, help="folder in which to leave the graphs")
    parser.add_argument("--models", action="store_true", help="changes nothing here")
    devices.add_arguments(parser)
    sanitizer.add_arguments(parser)
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    args = parser.parse_args()
    first, _, last = args.seeds.partition(":")
    seeds = range(int(first), int(last or int(first) + 1))
    program = (args.build / "bin" / "ptc").resolve()
    if args.sanitizer:
        same = [f"--build={args.build}", f"--device={args.device}", f"--gpu={args.gpu}"]
        parts = [seeds[first:first + WATCHED] for first in range(0, len(seeds), WATCHED)]
        passed, failed = sanitizer.check(args, parts, lambda part: [*same, f"--seeds={part[0]}:{part[-1] + 1}"])
    else:
        failed = 0
        for seed, outcome in outcomes(seeds, program, args, devices.target_flags(args)):
            if outcome.word != PASS:
                failed += 1
                print(f"seed {seed}: {outcome.word} {outcome.cause} {outcome.text.strip()[:400]}", flush=True)
        passed = len(seeds) - failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
