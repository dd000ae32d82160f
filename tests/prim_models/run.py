"""Models through --emit=onnx:prim and back: the same outputs, bit for bit.

    python tests/prim_models/run.py                       a sample of the official tests, and real models
    python tests/prim_models/run.py --all                 every official test
    python tests/prim_models/run.py --filter 'node/test_loop'

Each case is compiled as it is, and by way of a model of primitives, which onnx's own checker has to accept. What does not
compile as it is counts as skipped. A written model that is damaged or edited must be refused, or compile; it must not crash.
"""

import argparse
import concurrent.futures
import copy
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads: the workers fork
    os.environ[name] = "1"

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "conformance"), str(HERE.parents[1] / "models")]

import edits  # noqa: E402
import execute  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import ptc  # noqa: E402
import sources  # noqa: E402
import suite  # noqa: E402
from execute import FAILED, PASS, Outcome  # noqa: E402
from ptc.backend import Backend  # noqa: E402

SAMPLE = 120  # one of so many official tests
ALWAYS = re.compile(r"node/test_(loop11|loop16_seq_none|if_seq|if|scan9_sum|nonzero_example|unique_sorted_without_axis|sequence_map_add_2_sequences"
                    r"|string_split_basic|strnormalizer_export_monday_casesensintive_upper|nonmaxsuppression_two_classes|lstm_defaults|attention_4d"
                    r"|convtranspose|qlinearmatmul_2D_uint8_float32|cast_FLOAT_to_INT4|dequantizelinear_blocked|resize_upsample_scales_cubic"
                    r"|topk|top_k|gathernd_example_float32|scatternd_add|einsum_batch_diagonal|maxpool_2d_dilations)$")
REAL = ("ppocr-cls", "silero-vad")  # the second one has If, LSTM and dims of its own
SKIPPED = "skipped"
EDITS, LARGEST = 4, 1 << 20  # edited models for each, unless it is large in bytes


def through_prims(program, kept):
    """A compiler that goes by way of a model of primitives; `kept` gets its path."""

    def compile_model(model, library, flags):
        prims = Path(library).with_suffix(".prim.onnx")
        if outcome := execute.compile_model(program, model, prims, flags, emit="onnx:prim"):
            raise execute.Refused(outcome)
        kept.append(prims)
        onnx.checker.check_model(str(prims))
        code = [flag for flag in flags if flag.startswith(("-j", "--cpu"))]
        if outcome := execute.compile_model(program, prims, library, code):
            raise execute.Refused(outcome)

    return compile_model


def same_bits(got, expected):
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(same_bits, got, expected))
    if expected is None or got is None:
        return got is expected
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    return np.array_equal(got, expected) if got.dtype == object else got.tobytes() == expected.tobytes()


def run_both(first, second, sets):
    for inputs, _ in sets:
        for value, expected, got in zip(first.model.graph.output, first.run(inputs), second.run(inputs)):
            if not same_bits(got, expected):
                return [FAILED, "bits", f"{value.name} differs"]
    return [PASS, "", ""]


def broken(prims, draw):
    """The written model as a file that is cut off, twice one with a byte changed, and as models that are edited: what was
    done, and the bytes."""
    content = prims.read_bytes()
    for attempt in range(3):
        place = draw.randrange(len(content))
        rest = bytes([draw.randrange(256)]) + content[place + 1 :] if attempt else b""
        yield f"byte {place} changed" if attempt else f"cut off at {place}", content[:place] + rest
    model = onnx.load(prims)
    for _ in range(EDITS if len(content) < LARGEST else 0):
        edited = copy.deepcopy(model)
        text = edits.edit(edited, draw)
        yield text, edited.SerializeToString()


def damage(program, prims, case, kept):
    """Compiles what is broken; it is kept where that crashes."""
    for number, (text, content) in enumerate(broken(prims, random.Random(zlib.crc32(case.name.encode())))):
        path = prims.with_name("broken.onnx")
        path.write_bytes(content)
        outcome = execute.compile_model(program, path, path.with_suffix(".so"), ["-j1"])
        if outcome and outcome.cause in ("compile-crash", "compile-timeout", "exit-70"):
            kept.mkdir(parents=True, exist_ok=True)
            place = kept / f"{case.name.replace('/', '-')}-{number}.onnx"
            place.write_bytes(content)
            return Outcome(FAILED, "damaged", f"{text}: {outcome.cause} {outcome.text[:300]} ({place})")
    return None


