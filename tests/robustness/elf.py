"""What interface and dependencies of a library must be, read off its ELF file by binutils."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# In a library's imports: whatever ends the process, prints, or reads the environment.
FORBIDDEN = {"exit", "_exit", "write", "puts", "printf", "fprintf", "vprintf", "putchar", "getenv", "system", "dladdr"}
# Written by the loader alone.
RELOCATED = (".got", ".got.plt", ".dynamic", ".data.rel.ro", ".init_array", ".fini_array")
FUNCTIONS = ["create", "destroy", "ctx_create", "ctx_destroy", "set_weight", "last_error", "workspace_size", "warmup",
             "output_shapes", "run"]
NEEDED = {"pool": {"libc.so.6", "libpthread.so.0"}, "none": {"libc.so.6"}, "openmp": {"libc.so.6", "libgomp.so.1"}}


def tool(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def known_imports():
    text = (ROOT / "compiler/artifact/LibcSymbols.def").read_text()
    return set(re.findall(r"^(?:LIBC|OPENMP)\([^,]+, (\w+)", text, re.M))


def public_names(prefix, is_static):
    return {f"{prefix}_{name}" for name in FUNCTIONS} | {f"{prefix}_model_v1"} if is_static else \
        {f"{prefix}_{name}" for name in FUNCTIONS} | {"ptc_model_v1"}


def segments(library):
    """(type, flags, address, size in memory) of each."""
    pattern = re.compile(r"^  (\w+)\s+0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) ([RWE ]{3}) ", re.M)
    return [(kind, flags.replace(" ", ""), int(at, 16), int(size, 16))
            for kind, at, size, flags in pattern.findall(tool("readelf", "-lW", library))]


def shared_faults(library, prefix, threads):
    """One sentence for each promise that a shared library does not keep."""
    parts, dynamic = segments(library), tool("readelf", "-dW", library)
    loads = [part for part in parts if part[0] == "LOAD"]
    if not loads:
        yield "its segments cannot be read"
    if any("W" in flags and "E" in flags for _, flags, *_ in parts):
        yield "a segment is writable and executable"
    if [flags for kind, flags, *_ in parts if kind == "GNU_STACK"] != ["RW"]:
        yield "the stack is executable, or nothing is said of it"
    relro = [(at, at + size) for kind, _, at, size in parts if kind == "GNU_RELRO"]
    sections = re.findall(r"\] (\.[\w.]+)\s+\w+\s+(\w+) \w+ (\w+)", tool("readelf", "-SW", library))
    exposed = [name for name, at, size in sections if name in RELOCATED
               and not any(low <= int(at, 16) and int(at, 16) + int(size, 16) <= high for low, high in relro)]
    if not relro or exposed:
        yield f"not fully relro: {exposed}"
    if "BIND_NOW" not in dynamic or "NOW" not in re.search(r"FLAGS_1.*", dynamic)[0]:
        yield "symbols are bound late"
    if "TEXTREL" in dynamic:
        yield "there are text relocations"
    if "RPATH" in dynamic or "RUNPATH" in dynamic:
        yield "it brings a search path"
    if re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) != [library.name]:
        yield "the soname is not its file name"
    if set(needed := re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) != NEEDED[threads]:
        yield f"it needs {needed}"
    if not re.search(r"Build ID: [0-9a-f]{40}$", tool("readelf", "-nW", library), re.M):
        yield "there is no build id"
    for version in re.findall(r"Name: GLIBC_([\d.]+)", tool("readelf", "-VW", library)):
        if tuple(map(int, version.split("."))) > (2, 17):
            yield f"it needs glibc {version}"
    names = tool("nm", "-D", "--format=posix", library).splitlines()
    exported = {line.split()[0].split("@")[0] for line in names if line.split()[1] not in "Uwv"}
    imported = {line.split()[0].split("@")[0] for line in names if line.split()[1] in "Uwv"}
    if exported != public_names(prefix, False):
        yield f"exports: {exported ^ public_names(prefix, False)}"
    if imported - known_imports() or imported & FORBIDDEN:
        yield f"imports: {imported - known_imports() | imported & FORBIDDEN}"


def static_faults(library, prefix):
    """The same for an archive or object: what a program that links it gets to see."""
    names = [line.split() for line in tool("nm", "--format=posix", "-g", library).splitlines() if len(line.split()) > 1]
    defined = {name for name, kind, *_ in names if kind not in "Uwv"}
    wanted = {name for name, kind, *_ in names if kind in "Uwv"}
    if defined != public_names(prefix, True):
        yield f"global names: {defined ^ public_names(prefix, True)}"
    if wanted - known_imports() or wanted & FORBIDDEN:
        yield f"undefined names: {wanted - known_imports() | wanted & FORBIDDEN}"
    stack = [line for line in tool("readelf", "-SW", library).splitlines() if ".note.GNU-stack" in line]
    if not stack or any(" X " in line.split("PROGBITS")[-1] for line in stack):
        yield "it would make a program's stack executable"
