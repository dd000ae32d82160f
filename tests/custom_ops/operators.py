"""The library of operators, compiled once a process, and models that use it."""

import functools
import os
import subprocess
import tempfile
from pathlib import Path

import models
import onnx
from onnx import helper

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "runtime" / "include"
DOMAIN = "test.ops"
FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def library(language="c", name="operators"):
    path = Path(FOLDER.name) / str(os.getpid()) / language / f"lib{name}.so"  # tests are processes
    path.parent.mkdir(parents=True, exist_ok=True)
    compiler = {"c": ["cc", "-std=c17"], "c++": ["c++", "-x", "c++", "-std=c++17"]}[language]
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE,
                    HERE / "operators.c", "-o", path], check=True)
    return path


def flags(*operators, path=None, **symbols):
    """--custom-op for operators; their symbols are scale_op and so on."""
    return [f"--custom-op={DOMAIN}.{name}={path or library()}:{symbols.get(name) or name.lower() + '_op'}"
            for name in operators]


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, domain=DOMAIN, name=f"my_{kind.lower()}", **attributes)


def model(nodes, inputs, outputs, weights=None):
    proto = models.model(nodes, inputs, outputs, weights)
    proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    onnx.checker.check_model(proto)
    return proto
