// Expressions: the normal form, the rules that need ranges, the text form, and
// properties over random expressions against an evaluator of their own.
#include "ir/expr/Expr.h"
#include "ir/prim/Prim.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include <catch2/catch.hpp>
#include <functional>
#include <random>

using namespace ptc;

namespace {
struct Exprs {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  SymbolRanges ranges;

  Exprs() { context.loadDialect<prim::PrimDialect>(); }
  Expr operator()(llvm::StringRef text) {
    Expr e = Expr::parse(&context, text);
    INFO(text.str());
    REQUIRE(e);
    return e;
  }
  std::string normal(llvm::StringRef text) { return (*this)(text).str(); }
  std::string simple(llvm::StringRef text) { return (*this)(text).simplify(ranges).str(); }
  void range(llvm::StringRef symbol, int64_t min, int64_t max, int64_t divisor = 1, llvm::StringRef below = "") {
    ranges[symbol] = {min, max, divisor, below.empty() ? ExprAttr() : ExprAttr((*this)(below))};
  }
};
} // namespace

TEST_CASE("sums and products have one normal form", "[expr]") {
  Exprs e;
  CHECK(e.normal("1 + x + 2*x - 3") == "3*x - 2");
  CHECK(e("(a + b)*(a - b)") == e("a*a - b*b"));
  CHECK(e("batch*seq*2 - 1 + floordiv(x, 4)") == e("floordiv(x,4) + 2*seq*batch - 1"));
  CHECK(e.normal("-1 + 2*seq*batch + floordiv(x, 4)") == "2*batch*seq + floordiv(x, 4) - 1");
  CHECK(e.normal("x - x") == "0");
  CHECK(e.normal("d10 + d2 + d1") == "d1 + d2 + d10");
  CHECK(e.normal("-9223372036854775808") == "-9223372036854775808");
}

TEST_CASE("division by constants splits exactly", "[expr]") {
  Exprs e;
  CHECK(e.normal("floordiv(8*x + y, 4)") == "2*x + floordiv(y, 4)");
  CHECK(e.normal("mod(8*x + y, 4)") == "mod(y, 4)");
  CHECK(e.normal("floordiv(x + 7, 4)") == "floordiv(x + 3, 4) + 1");
  CHECK(e.normal("floordiv(6*x + 5, 8)") == "floordiv(3*x + 2, 4)");
  CHECK(e.normal("mod(6*x + 5, 8)") == "2*mod(3*x + 2, 4) + 1");
  CHECK(e.normal("floordiv(floordiv(x, 3) + 1, 4)") == "floordiv(x + 3, 12)");
  CHECK(e.normal("floordiv(mod(x, 12), 3)") == "mod(floordiv(x, 3), 4)");
  CHECK(e.normal("mod(mod(x, 12), 4)") == "mod(x, 4)");
  CHECK(e.normal("floordiv(mod(x, 3), 4)") == "0");
  CHECK(e.normal("floordiv(x, -4)") == "floordiv(-x, 4)");
  CHECK(e("x").floorDiv(e("0")).str() == "0");
  CHECK(e("x").mod(e("0")).str() == "x");
  CHECK(e.normal("floordiv(-7, 2)") == "-4");
  CHECK(e.normal("mod(-7, 2)") == "1");
}

TEST_CASE("a split index joins again", "[expr]") {
  Exprs e;
  CHECK(e.normal("4*floordiv(x, 4) + mod(x, 4)") == "x");
  CHECK(e.normal("12*floordiv(x, 12) + 3*mod(floordiv(x, 3), 4) + mod(x, 3)") == "x");
  CHECK(e.normal("3*mod(floordiv(x, 3), 4) + mod(x, 3)") == "mod(x, 12)");
  CHECK(e.normal("seq*floordiv(x, seq) + mod(x, seq)") == "x");
  CHECK(e.normal("x - 4*floordiv(x, 4)") == "mod(x, 4)");
  CHECK(e.normal("y*floordiv(x + 1, 5)*5 + y*mod(x + 1, 5)") == "x*y + y");
}

