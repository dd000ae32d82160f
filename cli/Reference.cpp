#include "cli/Reference.h"
#include "cli/CompileSession.h"
#include "ir/eval/ReferenceEval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace llvm;

namespace ptc {

ptc_dtype dtypeOf(mlir::Type elementType) {
  int64_t code = prim::getTypeCode(elementType);
  return {static_cast<uint8_t>(code >> 8), static_cast<uint8_t>(code & 255), 1};
}

Tensor fromReference(const eval::Tensor &value) {
  ptc_dtype dtype = dtypeOf(value.getElementType());
  Tensor tensor = Tensor::zeros(dtype, value.getShape().vec());
  if (!tensor.isNumeric()) {
    tensor.texts = value.getTexts();
    for (const eval::Tensor &item : value.getItems())
      tensor.items.push_back(fromReference(item));
    return tensor;
  }
  unsigned bits = value.getElementType().getIntOrFloatBitWidth();
  if (dtype.bits >= 8) {
    tensor.bytes.assign(value.getBytes().begin(), value.getBytes().end());
    return tensor;
  }
  for (int64_t i = 0; i < value.getNumElements(); ++i)
    for (unsigned bit = 0; bit < bits; ++bit) // one by one: an element of 6 may lie in two bytes
      tensor.bytes[(i * bits + bit) / 8] |= static_cast<char>((value.getBits(i) >> bit & 1) << ((i * bits + bit) % 8));
  return tensor;
}

/// The type of what a sequence holds is that of its declaration, with a tensor's own dims.
static Expected<eval::Tensor> toReference(mlir::Type elementType, const Tensor &given) {
  if (given.isNumeric())
    return eval::Tensor::fromPacked(elementType, given.shape, {given.bytes.data(), given.bytes.size()});
  Expected<eval::Tensor> value = eval::Tensor::create(elementType, given.shape);
  if (!value)
    return value.takeError();
  llvm::copy(given.texts, value->getTexts().begin());
  auto sequence = dyn_cast<prim::SequenceType>(elementType);
  for (const Tensor &item : given.items) {
    Expected<eval::Tensor> inner = toReference(cast<mlir::TensorType>(sequence.getElement()).getElementType(), item);
    if (!inner)
      return inner.takeError();
    value->getItems().push_back(std::move(*inner));
  }
  return value;
}

Expected<std::vector<eval::Tensor>> toReference(mlir::func::FuncOp function, const std::vector<Tensor> &inputs) {
  std::vector<eval::Tensor> values;
  if (function.getNumArguments() != inputs.size())
    return exitError(exitUsage, "the model has " + Twine(function.getNumArguments()) + " inputs; the library has " +
                                    Twine(inputs.size()));
  for (auto [argument, input] : llvm::zip_equal(function.getArguments(), inputs)) {
    Expected<eval::Tensor> value = toReference(prim::getElementType(argument), input);
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
  if (Error failure = results.takeError()) {
    if (failure.isA<eval::Lack>())
      return exitError(exitUnsupported, "nothing says what is right: " + toString(std::move(failure)),
                       "--against=FILE.npz compares with outputs of your own, --per-node checks the other nodes");
    return exitError(exitRunFailure, "the reference interpreter failed: " + toString(std::move(failure)));
  }
  NamedTensors outputs;
  for (auto [index, result] : llvm::enumerate(*results)) {
    auto name = function.getResultAttrOfType<mlir::StringAttr>(index, prim::nameAttr);
    outputs.emplace_back(name ? name.str() : std::to_string(index), fromReference(result));
  }
  return outputs;
}

} // namespace ptc