def check_case(case, program, kept_in):
    try:
        sets = [tuple([suite.read(path) for path in side] for side in pair) for pair in case.sets]
        pin = bool(sets) and not case.is_free
        kept = []
        prepared = [Backend.prepare(case.model, flags=["-j1", "--cpu=x86-64-v3"], compiler=compiler, pin=True, threads=2)
                    for compiler in (execute._compiler(program), through_prims(program, kept))]
        for number, one in enumerate(prepared):
            one.pin = pin
            try:
                one.compile(sets[0][0] if sets else None)
            except execute.Refused as refused:
                return case, Outcome(SKIPPED if number == 0 else FAILED, refused.outcome.cause, refused.outcome.text)
        outcome = execute.isolated(run_both, *prepared, sets)
        if outcome.word == PASS:
            outcome = damage(program, kept[-1], case, kept_in) or outcome
        return case, outcome
    except Exception as error:
        return case, Outcome(FAILED, "harness", f"{type(error).__name__}: {error}")


def official(args):
    cases = suite.load(args.build / "tests" / "conformance")
    if args.filter:
        return [case for case in cases if re.search(args.filter, case.name)]
    if args.all:
        return cases
    return [case for case in cases if ALWAYS.match(case.name) or
            (case.suite != "light" and zlib.crc32(case.name.encode()) % SAMPLE == 0)]


def check_edits(program):
    """Outcomes of the edits whose sentences are known."""
    with tempfile.TemporaryDirectory() as folder:
        source, prims, path = (Path(folder) / name for name in ("source.onnx", "prims.onnx", "edited.onnx"))
        onnx.save(edits.source(), source)
        if outcome := execute.compile_model(program, source, prims, [], emit="onnx:prim"):
            return [("edits", outcome)]
        written, found = onnx.load(prims), []
        for name, (change, sentence) in edits.KNOWN.items():
            edited = copy.deepcopy(written)
            change(edited)
            onnx.save(edited, path)
            done = subprocess.run([program, "check", path, "--color=never"], capture_output=True, text=True)
            is_refused = done.returncode == 3 and "error[PTC0219]" in done.stderr and sentence in done.stderr
            found.append((name, Outcome(PASS, "", "") if is_refused else Outcome(FAILED, f"exit {done.returncode}", done.stderr)))
        return found


def check_real(row, args):
    """A trained model with its flags: the outputs of all its runs, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        path, folder = sources.fetch(row, args.build), Path(folder)
        program = args.build / "bin" / "ptc"
        one, two = folder / "one.so", folder / "two.so"
        code = ["-j1", "--cpu=x86-64-v3"]
        prims = []
        try:
            execute._compiler(program)(path, one, [*row.get("flags", []), *code])
            through_prims(program, prims)(path, two, [*row.get("flags", []), *code])
        except execute.Refused as refused:
            return refused.outcome
        return execute.isolated(run_real, row, one, two)


def run_real(row, one, two):
    results = [models._sequence(row, lambda feeds, m=ptc.load(library): m(**feeds)) for library in (one, two)]
    for number, (expected, got) in enumerate(zip(*results)):
        for name in expected:
            if not same_bits(got[name], expected[name]):
                return [FAILED, "bits", f"run {number}: {name} differs"]
    return [PASS, "", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--all", action="store_true", help="every official test")
    parser.add_argument("--filter", metavar="REGEX", help="official tests whose suite/name it finds")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    program = args.build / "bin" / "ptc"
    results = []
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
        futures = [pool.submit(check_case, case, program, args.build / "tests" / "prim_models") for case in official(args)]
        for future in concurrent.futures.as_completed(futures):
            case, outcome = future.result()
            results.append((case, outcome))
            if args.verbose or outcome.word == FAILED:
                print(f"{case.name}: {outcome.word} {outcome.cause} {outcome.text.strip()[:400]}", flush=True)
    for name, outcome in () if args.filter else check_edits(program):
        results.append((name, outcome))
        if args.verbose or outcome.word != PASS:
            print(f"{name}: {outcome.word} {outcome.cause} {outcome.text.strip()[:400]}", flush=True)
    for row in () if args.filter else sources.rows():
        if row["name"] in REAL or args.all:
            outcome = check_real(row, args)
            results.append((row, outcome))
            if args.verbose or outcome.word != PASS:
                print(f"{row['name']}: {outcome.word} {outcome.cause} {outcome.text.strip()[:400]}", flush=True)
    counts = {word: sum(outcome.word == word for _, outcome in results) for word in (PASS, FAILED, SKIPPED)}
    print(f"{counts[PASS]} of {len(results)} models give the same bits by way of primitives, {counts[SKIPPED]} do not compile as they are")
    print(f"{counts[PASS]} passed, {counts[FAILED]} failed, {counts[SKIPPED]} skipped")
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
