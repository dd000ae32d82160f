"""The program ptc from Python: where it is, and a compile."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Model


class CompileError(RuntimeError):
    """A compile that ptc refused, with what it said. `exit_code` is the program's."""

    def __init__(self, exit_code: int, diagnostics: str):
        super().__init__(diagnostics.strip() or f"ptc failed with exit code {exit_code}")
        self.exit_code = exit_code


def program() -> str:
    """The path of ptc: of this environment, of the user's own, beside a folder that pip installed into, or on PATH."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), Path(sys.executable).parent,
               Path(__file__).resolve().parent.parent / "bin"]
    for folder in folders:
        path = Path(folder) / "ptc"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    if path := shutil.which("ptc"):
        return path
    places = ", ".join(dict.fromkeys(map(str, folders)))
    raise FileNotFoundError(f"the program ptc is not in {places}, nor on PATH: pip install ptc-compiler")


def compile(model: Any, *flags: str, output: str | os.PathLike | None = None, **load: Any) -> "Model":
    """Compiles an ONNX model and loads the library.

    model: the path of an ONNX file, the bytes of one, or an onnx.ModelProto. flags: of `ptc compile`, one text each:
    "--dim=batch=1..64:8". output: where the library goes, with its header and manifest; by default nothing is left on disk.
    Further arguments are those of load. Raises CompileError with ptc's diagnostics.
    """
    from . import load as load_library

    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if isinstance(model, (bytes, bytearray, memoryview)):
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
        else:
            path = Path(model)
        library = Path(output) if output is not None else Path(folder) / f"{path.stem}.so"
        command = [program(), "compile", str(path), "-q", "-o", str(library), *flags]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise CompileError(done.returncode, done.stderr)
        return load_library(library.absolute(), **load)  # mapped: the file may go
