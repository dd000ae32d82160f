// Folding what is computed from small weights: the normalisation's parameters
// become constants, views of weights stay references.
#include "ir/eval/ReferenceEval.h"
#include "lowering/passes/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <catch2/catch.hpp>
#include <cstring>

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

/// Keeps what is computed, by number.
struct KeepingWeights : ArrayWeights {
  std::vector<std::vector<char>> kept;
  prim::WeightRefAttr keep(mlir::MLIRContext *context, llvm::ArrayRef<char> bytes) override {
    kept.emplace_back(bytes.begin(), bytes.end());
    return prim::WeightRefAttr::get(context, "", std::to_string(kept.size()), 0, int64_t(bytes.size()));
  }
};

struct Counts {
  int constants = 0, weights = 0, others = 0;
  bool operator==(const Counts &) const = default;
};
} // namespace

static Counts fold(const char *text, FoldedBytes limits, eval::WeightSource &&weights = ArrayWeights()) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  mlir::PassManager passes(&context);
  passes.addNestedPass<mlir::func::FuncOp>(createFoldConstants(limits, weights));
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
  CHECK(fold(text, {.constants = 16}) == Counts{.constants = 1, .weights = 1, .others = 2});
  CHECK(fold(text, {.constants = 15}) == Counts{.constants = 0, .weights = 1, .others = 3});
}

TEST_CASE("a weight that cannot be read folds nothing", "[fold]") {
  const char *text = R"(
    func.func @f() -> tensor<4xf32> {
      %w = prim.weight <"w", "", 8, 16> : tensor<4xf32>
      %s = prim.sqrt %w : tensor<4xf32>
      return %s : tensor<4xf32>
    })";
  CHECK(fold(text, {.constants = 1 << 20}) == Counts{.constants = 0, .weights = 1, .others = 1});
}

TEST_CASE("what products and reductions make of weights alone becomes a weight", "[fold]") {
  const char *text = R"(
    func.func @f(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<4xf32>) {
      %a = prim.weight <"a", "", 0, 16> : tensor<2x2xf32>
      %b = prim.weight <"b", "", 0, 16> : tensor<2x2xf32>
      %c = prim.weight <"c", "", 0, 16> : tensor<4xf32>
      %ab = prim.matmul %a, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %t = prim.transpose %ab, [1, 0] : tensor<2x2xf32> -> tensor<2x2xf32>
      %y = prim.mul %x, %t : tensor<2x2xf32>
      %z = prim.mul %x, %a : tensor<2x2xf32>
      %s = prim.sqrt %c : tensor<4xf32>
      return %y, %z, %s : tensor<2x2xf32>, tensor<2x2xf32>, tensor<4xf32>
    })";
  // Too large for a constant: the product is computed and turned, the square root alone is not worth a weight.
  KeepingWeights weights;
  CHECK(fold(text, {.constants = 8, .computed = 16}, std::move(weights)) ==
        Counts{.constants = 0, .weights = 3, .others = 3});
  REQUIRE(weights.kept.size() == 1);
  std::vector<float> product(4);
  std::memcpy(product.data(), weights.kept[0].data(), 16);
  CHECK(product == std::vector<float>{65, 1040, 260, 4160});
  // Nor is what is larger than that.
  CHECK(fold(text, {.constants = 8, .computed = 15}) == Counts{.constants = 0, .weights = 3, .others = 5});
  // A source that keeps nothing: a constant.
  CHECK(fold(text, {.constants = 8, .computed = 16}) == Counts{.constants = 1, .weights = 2, .others = 3});
  // A result of more than twice the bytes of its weights stays to be computed.
  const char *outer = R"(
    func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %a = prim.weight <"a", "", 0, 16> : tensor<4x1xf32>
      %s = prim.reshape %a : tensor<4x1xf32> -> tensor<1x4xf32>
      %ab = prim.matmul %a, %s : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
      %y = prim.mul %x, %ab : tensor<4x4xf32>
      return %y : tensor<4x4xf32>
    })";
  CHECK(fold(outer, {.constants = 8, .computed = 64}, KeepingWeights()) ==
        Counts{.constants = 0, .weights = 1, .others = 3});
  // So it does where a sum of it is computed, and a weight that is widened for its sum stays narrow.
  const char *both = R"(
    func.func @f(%x: tensor<4x4xf32>, %y: tensor<8xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>) {
      %a = prim.weight <"a", "", 0, 16> : tensor<4x1xf32>
      %s = prim.reshape %a : tensor<4x1xf32> -> tensor<1x4xf32>
      %ab = prim.matmul %a, %s : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
      %sum = prim.reduce sum %ab, [0] : tensor<4x4xf32> -> tensor<4xf32>
      %p = prim.mul %x, %ab : tensor<4x4xf32>
      %b = prim.weight <"b", "", 0, 8> : tensor<8xi8>
      %w = prim.convert %b : tensor<8xi8> -> tensor<8xf32>
      %q = prim.mul %y, %w : tensor<8xf32>
      %all = prim.reduce sum %w, [0] : tensor<8xf32> -> tensor<f32>
      return %p, %sum, %q, %all : tensor<4x4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>
    })";
  CHECK(fold(both, {.constants = 16, .computed = 64}, KeepingWeights()) ==
        Counts{.constants = 2, .weights = 2, .others = 5});
}

