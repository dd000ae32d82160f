"""Reads a drawn line of text with the compiled recogniser: quickstart.sh's last step.

    python models/read_text.py --ptc build/bin/ptc --build build ["text to read"]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import sources

sys.path.insert(0, str(sources.ROOT / "runtime" / "python"))
import ptc  # noqa: E402


def characters(path):
    """The classes of the recogniser: blank, those of the model's metadata, space."""
    model = onnx.load(path, load_external_data=False)
    listed = next(entry.value for entry in model.metadata_props if entry.key == "character")
    return ["", *listed.splitlines(), " "]


def decode(scores, classes):
    """Connectionist temporal classification, greedily: the best class of each step, repeats once, without blanks."""
    best = scores[0].argmax(1)
    kept = [k for k, previous in zip(best, [0, *best[:-1]]) if k != previous]
    return "".join(classes[k] for k in kept)


def median_ms(call):
    call()
    times = []
    while len(times) < 5 or (sum(times) < 1 and len(times) < 200):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times))


def size(path):
    return f"{path.stat().st_size / 1e6:.1f} MB"


def peer(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", default=sources.SENTENCE)
    parser.add_argument("--ptc", type=Path, default=sources.ROOT / "build" / "bin" / "ptc")
    parser.add_argument("--build", type=Path, default=sources.ROOT / "build")
    args = parser.parse_args()
    args.ptc, args.build = args.ptc.resolve(), args.build.resolve()

    row = next(row for row in sources.rows() if row["name"] == "ppocr-rec")
    model = sources.fetch(row, args.build)
    home = args.build / "quickstart"
    home.mkdir(parents=True, exist_ok=True)
    image = sources.draw_line(args.text, height=48)
    image.save(home / "line.png")
    x = sources.pixels(image)

    library = home / "read_text.so"
    pin = f"--shape=x={'x'.join(map(str, x.shape))}"
    command = [args.ptc, "compile", model, pin, "-o", library]
    print("$", *(part.relative_to(Path.cwd()) if isinstance(part, Path) and part.is_relative_to(Path.cwd()) else part
                 for part in command), flush=True)
    started = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True)
    seconds = time.perf_counter() - started

    scores = next(iter(ptc.load(library)(x=x).values()))
    print(f"model      {row['package']}, {size(model)}")
    print(f"library    {library.name} {size(library)}, with {library.with_suffix('.h').name}, compiled in {seconds:.1f} s")
    print(f"drawn      {args.text}    ({home / 'line.png'})")
    print(f"read       {decode(scores, characters(model)).strip()}")
    expected = peer(model, 1).run(None, {"x": x})[0]
    print(f"agreement  largest difference from onnxruntime: {np.abs(scores - expected).max():.1e}")
    for threads in (1, 2):
        session, run = peer(model, threads), ptc.load(library, threads=threads).prepare(x=x)
        times = median_ms(run), median_ms(lambda: session.run(None, {"x": x}))
        print(f"a run      {times[0]:.1f} ms, onnxruntime {times[1]:.1f} ms ({threads} thread{'s' * (threads > 1)})")


if __name__ == "__main__":
    main()