TEST_CASE("extrema, comparisons and selections fold", "[expr]") {
  Exprs e;
  CHECK(e.normal("min(a + 1, a, min(a + 2, b))") == "min(a, b)");
  CHECK(e.normal("max(3, 5)") == "5");
  CHECK(e.normal("min(a, max(a, b))") == "a");
  CHECK(e.normal("lt(x + 1, x + 2)") == "1");
  CHECK(e.normal("lt(-9223372036854775807, 9223372036854775807)") == "1"); // whose difference wraps
  CHECK(e.normal("lt(2*x, 2*y + 1)") == "lt(x, y + 1)");
  CHECK(e.normal("eq(2*x, 2*y + 1)") == "0");
  CHECK(e.normal("eq(b, a)") == e.normal("eq(a, b)"));
  CHECK(e.normal("select(lt(a, b), a, a)") == "a");
  CHECK(e.normal("select(1, a, b)") == "a");
}

TEST_CASE("ranges decide", "[expr]") {
  Exprs e;
  e.range("d0", 0, 9);
  e.range("d1", 0, 3);
  e.range("x", 0, 1000, 8);
  e.range("batch", 1, 64);
  e.range("seq", 1, 512);
  CHECK(e.simple("floordiv(4*d0 + d1, 4)") == "d0");
  CHECK(e.simple("mod(4*d0 + d1, 4)") == "d1");
  CHECK(e.simple("floordiv(4*d0 + d1, 8)") == "floordiv(d0, 2)");
  CHECK(e.simple("mod(4*d0 + d1, 8)") == "d1 + 4*mod(d0, 2)");
  CHECK(e.simple("mod(d1, 4)") == "d1");
  CHECK(e.simple("mod(x, 4)") == "0");
  CHECK(e.simple("8*floordiv(x, 8)") == "x");
  CHECK(e.simple("max(d0, 0)") == "d0");
  CHECK(e.simple("min(d0, d1 + 9)") == "d0");
  CHECK(e.simple("select(lt(d1, 4), a, b)") == "a");
  CHECK(e.simple("eq(d0, d1 + 10)") == "0");
  CHECK(e.simple("floordiv(batch*seq*3, seq)") == "3*batch");
  CHECK(e.simple("floordiv(batch*64, batch*seq)") == "floordiv(64, seq)");
  CHECK(knownLess(e("d1"), e("seq + 3"), e.ranges) == true);
  CHECK(knownEqual(e("d0"), e("d1"), e.ranges) == std::nullopt);
  CHECK(e("2*x + 4").range(e.ranges) == ExprRange{4, 2004, 4});
}

TEST_CASE("bounds may be expressions", "[expr]") {
  Exprs e;
  e.range("batch", 1, 64);
  e.range("seq", 1, 512);
  e.range("d0", 0, 1 << 20, 1, "batch");
  e.range("d1", 0, 1 << 20, 1, "seq");
  e.range("d2", 0, 1 << 30, 1, "batch*seq");
  CHECK(e.simple("floordiv(d0*seq + d1, seq)") == "d0");
  CHECK(e.simple("mod(d0*seq + d1, seq)") == "d1");
  CHECK(e.simple("floordiv(d0*seq*64 + d1*64 + 5, seq*64)") == "d0");
  CHECK(e.simple("lt(d0*seq + d1, batch*seq)") == "1");
  CHECK(e.simple("lt(floordiv(d2, seq), batch)") == "1");
  CHECK(e.simple("lt(mod(d2, seq), seq)") == "1");
  CHECK(e.simple("lt(d1, batch)") == "lt(d1, batch)");
}

TEST_CASE("coefficients", "[expr]") {
  Exprs e;
  Expr rest;
  CHECK(e("3*x*seq + 2*x + y").coefficientOf("x", &rest) == e("3*seq + 2"));
  CHECK(rest == e("y"));
  CHECK_FALSE(e("x*x").coefficientOf("x"));
  CHECK_FALSE(e("x + floordiv(x, 2)").coefficientOf("x"));
  CHECK(e("y").coefficientOf("x").isConstant(0));
}

