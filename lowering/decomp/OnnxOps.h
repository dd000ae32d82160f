//===- OnnxOps.h - which ONNX operators ptc has -----------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_ONNXOPS_H
#define PTC_LOWERING_DECOMP_ONNXOPS_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

using Decomposition = Values (*)(NodeContext &);

/// A row of OnnxOps.def.
struct OnnxOp {
  llvm::StringLiteral domain; // empty: ai.onnx
  llvm::StringLiteral name;
  int64_t since; // the oldest version of the operator that the function understands
  Decomposition decompose;
};

llvm::ArrayRef<OnnxOp> getOnnxOps();
/// The row for an operator whose schema has this since-version; null if there is none.
const OnnxOp *findOnnxOp(llvm::StringRef domain, llvm::StringRef name, int64_t version);

#define ONNX_OP(domain, name, since, function) Values function(NodeContext &n);
#include "lowering/decomp/OnnxOps.def"
#undef ONNX_OP

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_ONNXOPS_H
