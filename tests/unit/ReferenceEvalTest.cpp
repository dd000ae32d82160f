// The reference interpreter: each primitive against values computed by hand or,
// for convolutions and attention, by onnxruntime and numpy.
#include "ir/eval/ReferenceEval.h"
#include "ir/prim/Prim.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace ptc;
using namespace ptc::eval;
using Values = std::vector<double>;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
const double NaN = std::numeric_limits<double>::quiet_NaN();

struct Fixture {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;

  Fixture() {
    context
        .loadDialect<prim::PrimDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  }

  mlir::func::FuncOp parse(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    INFO(text);
    REQUIRE(module);
    return *module->getOps<mlir::func::FuncOp>().begin();
  }

  Tensor tensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape, const Values &values) {
    Tensor t = llvm::cantFail(Tensor::create(elementType, shape));
    REQUIRE(t.getNumElements() == int64_t(values.size()));
    for (size_t i = 0; i != values.size(); ++i)
      t.isFloat() ? t.setFloat(i, values[i]) : t.setInt(i, int64_t(values[i]));
    return t;
  }

  llvm::Expected<std::vector<Tensor>> run(const std::string &text, const std::vector<Values> &inputs,
                                          const SymbolValues &symbols = {}) {
    mlir::func::FuncOp function = parse(text);
    std::vector<Tensor> tensors;
    for (auto [argument, values] : llvm::zip(function.getArguments(), inputs)) {
      auto type = llvm::cast<mlir::RankedTensorType>(argument.getType());
      llvm::SmallVector<int64_t> shape;
      for (Expr dim : prim::getDims(type))
        shape.push_back(dim.isConstant() ? dim.getValue() : *dim.evaluate(symbols));
      tensors.push_back(tensor(type.getElementType(), shape, values));
    }
    NoWeights weights;
    return evaluate(function, tensors, symbols, weights);
  }

  /// One op between arguments %0, %1, ... and the result.
  std::string function(const std::string &op, const std::vector<std::string> &arguments, const std::string &result) {
    std::string text = "func.func @f(";
    for (size_t i = 0; i != arguments.size(); ++i)
      text += (i ? ", " : "") + ("%x" + std::to_string(i) + ": ") + arguments[i];
    return text + ") -> " + result + " {\n  %y = " + op + "\n  return %y : " + result + "\n}\n";
  }

  Values values(const Tensor &t) { return t.toDoubles(); }

  void check(const std::string &op, const std::vector<std::string> &arguments, const std::string &result,
             const std::vector<Values> &inputs, const Values &expected, double tolerance = 0) {
    auto results = run(function(op, arguments, result), inputs);
    INFO(op);
    if (!results)
      FAIL(llvm::toString(results.takeError()));
    Values found = values(results->front());
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i != found.size(); ++i) {
      INFO("element " << i << " is " << found[i] << ", not " << expected[i]);
      CHECK((found[i] == expected[i] || std::abs(found[i] - expected[i]) <= tolerance ||
             (std::isnan(found[i]) && std::isnan(expected[i]))));
      if (expected[i] == 0)
        CHECK(std::signbit(found[i]) == std::signbit(expected[i]));
    }
  }

  void fails(const std::string &op, const std::vector<std::string> &arguments, const std::string &result,
             const std::vector<Values> &inputs, const std::string &message) {
    auto results = run(function(op, arguments, result), inputs);
    REQUIRE_FALSE(bool(results));
    CHECK_THAT(llvm::toString(results.takeError()), Catch::Matchers::Contains(message));
  }
};
} // namespace