TEST_CASE("text that is not an expression is refused", "[expr]") {
  Exprs e;
  for (const char *text : {"", "x +", "(x", "floordiv(x)", "min()", "x y", "99999999999999999999", "$0", "\"x", "2x",
                           "floordiv(x, 0)", "mod(x, 2 - 2)", "9223372036854775807 + 1", "9223372036854775808",
                           "x - 9223372036854775808", "-(9223372036854775808)", "4611686018427387904 * x * 4"})
    CHECK_FALSE(Expr::parse(&e.context, text));
  CHECK_FALSE(Expr::parse(&e.context, std::string(100000, '(')));
  for (const char *name : {"odd name", "min", "i32", "true", "3d", "a\"b\\", "", "\xc3\xa4"}) {
    Expr symbol = Expr::symbol(&e.context, name);
    CHECK((symbol + 1) == Expr::parse(&e.context, (symbol + 1).str()));
  }
  CHECK(Expr::operand(&e.context, 3).str() == "v$3");
}

TEST_CASE("the attribute reads back what it prints", "[expr]") {
  Exprs e;
  for (const char *text :
       {"2*batch*seq + floordiv(x, 4) - 1", "-x - 7", "min(\"odd name\", v$0, d1)", "-9223372036854775808",
        "select(lt(a, b), \"i32\", mod(a, 3)) - \"a\\22b\"", "seq.len*x_1"}) {
    Expr expected = e(text);
    std::string printed = "#prim.expr<" + expected.str() + ">";
    INFO(printed);
    CHECK(mlir::parseAttribute(printed, &e.context) == mlir::Attribute(expected));
  }
}

//===----------------------------------------------------------------------===//
// Random expressions
//===----------------------------------------------------------------------===//

namespace {
/// A random expression with the function that it must compute. `isSafe` counts
/// whether intermediate values stay far from the ends of 64 bits.
struct Sample {
  Expr expr;
  std::function<__int128(const SymbolValues &)> value;
};

class Generator {
public:
  Generator(mlir::MLIRContext *context, unsigned seed) : context(context), random(seed) {}

  int64_t uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  Sample sample(int depth) {
    if (depth == 0 || uniform(0, 9) == 0)
      return leaf();
    Sample a = sample(depth - 1), b = sample(depth - 1);
    auto f = a.value, g = b.value;
    switch (uniform(0, 11)) {
    case 0:
    case 1:
      return {a.expr + b.expr, [=](auto &v) { return f(v) + g(v); }};
    case 2:
      return {a.expr - b.expr, [=](auto &v) { return f(v) - g(v); }};
    case 3:
      return {a.expr * b.expr, [=](auto &v) { return f(v) * g(v); }};
    case 4:
      return {a.expr.floorDiv(b.expr), [=](auto &v) { return floorDivTotal(f(v), g(v)); }};
    case 5:
      return {a.expr.mod(b.expr), [=](auto &v) { return floorModTotal(f(v), g(v)); }};
    case 6: {
      int64_t c = uniform(-3, 12);
      return {a.expr.floorDiv(c) * 2 + b.expr, [=](auto &v) { return floorDivTotal(f(v), c) * 2 + g(v); }};
    }
    case 7: {
      int64_t c = uniform(-3, 12);
      return {a.expr.mod(c) + b.expr * c, [=](auto &v) { return floorModTotal(f(v), c) + g(v) * c; }};
    }
    case 8:
      return {Expr::min(a.expr, b.expr), [=](auto &v) { return std::min(f(v), g(v)); }};
    case 9:
      return {Expr::max(a.expr, b.expr), [=](auto &v) { return std::max(f(v), g(v)); }};
    case 10:
      return {Expr::lt(a.expr, b.expr), [=](auto &v) { return __int128(f(v) < g(v)); }};
    default: {
      Sample c = sample(depth - 1);
      auto h = c.value;
      return {Expr::select(Expr::eq(a.expr, b.expr), c.expr, a.expr),
              [=](auto &v) { return f(v) == g(v) ? h(v) : f(v); }};
    }
    }
  }

  const std::vector<std::string> names = {"x", "y", "batch", "d0"};

private:
  Sample leaf() {
    if (uniform(0, 2) == 0) {
      int64_t c = uniform(-9, 9);
      return {Expr::constant(context, c), [=](auto &) { return __int128(c); }};
    }
    std::string name = names[uniform(0, names.size() - 1)];
    return {Expr::symbol(context, name), [=](auto &v) { return __int128(v.lookup(name)); }};
  }

