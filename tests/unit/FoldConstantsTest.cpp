// Folding what is computed from small weights: the normalisation's parameters
// become constants, views of weights stay references.
#include "ir/eval/ReferenceEval.h"
#include "lowering/passes/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <catch2/catch.hpp>

using namespace ptc;

namespace {
/// All weights lie in one array of floats; reading past it fails.
struct ArrayWeights : eval::WeightSource {
  std::vector<float> floats = {1, 4, 16, 64};
  llvm::Expected<llvm::ArrayRef<char>> getBytes(prim::WeightRefAttr ref) override {
    if (ref.getOffset() + ref.getSize() > int64_t(floats.size() * sizeof(float)))
      return llvm::createStringError("the weight lies outside its file");
    return llvm::ArrayRef<char>(reinterpret_cast<const char *>(floats.data()) + ref.getOffset(), ref.getSize());
  }
};

struct Counts {
  int constants = 0, weights = 0, others = 0;
  bool operator==(const Counts &) const = default;
};
} // namespace

static Counts fold(const char *text, int64_t maxBytes) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  ArrayWeights weights;
  mlir::PassManager passes(&context);
  passes.addNestedPass<mlir::func::FuncOp>(createFoldConstants(maxBytes, weights));
  REQUIRE(mlir::succeeded(passes.run(*module)));
  Counts counts;
  module->walk([&](mlir::Operation *op) {
    if (mlir::isa<prim::ConstantOp>(op))
      ++counts.constants;
    else if (mlir::isa<prim::WeightOp>(op))
      ++counts.weights;
    else if (mlir::isa<prim::PrimDialect>(op->getDialect()))
      ++counts.others;
  });
  return counts;
}

TEST_CASE("what is computed from small weights folds, their views do not", "[fold]") {
  const char *text = R"(
    func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {
      %w = prim.weight <"variance", "", 0, 16> : tensor<4xf32>
      %s = prim.sqrt %w : tensor<4xf32>
      %y = prim.mul %x, %s : tensor<4xf32>
      %v = prim.reshape %w : tensor<4xf32> -> tensor<2x2xf32>
      return %y, %v : tensor<4xf32>, tensor<2x2xf32>
    })";
  CHECK(fold(text, 16) == Counts{.constants = 1, .weights = 1, .others = 2});
  CHECK(fold(text, 15) == Counts{.constants = 0, .weights = 1, .others = 3});
}

TEST_CASE("a weight that cannot be read folds nothing", "[fold]") {
  const char *text = R"(
    func.func @f() -> tensor<4xf32> {
      %w = prim.weight <"w", "", 8, 16> : tensor<4xf32>
      %s = prim.sqrt %w : tensor<4xf32>
      return %s : tensor<4xf32>
    })";
  CHECK(fold(text, 1 << 20) == Counts{.constants = 0, .weights = 1, .others = 1});
}
