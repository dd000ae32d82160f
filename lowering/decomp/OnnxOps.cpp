//===- OnnxOps.cpp - which ONNX operators ptc has -------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc;
using namespace ptc::decomp;

static constexpr OnnxOp rows[] = {
#define ONNX_OP(domain, name, since, function) {domain, #name, since, function},
#include "lowering/decomp/OnnxOps.def"
#undef ONNX_OP
};

llvm::ArrayRef<OnnxOp> ptc::decomp::getOnnxOps() { return rows; }

const OnnxOp *ptc::decomp::findOnnxOp(llvm::StringRef domain, llvm::StringRef name, int64_t version) {
  if (domain == "ai.onnx")
    domain = "";
  const OnnxOp *best = nullptr;
  for (const OnnxOp &row : rows)
    if (row.domain == domain && row.name == name && row.since <= version && (!best || row.since > best->since))
      best = &row;
  return best;
}