  mlir::MLIRContext *context;
  std::mt19937 random;
};
} // namespace

TEST_CASE("random expressions keep their value, range and text", "[expr]") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect>();
  for (unsigned seed = 0; seed != 3000; ++seed) {
    Generator generator(&context, seed);
    Sample sample = generator.sample(generator.uniform(1, 4));
    INFO("seed " << seed << ": " << sample.expr.str());
    REQUIRE(Expr::parse(&context, sample.expr.str()) == sample.expr);

    SymbolRanges ranges;
    for (const std::string &name : generator.names) {
      int64_t divisor = generator.uniform(1, 4), low = generator.uniform(-3, 3);
      ranges[name] = {low * divisor, (low + generator.uniform(0, 12)) * divisor, divisor};
    }
    Expr simple = sample.expr.simplify(ranges);
    INFO("simplified: " << simple.str());
    ExprRange range = sample.expr.range(ranges);
    REQUIRE(range.divisor >= 1);
    // As if the first two symbols were learned while a program runs.
    ExprBounds bounds = boundExpr(sample.expr, ranges, [&](llvm::StringRef name) -> std::optional<ExprBounds> {
      if (name != generator.names[0] && name != generator.names[1])
        return std::nullopt;
      const ExprRange &r = ranges[name];
      return ExprBounds{Expr::constant(&context, r.min), Expr::constant(&context, r.max)};
    });
    for (int trial = 0; trial != 10; ++trial) {
      SymbolValues values;
      for (const std::string &name : generator.names) {
        const ExprRange &r = ranges[name];
        values[name] = generator.uniform(r.min / r.divisor, r.max / r.divisor) * r.divisor;
      }
      __int128 expected = sample.value(values);
      if (expected > INT32_MAX || expected < INT32_MIN)
        continue;
      REQUIRE(sample.expr.evaluate(values) == int64_t(expected));
      REQUIRE(simple.evaluate(values) == int64_t(expected));
      REQUIRE(range.min <= int64_t(expected));
      REQUIRE(range.max >= int64_t(expected));
      REQUIRE(int64_t(expected) % range.divisor == 0);
      REQUIRE((!bounds.lower || bounds.lower.evaluate(values) <= int64_t(expected)));
      REQUIRE((!bounds.upper || bounds.upper.evaluate(values) >= int64_t(expected)));
    }
  }
}

TEST_CASE("copies of ranges share what they were made from, and keep what is added to each", "[expr]") {
  llvm::StringMap<ExprRange> known;
  known["batch"] = {.min = 1, .max = 8};
  SymbolRanges program(std::move(known)), node = program;
  node["d0"] = {.min = 0, .max = 7};
  node["batch"].max = 4; // of this copy alone, from what was known
  CHECK(node.lookup("batch") == ExprRange{.min = 1, .max = 4});
  CHECK(program.lookup("batch") == ExprRange{.min = 1, .max = 8});
  CHECK(node.contains("d0"));
  CHECK_FALSE(program.contains("d0"));
  CHECK(program.find("seq") == nullptr);
  CHECK(program.lookup("seq") == ExprRange());
}

TEST_CASE("the most that a size can be is monotone in what it is made of", "[expr]") {
  Exprs e;
  e.range("n", 1, 100);
  e.range("u", 0, 100);
  auto most = [&](llvm::StringRef text, llvm::StringRef of) {
    return boundExpr(e(text), e.ranges,
                     [&](llvm::StringRef name) -> std::optional<ExprBounds> {
                       if (name != "u")
                         return std::nullopt;
                       return ExprBounds{e("0"), of.empty() ? Expr() : e(of)};
                     })
        .upper;
  };
  CHECK(most("4*u + n", "n") == e("5*n"));
  CHECK(most("n - u", "n") == e("n"));
  CHECK(most("max(0, n - 2*u)", "n") == e("n"));
  CHECK(most("floordiv(u + 3, 4)", "n") == e("floordiv(n + 3, 4)"));
  CHECK(most("mod(u, 4)", "") == e("3"));
  CHECK(most("min(u, n)", "") == e("n"));
  CHECK_FALSE(most("max(u, n)", ""));
  CHECK_FALSE(most("u*n", ""));
}
