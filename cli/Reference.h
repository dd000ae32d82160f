// The built-in interpreter on a model's own graph: what ptc's generated code is measured against.
#ifndef PTC_CLI_REFERENCE_H
#define PTC_CLI_REFERENCE_H

#include "cli/Session.h"
#include "cli/tensor/TensorFiles.h"
#include "compiler/Options.h"
#include "ir/eval/ReferenceEval.h"
#include "mlir/IR/Types.h"

namespace ptc {

/// The ABI's name of an element type.
ptc_dtype dtypeOf(mlir::Type elementType);

/// Outputs, by name and in the model's order, of the imported graph before any pass, on these inputs in its order.
llvm::Expected<NamedTensors> evaluateReference(Session &session, const CompileOptions &options,
                                               const std::vector<Tensor> &inputs);

/// The interpreter keeps one element in whole bytes, the ABI packs those below 8 bits.
Tensor fromReference(const eval::Tensor &value);
/// Inputs of the imported function; an error if there are too few or too many.
llvm::Expected<std::vector<eval::Tensor>> toReference(mlir::func::FuncOp function, const std::vector<Tensor> &inputs);

} // namespace ptc

#endif // PTC_CLI_REFERENCE_H
