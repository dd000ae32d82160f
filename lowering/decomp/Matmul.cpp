//===- Matmul.cpp - matrix products ---------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

Values matMul(NodeContext &n) { return {n.matmul(n.input(0), n.input(1))}; }

/// alpha * op(A) op(B) + beta * C
Values gemm(NodeContext &n) {
  Value a = n.input(0), b = n.input(1), c = n.optionalInput(2);
  double alpha = n.real("alpha", 1.0), beta = n.real("beta", 1.0);
  if (n.rank(a) != 2 || n.rank(b) != 2)
    return {n.fail(DiagId::WrongRank, n.rank(a) != 2 ? 0 : 1, n.rank(a) != 2 ? n.rank(a) : n.rank(b),
                   "a matrix is needed")};
  if (n.flag("transA"))
    a = n.swapAxes(a, 0, 1);
  if (n.flag("transB"))
    b = n.swapAxes(b, 0, 1);
  Value y = n.matmul(a, b);
  if (alpha != 1.0)
    y = n.mul(y, alpha);
  if (!c || beta == 0.0)
    return {y};
  if (beta != 1.0)
    c = n.mul(c, beta);
  return {n.add(y, n.broadcastTo(c, n.dims(y)))};
}

} // namespace ptc::decomp
