"""The rules of `ptc --mk`: what they make, what they make again, and where they come from."""

import models
import project
from project import Failed, Project, stamp, touch
from test_cmake import PRINT, scaled

MAKEFILE = """include $(shell ptc --mk)
PTCFLAGS = --cpu=x86-64-v3
PTCFLAGS_net = @flags.rsp
CXXFLAGS = -std=c++17
main: main.o net.so
	$(CXX) $^ -o $@ -Wl,-rpath,'$$ORIGIN'
main.o: net.hpp
"""


class Rules(Project):
    def make(self, *arguments):
        """How many models make compiles."""
        return self.sh("make", *arguments).count(" compile ")

    def test_rebuilding(self):
        models.scale_external(self.folder / "net.onnx", "net.data")
        models.write_factors(self.folder / "net.data", 3)
        self.write(Makefile=MAKEFILE, flags_rsp="-O1\n", main_cpp=PRINT.replace("@", "net"))
        self.assertEqual(self.make("-j", 8), 1, "one compile makes the library and its headers")
        self.assertEqual(self.sh("./main"), scaled(3))
        self.assertEqual(self.make(), 0)

        built = stamp(self.folder / "main")
        for name in ("net.onnx", "flags.rsp"):
            touch(self.folder / name)
            self.assertEqual(self.make(), 1, name)
            self.assertEqual(self.make(), 0, name)
            self.assertEqual(stamp(self.folder / "main"), built, name)

        models.write_factors(self.folder / "net.data", 5)
        touch(self.folder / "net.data")
        self.assertEqual(self.make("-j", 8), 1)
        self.assertEqual(self.sh("./main"), scaled(5))

        (self.folder / "net.hpp").unlink()
        self.make()
        self.assertTrue((self.folder / "net.hpp").exists(), "what was deleted is made again")

        library, model = (self.folder / "net.so").read_bytes(), (self.folder / "net.onnx").read_bytes()
        (self.folder / "net.onnx").write_bytes(b"\x12\x03")
        with self.assertRaisesRegex(Failed, r"net\.onnx: error\[PTC\d+\]"):
            self.make()
        self.assertEqual((self.folder / "net.so").read_bytes(), library)
        (self.folder / "net.onnx").write_bytes(model)
        self.make()
        self.assertEqual(self.sh("./main"), scaled(5))

    def test_kinds_and_folders(self):
        """Static libraries and objects; models in a folder; a default goal that is the user's own."""
        (self.folder / "nets").mkdir()
        for name, factor in (("one", 2), ("two", 3)):
            models.scale(self.folder / "nets" / f"{name}.onnx", factor)
        self.write(Makefile="""PTC_TYPE = a
include $(shell ptc --mk)
PTCFLAGS = --cpu=x86-64-v3
programs: one two
one: one.cpp nets/one.a nets/one.hpp
	$(CXX) -std=c++17 -Inets $(filter %.cpp %.a,$^) -o $@ -pthread
two: two.cpp nets/two.o nets/two.hpp
	$(CXX) -std=c++17 -Inets $(filter %.cpp %.o,$^) -o $@ -pthread
""", one_cpp=PRINT.replace("@", "one"), two_cpp=PRINT.replace("@", "two"))
        self.make("-j", 8)
        self.assertEqual([self.sh("./one"), self.sh("./two")], [scaled(2), scaled(3)])
        self.assertEqual(self.make("-j", 8), 0)


class Gates(Project):
    def test_gate_goals(self):
        """gate-update records the baselines of all models and updates them, gate fails when kernels have changed."""
        self.need_gate()
        models.scale(self.folder / "one.onnx", 2)
        models.scale(self.folder / "two.onnx", 3)
        self.write(Makefile="include $(shell ptc --mk)\nPTCFLAGS = --cpu=x86-64-v3 --weights=file\nnothing:\n")
        self.fails("make", "gate")
        self.sh("make", "-j", 2, "gate-update")
        self.assertEqual(sorted(path.name for path in (self.folder / "gates").iterdir()), ["one.json", "two.json"])
        self.sh("make", "-j", 2, "gate")
        models.large(self.folder / "two.onnx", 2)
        self.assertIn("gate@two", self.fails("make", "gate"))
        self.sh("make", "gate-update")
        self.sh("make", "gate")


class Locations(Project):
    def test_installed_and_moved(self):
        self.install_ptc(self.folder / "first")
        (self.folder / "first").rename(self.folder / "second")
        prefix = (self.folder / "second").resolve()
        self.assertEqual(self.sh("second/bin/ptc", "--mk"), f"{prefix}/share/ptc/ptc.mk\n")
        self.assertEqual(self.sh("second/bin/ptc", "--cmake"), f"{prefix}/share/cmake/ptc\n")

    def test_program_alone(self):
        """Copied without its prefix, ptc writes the files into the user's cache."""
        project.link_or_copy(project.BUILD / "bin" / "ptc", self.folder / "alone" / "ptc")
        self.environment |= {"XDG_CACHE_HOME": str(self.folder / "cache"), "PATH": f"{self.folder}/alone:/usr/bin:/bin"}
        (mk,) = self.sh("ptc", "--mk").splitlines()
        self.assertEqual(self.sh("ptc", "--mk").splitlines(), [mk])
        self.assertEqual([path.name for path in (self.folder / "cache" / "ptc").iterdir()], [mk.split("/")[-4]])
        (package,) = self.sh("ptc", "--cmake").splitlines()
        models.scale(self.folder / "net.onnx", 2)
        self.write(CMakeLists_txt="""cmake_minimum_required(VERSION 3.20)
project(test CXX)
find_package(ptc 0.1 REQUIRED)
ptc_add_model(net MODEL net.onnx CPU x86-64-v3)
add_executable(main main.cpp)
target_link_libraries(main PRIVATE net)
""", main_cpp=PRINT.replace("@", "net"))
        self.sh("cmake", "-G", "Ninja", "-B", "build", f"-Dptc_DIR={package}")
        self.build()
        self.assertEqual(self.sh("build/main"), scaled(2))
