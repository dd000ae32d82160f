# lit: FileCheck tests over the stages. `lit --param build=BUILD tests/FOLDER` runs one folder.
import os
import shutil

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(lit_config.params.get("build", os.path.join(root, "build")))
llvm = "/usr/lib/llvm-22/bin"

config.name = "ptc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".onnxtxt"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "tests", "lit")

# The assembler of the CUDA toolkit, which need not be there.
ptxas = shutil.which("ptxas", path=os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin"]))
tools = [os.path.dirname(ptxas)] if ptxas else []
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm, os.environ["PATH"], *tools])
config.substitutions.append(("%root", root))
config.substitutions.append(("%build", build))
config.substitutions.append(("%python", os.path.join(root, "build", "venv", "bin", "python")))

if ptxas:
    config.available_features.add("ptxas")
