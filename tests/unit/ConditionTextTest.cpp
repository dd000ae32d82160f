// Conditions and formulas as sentences show them.
#include "ir/expr/ConditionText.h"
#include "ir/prim/Prim.h"
#include <catch2/catch.hpp>

using namespace ptc;

TEST_CASE("conditions are written as a person would") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect>();
  struct Row {
    const char *expression, *text;
  };
  for (Row row : {
           Row{"lt(batch, 65)", "batch <= 64"},
           Row{"lt(4, n)", "n >= 5"},
           Row{"lt(m, n + 1)", "m < n + 1"},
           Row{"eq(4, k)", "k == 4"},
           Row{"eq(eq(k, 1), 0)", "k != 1"},
           Row{"max(eq(a, 1), eq(a, b + c))", "a == 1 or a == b + c"},
           Row{"eq(mod(3*batch*seq, 10), 0)", "(3*batch*seq % 10) == 0"},
           Row{"eq(h, floordiv(width + 1, 2))", "h == floor((width + 1) / 2)"},
           Row{"eq(h, floordiv(width + 1, a*b))", "h == floor((width + 1) / (a*b))"},
           Row{"eq(y, select(eq(m, 1), n, m))", "y == ((m == 1) ? n : m)"},
       }) {
    Expr condition = Expr::parse(&context, row.expression);
    INFO(row.expression);
    REQUIRE(condition);
    CHECK(conditionText(condition) == row.text);
  }
}