TEST_CASE("of what views repeat the value is computed, however large they are", "[fold]") {
  const char *text = R"(
    func.func @f(%x: tensor<2x16xf32>) -> tensor<2x16xf32> {
      %a = prim.weight <"a", "", 0, 16> : tensor<2x2xf32>
      %b = prim.weight <"b", "", 0, 16> : tensor<2x2xf32>
      %ab = prim.matmul %a, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %r = prim.broadcast %ab, [1, 2] : tensor<2x2xf32> -> tensor<8x2x2xf32>
      %s = prim.reshape %r : tensor<8x2x2xf32> -> tensor<16x2xf32>
      %t = prim.transpose %s, [1, 0] : tensor<16x2xf32> -> tensor<2x16xf32>
      %y = prim.mul %x, %t : tensor<2x16xf32>
      return %y : tensor<2x16xf32>
    })";
  KeepingWeights weights;
  CHECK(fold(text, {.constants = 8, .computed = 128}, std::move(weights)) ==
        Counts{.constants = 0, .weights = 1, .others = 4});
  CHECK(weights.kept.size() == 1);
}

TEST_CASE("what is small is computed through what is larger, where a kernel would compute that", "[fold]") {
  // Indices of 64 bits, and whether they are negative, for a table of 16 bytes.
  const char *scatter = R"(
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %w = prim.weight <"w", "", 0, 16> : tensor<4xf32>
      %i = prim.iota 0 : tensor<4x1xsi64>
      %zero = prim.constant dense<0> : tensor<4x1xsi64>
      %isNegative = prim.lt %i, %zero : tensor<4x1xsi64>
      %at = prim.select %isNegative, %zero, %i : tensor<4x1xi1>, tensor<4x1xsi64>
      %table = prim.scatter_nd set %w, %at, %w : (tensor<4xf32>, tensor<4x1xsi64>, tensor<4xf32>) -> tensor<4xf32>
      %y = prim.mul %x, %table : tensor<4xf32>
      return %y : tensor<4xf32>
    })";
  CHECK(fold(scatter, {.constants = 16, .computed = 64}) == Counts{.constants = 1, .weights = 0, .others = 1});
  CHECK(fold(scatter, {.constants = 16, .computed = 31}) == Counts{.constants = 1, .weights = 1, .others = 5});
  // Whoever reads the sum computes the numbers for nothing.
  const char *pointwise = R"(
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %i = prim.iota 0 : tensor<4xsi64>
      %s = prim.add %i, %i : tensor<4xsi64>
      %t = prim.convert %s : tensor<4xsi64> -> tensor<4xf32>
      %y = prim.mul %x, %t : tensor<4xf32>
      return %y : tensor<4xf32>
    })";
  CHECK(fold(pointwise, {.constants = 16, .computed = 64}) == Counts{.constants = 0, .weights = 0, .others = 4});
}

TEST_CASE("bytes that are flipped for products become a weight", "[fold]") {
  const char *text = R"(
    func.func @f(%x: tensor<3x4xsi32>) -> tensor<3x4xsi32> {
      %w = prim.weight <"w", "", 0, 16> : tensor<4x4xui8>
      %b = prim.bitcast %w : tensor<4x4xui8> -> tensor<4x4xsi8>
      %c = prim.constant dense<-128> : tensor<si8>
      %t = prim.broadcast %c, [] : tensor<si8> -> tensor<4x4xsi8>
      %f = prim.xor %b, %t : tensor<4x4xsi8>
      %q = prim.convert %f : tensor<4x4xsi8> -> tensor<4x4xsi32>
      %y = prim.matmul %x, %q : (tensor<3x4xsi32>, tensor<4x4xsi32>) -> tensor<3x4xsi32>
      return %y : tensor<3x4xsi32>
    })";
  CHECK(fold(text, {.constants = 8, .computed = 16}, KeepingWeights()) ==
        Counts{.constants = 0, .weights = 1, .others = 2});
}
