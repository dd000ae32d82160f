"""What is promised of every library, whatever its model: see README.md."""
import argparse
import ctypes.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import elf

ROOT = elf.ROOT
HERE = Path(__file__).resolve().parent
# Files that ptc writes: name, kind of threads, other flags.
SHARED = [("pool", "pool", []), ("none", "none", []), ("openmp", "openmp", []), ("file", "pool", ["--weights=file"]),
          ("later", "none", ["--weights=none"]), ("named", "pool", ["--debug-info"])]
STATIC = [("pool.a", "pool", []), ("none.o", "none", []), ("openmp.a", "openmp", ["--debug-info"])]
SANITIZERS = {"thread": "-fsanitize=thread", "address and undefined": "-fsanitize=address,undefined"}


class Results:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, name, problem):
        self.passed += not problem
        self.failed += bool(problem)
        print(f"{name}: {problem or 'ok'}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"{name}: skipped, {reason}", flush=True)


def compile_model(ptc, folder, output, threads, flags):
    command = [ptc, "compile", "mlp.onnx", "-q", "-o", output, "--name=net", f"--threads={threads}", *flags]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stderr if done.returncode else None


def check_files(results, ptc, folder, jobs):
    files = [(f"{name}.so", threads, flags) for name, threads, flags in SHARED] + STATIC
    with ThreadPoolExecutor(jobs) as pool:
        failures = list(pool.map(lambda file: compile_model(ptc, folder, *file), files))
    for (name, threads, flags), failure in zip(files, failures):
        path = folder / name
        find = (lambda: elf.shared_faults(path, "net", threads)) if path.suffix == ".so" else lambda: elf.static_faults(path, "net")
        results.add(f"{name} {' '.join(flags)}".strip(), failure or "; ".join(find()))


def compile_c(folder, output, sources, flags):
    command = [os.environ.get("CC", "gcc"), "-g", "-O1", "-std=gnu17", "-Wall", *flags, *map(str, sources), "-o", output]
    for include in ("runtime/include", "runtime/src", "tests/runtime"):
        command[1:1] = ["-I", str(ROOT / include)]
    done = subprocess.run([*command, "-ldl", "-lpthread"], cwd=folder, capture_output=True, text=True)
    return done.stderr if done.returncode else None


def check_promises(results, folder):
    if failure := compile_c(folder, "promises", [HERE / "promises.c"], ["-rdynamic"]):
        return results.add("promises", failure)
    for kind in ("pool", "none", "openmp"):
        if kind == "openmp" and not ctypes.util.find_library("gomp"):
            results.skip("openmp", "there is no libgomp")
            continue
        done = subprocess.run(["./promises", f"./{kind}.so", kind], cwd=folder, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if ": ok" in line or ": FAILED" in line]
        for line in lines:
            results.add(f"{kind}: {line.split(':')[0]}", "" if ": ok" in line else line)
        quiet = len(lines) == len(done.stdout.splitlines()) and not done.stderr
        results.add(f"{kind}: the library prints nothing", "" if quiet else done.stdout + done.stderr)
        if done.returncode not in (0, 1) or not lines:
            results.add(f"{kind}: the program ends", f"exit code {done.returncode}")


def check_sanitizers(results, folder):
    runtime = sorted(path for path in (ROOT / "runtime/src").glob("*.c") if path.stem != "builtins")
    stress = [HERE / "stress.c", ROOT / "tests/runtime/fake_model.c"]
    checks = [("10^5 calls", "thread", stress, "100000 calls, 0 wrong\n"),
              ("10^5 calls", "address and undefined", stress, "100000 calls, 0 wrong\n"),
              ("strings and sequences", "address and undefined", [HERE / "values.c"], "ok\n")]
    for number, (name, sanitizer, sources, wanted) in enumerate(checks):
        flags = [SANITIZERS[sanitizer], "-fno-sanitize-recover=all"]
        if failure := compile_c(folder, f"sanitized{number}", [*sources, *runtime], flags):
            if "cannot find" in failure:
                results.skip(f"{name}, {sanitizer}", "the compiler has no such sanitizer")
            else:
                results.add(f"{name}, {sanitizer}", failure)
            continue
        done = subprocess.run([f"./sanitized{number}"], cwd=folder, capture_output=True, text=True)
        good = done.returncode == 0 and done.stdout == wanted and not done.stderr
        results.add(f"{name}, {sanitizer}", "" if good else done.stdout + done.stderr[-4000:])


def gdb(folder, mode, *commands):
    words = [word for command in commands for word in ("-ex", command)]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "DEBUGINFOD_URLS": ""}
    return subprocess.run(["gdb", "-nx", "-batch", *words, "--args", "./crash", mode], cwd=folder, env=environment,
                          capture_output=True, text=True).stdout


def missing(text, patterns):
    """The first of `patterns` that does not follow the others in `text`."""
    at = 0
    for pattern in patterns:
        if not (found := re.compile(pattern, re.M).search(text, at)):
            return f"no {pattern!r} in\n{text[-3000:]}"
        at = found.end()
    return None


def check_debugger(results, folder):
    if not shutil.which("gdb"):
        return results.skip("gdb", "it is not installed")
    if failure := compile_c(folder, "crash", [HERE / "crash.c", "./named.so"], ["-I."]):
        return results.add("gdb", failure)
    text = gdb(folder, "crash", "run", "bt", "list")
    if "SIGSEGV" not in text:
        return results.skip("gdb", "it cannot run programs here")
    stack = [r"^#0 .* in fc1, bias1, relu \[matmul_add_relu_\w+\.[\w-]+\] \(\) at named\.debug\.mlir:\d+$", r"ptc_rt_launch \(\)",
             r"net_0_program \(\)", r"net_run \(\)", r" main \(", r"^\d+\s+loop\.contraction"]
    results.add("gdb: the stack of a crash and its lines", missing(text, stack))
    lines = (folder / "named.debug.mlir").read_text().splitlines()
    place = next(number for number, line in enumerate(lines, 1) if "loop.reduction" in line)
    text = gdb(folder, "spin", "break main", "run", f"break named.debug.mlir:{place} if $_thread == 2", "continue", "bt")
    stack = [r"\(2 locations\)", r'Thread 2 "ptc-worker" hit Breakpoint', r"^#0 .*fc2 \[gemm_\w+\.[\w-]+\] \(\)",
             r"worker \(\)", r"start_thread"]
    results.add("gdb: a breakpoint on a line, in a thread of the pool", missing(text, stack))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--models", action="store_true", help="nothing more than without it")
    arguments = parser.parse_args()
    results = Results()
    with tempfile.TemporaryDirectory(prefix="ptc-robustness-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, ROOT / "tests/cli/Inputs/models.py", folder], check=True)
        check_files(results, (arguments.build / "bin/ptc").resolve(), folder, arguments.j)
        check_promises(results, folder)
        check_debugger(results, folder)
        check_sanitizers(results, folder)
    print(f"{results.passed} passed, {results.failed} failed, {results.skipped} skipped")
    return results.failed != 0


if __name__ == "__main__":
    sys.exit(main())
