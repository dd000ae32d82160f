//===- Activations.h - activation functions by name -------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_ACTIVATIONS_H
#define PTC_LOWERING_DECOMP_ACTIVATIONS_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// What a node says of its activation; the operator's own defaults where it says nothing.
struct ActivationParameters {
  std::optional<double> alpha, beta;
};

/// The function that an attribute `activation` names, applied; x where the name is empty. Null after a diagnostic.
Value activate(NodeContext &n, Value x, llvm::StringRef name, const ActivationParameters &p);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_ACTIVATIONS_H
