//===- ElementaryNarrow.h - functions whose values end in 16 bits -*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_ELEMENTARYNARROW_H
#define PTC_CODEGEN_COMMON_ELEMENTARYNARROW_H

#include "codegen/common/ElementaryFunctions.h"

namespace ptc::codegen {

/// Replaces the functions nested in `root` that have a short form for values that are rounded to f16 or bf16
/// (ElementaryNarrow.cpp says which), where all that comes of their values is rounded so. Does nothing unless
/// `options` has approximations.
void expandNarrowFunctions(mlir::Operation *root, const ElementaryOptions &options);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_ELEMENTARYNARROW_H
