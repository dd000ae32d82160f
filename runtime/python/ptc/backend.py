"""ptc as a backend of ONNX: what the scoreboard of the onnx project and its test runner drive.

    import onnx.backend.test, ptc.backend
    tests = onnx.backend.test.BackendTest(ptc.backend.Backend, __name__)

A model is compiled when it is prepared, with its free dims free. Where ptc must know a value to say a shape (the second input of
Reshape as a graph input), the arguments of rank 0 and 1 become constants: such a model is compiled when it is run, once for
each set of such values.
"""

import functools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend as OnnxBackend
from onnx.backend.base import BackendRep, Device, DeviceType, namedtupledict

from . import load
from ._program import CompileError, program

# The diagnostics by which a value must be known when the model is compiled: that of an input, that of a condition.
VALUE_NEEDED = ("PTC0305", "PTC0309")

Compiler = Callable[[Path, Path, Sequence[str]], None]  # model, library, flags; raises CompileError


def compile_file(model: Path, library: Path, flags: Sequence[str], ptc: str | os.PathLike | None = None) -> None:
    """Compiles with the program ptc (`ptc` says which), in a process of its own."""
    command = [str(ptc or program()), "compile", str(model), "-o", str(library), "--emit=so", "-q", "--color=never", *flags]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise CompileError(done.returncode, done.stderr)


def arguments(model: onnx.ModelProto) -> list:
    """The graph's inputs that a caller gives: old files list the weights among them."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def pins(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[str]:
    """--shape for every argument of which the model leaves a dim open; 0 counts as open, as real files use it so."""
    flags = []
    for value, array in zip(arguments(model), inputs):
        if not value.type.HasField("tensor_type") or not isinstance(array, np.ndarray):
            continue
        kind = value.type.tensor_type
        known = kind.HasField("shape") and all(dim.dim_value > 0 for dim in kind.shape.dim)
        if not known and array.shape:
            flags.append(f"--shape={value.name}={'x'.join(map(str, array.shape))}")
    return flags


def are_empty(model: onnx.ModelProto, inputs: Sequence[Any]) -> bool:
    """Whether an array has no elements along a dim that the model leaves open, or of which it says 0, which ptc takes for
    open: such dims are 1 at least."""
    return any(dim.dim_value == 0 and size == 0
               for value, array in zip(arguments(model), inputs) if isinstance(array, np.ndarray)
               for dim, size in zip(value.type.tensor_type.shape.dim, array.shape))


def with_constants(model: onnx.ModelProto, values: dict[str, Any], floats: bool) -> tuple[onnx.ModelProto, frozenset[str]]:
    """A copy in which arguments of rank 0 and 1 are constants: the integers (shapes, axes, counts), or all of them."""
    small = lambda array: isinstance(array, np.ndarray) and array.ndim <= 1 and (floats or array.dtype.kind in "iu")
    chosen = frozenset(name for name, array in values.items() if small(array))
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = [value for value in copy.graph.input if value.name not in chosen]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    copy.graph.initializer.extend(numpy_helper.from_array(values[name], name) for name in sorted(chosen))
    return copy, chosen


class Prepared(BackendRep):
    """A model that can be run. `constants` names the arguments that the library holds as constants, `library` is its file,
    `pin` whether it is compiled for the shapes of its inputs, whatever dims the model leaves open, `load` what makes of a
    library's file what is called with the inputs by name."""

    def __init__(self, model: Any, flags: Sequence[str] = (), compiler: Compiler = compile_file, pin: bool = False, **load_options: Any):
        self._folder = tempfile.TemporaryDirectory(prefix="ptc-")
        folder = Path(self._folder.name)
        if isinstance(model, onnx.ModelProto):
            self._path = folder / "model.onnx"
            onnx.save(model, self._path)
        else:
            self._path = Path(os.fspath(model))
        self.model = model if isinstance(model, onnx.ModelProto) else onnx.load(self._path, load_external_data=False)
        self._flags, self._compiler, self.pin, self.load = list(flags), compiler, pin, functools.partial(load, **load_options)
        self.names = [value.name for value in arguments(self.model)]
        self.library, self._count, self._held, self._pinned, self._loaded = None, 0, {}, [], None
        self.constants: frozenset[str] = frozenset()

    def _compile(self, path: Path, flags: Sequence[str]) -> None:
        self._count += 1
        library = Path(self._folder.name) / f"model{self._count}.so"
        self._loaded = self.library = None
        self._compiler(path, library, [*self._flags, *flags])
        self.library = library

    def compile(self, inputs: Sequence[Any] | None = None) -> None:
        """Compiles the model: as it is, or for these inputs, whose shapes are pinned if that was asked for. Raises
        CompileError with ptc's diagnostics."""
        flags = self._pinned = self._pins(inputs)
        self.constants, self._held = frozenset(), {}
        try:
            return self._compile(self._path, flags)
        except CompileError as error:
            if not any(code in str(error) for code in VALUE_NEEDED) or inputs is None:
                raise
            first = error
        values = dict(zip(self.names, inputs))
        for floats in (False, True):
            changed, chosen = with_constants(self.model, values, floats)
            if not chosen:
                continue
            path = Path(self._folder.name) / "constants.onnx"
            onnx.save(changed, path)
            left = [flag for flag in flags if not any(flag.startswith(f"--shape={name}=") for name in chosen)]
            try:
                self._compile(path, left)
            except CompileError as error:
                if error.exit_code not in (3, 4):
                    raise
                continue
            self.constants, self._held = chosen, {name: values[name] for name in chosen}
            return None
        raise first

    def _pins(self, inputs: Sequence[Any] | None) -> list[str]:
        return pins(self.model, inputs) if inputs is not None and (self.pin or are_empty(self.model, inputs)) else []

    def is_compiled_for(self, inputs: Sequence[Any]) -> bool:
        """Whether the library serves these inputs: it is there, for their shapes if they are pinned, and they agree with its
        constants bit by bit."""
        if self._pinned != self._pins(inputs):
            return False
        values = dict(zip(self.names, inputs))
        same = lambda a, b: a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return self.library is not None and all(same(held, values[name]) for name, held in self._held.items())

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the graph's order. `inputs` are the arguments in theirs, or a dict by name."""
        given = [inputs[name] for name in self.names] if isinstance(inputs, dict) else list(inputs)
        given = [np.asarray(value) if isinstance(value, (np.generic, int, float, bool)) else value for value in given]
        if not self.is_compiled_for(given):
            self.compile(given)
        if self._loaded is None:
            self._loaded = self.load(self.library)
        results = self._loaded(**{name: value for name, value in zip(self.names, given) if name not in self.constants})
        return namedtupledict("Outputs", list(results))(*results.values())


