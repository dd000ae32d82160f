"""CMake projects: kinds of libraries and generators, what is rebuilt, install and export, other processors."""

import shutil

import models
import project
from project import Failed, Project, stamp, touch

HEAD = "cmake_minimum_required(VERSION 3.20)\nproject(test CXX)\nfind_package(ptc REQUIRED)\n"

PRINT = """
#include "@.hpp"
#include <cstdio>
int main() {
  const float x[4] = {1, 2, 3, 4};
  float y[4];
  ptc::@::Model model;
  ptc::@::Context(model).run(x, y).or_throw();
  std::printf("%g %g %g %g\\n", y[0], y[1], y[2], y[3]);
}
"""


def scaled(factor):
    return " ".join(f"{factor * x:g}" for x in (1, 2, 3, 4)) + "\n"


class Kinds(Project):
    """Of one model a library of each kind, and a program for each."""

    KINDS = ("shared", "static", "object")

    def make_project(self):
        models.scale_external(self.folder / "net.onnx", "net.data")
        models.write_factors(self.folder / "net.data", 3)
        text = HEAD
        for kind in self.KINDS:
            text += (f"ptc_add_model({kind}_net MODEL net.onnx TYPE {kind.upper()} CPU x86-64-v3 OPTIONS @flags.rsp)\n"
                     f"add_executable({kind} {kind}.cpp)\ntarget_link_libraries({kind} PRIVATE {kind}_net)\n")
            self.write(**{f"{kind}_cpp": PRINT.replace("@", f"{kind}_net")})
        self.write(CMakeLists_txt=text, flags_rsp="-O1\n")

    def outputs(self):
        return [self.sh(f"build/{kind}") for kind in self.KINDS]

    def stamps(self):
        return [stamp(self.folder / "build" / kind) for kind in self.KINDS]

    def check_rebuilding(self, generator):
        self.make_project()
        self.configure(generator=generator)
        self.build()
        names = sorted(f"{kind}_net" for kind in self.KINDS)
        self.assertEqual(self.compiled, names)
        self.assertEqual(self.outputs(), [scaled(3)] * 3)
        self.build()
        self.assertEqual(self.compiled, [], "nothing was touched")

        # Read anew, with the same result: no program is linked, and the next build knows it.
        built = self.stamps()
        for name in ("net.onnx", "flags.rsp"):
            touch(self.folder / name)
            self.build()
            self.assertEqual(self.compiled, names, name)
            self.assertEqual(self.stamps(), built, name)
            self.build()
            self.assertEqual(self.compiled, [], name)

        models.write_factors(self.folder / "net.data", 5)
        touch(self.folder / "net.data")
        self.build()
        self.assertEqual(self.compiled, names)
        self.assertEqual(self.outputs(), [scaled(5)] * 3)

        # A broken model: its error is in the log, and what was built stays.
        library = self.folder / "build" / "shared_net.ptc" / "shared_net.so"
        old, model = library.read_bytes(), (self.folder / "net.onnx").read_bytes()
        (self.folder / "net.onnx").write_bytes(b"\x12\x03")
        with self.assertRaisesRegex(Failed, r"net\.onnx: error\[PTC\d+\]"):
            self.build()
        self.assertEqual(library.read_bytes(), old)
        self.assertEqual(self.outputs(), [scaled(5)] * 3)
        (self.folder / "net.onnx").write_bytes(model)
        self.build()
        self.assertEqual(self.outputs(), [scaled(5)] * 3)

    def test_ninja(self):
        self.check_rebuilding("Ninja")

    def test_makefiles(self):
        self.check_rebuilding("Unix Makefiles")

    def test_several_configurations(self):
        """One build folder for Debug and Release, whose programs use the same compiled models."""
        self.KINDS = ("shared", "static")
        self.make_project()
        self.configure(generator="Ninja Multi-Config")
        for name, compiled in (("Debug", self.KINDS), ("Release", ())):
            text = self.sh("cmake", "--build", "build", "--config", name, "-j", project.JOBS)
            self.assertEqual(text.count("with ptc: "), len(compiled), text)
            self.assertEqual([self.sh(f"build/{name}/{kind}") for kind in self.KINDS], [scaled(3)] * len(self.KINDS))


