"""What flags of `ptc compile` bring: a model's libraries with different flags beside each other and onnxruntime.

    build/venv/bin/python tests/perf/flags.py --flags=--autocast=bf16 [--models] [--filter REGEX] [FILE.onnx ...]
    build/venv/bin/python tests/perf/flags.py --flags=-O1 --flags='-O3 --cpu=native' model.onnx

Without files: the rows that compare.py takes. Each is compiled without the flags and once with each set of them, and all take
turns as in compare.py. `gain` is the time without the flags / with them, `ORT` onnxruntime's time / that; `differs` is
||y - y0|| / ||y0|| of the outputs of floats, y0 without the flags, or `same file` where both libraries are the same to the
byte: their gain is what the machine's noise and the places of their pages in memory make of nothing.
"""

import argparse
import filecmp
import shlex
import statistics
import tempfile
from pathlib import Path

import numpy as np

import compare  # first: it says where ptc's module is
import peers
import ptc
import results
import turns


def compiled(program, model, folder, flags):
    """The library of the model with these flags more, and what compare.py tells of its compile."""
    library = Path(folder) / "model.so"
    library.parent.mkdir(parents=True)
    flagged = compare.Model(model.name, model.path, [*model.flags, *flags], model.inputs)
    return library, compare.compile_model(program, flagged, library)


def measure(model, libraries, threads, seconds):
    """Slices of each library, by its key, of onnxruntime ("ort") and of it once more ("again"), turn by turn."""
    subjects = {key: ptc.load(library, threads=threads).prepare(**model.inputs) for key, library in libraries.items()}
    subjects["ort"] = peers.onnxruntime_run(model, threads)
    subjects["again"] = subjects["ort"]
    return turns.take_turns(subjects, seconds)


def ratio(samples, a, b):
    return statistics.median(results.ratios(samples, a, b))


def noise(samples):
    return abs(ratio(samples, "ort", "again") - 1)


def difference(model, library, base):
    """The cell of `differs`."""
    if filecmp.cmp(library, base, shallow=False):
        return "same file"
    found, want = (ptc.load(path)(**model.inputs) for path in (library, base))
    floats = [name for name in want if np.issubdtype(np.asarray(want[name]).dtype, np.floating)]
    flat = lambda outputs: np.concatenate([np.asarray(outputs[name], np.float64).ravel() for name in floats])
    return f"{np.linalg.norm(flat(found) - flat(want)) / np.linalg.norm(flat(want)) if floats else 0:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--flags", action="append", required=True, help="flags of one library; again for another one")
    parser.add_argument("--build", type=Path, default=compare.ROOT / "build")
    parser.add_argument("--filter", default="")
    parser.add_argument("--models", action="store_true", help="the exports from PyTorch too")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=4, help="of measuring a row")
    arguments = parser.parse_args()
    program = arguments.build / "bin" / "ptc"
    models = ([compare.file_model("file", path, {}) for path in arguments.files]
              or compare.all_models(arguments.build, arguments.models, [], {}, arguments.filter))
    print("| model | threads | flags | ms | gain | ORT | noise | differs |\n|---|---|---|---|---|---|---|---|")
    for model in models:
        with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
            libraries = {number: compiled(program, model, Path(folder) / str(number), shlex.split(flags))[0]
                         for number, flags in enumerate(["", *arguments.flags])}
            for threads in map(int, arguments.threads.split(",")):
                samples = measure(model, libraries, threads, arguments.seconds)
                for number, flags in enumerate(arguments.flags, 1):
                    ms = statistics.median(samples[number])
                    print(f"| {model.name} | {threads} | {flags} | {ms:.2f} | {ratio(samples, 0, number):.2f} | {ratio(samples, 'ort', number):.2f} "
                          f"| {noise(samples):.2f} | {difference(model, libraries[number], libraries[0])} |", flush=True)


if __name__ == "__main__":
    main()
