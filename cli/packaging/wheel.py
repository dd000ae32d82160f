"""Makes a Python wheel of an installed ptc and the module that loads its libraries.

    python wheel.py --prefix INSTALLED --module runtime/python/ptc --version 0.1.0 --output DIR

A wheel is an archive with a fixed layout (PEP 427). The program goes into the environment's bin folder as it is, the rest of
the prefix beside it, so that CMake, pkg-config and make find ptc in a virtual environment as they do in /usr. The tag tells
which systems take the wheel; it is computed from what the program needs: of glibc alone, the newest version of a symbol;
of anything else, this machine's kind only. Equal inputs give equal bytes.
"""

import argparse
import base64
import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

# What PEP 600 lets a manylinux wheel need of the system, as far as programs of C and C++ go.
GLIBC = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux[\w.-]*)$")

METADATA = """Metadata-Version: 2.1
Name: ptc-compiler
Version: {version}
Summary: Ahead-of-time compiler from ONNX models to shared libraries
License: Apache-2.0 WITH LLVM-exception
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Compilers
Requires-Python: >=3.10
Requires-Dist: numpy>=1.23
Description-Content-Type: text/markdown

# ptc

    import ptc
    model = ptc.compile("model.onnx")     # or ptc.load("model.so")
    outputs = model(x=array)

The program `ptc` comes with it; `ptc --help` lists its verbs.
"""


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def platform_of(program):
    """manylinux_2_34_x86_64, or linux_x86_64 for a program that needs more than glibc."""
    machine = "aarch64" if "AArch64" in readelf("-h", program) else "x86_64"
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", program))
    if not all(GLIBC.match(name) for name in needed):
        return f"linux_{machine}"
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", program))
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{machine}"


class Wheel:
    """An archive, and the record of its files."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.rows = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name)  # with the format's oldest time
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(content)}")

    def close(self, record):
        rows = "\n".join([*self.rows, f"{record},,"]) + "\n"
        self.rows = []
        self.add(record, rows.encode())
        self.archive.close()


def build(prefix, module, version, output):
    program = prefix / "bin" / "ptc"
    tag = f"py3-none-{platform_of(program)}"
    stem = f"ptc_compiler-{version}"
    path = output / f"{stem}-{tag}.whl"
    wheel = Wheel(path)
    for file in sorted(module.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            wheel.add(f"ptc/{file.relative_to(module)}", file.read_bytes())
    for file in sorted(prefix.rglob("*")):
        if file == program:
            wheel.add(f"{stem}.data/scripts/ptc", file.read_bytes(), 0o755)
        elif file.is_file():
            wheel.add(f"{stem}.data/data/{file.relative_to(prefix)}", file.read_bytes())
    licence = next(prefix.glob("share/doc/*/copyright"))
    wheel.add(f"{stem}.dist-info/LICENSE", licence.read_bytes())
    wheel.add(f"{stem}.dist-info/METADATA", METADATA.format(version=version).encode())
    tags = f"Wheel-Version: 1.0\nGenerator: ptc\nRoot-Is-Purelib: false\nTag: {tag}\n"
    wheel.add(f"{stem}.dist-info/WHEEL", tags.encode())
    wheel.close(f"{stem}.dist-info/RECORD")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--module", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=Path, default=Path())
    args = parser.parse_args()
    print(build(args.prefix, args.module, args.version, args.output))


if __name__ == "__main__":
    main()
