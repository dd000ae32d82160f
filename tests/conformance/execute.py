"""One case: compile it with ptc in a process of its own, then run the library in another.

The class that the onnx project's own test runner drives (`ptc.backend`) does both; the compiler that it calls here has limits,
and a fork for each run keeps a crash, a hang or a corrupted heap from touching any other case, and costs no imports.
"""

import ctypes
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import suite

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python")]
import levels  # noqa: E402
import ptc  # noqa: E402
from ptc.backend import Backend  # noqa: E402

CPU_SECONDS = 60  # of processor time: a loaded machine makes no test fail
TIMEOUT = 240  # of the clock, for what sleeps
MEMORY = 12 << 30
PASS, UNSUPPORTED, FAILED = "pass", "unsupported", "failed"
CODE = re.compile(r"\[(PTC\d+)\]")
CONSTANTS = "constants"  # cause of a pass with such inputs as constants
DEVICE_ERROR = 10  # PTC_DEVICE_ERROR
FREE, FIRST_FREE = "free", "first-free"  # causes of a pass with --dynamic: all dims free, the first of each input
REFUSED = (3, 4)  # exit codes: invalid model, unsupported


@dataclass(frozen=True)
class Outcome:
    word: str
    cause: str = ""  # one word
    text: str = ""
    seconds: float = 0.0


def level_flags():
    """Flags of what the cases are compiled for, each; they take turns."""
    return tuple((f"--cpu={name}",) for name in levels.usual())


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def compile_model(program, model, library, flags=(), emit="so"):
    """None if the library is there, else why not."""
    command = [program, "compile", model, "-o", library, f"--emit={emit}", "-q", "--color=never", *flags]
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT, preexec_fn=_limit,
                              env=os.environ | {"TMPDIR": str(Path(library).parent)})  # where reproducers go
    except subprocess.TimeoutExpired:
        return Outcome(FAILED, "compile-timeout", f"over {TIMEOUT} s")
    if done.returncode == 0:
        return None if Path(library).exists() else Outcome(FAILED, "no-output", "exit code 0 without a library")
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return Outcome(FAILED, "compile-timeout", f"over {CPU_SECONDS} s of processor time")
    if done.returncode < 0:
        return Outcome(FAILED, "compile-crash", signal.Signals(-done.returncode).name + " " + done.stderr[-300:])
    if code := CODE.search(done.stderr):
        if done.returncode in REFUSED:
            return Outcome(UNSUPPORTED, code[1], done.stderr)
    return Outcome(FAILED, f"exit-{done.returncode}", done.stderr)


def difference(got, expected, rtol, atol):
    """'' if the values agree, arrays or lists of them, else how they differ."""
    if expected is None or got is None:
        return "" if expected is got else f"{type(got).__name__} instead of {type(expected).__name__}"
    if isinstance(expected, list) or isinstance(got, list):
        if type(got) is not type(expected) or len(got) != len(expected):
            return f"{len(got)} tensors instead of {len(expected)}"
        problems = [f"tensor {i}: {p}" for i, pair in enumerate(zip(got, expected)) if (p := difference(*pair, rtol, atol))]
        return problems[0] if problems else ""
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if got.dtype != expected.dtype:
        return f"type {got.dtype} instead of {expected.dtype}"
    if expected.dtype == object or expected.dtype.kind in "iub":
        wrong = got != expected
        if expected.dtype.kind in "iu" and atol >= 1:  # a result that may round the other way
            wrong = np.abs(got.astype(np.int64) - expected.astype(np.int64)) > atol
        return f"{int(wrong.sum())} of {wrong.size} elements differ" if np.any(wrong) else ""
    if expected.dtype.kind not in "fc":  # types of ml_dtypes
        rtol = max(rtol, 2**-6) if expected.dtype.name == "bfloat16" else rtol
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    close = np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    if np.all(close):
        return ""
    first = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{int((~close).sum())} of {close.size} elements differ, first {got[first]} instead of {expected[first]} at {list(first)}"


def _run_sets(case, prepared, sets):
    for inputs, outputs in sets:
        results = prepared.run(inputs)
        if len(results) != len(outputs):
            return [FAILED, "wrong", f"{len(results)} outputs instead of {len(outputs)}"]
        for value, got, expected in zip(prepared.model.graph.output, results, outputs):
            if problem := difference(got, expected, case.rtol, case.atol):
                return [FAILED, "wrong", f"{value.name}: {problem}"]
    return [PASS, "", ""]


