//===- PrintingTarget.h - kernels as pseudo-code ----------------*- C++ -*-===//
#ifndef PTC_TESTS_TARGETS_PRINTINGTARGET_H
#define PTC_TESTS_TARGETS_PRINTINGTARGET_H

#include "codegen/Target.h"

namespace ptc::test {

const codegen::Target &getPrintingTarget();

} // namespace ptc::test

#endif // PTC_TESTS_TARGETS_PRINTINGTARGET_H