TEST_CASE("tensors convert their elements", "[eval]") {
  Fixture f;
  mlir::Builder b(&f.context);
  Tensor half = f.tensor(b.getF16Type(), {4}, {1.0 / 3, 65520, -0.0, NaN});
  CHECK(half.getBits(0) == 0x3555);
  CHECK(half.getFloat(1) == inf);
  CHECK(half.getBits(2) == 0x8000);
  CHECK(std::isnan(half.getFloat(3)));
  Tensor brain = f.tensor(b.getBF16Type(), {2}, {1.00390625, 3e38});
  CHECK(brain.getFloat(0) == 1); // a tie goes to even
  CHECK(brain.getBits(1) == 0x7f62);
  Tensor nibbles = llvm::cantFail(Tensor::fromPacked(b.getIntegerType(4, true), {3}, {char(0x8f), char(0x07)}));
  CHECK(f.values(nibbles) == Values{-1, -8, 7});
  Tensor wrapped = f.tensor(b.getIntegerType(8, true), {2}, {200, -129});
  CHECK(f.values(wrapped) == Values{-56, 127});
  for (const Tensor &t : {half, brain, nibbles, wrapped, f.tensor(b.getI1Type(), {3}, {1, 0, 1})}) {
    Tensor again = llvm::cantFail(Tensor::fromAttribute(t.toAttribute()));
    CHECK(again.getBytes() == t.getBytes());
    CHECK(again.getShape() == t.getShape());
  }
  auto isRefused = [](llvm::Expected<Tensor> t) { return bool(t.takeError()); };
  CHECK(isRefused(Tensor::create(b.getF32Type(), {int64_t(1) << 30, int64_t(1) << 30})));
  CHECK(isRefused(Tensor::create(b.getF32Type(), {-1})));
  CHECK(isRefused(Tensor::create(b.getIndexType(), {1})));
  CHECK(isRefused(Tensor::fromPacked(b.getF32Type(), {2}, {0, 0, 0})));
}

TEST_CASE("pointwise arithmetic is total", "[eval]") {
  Fixture f;
  auto binary = [&](const std::string &name, const std::string &type, Values a, Values b, Values y,
                    double tolerance = 0) {
    std::string t = "tensor<" + std::to_string(y.size()) + "x" + type + ">";
    f.check("prim." + name + " %x0, %x1 : " + t, {t, t}, t, {a, b}, y, tolerance);
  };
  binary("add", "f32", {1, 16777216, inf}, {2, 1, -inf}, {3, 16777216, NaN});
  binary("add", "si8", {127, -128}, {1, -1}, {-128, 127});
  binary("sub", "ui8", {0}, {1}, {255});
  binary("div", "si32", {7, -7, 5, -2147483648.0}, {2, 2, 0, -1}, {3, -3, 0, -2147483648.0});
  binary("div", "ui8", {200, 3}, {3, 0}, {66, 0});
  binary("div", "f32", {1, 0, 1}, {0, 0, 3}, {inf, NaN, double(1.0f / 3.0f)});
  binary("rem", "si32", {7, -7, 7, 5}, {3, 3, -3, 0}, {1, -1, 1, 0});
  binary("rem", "f32", {5.5, -5.5}, {2, 2}, {1.5, -1.5});
  binary("mod", "si32", {7, -7, 7, 5}, {3, 3, -3, 0}, {1, 2, -2, 0});
  binary("mod", "f32", {5.5, -5.5}, {2, 2}, {1.5, 0.5});
  binary("maximum", "f32", {1, NaN, -0.0}, {2, 1, 0.0}, {2, NaN, 0});
  binary("minimum", "ui8", {200}, {100}, {100});
  binary("pow", "si32", {2, -3, 2, -1}, {10, 3, -1, -3}, {1024, -27, 0, -1});
  binary("pow", "f32", {2, 0, -8}, {0.5, 0, 3}, {double(std::sqrt(2.0f)), 1, -512});
  binary("shift_left", "ui8", {1, 1, 255}, {7, 8, 1}, {128, 0, 254});
  binary("shift_right", "si8", {-128, 64, -8, -1}, {3, 2, 8, -1}, {-16, 16, -1, -1});
  binary("and", "si8", {12}, {10}, {8});
  binary("xor", "i1", {1, 1}, {1, 0}, {0, 1});
  binary("add", "f16", {2048, 1}, {1, 0.0004}, {2048, 1});
  binary("mul", "bf16", {1.5}, {1.5}, {2.25});
}

