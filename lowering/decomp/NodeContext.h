//===- NodeContext.h - one ONNX node under decomposition --------*- C++ -*-===//
//
// What a decomposition function sees of its node: inputs as prim values,
// attributes with the specification's defaults, the opset version that the node's
// meaning follows; and, as a PrimBuilder, how to say what it is made of.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_NODECONTEXT_H
#define PTC_LOWERING_DECOMP_NODECONTEXT_H

#include "lowering/decomp/PrimBuilder.h"
#include <functional>

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
} // namespace onnx

namespace ptc::decomp {

/// What a decomposition needs of the importer.
struct ImportHooks {
  /// A constant or weight for a tensor in an attribute; null after a diagnostic.
  std::function<Value(const onnx::TensorProto &, mlir::Location)> tensor;
  /// The same, but never a weight.
  std::function<Value(const onnx::TensorProto &, mlir::Location)> constant;
  /// Numbers the nodes that draw random numbers, in the order of import.
  std::function<uint64_t()> nextStream;
  /// Imports the nodes of a subgraph at the insertion point, its inputs being these values; its outputs, or nothing
  /// after a diagnostic.
  std::function<std::optional<Values>(const onnx::GraphProto &, llvm::ArrayRef<Value>)> subgraph;
  /// Imports the nodes that depend on the node's outputs at the insertion point, these being its outputs; what of their
  /// values the graph around gives, or nothing after a diagnostic. Null where they are imported behind the node.
  std::function<std::optional<Values>(llvm::ArrayRef<Value>)> rest;
  /// Whether the node may ask for `rest`.
  bool canFork = false;
  /// The name and the declared rank of the graph output that is number i of what the node gives (the nodes behind it,
  /// with `rest`), if it is one of the model; a rank below 0 is not declared.
  std::function<std::optional<std::pair<std::string, int64_t>>(size_t)> graphOutput;
};

class NodeContext : public PrimBuilder {
public:
  NodeContext(mlir::OpBuilder &builder, mlir::Location loc, ShapeScope &shapes, const onnx::NodeProto &node,
              int64_t opset, llvm::ArrayRef<Value> inputs, const ImportHooks &hooks)
      : PrimBuilder(builder, loc, shapes), node(node), version(opset), inputs(inputs), hooks(hooks) {}

  /// The since-version of the node's schema under the model's opset.
  int64_t opset() const { return version; }

  //===--- Inputs and outputs ---===//
  size_t inputCount() const { return inputs.size(); }
  size_t outputCount() const;
  bool hasInput(size_t i) const { return i < inputs.size() && inputs[i]; }
  bool hasOutput(size_t i) const;
  Value input(size_t i); // diagnosed when absent
  Value optionalInput(size_t i) const { return hasInput(i) ? inputs[i] : Value(); }
  llvm::ArrayRef<Value> allInputs() const { return inputs; }
  /// Elements of an input that must be known at compile time, as expressions; nothing after a diagnostic.
  std::optional<Dims> inputExprs(size_t i, llvm::StringRef what);
  std::optional<Ints> inputInts(size_t i, llvm::StringRef what);
  std::optional<llvm::SmallVector<double>> inputFloats(size_t i, llvm::StringRef what);
  /// The same for an input that has to have one element.
  std::optional<Expr> inputExpr(size_t i, llvm::StringRef what);
  std::optional<int64_t> inputInt(size_t i, llvm::StringRef what);
  std::optional<double> inputReal(size_t i, llvm::StringRef what);
  /// Elements of an input of integers as scalars; their number must be known, nothing after a diagnostic.
  std::optional<Values> inputScalars(size_t i, llvm::StringRef what);
  /// The same as expressions: what is not known becomes a symbol of any sign that the program binds.
  std::optional<Dims> runtimeExprs(size_t i, llvm::StringRef what);
  /// Element `index` of a vector, or a scalar: as the op that made it has it, where that is known.
  Value elementOf(Value x, int64_t index);
  /// Whether all elements of an input are known when the model is compiled.
  bool isKnown(size_t i) const { return knownExprs(optionalInput(i)).has_value(); }

  //===--- Attributes ---===//
  bool has(llvm::StringRef name) const;
  int64_t integer(llvm::StringRef name, int64_t otherwise);
  bool flag(llvm::StringRef name, bool otherwise = false) { return integer(name, otherwise) != 0; }
  double real(llvm::StringRef name, double otherwise);
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  std::optional<Ints> integers(llvm::StringRef name);
  Ints integers(llvm::StringRef name, Ints otherwise);
  std::optional<llvm::SmallVector<double>> reals(llvm::StringRef name);
  llvm::SmallVector<std::string> texts(llvm::StringRef name);
  Value tensor(llvm::StringRef name);
  /// All elements of a tensor in an attribute of numbers; nothing if it is absent, or after a diagnostic.
  std::optional<llvm::SmallVector<double>> tensorReals(llvm::StringRef name);
  std::optional<Ints> tensorIntegers(llvm::StringRef name);
  std::optional<llvm::SmallVector<std::string>> tensorTexts(llvm::StringRef name);
  /// The element type of a tensor in an attribute.
  Type tensorType(llvm::StringRef name);
  /// The element type named by an attribute such as `to`; null if absent, or after a diagnostic.
  Type typeAttribute(llvm::StringRef name);
  /// The type of a value that an attribute describes; null if absent, or after a diagnostic.
  Type valueType(llvm::StringRef name);
  /// The element types that the results of a subgraph are declared with; nothing after a diagnostic.
  std::optional<llvm::SmallVector<Type>> subgraphTypes(llvm::StringRef name);
  std::optional<Values> subgraph(llvm::StringRef name, llvm::ArrayRef<Value> inputs = {});
  uint64_t nextStream() { return hooks.nextStream(); }
  /// Asks to be decomposed again with `hasRest`; false where that cannot be.
  bool fork() { return isForking = hooks.canFork; }
  bool isFork() const { return isForking; }
  bool hasRest() const { return bool(hooks.rest); }
  /// What ImportHooks::rest says; the node's results are then these.
  std::optional<Values> takeRest(llvm::ArrayRef<Value> outputs) {
    hasTaken = true;
    return hooks.rest(outputs);
  }
  bool hasTakenRest() const { return hasTaken; }
  /// What ImportHooks::graphOutput says.
  std::optional<std::pair<std::string, int64_t>> graphOutput(size_t i) const { return hooks.graphOutput(i); }

  /// Of an operator that is linear in its complex inputs: what it makes of the real parts and what of the imaginary
  /// ones, as complex numbers.
  Values byParts(Values (*decompose)(NodeContext &));

  /// The attribute `axis`, non-negative, of `rank` dims.
  std::optional<int64_t> axis(int64_t rank, int64_t otherwise, llvm::StringRef name = "axis");
  /// Axes from input `i` where the opset has it there, else from the attribute `axes`; non-negative, ascending.
  /// An empty list where neither is given.
  std::optional<Ints> axes(size_t i, int64_t rank);

private:
  mlir::DenseElementsAttr constantAttribute(llvm::StringRef name);
  const onnx::AttributeProto *find(llvm::StringRef name, int type);
  const onnx::NodeProto &node;
  int64_t version;
  llvm::ArrayRef<Value> inputs;
  const ImportHooks &hooks;
  bool isForking = false, hasTaken = false;
};

/// Cast, as the node's attribute `saturate` says.
Value castTo(NodeContext &n, Value x, Type to);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_NODECONTEXT_H
