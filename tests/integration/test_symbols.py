"""Names: what libraries export and need, and models beside each other in one program."""

import re

import models
from project import Failed, Project

TYPED = ("create", "destroy", "ctx_create", "ctx_destroy", "set_weight", "last_error", "workspace_size", "output_shapes",
         "warmup", "run")

MIXED = """
#include "one.hpp"
#include "two.hpp"
#include <cstdio>
int main() {
  const float x[4] = {1, 2, 3, 4};
  float a[4], b[4];
  ptc::one::Model one;
  ptc::two::Model two;
  ptc::one::Context first(one);
  ptc::two::Context second(two);
  first.run(x, a).or_throw();
  second.run(x, b).or_throw();
  std::printf("%g %g\\n", a[3], b[3]);
}
"""

# The table as it was when compilers knew less of it.
EARLIER = """
#include "one.h"
extern const ptc_model_table one_model_v1;
ptc_model_table ptc_model_v1;
__attribute__((constructor)) static void copy(void) {
  ptc_model_v1 = one_model_v1;
  ptc_model_v1.struct_size = MEMBERS;
  ptc_model_v1.run_call = 0;
}
"""


class Symbols(Project):
    def setUp(self):
        super().setUp()
        self.sh("mkdir", "so", "a", "o")
        for name, factor in (("one", 2), ("two", 3)):
            model = models.scale(self.folder / f"{name}.onnx", factor)
            for kind in ("so", "a", "o"):
                self.sh("ptc", "compile", model, "-o", f"{kind}/{name}.{kind}", "--cpu=x86-64-v3")

    def names(self, *command):
        return sorted(line.split()[-1] for line in self.sh("nm", *command).splitlines() if len(line.split()) > 1)

    def test_names(self):
        typed = [f"one_{verb}" for verb in TYPED]
        self.assertEqual(self.names("-D", "--defined-only", "so/one.so"), sorted([*typed, "ptc_model_v1"]))
        for path in ("a/one.a", "o/one.o"):
            self.assertEqual(self.names("-g", "--defined-only", path), sorted([*typed, "one_model_v1"]))

    def test_needs_no_newer_glibc(self):
        """Versions up to glibc 2.17 alone, and no library but the C library's."""
        text = self.sh("readelf", "--wide", "--version-info", "--dynamic", "so/one.so")
        versions = [tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+)", text)]
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), (2, 17))
        self.assertEqual(set(re.findall(r"Name: (\w+)_", text)) - {"GLIBC"}, set())
        self.assertLessEqual(set(re.findall(r"Shared library: \[(.*?)\]", text)), {"libc.so.6", "libpthread.so.0"})

    def test_two_models_in_one_program(self):
        self.write(mixed_cpp=MIXED)
        links = [("g++", "bfd", "so/one.so", "so/two.so"), ("g++", "lld", "a/one.a", "a/two.a"),
                 ("clang++", "lld", "so/one.so", "o/two.o"), ("clang++", "bfd", "o/one.o", "a/two.a"),
                 ("g++", "bfd", "a/one.a", "so/two.so")]
        for compiler, linker, one, two in links:
            folders = [f"-I{path.split('/')[0]}" for path in (one, two)]
            with self.subTest(compiler=compiler, linker=linker, one=one, two=two):
                self.write(**{"one_hpp": f'#include "{one.rsplit(".")[0]}.hpp"\n', "two_hpp": f'#include "{two.rsplit(".")[0]}.hpp"\n'})
                self.sh(compiler, "-std=c++17", "-I.", "mixed.cpp", one, two, "-o", "mixed", f"-fuse-ld={linker}", "-pthread",
                        "-Wl,-rpath,$ORIGIN/so", "-Wl,--fatal-warnings")
                self.assertEqual(self.sh("./mixed"), "8 12\n")

    def test_libraries_of_earlier_compilers(self):
        self.write(earlier_c=EARLIER)
        for members, command in (("offsetof(ptc_model_table, run_call)", ("bench", "earlier.so", "--ab", "so/one.so", "--min-time=0.01")),
                                 ("offsetof(ptc_model_table, run_call) - 8", ("inspect", "earlier.so"))):
            self.sh("cc", "-shared", "-fPIC", "-Ia", f"-DMEMBERS={members}", "earlier.c", "a/one.a", "-o", "earlier.so", "-pthread")
            if command[0] == "bench":
                self.assertIn("p50", self.sh("ptc", *command))
            else:
                self.assertRaisesRegex(Failed, "is of an older ptc, whose model interface lacks", self.sh, "ptc", *command)
