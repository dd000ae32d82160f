#include "cli/Reference.h"
#include "cli/CompileSession.h"
#include "ir/eval/ReferenceEval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace llvm;

namespace ptc {

static uint8_t codeOf(mlir::Type type) {
  if (type.isBF16())
    return PTC_BFLOAT;
  if (isa<mlir::Float8E4M3FNType>(type))
    return PTC_FLOAT8_E4M3FN;
  if (isa<mlir::Float8E4M3FNUZType>(type))
    return PTC_FLOAT8_E4M3FNUZ;
  if (isa<mlir::Float8E5M2Type>(type))
    return PTC_FLOAT8_E5M2;
  if (isa<mlir::Float8E5M2FNUZType>(type))
    return PTC_FLOAT8_E5M2FNUZ;
  if (isa<mlir::FloatType>(type))
    return PTC_FLOAT;
  if (type.isInteger(1))
    return PTC_BOOL;
  return type.isUnsignedInteger() ? PTC_UINT : PTC_INT;
}

ptc_dtype dtypeOf(mlir::Type elementType) {
  unsigned bits = elementType.getIntOrFloatBitWidth();
  return {codeOf(elementType), static_cast<uint8_t>(bits == 1 ? 8 : bits), 1};
}

Tensor fromReference(const eval::Tensor &value) {
  unsigned bits = value.getElementType().getIntOrFloatBitWidth();
  ptc_dtype dtype = dtypeOf(value.getElementType());
  Tensor tensor = Tensor::zeros(dtype, value.getShape().vec());
  if (dtype.bits >= 8) {
    tensor.bytes.assign(value.getBytes().begin(), value.getBytes().end());
    return tensor;
  }
  for (int64_t i = 0; i < value.getNumElements(); ++i)
    tensor.bytes[i * bits / 8] |= static_cast<char>(value.getBits(i) << (i * bits % 8));
  return tensor;
}

Expected<std::vector<eval::Tensor>> toReference(mlir::func::FuncOp function, const std::vector<Tensor> &inputs) {
  std::vector<eval::Tensor> values;
  if (function.getNumArguments() != inputs.size())
    return exitError(exitUsage, "the model has " + Twine(function.getNumArguments()) + " inputs; the library has " +
                                    Twine(inputs.size()));
  for (auto [argument, input] : llvm::zip_equal(function.getArguments(), inputs)) {
    Expected<eval::Tensor> value =
        eval::Tensor::fromPacked(prim::getElementType(argument), input.shape, {input.bytes.data(), input.bytes.size()});
    if (!value)
      return value.takeError();
    values.push_back(std::move(*value));
  }
  return values;
}

Expected<NamedTensors> evaluateReference(Session &session, const CompileOptions &options,
                                         const std::vector<Tensor> &inputs) {
  CompileHooks hooks = hooksOf(session, "verify");
  Compilation compilation(options, hooks);
  if (Error error = compilation.runTo(Phase::Import))
    return std::move(error);
  auto functions = compilation.getModule().getOps<mlir::func::FuncOp>();
  mlir::func::FuncOp function = *functions.begin();
  Expected<std::vector<eval::Tensor>> values = toReference(function, inputs);
  if (!values)
    return values.takeError();
  session.progress.show("interpreting", 0, 0);
  Expected<std::vector<eval::Tensor>> results = eval::evaluate(function, *values, {}, compilation.weightFiles);
  if (!results)
    return exitError(exitRunFailure, "the reference interpreter failed: " + toString(results.takeError()));
  NamedTensors outputs;
  for (auto [index, result] : llvm::enumerate(*results)) {
    auto name = function.getResultAttrOfType<mlir::StringAttr>(index, prim::nameAttr);
    outputs.emplace_back(name ? name.str() : std::to_string(index), fromReference(result));
  }
  return outputs;
}

} // namespace ptc