def isolated(work, *args, timeout=TIMEOUT):
    """work(*args) -> [word, cause, text] in a forked process; its death is an outcome too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            result = work(*args)
        except ptc.Error as error:
            result = [FAILED, f"status-{error.status}", str(error)]
        except BaseException as error:  # a child must not return into its parent's code
            result = [FAILED, type(error).__name__, str(error)]
        os.write(writer, json.dumps([result[0], result[1], result[2][:3000]]).encode())
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], timeout)
    if not ready:
        os.kill(child, signal.SIGKILL)
    text = os.read(reader, 1 << 16) if ready else b""
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if not ready:
        return Outcome(FAILED, "run-timeout", f"over {timeout} s")
    if not text:
        died = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        return Outcome(FAILED, "run-crash", died)
    return Outcome(*json.loads(text))


class Device:
    """The driver as this process sees it. Making a context takes a quarter of a second, so runs on a device share one, in
    the process of their worker; after an error of the device the context is made anew."""

    driver = None

    @classmethod
    def open(cls):
        if cls.driver:
            return
        cls.driver = ctypes.CDLL("libcuda.so.1")
        cls.driver.cuInit(0)
        cls.driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)

    @classmethod
    def reset(cls):
        cls.driver.cuDevicePrimaryCtxReset_v2(0)
        cls.driver = None


def on_device(work, *args):
    """As `isolated`, in this process."""
    Device.open()
    try:
        return Outcome(*work(*args))
    except ptc.Error as error:
        if error.status == DEVICE_ERROR:
            Device.reset()
        return Outcome(FAILED, f"status-{error.status}", str(error))


class Refused(ptc.CompileError):
    """A compile that gave no library; `outcome` says why."""

    def __init__(self, outcome):
        super().__init__(4 if outcome.word == UNSUPPORTED else 70, outcome.text)
        self.outcome = outcome


def _compiler(program):
    def compile_limited(model, library, flags):
        if outcome := compile_model(program, model, library, flags):
            raise Refused(outcome)

    return compile_limited


def opened(model, every):
    """A copy whose arguments have free dims: all above 1 (a dim of 1 is mostly meant to be), or only the first of each."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for number, value in enumerate(suite.arguments(copy)):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ()):
            if dim.dim_value > 1 and (every or axis == 0):
                dim.dim_param = f"free_{number}_{axis}"
    for value in copy.graph.output:  # what they become is ptc's to find out
        for axis, dim in enumerate(value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ()):
            dim.Clear()
    return copy


def _attempt(case, program, model, sets, flags, pin):
    prepared = Backend.prepare(model, flags=["-j1", *flags], compiler=_compiler(program), pin=True, threads=2)
    prepared.pin = pin
    try:
        prepared.compile(sets[0][0] if sets else None)
    except Refused as refused:
        return refused.outcome
    run = on_device if "--target=cuda" in flags else isolated
    outcome = run(_run_sets, case, prepared, sets)
    if outcome.word == PASS and prepared.constants:
        return Outcome(PASS, CONSTANTS, " ".join(sorted(prepared.constants)))
    return outcome


def _check(case, program, usable, dynamic):
    model = onnx.load(case.model, load_external_data=False)
    sets = [tuple([suite.read(path) for path in side] for side in pair) for pair in case.sets]
    flags = usable[zlib.crc32(case.name.encode()) % len(usable)]
    attempts = []
    for every in (True, False) if dynamic and sets else ():
        attempts.append(_attempt(case, program, opened(model, every), sets, flags, False))
        if attempts[-1].word == PASS or attempts[-1].cause == "wrong":
            return Outcome(attempts[-1].word, FREE if every else FIRST_FREE, attempts[-1].text)
    fixed = _attempt(case, program, case.model, sets, flags, bool(sets) and not case.is_free)
    return Outcome(fixed.word, fixed.cause, f"{fixed.text} {attempts[0].text.strip()}") if attempts and fixed.word == PASS else fixed


def check(case, program, usable, dynamic=False):
    started = time.monotonic()
    try:
        outcome = _check(case, program, usable, dynamic)
    except Exception as error:  # a broken test is that test's failure, with its reason
        outcome = Outcome(FAILED, "harness", f"{type(error).__name__}: {error}")
    return case, Outcome(outcome.word, outcome.cause, outcome.text, time.monotonic() - started)
