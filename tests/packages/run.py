"""Uses ptc as it is installed, from folders outside of the source tree; see README.md."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import onnx
import onnx.parser

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import unittests  # noqa: E402

BUILD = None
WORK = None  # a folder for this run

# Relative to the prefix; the build's own version of CMake's package may add files below these.
TREE = {"bin", "include/ptc", "share/bash-completion", "share/cmake", "share/doc", "share/fish", "share/man", "share/pkgconfig",
        "share/ptc", "share/zsh"}
MODEL = '<ir_version: 10, opset_import: ["" : 21]>\ndouble_it (float[2,3] x) => (float[2,3] y) { y = Add (x, x) }\n'

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(ptc REQUIRED)
ptc_add_model(twice MODEL twice.onnx CPU x86-64-v2)
add_executable(client client.c)
target_include_directories(client PRIVATE ${ptc_DIR}/../../../include)
target_link_libraries(client PRIVATE twice ${CMAKE_DL_LIBS})
"""


def run(*command, fails=False, **options):
    """The text of both streams of a command that succeeds."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, cwd=options.pop("cwd", WORK), **options)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, command))}\nexit code {done.returncode}\n{done.stdout}")
    return done.stdout


def installed():
    """The prefix, installed once and then moved."""
    prefix = WORK / "moved" / "ptc"
    if not prefix.exists():
        run("cmake", "--install", BUILD, "--prefix", WORK / "prefix")
        prefix.parent.mkdir()
        (WORK / "prefix").rename(prefix)
    return prefix


def compiled(ptc, folder):
    """A library that the program makes of a small model."""
    folder.mkdir(exist_ok=True)
    (folder / "double.onnxtxt").write_text(MODEL)
    run(ptc, "compile", "double.onnxtxt", "-q", "--cpu=x86-64-v2", "-o", "double.so", cwd=folder)
    return folder / "double.so"


def verbs(ptc):
    return re.findall(r"^  (\w+)  +", run(ptc, "--help"), re.M)


class Prefix(unittest.TestCase):
    def test_holds_nothing_else_and_can_be_moved(self):
        prefix = installed()
        files = [str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()]
        strangers = [name for name in files if not any(name.startswith(known + "/") for known in TREE)]
        self.assertEqual(strangers, [])
        for name in ("bin/ptc", "include/ptc/abi.h", "include/ptc/abi.hpp", "share/ptc/ptc.mk", "share/man/man1/ptc.1", "share/pkgconfig/ptc.pc"):
            self.assertIn(name, files)
        texts = [path for path in prefix.rglob("*") if path.is_file() and path.name not in ("ptc", "copyright")]
        for path in texts:
            for place in (WORK, ROOT, BUILD):
                self.assertNotIn(str(place), path.read_text(), path)
        report = json.loads(run(prefix / "bin/ptc", "doctor", "--json"))
        self.assertTrue(report["ready"], report)

    def test_pkg_config_and_a_c_program(self):
        prefix = installed()
        environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
        query = lambda *flags: run("pkg-config", *flags, "ptc", env=environment).strip()
        ptc = Path(query("--variable=ptc"))
        self.assertTrue(ptc.samefile(prefix / "bin/ptc"))
        self.assertIn(query("--modversion"), run(ptc, "version"))
        library = compiled(ptc, WORK / "c")
        run("cc", "-Wall", "-Werror", *query("--cflags").split(), HERE / "client.c", "-o", "client", "-ldl", cwd=library.parent)
        self.assertEqual(run(library.parent / "client", library), "12\n")

    def test_cmake_and_make_find_the_prefix(self):
        prefix, folder = installed(), WORK / "projects"
        folder.mkdir()
        onnx.save(onnx.parser.parse_model(MODEL), folder / "twice.onnx")
        (folder / "client.c").write_text((HERE / "client.c").read_text())
        (folder / "CMakeLists.txt").write_text(CMAKE)
        run("cmake", "-G", "Ninja", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=folder)
        run("cmake", "--build", "build", cwd=folder)
        self.assertEqual(run(folder / "build/client", folder / "build/twice.so"), "12\n")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
        rules = Path(run("pkg-config", "--variable=mkfile", "ptc", env=environment).strip())
        self.assertTrue(rules.samefile(run(prefix / "bin/ptc", "--mk").strip()))
        (folder / "Makefile").write_text(f"PTCFLAGS = --cpu=x86-64-v2\ninclude {rules}\nall: twice.so\n")
        run("make", "all", cwd=folder)
        self.assertEqual(run(folder / "build/client", folder / "twice.so"), "12\n")

    def test_destdir(self):
        run("cmake", "--install", BUILD, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(WORK / "stage")})
        self.assertTrue((WORK / "stage/usr/bin/ptc").is_file())

    def test_licences(self):
        (copyright,) = (installed() / "share/doc").rglob("copyright")
        text = copyright.read_text()
        for component in json.loads(run(installed() / "bin/ptc", "version", "--licenses", "--json"))["components"]:
            self.assertIn(component["name"], text)
        for words in ("Apache License", "LLVM Exceptions", "CLI11", "spdlog", "Protocol Buffers"):
            self.assertIn(words, text)


class Pages(unittest.TestCase):
    def test_every_verb_has_a_page_with_its_flags(self):
        ptc = installed() / "bin/ptc"
        pages = {path.stem: path for path in (installed() / "share/man/man1").iterdir()}
        self.assertEqual(set(pages), {"ptc", *(f"ptc-{verb}" for verb in verbs(ptc))})
        for verb in verbs(ptc):
            shown = re.sub(r".\x08", "", run("groff", "-man", "-ww", "-Tascii", "-P-c", "-P-b", "-P-u", pages[f"ptc-{verb}"]))
            self.assertEqual(run("groff", "-man", "-ww", "-Tascii", "-z", pages[f"ptc-{verb}"]), "", verb)
            for flag in re.findall(r"^  +(?:-\w,)?(--[\w-]+)", run(ptc, verb, "--help"), re.M):
                self.assertIn(flag, shown, verb)
            self.assertIn(f"ptc-{verb}(1)", re.sub(r"-\n\s+", "", (pages["ptc"].read_text().replace("\\-", "-").replace("\\fB", "").replace("\\fR", ""))))


class Completion(unittest.TestCase):
    def complete(self, line):
        script = installed() / "share/bash-completion/completions/ptc"
        return run("bash", HERE / "complete.sh", script, line, cwd=self.folder).split()

    def setUp(self):
        self.folder = WORK / "files"
        (self.folder / "out").mkdir(parents=True, exist_ok=True)
        for name in ("a.onnx", "b.so", "c.txt"):
            (self.folder / name).touch()

    def test_verbs_and_flags(self):
        self.assertEqual(self.complete("ptc com"), ["compile", "completion"])
        self.assertEqual(self.complete("ptc "), [*verbs(installed() / "bin/ptc"), "--help", "--version", "--mk", "--cmake", "--include"])
        self.assertEqual(self.complete("ptc compile --save"), ["--save-temps="])
        self.assertIn("--json", self.complete("ptc bench b.so --"))

    def test_values(self):
        self.assertEqual(self.complete("ptc compile --weights="), ["embed", "file", "none"])
        self.assertEqual(self.complete("ptc compile --fp s"), ["strict"])
        self.assertEqual(self.complete("ptc compile --cpu=x86-64-v3,nat"), ["x86-64-v3,native"])
        self.assertEqual(self.complete("ptc compile --emit=so,mlir:sch"), ["schedule"])  # behind readline's last break
        self.assertEqual(self.complete("ptc man targ"), ["targets"])
        self.assertEqual(self.complete("ptc compile --name "), [])

    def test_files(self):
        self.assertEqual(set(self.complete("ptc compile ")), {"a.onnx", "out"})
        self.assertEqual(set(self.complete("ptc run ")), {"b.so", "out"})
        self.assertEqual(self.complete("ptc compile --save-temps=o"), ["out"])
        self.assertEqual(set(self.complete("ptc compile a.onnx -o ")), {"a.onnx", "b.so", "c.txt", "out"})

    def check(self, shell, script):
        if not shutil.which(shell):
            self.skipTest(f"no {shell} here")
        self.assertEqual(run(shell, "-n", installed() / script), "")

    def test_zsh(self):
        self.check("zsh", "share/zsh/site-functions/_ptc")

    def test_fish(self):
        self.check("fish", "share/fish/vendor_completions.d/ptc.fish")


class Deb(unittest.TestCase):
    def test_is_complete_and_runs(self):
        folder = WORK / "deb"
        # zstd at its quickest: the released package's xz takes a minute.
        run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", folder, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=zstd")
        (package,) = folder.glob("*.deb")
        self.assertRegex(package.name, r"^ptc_[\d.]+_\w+\.deb$")
        field = lambda name: run("dpkg-deb", "-f", package, name).strip()
        self.assertRegex(field("Depends"), r"libc6 \(>= 2\.\d+\)")
        self.assertEqual(field("Section"), "devel")
        self.assertEqual(field("Version"), json.loads(run(BUILD / "bin/ptc", "version", "--json"))["ptc"])
        run("dpkg-deb", "-x", package, folder / "root")
        names = {str(path.relative_to(folder / "root")) for path in (folder / "root").rglob("*") if path.is_file()}
        for name in ("bin/ptc", "share/man/man1/ptc-compile.1.gz", "share/doc/ptc/copyright", "share/zsh/vendor-completions/_ptc"):
            self.assertIn(f"usr/{name}", names)
        for line in run("dpkg-deb", "-c", package).splitlines():
            self.assertRegex(line, r"^\S+ root/root .* \./(usr|$)", "owned by root, below /usr")
        library = compiled(folder / "root/usr/bin/ptc", folder / "use")
        self.assertIn("y float32 2x3", run(folder / "root/usr/bin/ptc", "run", library, "-i", "ones"))


class Wheel(unittest.TestCase):
    SCRIPT = """