TEST_CASE("pointwise functions, tests and conversions", "[eval]") {
  Fixture f;
  auto unary = [&](const std::string &name, const std::string &type, Values x, Values y, double tolerance = 0) {
    std::string t = "tensor<" + std::to_string(y.size()) + "x" + type + ">";
    f.check("prim." + name + " %x0 : " + t, {t}, t, {x}, y, tolerance);
  };
  auto convert = [&](const std::string &from, const std::string &to, Values x, Values y) {
    std::string n = "tensor<" + std::to_string(y.size()) + "x", a = n + from + ">", b = n + to + ">";
    f.check("prim.convert %x0 : " + a + " -> " + b, {a}, b, {x}, y);
  };
  unary("sigmoid", "f32", {0, 100, -100}, {0.5, 1, 0x1.bp-145});
  unary("erf", "f32", {0.5}, {0.5204998778}, 3e-8);
  unary("round", "f32", {0.5, 1.5, -2.5}, {0, 2, -2});
  unary("sign", "f32", {-3, -0.0, NaN}, {-1, 0.0, NaN});
  unary("relu", "f32", {-1, NaN, 2}, {0, NaN, 2});
  unary("abs", "si8", {-128, -5}, {-128, 5});
  unary("not", "i1", {1, 0}, {0, 1});
  unary("not", "ui8", {1}, {254});
  unary("exp", "f64", {1}, {std::exp(1.0)});
  unary("sqrt", "f32", {2, -1}, {double(std::sqrt(2.0f)), NaN});
  convert("f32", "si32", {1.9, -1.9, 3e9, -inf, NaN}, {1, -1, 2147483647.0, -2147483648.0, 0});
  convert("f32", "ui8", {-1, 255.9, 300}, {0, 255, 255});
  convert("si32", "si8", {200, -129}, {-56, 127});
  convert("ui8", "si32", {200}, {200});
  convert("si64", "f32", {16777217}, {16777216});
  convert("f32", "i1", {0, -0.0, NaN, 2}, {0, 0, 1, 1});
  convert("f64", "f16", {1.0 / 3}, {0.333251953125});
  convert("f16", "bf16", {0.333251953125}, {0.333984375});
  f.check("prim.lt %x0, %x1 : tensor<3xui8>", {"tensor<3xui8>", "tensor<3xui8>"}, "tensor<3xi1>",
          {{1, 200, 3}, {2, 100, 3}}, {1, 0, 0});
  f.check("prim.ne %x0, %x1 : tensor<2xf32>", {"tensor<2xf32>", "tensor<2xf32>"}, "tensor<2xi1>", {{NaN, 1}, {NaN, 1}},
          {1, 0});
  f.check("prim.is_inf %x0 : tensor<3xf32>", {"tensor<3xf32>"}, "tensor<3xi1>", {{-inf, NaN, 1}}, {1, 0, 0});
  f.check("prim.select %x0, %x1, %x2 : tensor<2xi1>, tensor<2xsi8>", {"tensor<2xi1>", "tensor<2xsi8>", "tensor<2xsi8>"},
          "tensor<2xsi8>", {{1, 0}, {-1, -2}, {-3, -4}}, {-1, -4});
}

TEST_CASE("views move elements", "[eval]") {
  Fixture f;
  Values six = {1, 2, 3, 4, 5, 6};
  f.check("prim.transpose %x0, [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>", {"tensor<2x3xf32>"}, "tensor<3x2xf32>",
          {six}, {1, 4, 2, 5, 3, 6});
  f.check("prim.broadcast %x0, [1] : tensor<2xf32> -> tensor<3x2xf32>", {"tensor<2xf32>"}, "tensor<3x2xf32>", {{1, 2}},
          {1, 2, 1, 2, 1, 2});
  f.check("prim.broadcast %x0, [0, 1] : tensor<2x1xf32> -> tensor<2x2xf32>", {"tensor<2x1xf32>"}, "tensor<2x2xf32>",
          {{1, 2}}, {1, 1, 2, 2});
  f.check("prim.slice %x0[1, 2], [1, -2] : tensor<2x3xf32> -> tensor<1x2xf32>", {"tensor<2x3xf32>"}, "tensor<1x2xf32>",
          {six}, {6, 4});
  f.fails("prim.slice %x0[2], [2] : tensor<6xf32> -> tensor<3xf32>", {"tensor<6xf32>"}, "tensor<3xf32>", {six},
          "out of a dim of 6");
  f.check("prim.concat %x0, %x1 axis 1 : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>",
          {"tensor<2x1xf32>", "tensor<2x2xf32>"}, "tensor<2x3xf32>", {{1, 2}, {3, 4, 5, 6}}, {1, 3, 4, 2, 5, 6});
  f.check("prim.iota 1 : tensor<2x3xsi64>", {}, "tensor<2x3xsi64>", {}, {0, 1, 2, 0, 1, 2});
  auto pad = [&](const std::string &kind, Values expected) {
    f.check("prim.pad " + kind + " %x0, %x1[2] : (tensor<3xf32>, tensor<f32>) -> tensor<8xf32>",
            {"tensor<3xf32>", "tensor<f32>"}, "tensor<8xf32>", {{1, 2, 3}, {9}}, expected);
  };
  pad("constant", {9, 9, 1, 2, 3, 9, 9, 9});
  pad("edge", {1, 1, 1, 2, 3, 3, 3, 3});
  pad("reflect", {3, 2, 1, 2, 3, 2, 1, 2});
  pad("wrap", {2, 3, 1, 2, 3, 1, 2, 3});
  f.check("prim.pad constant %x0, %x1[-1] : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>",
          {"tensor<3xf32>", "tensor<f32>"}, "tensor<3xf32>", {{1, 2, 3}, {9}}, {2, 3, 9});
}

