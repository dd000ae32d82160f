"""Checks of the source tree that no compiler makes. Prints `path:line: problem` for each finding.

    python tests/lint/run.py            all checks
    python tests/lint/run.py --fix      clang-format every C and C++ file in place
    python tests/lint/run.py --tidy BUILD [FILE...]   clang-tidy, all files or some (minutes: not part of the suite)

A check is a function from the tree's files to problems; CHECKS lists them in order.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LLVM = Path("/usr/lib/llvm-22/bin")

# Who may include whom, by top-level folder. `runtime` stands for its public headers alone.
ARROWS = {
    "cli": {"cli", "compiler", "ir", "runtime"},
    "compiler": {"compiler", "lowering", "codegen", "ir", "runtime"},
    "lowering": {"lowering", "ir"},
    "codegen": {"codegen", "ir", "runtime"},
    "ir": {"ir"},
    "runtime": {"runtime"},
}
FOLDERS = tuple(ARROWS)
TOP_LEVEL = {*FOLDERS, "models", "tests", "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE"}

SOURCES = {".c", ".cpp", ".h", ".td", ".def", ".py", ".sh", ".cmake"}
TABLES = {".def", ".td"}  # one row a fact: they may be longer
FORMATTED = {".c", ".cpp", ".h"}

# Words that name nothing. Names of other projects' types (PassManager) appear only in uses, never in definitions.
EMPTY_NAME = re.compile(r"^\s*(?:class|struct|enum class|namespace)\s+(\w*(?:Manager|Helper|Utils?|Info|Data))\b(?!\s*;)")
EMPTY_NAME_ALLOWED = {"TargetInfo"}  # the term of design and of LLVM
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
ABSOLUTE = re.compile(r"(?<![\w.$}~-])/(?:home|root|work|tmp|Users)/\w")
INCLUDE = re.compile(r'^\s*(?:#\s*include|include)\s+"([a-z]+)/([^"]*)"')


def tracked():
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                         check=True, capture_output=True, text=True).stdout
    return sorted(path for name in out.split("\0") if name and (path := ROOT / name).is_file())


def is_source(path):
    return path.suffix in SOURCES or path.name == "CMakeLists.txt"


def lines(path):
    return enumerate(path.read_text(errors="replace").splitlines(), 1)


def arrows(files):
    for path in files:
        home = path.relative_to(ROOT).parts[0]
        if home not in ARROWS or not is_source(path):
            continue
        for number, line in lines(path):
            match = INCLUDE.match(line)
            if not match or match[1] not in ARROWS:
                continue
            if match[1] not in ARROWS[home]:
                yield path, number, f"{home} may not include {match[1]}"
            elif match[1] == "runtime" and home != "runtime" and not match[2].startswith("include/ptc/"):
                yield path, number, "only runtime's public headers may be included"


def sizes(files):
    for path in files:
        if path.stat().st_size > 1 << 20:
            yield path, 1, "files above 1 MiB do not belong here"
        if not is_source(path):
            continue
        limit = 1000 if path.suffix in TABLES else 800
        count = sum(1 for _ in lines(path))
        if count > limit:
            yield path, limit, f"{count} lines; the limit is {limit}"


def names(files):
    for path in files:
        if path.suffix not in FORMATTED or path.relative_to(ROOT).parts[0] not in FOLDERS:
            continue
        if re.search(r"(Manager|Helper|Utils?)$", path.stem):
            yield path, 1, "a file's name says what is in it"
        for number, line in lines(path):
            match = EMPTY_NAME.match(line)
            if match and match[1] not in EMPTY_NAME_ALLOWED:
                yield path, number, f"'{match[1]}' names nothing"


def words(files):
    for path in files:
        if path == Path(__file__).resolve() or not (is_source(path) or path.suffix in {".md", ".mlir", ".toml"}):
            continue
        for number, line in lines(path):
            if match := UNFINISHED.search(line):
                yield path, number, f"'{match[0]}': finish it, or say in the README what is missing"
            if match := ABSOLUTE.search(line):
                yield path, number, f"absolute path '{match[0]}…'"


def readmes(files):
    """Every folder that holds sources explains itself."""
    homes = {path.parent for path in files if is_source(path) and path.name != "CMakeLists.txt"}
    skipped = {"Inputs", "stubs", "include", "ptc", "src"}
    for home in sorted(homes):
        relative = home.relative_to(ROOT)
        if relative.parts and not relative.parts[0].startswith(".") and home.name not in skipped:
            if not (home / "README.md").is_file():
                yield home, 1, "no README.md"
    for path in files:
        if path.name == "README.md" and (count := sum(1 for _ in lines(path))) > 150:
            yield path, 150, f"{count} lines; the limit is 150"


def top_level(files):
    for name in sorted({path.relative_to(ROOT).parts[0] for path in files}):
        if name not in TOP_LEVEL and not name.startswith("."):
            yield ROOT / name, 1, "not a part of the fixed top level"


def formatting(files):
    sources = [str(path) for path in files if path.suffix in FORMATTED]
    out = subprocess.run([LLVM / "clang-format", "--dry-run", "--ferror-limit=1", *sources], cwd=ROOT,
                         capture_output=True, text=True).stderr
    for line in out.splitlines():
        if match := re.match(r"(.*?):(\d+):\d+: (?:warning|error): (.*)", line):
            yield Path(match[1]), int(match[2]), match[3] + " (tests/lint/run.py --fix)"


# Rows of Diagnostics.def that no input is known to produce.
UNTESTED_DIAGNOSTICS = {"0112"}  # whatever ONNX's library may throw: an input that makes it throw is a bug there


def diagnostics(files):
    """Every sentence that ptc can say about a model is expected by some test."""
    table = ROOT / "ir" / "Diagnostics.def"
    tests = [path for path in files if path.relative_to(ROOT).parts[0] == "tests"]
    said = set(re.findall(r"PTC(\d{4})", "".join(path.read_text(errors="replace") for path in tests)))
    names = set(re.findall(r"DiagId::(\w+)", "".join(path.read_text(errors="replace") for path in tests)))
    for number, line in lines(table):
        if match := re.match(r"DIAG\((\d{4}), *(\w+)", line):
            if match[1] not in said | UNTESTED_DIAGNOSTICS and match[2] not in names:
                yield table, number, f"no test expects PTC{match[1]}"


CHECKS = [top_level, arrows, sizes, names, words, readmes, diagnostics, formatting]


def self_test():
    """The patterns find what they are for, and let pass what looks similar."""
    assert EMPTY_NAME.match("class LoopHelper {") and not EMPTY_NAME.match("class PassManager;")
    assert ABSOLUTE.search('open("/home/x")') and not ABSOLUTE.search("https://host/home/x") and not ABSOLUTE.search("a/tmp/x")
    assert INCLUDE.match('#include "ir/prim/Prim.h"').groups() == ("ir", "prim/Prim.h")
    assert UNFINISHED.search("// TODO: x") and not UNFINISHED.search("TODOS")


def tidy(arguments):
    build, *chosen = arguments
    sources = chosen or [str(p) for p in tracked() if p.suffix == ".cpp" and p.relative_to(ROOT).parts[0] in FOLDERS]
    return subprocess.run([LLVM / "run-clang-tidy", "-quiet", "-clang-tidy-binary", LLVM / "clang-tidy", "-p", build,
                           *sources], cwd=ROOT).returncode


def main():
    if sys.argv[1:2] == ["--tidy"]:
        return tidy(sys.argv[2:])
    files = tracked()
    if sys.argv[1:2] == ["--fix"]:
        return subprocess.run([LLVM / "clang-format", "-i", *(p for p in files if p.suffix in FORMATTED)]).returncode
    self_test()
    failed = 0
    for check in CHECKS:
        problems = list(check(files))
        for path, number, problem in problems:
            print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{number}: {problem} [{check.__name__}]")
        failed += bool(problems)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
