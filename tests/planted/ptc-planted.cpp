// ptc-planted PLANT VERB ...: ptc with a compiler that is worse in one way, for tests of what notices.
#include "cli/CompileSession.h"
#include "compiler/Registration.h"
#include "tests/planted/Plants.h"

using namespace ptc;

namespace {
struct PlantRow {
  llvm::StringLiteral name, what;
  CompilerParts (*make)();
};

template <test::ChangePasses::result_type (*change)(Phase, mlir::OpPassManager &)> CompilerParts withPasses() {
  return {.changePasses = change};
}

template <const codegen::Target &(*get)()> CompilerParts withTarget() {
  static const codegen::Target *const table[] = {&get()};
  return {.targets = table};
}
} // namespace

static const PlantRow plants[] = {
    {"none", "ptc as it is", [] { return CompilerParts(); }},
    {"fusion", "one fusion is refused", withPasses<test::refuseOneFusion>},
    {"copy", "what one kernel reads is copied first", withPasses<test::copyOneBuffer>},
    {"scalar", "kernels of loops have no vectors", withTarget<test::getScalarTarget>},
    {"exp", "a coefficient of exp is wrong", withTarget<test::getWrongExpTarget>},
    {"alignment", "buffers lie off their cache lines", withPasses<test::misalignArena>},
    {"life", "a buffer is kept alive until the end", withPasses<test::prolongOneLife>},
    {"work", "a tenth of the floating-point work is done twice",
     [] { return CompilerParts{.changePasses = test::repeatWork(0.1)}; }},
};

int main(int argc, char **argv) {
  registerStagePasses(); // plants take stages apart and put them together again
  for (const PlantRow &plant : plants)
    if (argc > 1 && plant.name == argv[1]) {
      argv[1] = argv[0];
      return runProgram(argc - 1, argv + 1, plant.make());
    }
  llvm::errs() << "usage: ptc-planted PLANT VERB ...\n";
  for (const PlantRow &plant : plants)
    llvm::errs() << llvm::formatv("  {0,-10} {1}\n", plant.name, plant.what);
  return exitUsage;
}