TEST_CASE("gathers and scatters check their indices", "[eval]") {
  Fixture f;
  Values six = {1, 2, 3, 4, 5, 6};
  std::string x = "tensor<2x3xf32>", i = "tensor<2xsi64>", y = "tensor<2x2xf32>";
  std::string gather = "prim.gather %x0, %x1, 1 : (" + x + ", " + i + ") -> " + y;
  f.check(gather, {x, i}, y, {six, {2, 0}}, {3, 1, 6, 4});
  f.fails(gather, {x, i}, y, {six, {2, 3}}, "index 3 is out of a dim of 3");
  f.fails(gather, {x, i}, y, {six, {-1, 0}}, "index -1");
  f.check("prim.gather_elements %x0, %x1, 0 : (tensor<2x3xf32>, tensor<1x3xsi64>) -> tensor<1x3xf32>",
          {x, "tensor<1x3xsi64>"}, "tensor<1x3xf32>", {six, {1, 0, 1}}, {4, 2, 6});
  f.check("prim.gather_nd %x0, %x1, 0 : (tensor<2x3xf32>, tensor<2x1xsi64>) -> tensor<2x3xf32>",
          {x, "tensor<2x1xsi64>"}, x, {six, {1, 0}}, {4, 5, 6, 1, 2, 3});
  f.check("prim.gather_nd %x0, %x1, 1 : (tensor<2x3xf32>, tensor<2x1xsi64>) -> tensor<2xf32>", {x, "tensor<2x1xsi64>"},
          "tensor<2xf32>", {six, {2, 0}}, {3, 4});
  std::string args = ", %x1, %x2 : (tensor<3xf32>, tensor<2x1xsi64>, tensor<2xf32>) -> tensor<3xf32>";
  f.check("prim.scatter_nd add %x0" + args, {"tensor<3xf32>", "tensor<2x1xsi64>", "tensor<2xf32>"}, "tensor<3xf32>",
          {{1, 2, 3}, {1, 1}, {10, 20}}, {1, 32, 3});
  f.check("prim.scatter_nd set %x0" + args, {"tensor<3xf32>", "tensor<2x1xsi64>", "tensor<2xf32>"}, "tensor<3xf32>",
          {{1, 2, 3}, {1, 1}, {10, 20}}, {1, 20, 3});
  f.check("prim.scatter_elements max %x0, %x1, %x2, 1 : (tensor<1x3xf32>, tensor<1x2xsi64>, tensor<1x2xf32>) -> "
          "tensor<1x3xf32>",
          {"tensor<1x3xf32>", "tensor<1x2xsi64>", "tensor<1x2xf32>"}, "tensor<1x3xf32>", {{1, 2, 3}, {0, 2}, {5, 1}},
          {5, 2, 3});
}

