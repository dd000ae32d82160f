//===- ConflictInterval.h - intervals that meet in each conflict -*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_CONFLICTINTERVAL_H
#define PTC_CODEGEN_COMMON_CONFLICTINTERVAL_H

#include "codegen/common/ConflictParts.h"

namespace ptc::codegen {

/// Bounds of an interval that a point has, as values of the conflict region. Where a pair conflicts, ownLower < upper
/// and lower < ownUpper, or one of the two that are compared is NaN.
struct ConflictInterval {
  mlir::Value ownLower, ownUpper; // of the candidate
  mlir::Value lower, upper;       // of a chosen point: both are among those remembered
};

/// The interval of the first condition on pairs that says so: smaller(own, other) - larger(own, other) > 0.
std::optional<ConflictInterval> findConflictInterval(const ConflictParts &parts);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_CONFLICTINTERVAL_H