class Backend(OnnxBackend):
    """The class for onnx.backend.test.BackendTest and for the scoreboard."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether ptc compiles the model (or would, once it knows its inputs)."""
        try:
            cls.prepare(model, device, **kwargs)
        except CompileError:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles an onnx.ModelProto or a file. Raises CompileError with the diagnostics.

        flags: of `ptc compile`; pin: compile for the shapes of the first run instead of free dims; compiler: what to call in
        place of the program; others are those of ptc.load.
        """
        if not cls.supports_device(device):
            raise ValueError(f"ptc's backend runs on the CPU, not on {device}")
        prepared = Prepared(model, **kwargs)
        if not kwargs.get("pin"):
            try:
                prepared.compile()
            except CompileError as error:
                if not any(code in str(error) for code in VALUE_NEEDED):
                    raise
        return prepared

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Runs one operator on arrays, in its newest version unless `opset_version` says otherwise."""
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(array) for array in inputs]
        names = [name for name in node.input if name]
        values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                  for name, array in zip(names, arrays)]
        graph = helper.make_graph([node], "node", values, [onnx.ValueInfoProto(name=name) for name in node.output])
        imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(node.domain, 1)] if node.domain else [])
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports))
        for value, stated in zip(model.graph.output, outputs_info or ()):
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(stated[0]))
            value.CopyFrom(helper.make_tensor_value_info(value.name, kind, stated[1]))
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU


prepare, run_model, run_node = Backend.prepare, Backend.run_model, Backend.run_node
supports_device, is_compatible = Backend.supports_device, Backend.is_compatible