TEST_CASE("reductions, scans and order", "[eval]") {
  Fixture f;
  Values six = {3, 1, 2, 4, 6, 5};
  std::string x = "tensor<2x3xf32>";
  f.check("prim.reduce sum %x0, [1] : " + x + " -> tensor<2xf32>", {x}, "tensor<2xf32>", {six}, {6, 15});
  f.check("prim.reduce max %x0, [0, 1] : " + x + " -> tensor<f32>", {x}, "tensor<f32>", {{3, NaN, 2, 4, 6, 5}}, {NaN});
  f.check("prim.reduce max %x0, [1] : tensor<2x0xf32> -> tensor<2xf32>", {"tensor<2x0xf32>"}, "tensor<2xf32>", {{}},
          {-inf, -inf});
  f.check("prim.reduce max %x0, [0] : tensor<0xui8> -> tensor<ui8>", {"tensor<0xui8>"}, "tensor<ui8>", {{}}, {0});
  f.check("prim.reduce min %x0, [0] : tensor<0xsi8> -> tensor<si8>", {"tensor<0xsi8>"}, "tensor<si8>", {{}}, {127});
  f.check("prim.reduce prod %x0, [0] : tensor<3xsi8> -> tensor<si8>", {"tensor<3xsi8>"}, "tensor<si8>", {{100, 2, 3}},
          {88});
  f.check("prim.reduce all %x0, [0] : tensor<2x2xi1> -> tensor<2xi1>", {"tensor<2x2xi1>"}, "tensor<2xi1>",
          {{1, 0, 1, 1}}, {1, 0});
  f.check("prim.arg_reduce max %x0, 1, false : tensor<2x3xf32> -> tensor<2xsi64>", {x}, "tensor<2xsi64>",
          {{1, 7, 7, NaN, 2, NaN}}, {1, 0});
  f.check("prim.arg_reduce min %x0, 0, true : tensor<2x3xf32> -> tensor<3xsi64>", {x}, "tensor<3xsi64>",
          {{1, 2, 3, 1, 1, 5}}, {1, 1, 0});
  f.check("prim.scan sum %x0, 1, false, false : tensor<2x3xf32>", {x}, x, {six}, {3, 4, 6, 4, 10, 15});
  f.check("prim.scan sum %x0, 0, true, true : tensor<2x3xf32>", {x}, x, {six}, {4, 6, 5, 0, 0, 0});
  f.check("prim.window_reduce max %x0 window [2, 2] strides [1, 2] dilations [1, 1] low [1, 0] : tensor<1x1x2x4xf32> "
          "-> tensor<1x1x2x2xf32>",
          {"tensor<1x1x2x4xf32>"}, "tensor<1x1x2x2xf32>", {{-1, -2, -3, -4, -5, -6, -7, 8}}, {-1, -3, -1, 8});
  auto results = f.run("func.func @f(%x: tensor<5xf32>) -> (tensor<3xf32>, tensor<3xsi64>) {\n"
                       "  %v, %i = prim.sort %x, 0, true : tensor<5xf32> -> tensor<3xf32>, tensor<3xsi64>\n"
                       "  return %v, %i : tensor<3xf32>, tensor<3xsi64>\n}",
                       {{1, 5, 2, 5, 0}});
  REQUIRE(bool(results));
  CHECK(f.values((*results)[0]) == Values{5, 5, 2});
  CHECK(f.values((*results)[1]) == Values{1, 3, 2});
}