import sys, numpy, ptc
assert ptc.__file__.startswith(sys.prefix), ptc.__file__
assert ptc.program().startswith(sys.prefix), ptc.program()
class Tensor:
    def __init__(self, array): self.array = array
    def __dlpack_device__(self): return (1, 0)
    def __dlpack__(self, **options): return self.array.__dlpack__()
model = ptc.compile("double.onnxtxt", "--cpu=x86-64-v2")
x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
for given in (x, Tensor(x), Tensor(x.T.copy().T)):
    assert (numpy.from_dlpack(model(given)["y"]) == 2 * x).all()
kept = ptc.load("double.so")
assert (kept(x=x)["y"] == 2 * x).all()
try:
    ptc.compile("missing.onnx")
except ptc.CompileError as error:
    assert error.exit_code == 6 and "missing.onnx" in str(error), error
else:
    raise AssertionError("a missing model was compiled")
"""

    def test_in_a_fresh_environment(self):
        folder = WORK / "wheel"
        folder.mkdir()
        version = json.loads(run(BUILD / "bin/ptc", "version", "--json"))["ptc"]
        wheel = Path(run(sys.executable, ROOT / "cli/packaging/wheel.py", "--prefix", installed(), "--module",
                         ROOT / "runtime/python/ptc", "--version", version, "--output", folder).strip())
        needed = run("readelf", "-dW", installed() / "bin/ptc")
        self.assertRegex(wheel.name, rf"^ptc_compiler-{version}-py3-none-" +
                         ("linux_" if "libLLVM" in needed else r"manylinux_2_(2\d|3[0-4])_"))
        self.assertIsNone(zipfile.ZipFile(wheel).testzip())
        # numpy, the one dependency, is that of the tests: nothing is fetched.
        import numpy
        environment = {**os.environ, "PYTHONPATH": str(Path(numpy.__file__).parents[1])}
        run(sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv/bin/python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel, env=environment)
        self.assertIn(f"ptc {version}", run(folder / "venv/bin/ptc", "version"))
        self.assertEqual(run(python, "-m", "ptc", "version", env=environment), run(folder / "venv/bin/ptc", "version"))
        compiled(folder / "venv/bin/ptc", folder / "use")
        run(python, "-c", self.SCRIPT, cwd=folder / "use", env=environment)
        self.assertIn("ptc-compiler", run(python, "-m", "pip", "list", "--disable-pip-version-check"))
        run(python, "-m", "pip", "uninstall", "--quiet", "-y", "ptc-compiler")
        self.assertFalse((folder / "venv/bin/ptc").exists())


def main():
    global BUILD, WORK
    arguments = unittests.parse(__doc__)
    BUILD = arguments.build
    with tempfile.TemporaryDirectory(prefix="ptc-packages-") as name:
        WORK = Path(name).resolve()
        return unittests.run(arguments, lambda loader: loader.loadTestsFromModule(sys.modules[__name__]), unittests.NOTHING)


if __name__ == "__main__":
    sys.exit(main())
