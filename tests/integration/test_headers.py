"""The C++ header of a model: compilers and standards, odd names and types, and what it refuses."""

import models
from project import Project

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"]

SUM = """
#include "sum.hpp"
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

int main() {
  auto made = ptc::sum::Model::create();
  if (!made)
    return std::puts(made.status().message().c_str());
  ptc::sum::Model model = std::move(*made);
  auto context = ptc::sum::Context::create(model);
  ptc::sum::Dims dims{2};
  std::vector<float> total(8, 1.0F), minus(8);
  const std::array<float, 8> x{1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < 2; ++i)
    if (ptc::Status status = context->run(dims, total, x, minus); !status)
      return std::puts(status.message().c_str());
  std::printf("%g %g\\n", total[7], minus[7]);
  auto shapes = model.output_shapes(dims);
  std::printf("%d %d\\n", int(shapes->minus[0]), int(shapes->minus[1]));
  std::vector<char> workspace(model.workspace_size(dims));
  std::printf("%d\\n", bool(context->run(dims, total.data(), x.data(), minus.data(), workspace.data())));

  minus.resize(7);
  ptc::Status small = context->run(dims, total, x, minus);
  std::printf("%d %s\\n", small.code() == PTC_SHAPE_MISMATCH, small.message().c_str());
  dims.batch = 100;
  std::printf("%s\\n", context->run(dims, total.data(), x.data(), minus.data()).message().c_str());
  std::printf("%d\\n", model.workspace_size(dims) == PTC_NO_SIZE);

  ptc_options options = ptc::default_options();
  options.cpu_level = "z80";
  std::printf("%s\\n", ptc::sum::Model::create(options).status().message().c_str());
  ptc::sum::Context other = std::move(*context), another = std::move(other);
  other = std::move(another);
  dims.batch = 1;
  std::printf("%d %d\\n", bool(other.warmup(dims)), another.get() == nullptr);
#ifdef __cpp_exceptions
  try {
    dims.batch = 100;
    other.run(dims, total.data(), x.data(), minus.data()).or_throw();
  } catch (const ptc::Error &error) {
    std::printf("%d %s\\n", error.code() == PTC_GUARD_FAILED, error.what());
  }
#endif
}
"""

TYPES = """
#include "odd-types.hpp"
#include "odd-types.hpp"
#include <cstdint>
#include <cstdio>

int main() {
  const std::uint16_t half[4] = {0x3c00, 0x4000, 0x4200, 0x4400}, brain[3] = {0x3f80, 0x4000, 0x4040};
  const std::uint8_t flags[5] = {0, 1, 0, 1, 1};
  const float x[2] = {3, 4};
  std::uint16_t half2[4], brain2[3];
  std::uint8_t flags2[5];
  float sum = 0, twice[4];
  ptc::odd_types::Model model;
  ptc::odd_types::Context context(model);
  context.run({2, 5}, half, brain, flags, x, half2, brain2, flags2, &sum, twice).or_throw();
  std::printf("%x %x %d%d %g %g\\n", unsigned{half2[3]}, unsigned{brain2[2]}, flags2[0], flags2[1], double(sum), double(twice[3]));
  auto shapes = model.output_shapes({2, 5}).or_throw();
  std::printf("%zu %d %d\\n", shapes.ptc.size(), int(shapes.owner[0]), int(shapes.Model_[0]));
}
"""


class Headers(Project):
    def compile_model(self, name, *flags):
        self.sh("ptc", "compile", f"{name}.onnx", "-o", f"{name}.so", "--cpu=x86-64-v3", *flags)

    def program(self, compiler, name, library, *flags):
        self.sh(compiler, *WARNINGS, *flags, f"{name}.cpp", library, "-o", name, "-Wl,-rpath,$ORIGIN")
        return self.sh(f"./{name}")

    def test_calls_and_refusals(self):
        """A model of a symbolic batch with an input that is updated in place, with and without exceptions."""
        models.running_sum(self.folder / "sum.onnx")
        self.compile_model("sum", "--alias", "total=total_out", "--dim", "batch=1..64")
        self.write(sum_cpp=SUM)
        expected = ["17 -8", "2 4", "1", "1 minus: 7 elements in memory where the shape needs 8"]
        for compiler, *flags in [("g++", "-std=c++17"), ("clang++", "-std=c++20", "-fno-exceptions", "-fno-rtti")]:
            lines = self.program(compiler, "sum", "sum.so", *flags).splitlines()
            self.assertEqual(lines[:4], expected)
            self.assertRegex(lines[4], "batch")
            self.assertEqual(lines[5], "1")
            self.assertIn("z80", lines[6])
            self.assertEqual(lines[7], "1 1")
            if "-fno-exceptions" in flags:
                self.assertEqual(len(lines), 8)
            else:
                self.assertEqual(lines[8], f"1 {lines[4]}")

    def test_odd_names_and_types(self):
        models.types(self.folder / "odd-types.onnx")
        self.compile_model("odd-types")
        self.write(**{"odd-types_cpp": TYPES})
        for compiler, standard in (("g++", "c++20"), ("clang++", "c++17")):
            printed = self.program(compiler, "odd-types", "odd-types.so", f"-std={standard}")
            self.assertEqual(printed, "4800 40c0 10 7 4\n0 5 4\n")
        self.assertIn("C++17", self.fails("g++", "-std=c++14", "-fsyntax-only", "odd-types.cpp"))