TEST_CASE("contractions", "[eval]") {
  Fixture f;
  f.check("prim.matmul %x0, %x1 : (tensor<2x1x2xf32>, tensor<2x2xf32>) -> tensor<2x1x2xf32>",
          {"tensor<2x1x2xf32>", "tensor<2x2xf32>"}, "tensor<2x1x2xf32>", {{1, 2, 3, 4}, {5, 6, 7, 8}},
          {19, 22, 43, 50});
  f.check("prim.matmul %x0, %x1 : (tensor<1x2xsi8>, tensor<2x1xsi8>) -> tensor<1x1xsi8>",
          {"tensor<1x2xsi8>", "tensor<2x1xsi8>"}, "tensor<1x1xsi8>", {{100, 100}, {1, 1}}, {-56});
  Values x;
  for (int i = 1; i <= 48; ++i)
    x.push_back(i * 0.25 - 3);
  f.check("prim.convolution %x0, %x1 strides [2, 1] dilations [1, 2] low [1, 1] groups 2 : "
          "(tensor<1x4x4x3xf32>, tensor<2x2x2x2xf32>) -> tensor<1x2x3x3xf32>",
          {"tensor<1x4x4x3xf32>", "tensor<2x2x2x2xf32>"}, "tensor<1x2x3x3xf32>",
          {x, {-2, 0, 2, -1, 1, -2, 0, 2, -1, 1, -2, 0, 2, -1, 1, -2}},
          {3.5, -1.75, -5, 2.5, 4.75, 2.75, -5.5, -2.5, 3.25, -13, -13.75, -0.5, -19, -11.25, 8.25, -3, 8.5, 11.75});
  f.check("prim.convolution transposed %x0, %x1 strides [2, 2] dilations [1, 1] low [1, 1] groups 1 : "
          "(tensor<1x2x2x2xf32>, tensor<2x1x3x3xf32>) -> tensor<1x1x4x4xf32>",
          {"tensor<1x2x2x2xf32>", "tensor<2x1x3x3xf32>"}, "tensor<1x1x4x4xf32>",
          {{1, 2, 3, 4, 5, 6, 7, 8}, {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}},
          {-2, -12, 0, -16, -11, 11, -14, 16, 2, -18, 4, -20, -9, 4, -12, -8});
  std::vector<std::string> qkv = {"tensor<1x2x3xf32>", "tensor<1x3x3xf32>", "tensor<1x3x2xf32>"};
  std::vector<Values> inputs = {
      {-0.75, 0.5, 0, -0.5, 0.75, 0.25}, {-1, -0.25, 0.5, -0.75, 0, 0.75, -0.5, 0.25, -1}, {0, 1, 2, 3, 4, 5}};
  std::string type = " : (tensor<1x2x3xf32>, tensor<1x3x3xf32>, tensor<1x3x2xf32>) -> tensor<1x2x2xf32>";
  std::string y = "tensor<1x2x2xf32>";
  f.check("prim.attention %x0, %x1, %x2 scale 0.5" + type, qkv, y, inputs,
          {1.95834011, 2.95834011, 1.92025555, 2.92025555}, 1e-6);
  f.check("prim.attention %x0, %x1, %x2 scale 0.5 causal" + type, qkv, y, inputs, {0, 1, 1.03123983, 2.03123983}, 1e-6);
  std::string masked =
      " : (tensor<1x2x3xf32>, tensor<1x3x3xf32>, tensor<1x3x2xf32>, tensor<2x1xi1>) -> tensor<1x2x2xf32>";
  qkv.push_back("tensor<2x1xi1>");
  inputs.push_back({1, 0});
  f.check("prim.attention %x0, %x1, %x2 masks(%x3) scale 0.5" + masked, qkv, y, inputs,
          {1.95834011, 2.95834011, NaN, NaN}, 1e-6);
  f.check("prim.attention %x0, %x1, %x2 masks(%x3) scale 0.5 zero_masked_rows" + masked, qkv, y, inputs,
          {1.95834011, 2.95834011, 0, 0}, 1e-6);
}

TEST_CASE("functions bind symbols, choose branches and explain failures", "[eval]") {
  Fixture f;
  std::string text = R"(
    func.func @f(%x: tensor<?x2xf32, #prim.dims<[batch, 2]>>, %c: tensor<i1>)
        -> (tensor<?xf32, #prim.dims<[2*batch]>>, tensor<2xsi64>) attributes {prim.guards = [#prim.expr<lt(batch, 4)>]} {
      %flat = prim.reshape %x : tensor<?x2xf32, #prim.dims<[batch, 2]>> -> tensor<?xf32, #prim.dims<[2*batch]>>
      %y = prim.if %c then {
        %n = prim.neg %flat : tensor<?xf32, #prim.dims<[2*batch]>>
        prim.yield %n : tensor<?xf32, #prim.dims<[2*batch]>>
      } else {
        prim.yield %flat : tensor<?xf32, #prim.dims<[2*batch]>>
      } : (tensor<i1>) -> tensor<?xf32, #prim.dims<[2*batch]>>
      %s = prim.exprs [batch, 3*batch + 1] : tensor<2xsi64>
      return %y, %s : tensor<?xf32, #prim.dims<[2*batch]>>, tensor<2xsi64>
    })";
  for (int64_t batch : {1, 3}) {
    SymbolValues symbols;
    symbols["batch"] = batch;
    auto results = f.run(text, {Values(2 * batch, 7), {double(batch == 1)}}, symbols);
    if (!results)
      FAIL(llvm::toString(results.takeError()));
    CHECK(f.values((*results)[0]) == Values(2 * batch, batch == 1 ? -7 : 7));
    CHECK(f.values((*results)[1]) == Values{double(batch), double(3 * batch + 1)});
  }
  SymbolValues four;
  four["batch"] = 4;
  auto results = f.run(text, {Values(8, 7), {0}}, four);
  REQUIRE_FALSE(bool(results));
  CHECK(llvm::toString(results.takeError()) == "batch <= 3 is needed, but batch is 4");

  mlir::func::FuncOp function = *f.module->getOps<mlir::func::FuncOp>().begin();
  mlir::Builder b(&f.context);
  Tensor x = f.tensor(b.getF32Type(), {1, 3}, {1, 2, 3}), c = f.tensor(b.getI1Type(), {}, {0});
  NoWeights weights;
  auto message = [&](std::vector<Tensor> inputs) {
    auto failed = evaluate(function, inputs, {}, weights);
    return failed ? std::string() : llvm::toString(failed.takeError());
  };
  CHECK(message({x, c}) == "input 0: dim 1 is 3, not 2");
  CHECK(message({x}) == "the model takes 2 inputs, not 1");
  CHECK(message({c, c}) == "input 0 has another element type than the model's");
}