class Installing(Project):
    def test_export_sets_and_weights_files(self):
        """Models are installed and exported as other targets are, a weights file beside its library; all of it moves."""
        models.large(self.folder / "wide.onnx", 2)
        models.scale(self.folder / "net.onnx", 7)
        self.write(CMakeLists_txt=HEAD + """
ptc_add_model(wide MODEL wide.onnx WEIGHTS file CPU x86-64-v3)
ptc_add_model(net MODEL net.onnx TYPE STATIC CPU x86-64-v3)
install(TARGETS wide net EXPORT models RESOURCE DESTINATION lib)
install(EXPORT models DESTINATION lib/cmake/models NAMESPACE models:: FILE modelsConfig.cmake)
""")
        self.configure()
        self.build()
        self.sh("cmake", "--install", "build", "--prefix", "installed", "--strip")
        (self.folder / "installed").rename(self.folder / "moved")
        shutil.rmtree(self.folder / "build")
        self.write(CMakeLists_txt="""cmake_minimum_required(VERSION 3.20)
project(user CXX)
find_package(models REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user PRIVATE models::wide models::net)
""", main_cpp="""
#include "net.hpp"
#include "wide.hpp"
#include <cstdio>
#include <vector>
int main() {
  std::vector<float> x(64, 1.0F), y(64);
  ptc::wide::Model wide;
  ptc::wide::Context(wide).run(x, y).or_throw();
  float small[4] = {1, 1, 1, 1};
  ptc::net::Model net;
  ptc::net::Context(net).run(small, small + 0).or_throw();
  std::printf("%g %g\\n", y[63], small[0]);
}
""".replace("run(small, small + 0)", "run(ptc::Span<const float>(x.data(), 4), small)"))
        self.configure(prefix=self.folder / "moved")
        self.build()
        self.assertEqual(self.sh("build/user"), "128 7\n")

    def test_moved_ptc(self):
        """The package finds the program of its own prefix, wherever that is; tests and benchmarks use it."""
        self.install_ptc(self.folder / "first")
        (self.folder / "first").rename(self.folder / "second")
        models.scale(self.folder / "net.onnx", 2)
        self.write(main_cpp=PRINT.replace("@", "net"), CMakeLists_txt=HEAD + """
ptc_add_model(net MODEL net.onnx CPU x86-64-v3)
add_executable(main main.cpp)
target_link_libraries(main PRIVATE net)
enable_testing()
ptc_add_verify_test(net OPTIONS --ulp=0)
ptc_add_bench(net OPTIONS --min-time=0.01)
""")
        self.configure(prefix=self.folder / "second")
        self.assertIn(str(self.folder / "second" / "bin" / "ptc"), self.sh("cmake", "--build", "build", "-v"))
        self.assertEqual(self.sh("build/main"), scaled(2))
        self.assertIn("100% tests passed", self.sh("ctest", cwd=self.folder / "build"))
        self.assertRegex(self.sh("cmake", "--build", "build", "--target", "net.bench"), "threads")


class Gates(Project):
    def test_gate_of_a_project(self):
        """gate-update records baselines and updates them; the tests fail when kernels change and say how to keep that."""
        self.need_gate()
        (self.folder / "gates").mkdir()
        models.scale(self.folder / "net.onnx", 2)
        text = HEAD + """
enable_testing()
ptc_add_model(net MODEL net.onnx CPU x86-64-v3)
ptc_add_gate(net)
ptc_add_gate_update(net)
"""
        for generator in ("Ninja", "Unix Makefiles"):
            shutil.rmtree(self.folder / "build", ignore_errors=True)
            shutil.rmtree(self.folder / "gates")
            models.scale(self.folder / "net.onnx", 2)
            self.write(CMakeLists_txt=text)
            self.configure(generator=generator)
            self.sh("cmake", "--build", "build", "--target", "gate-update")
            self.assertTrue((self.folder / "gates" / "net.json").exists())
            self.assertIn("100% tests passed", self.sh("ctest", cwd=self.folder / "build"))
        models.large(self.folder / "net.onnx", 2)
        with self.assertRaisesRegex(Failed, "net.gate"):
            self.sh("ctest", "--output-on-failure", cwd=self.folder / "build")
        self.sh("cmake", "--build", "build", "--target", "net.gate-update")
        self.sh("ctest", cwd=self.folder / "build")


class CrossCompiling(Project):
    def set_up(self, processor):
        """A toolchain file that keeps CMake away from all files of this machine; its compilers are this machine's."""
        (self.folder / "sysroot").mkdir(exist_ok=True)
        models.scale(self.folder / "net.onnx", 2)
        self.write(CMakeLists_txt=HEAD + "ptc_add_model(net MODEL net.onnx)\n", toolchain_cmake=f"""
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {processor})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH "${{CMAKE_CURRENT_LIST_DIR}}/sysroot")
foreach(kind PROGRAM LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${{kind}} ONLY)
endforeach()
""")
        shutil.copytree(project.BUILD / "share" / "cmake" / "ptc", self.folder / "package")  # without its program
        return ["-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake", f"-Dptc_DIR={self.folder}/package",
                *(f"-DCMAKE_{name}={shutil.which(program)}" for name, program in
                  dict(MAKE_PROGRAM="ninja", CXX_COMPILER="g++", AR="ar", RANLIB="ranlib").items())]

    def test_levels_follow_the_processor(self):
        arguments = self.set_up("aarch64")
        self.configure(*arguments)
        self.build()
        library = self.folder / "build" / "net.so"
        self.assertEqual(int.from_bytes(library.read_bytes()[18:20], "little"), 183, "EM_AARCH64")

    def test_unknown_processor(self):
        arguments = self.set_up("riscv64")
        with self.assertRaisesRegex(Failed, "ptc has no code for CMAKE_SYSTEM_PROCESSOR 'riscv64'"):
            self.configure(*arguments)


class Mistakes(Project):
    def test_messages(self):
        """Each mistake in ptc_add_model is named when the project is configured."""
        self.write(CMakeLists_txt=HEAD + "include(wrong.cmake)\n")
        for call, message in [
            ("ptc_add_model(net MODEL net.onnx KIND SHARED)", "'KIND;SHARED' belongs to no keyword; there are MODEL, TYPE"),
            ("ptc_add_model(net)", "MODEL is missing"),
            ("ptc_add_model(net MODEL net.onnx TYPE MODULE)", "unknown TYPE 'MODULE'"),
            ("ptc_add_model(net MODEL)", "no value behind MODEL"),
            ("ptc_add_model(net MODEL a.onnx)\nptc_add_model(net MODEL b.onnx)", "there is a target of this name already"),
            ("ptc_add_model(a-b MODEL a.onnx)\nptc_add_model(a_b MODEL b.onnx)", "its C names would be those of 'a-b'"),
            ("ptc_add_verify_test(none)", "no such target; ptc_add_model makes it"),
        ]:
            self.write(wrong_cmake=call)
            with self.assertRaises(Failed) as caught:
                self.configure()
            self.assertIn(message, " ".join(str(caught.exception).split()))
