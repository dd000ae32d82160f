//===- ContractionDims.h - the dims of a contraction by class ---*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_CONTRACTIONDIMS_H
#define PTC_CODEGEN_GPU_CONTRACTIONDIMS_H

#include "ir/loop/Loop.h"

namespace ptc::gpu {

struct ContractionDims {
  explicit ContractionDims(loop::ContractionOp op)
      : domain(loop::getDomain(op)), firstM(int64_t(op.getBatch())), firstN(firstM + int64_t(op.getM())),
        firstK(firstN + int64_t(op.getN())) {}
  llvm::ArrayRef<Expr> batch() const { return llvm::ArrayRef(domain).take_front(size_t(firstM)); }
  llvm::ArrayRef<Expr> m() const { return slice(firstM, firstN); }
  llvm::ArrayRef<Expr> n() const { return slice(firstN, firstK); }
  llvm::ArrayRef<Expr> k() const { return slice(firstK, int64_t(domain.size())); }
  llvm::ArrayRef<Expr> slice(int64_t from, int64_t to) const {
    return llvm::ArrayRef(domain).slice(size_t(from), size_t(to - from));
  }
  int64_t lastK() const { return int64_t(domain.size()) - 1; }

  llvm::SmallVector<Expr> domain;
  int64_t firstM, firstN, firstK;
};

/// Whether neighbouring threads should read an operand's neighbours along k: unless its last free dim (-1: none) is
/// what memory is contiguous in.
bool readsAlongK(mlir::Region &region, int64_t lastFree, int64_t lastK);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_CONTRACTIONDIMS_H