TEST_CASE("ops with constant operands fold within a limit", "[eval]") {
  Fixture f;
  mlir::func::FuncOp function = f.parse(R"(
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %a = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %b = prim.constant dense<3.0> : tensor<2xf32>
      %sum = prim.add %a, %b : tensor<2xf32>
      %i = prim.constant dense<9> : tensor<1xsi64>
      %bad = prim.gather %a, %i, 0 : (tensor<2xf32>, tensor<1xsi64>) -> tensor<1xf32>
      %y = prim.add %sum, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  std::vector<mlir::Operation *> adds;
  function.walk([&](prim::AddOp op) { adds.push_back(op); });
  auto folded = fold(adds[0]);
  REQUIRE(folded);
  CHECK(f.values(llvm::cantFail(Tensor::fromAttribute(folded->front()))) == Values{4, 5});
  CHECK_FALSE(fold(adds[0], {.maxBytes = 4}));
  CHECK_FALSE(fold(adds[1]));
  function.walk([&](prim::GatherOp op) { CHECK_FALSE(fold(op)); });
}

TEST_CASE("loops run while their bounds and their condition let them", "[eval]") {
  Fixture f;
  // Running sums of the rows of x, with the number of the round; limited by the trips and by a condition.
  const std::string text = R"(
    func.func @f(%x: tensor<?x2xf32, #prim.dims<[n, 2]>>, %go: tensor<i1>, %limit: tensor<si64>, %most: tensor<f32>)
        -> (tensor<2xf32>, tensor<?x2xf32, #prim.dims<[rounds, 2]>>, tensor<?xsi64, #prim.dims<[rounds]>>, tensor<si64>) {
      %zero = prim.constant dense<0.0> : tensor<2xf32>
      %last, %rows, %numbers = prim.loop "i" below n limit %limit while %go binds "rounds" states(%zero) over(%x) {
      ^bb0(%state: tensor<2xf32>, %element: tensor<2xf32>):
        %sum = prim.add %state, %element : tensor<2xf32>
        %i = prim.exprs [i] : tensor<si64>
        %all = prim.reduce sum %sum, [0] : tensor<2xf32> -> tensor<f32>
        %less = prim.lt %all, %most : tensor<f32>
        prim.yield %less, %sum, %sum, %i : tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<si64>
      } : (tensor<si64>, tensor<i1>, tensor<2xf32>, tensor<?x2xf32, #prim.dims<[n, 2]>>)
        -> (tensor<2xf32>, tensor<?x2xf32, #prim.dims<[rounds, 2]>>, tensor<?xsi64, #prim.dims<[rounds]>>)
      %count = prim.exprs [rounds] : tensor<si64>
      return %last, %rows, %numbers, %count : tensor<2xf32>, tensor<?x2xf32, #prim.dims<[rounds, 2]>>,
        tensor<?xsi64, #prim.dims<[rounds]>>, tensor<si64>
    })";
  SymbolValues symbols;
  symbols["n"] = 3;
  const Values x = {1, 2, 10, 20, 100, 200};
  auto run = [&](bool go, double limit, double most) {
    auto results = f.run(text, {x, {double(go)}, {limit}, {most}}, symbols);
    if (!results)
      FAIL(llvm::toString(results.takeError()));
    std::vector<Values> values;
    for (const Tensor &result : *results)
      values.push_back(f.values(result));
    return values;
  };
  const Values sums = {1, 2, 11, 22, 111, 222};
  CHECK(run(true, 9, 1e9) == std::vector<Values>{{111, 222}, sums, {0, 1, 2}, {3}});
  CHECK(run(true, 9, 30) == std::vector<Values>{{11, 22}, {1, 2, 11, 22}, {0, 1}, {2}});
  CHECK(run(true, 1, 1e9) == std::vector<Values>{{1, 2}, {1, 2}, {0}, {1}});
  CHECK(run(true, -5, 1e9) == std::vector<Values>{{0, 0}, {}, {}, {0}});
  CHECK(run(false, 9, 1e9) == std::vector<Values>{{0, 0}, {}, {}, {0}});

  auto grown = f.run(R"(
    func.func @f(%x: tensor<1x2xf32>) -> tensor<?x2xf32, #prim.dims<[m, 2]>> {
      %y = prim.loop "i" below 3 carries [#prim.carried<"n" = <1> then <n + 1>, finally "m">] states(%x) over() {
      ^bb0(%state: tensor<?x2xf32, #prim.dims<[n, 2]>>):
        %next = prim.concat %state, %x axis 0
          : (tensor<?x2xf32, #prim.dims<[n, 2]>>, tensor<1x2xf32>) -> tensor<?x2xf32, #prim.dims<[n + 1, 2]>>
        prim.yield %next : tensor<?x2xf32, #prim.dims<[n + 1, 2]>>
      } : (tensor<1x2xf32>) -> tensor<?x2xf32, #prim.dims<[m, 2]>>
      return %y : tensor<?x2xf32, #prim.dims<[m, 2]>>
    })",
                     {{1, 2}});
  if (!grown)
    FAIL(llvm::toString(grown.takeError()));
  CHECK(f.values(grown->front()) == Values{1, 2, 1, 2, 1, 2, 1, 2});
}

TEST_CASE("one value is computed from given ones, through branches", "[eval]") {
  Fixture f;
  mlir::func::FuncOp function = f.parse(R"(
    func.func @f(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
      %a = prim.neg %x : tensor<2xf32>
      %b = prim.add %a, %x : tensor<2xf32>
      %y = prim.if %c then {
        %n = prim.mul %b, %a : tensor<2xf32>
        prim.tap 0 "n" %n : tensor<2xf32>
        prim.yield %n : tensor<2xf32>
      } else {
        prim.yield %x : tensor<2xf32>
      } : (tensor<i1>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  mlir::Builder b(&f.context);
  std::vector<Tensor> inputs = {f.tensor(b.getF32Type(), {2}, {1, 2}), f.tensor(b.getI1Type(), {}, {1})};
  std::vector<mlir::Operation *> ops;
  for (mlir::Operation &op : function.getBody().front())
    ops.push_back(&op);
  mlir::Value a = ops[0]->getResult(0), sum = ops[1]->getResult(0), y = ops[2]->getResult(0);
  mlir::Value inside;
  function.walk([&](prim::MulOp op) { inside = op->getResult(0); });
  Tensor wrong = f.tensor(b.getF32Type(), {2}, {10, 20});
  NoWeights weights;
  auto compute = [&](mlir::Value wanted, mlir::Value given) {
    auto known = [&](mlir::Value value) { return value == given ? &wrong : nullptr; };
    llvm::Expected<Tensor> value = evaluateValue(wanted, inputs, known, {}, weights);
    if (!value)
      FAIL(llvm::toString(value.takeError()));
    return f.values(*value);
  };
  CHECK(compute(sum, {}) == Values{0, 0});
  CHECK(compute(sum, a) == Values{11, 22});
  CHECK(compute(a, a) == Values{-1, -2}); // the wanted value itself is computed
  CHECK(compute(y, sum) == Values{-10, -40});
  CHECK(compute(inside, a) == Values{110, 440});
}
