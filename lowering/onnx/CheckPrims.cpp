//===- CheckPrims.cpp - what the type rules of prim ops take for granted --===//
//
// Decompositions check a user's model before they build, so that a prim op's type rule may index dims by an axis
// without asking. An op out of a file has been checked by nobody: here it is, before its rule runs, through operands,
// attributes and ranks as they are, for some may be missing (which the op's own invariants report, in front of its
// rule). Lists of one element a dim have that many, axes are within ranks, elements and dims that must be equal are.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/PrimModel.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ptc;

namespace {

using Misfit = std::optional<std::string>;

class PrimCheck {
public:
  explicit PrimCheck(Operation *op) : op(op) {}

  Misfit run() {
    if (op->hasTrait<OpTrait::Elementwise>())
      return checkElementwise();
    if (Misfit misfit = checkAxis())
      return misfit;
    if (Misfit misfit = checkElementTypes())
      return misfit;
    using Check = Misfit (PrimCheck::*)();
    Check check = llvm::StringSwitch<Check>(op->getName().stripDialect())
                      .Cases({"gather_elements", "scatter_elements"}, &PrimCheck::checkElements)
                      .Cases({"gather_nd", "scatter_nd"}, &PrimCheck::checkTuples)
                      .Case("concat", &PrimCheck::checkConcat)
                      .Cases({"transpose", "reduce"}, &PrimCheck::checkAxes)
                      .Cases({"slice", "pad"}, &PrimCheck::checkBox)
                      .Case("reshape", &PrimCheck::checkReshape)
                      .Cases({"window_reduce", "convolution"}, &PrimCheck::checkWindows)
                      .Cases({"matmul", "attention", "nms"}, &PrimCheck::checkMatrices)
                      .Case("loop", &PrimCheck::checkSegments)
                      .Case("bind", &PrimCheck::checkBind)
                      .Default(nullptr);
    return check ? (this->*check)() : std::nullopt;
  }

private:
  static Misfit say(const Twine &sentence) { return sentence.str(); }

  //===--- Looking at the op ---===//
  size_t operands() const { return op->getNumOperands(); }
  int64_t rank(size_t i) const { return i < operands() ? prim::getRank(op->getOperand(i)) : 0; }
  int64_t resultRank() const { return op->getNumResults() ? prim::getRank(op->getResult(0)) : 0; }
  SmallVector<Expr> dims(size_t i) const {
    return i < operands() ? prim::getDims(op->getOperand(i)) : SmallVector<Expr>();
  }
  Type element(size_t i) const { return prim::getElementType(op->getOperand(i)); }
  std::optional<int64_t> integer(StringRef name) const {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? std::optional(attr.getInt()) : std::nullopt;
  }
  ArrayRef<int64_t> integers(StringRef name) const {
    auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name);
    return attr ? attr.asArrayRef() : ArrayRef<int64_t>();
  }
  size_t length(StringRef name) const {
    if (auto list = op->getAttrOfType<ArrayAttr>(name))
      return list.size();
    return integers(name).size();
  }

  //===--- Families ---===//
  Misfit checkElementwise() {
    for (Value value : op->getOperands())
      for (Value result : op->getResults())
        if (prim::getDims(value) != prim::getDims(result))
          return say("its operands and results have different dims");
    return std::nullopt;
  }

  Misfit checkAxis() {
    std::optional<int64_t> axis = integer("axis");
    int64_t most = operands() ? rank(0) : resultRank();
    if (axis && (*axis < 0 || *axis >= most))
      return say("the axis " + Twine(*axis) + " is out of range for rank " + Twine(most));
    return std::nullopt;
  }

  /// What moves elements or adds them up gives elements of the same type.
  Misfit checkElementTypes() {
    bool keeps =
        llvm::StringSwitch<bool>(op->getName().stripDialect())
            .Cases({"broadcast", "reshape", "slice", "pad", "sort", "window_reduce", "convolution", "attention"}, true)
            .Default(false);
    if (!keeps || !operands() || !op->getNumResults())
      return std::nullopt;
    if (prim::getElementType(op->getResult(0)) != element(0))
      return say("its result has another element type than its operand");
    bool multiplies = op->getName().stripDialect() == "convolution";
    return multiplies && operands() > 1 && element(1) != element(0) ? say("its operands have different element types")
                                                                    : std::nullopt;
  }

  Misfit checkBind() {
    auto type = operands() ? dyn_cast<IntegerType>(element(0)) : IntegerType();
    bool isIndex = type && type.isSigned() && type.getWidth() == 64;
    return operands() && (rank(0) != 0 || !isIndex) ? say("what it binds is no scalar of int64") : std::nullopt;
  }

  Misfit checkElements() {
    for (size_t i = 1; i < operands(); ++i)
      if (rank(i) != rank(0))
        return say("its operands have different ranks");
    return operands() == 3 && element(0) != element(2) ? say("updates have another element type") : std::nullopt;
  }

  Misfit checkTuples() {
    int64_t shared = integer("batch_dims").value_or(0);
    SmallVector<Expr> indices = dims(1);
    if (indices.empty() || !indices.back().isConstant())
      return say("the length of index tuples must be known");
    int64_t consumed = indices.back().getValue() + shared;
    if (shared < 0 || shared >= rank(1) || consumed < 0 || consumed > rank(0))
      return say("index tuples are longer than the operand's rank");
    if (operands() == 3 && (rank(2) != rank(1) - 1 + rank(0) - consumed || element(0) != element(2)))
      return say("updates have another rank or element type");
    return std::nullopt;
  }

  Misfit checkConcat() {
    if (operands() == 0)
      return say("it joins nothing");
    int64_t axis = integer("axis").value_or(0);
    for (size_t i = 1; i < operands(); ++i) {
      SmallVector<Expr> first = dims(0), other = dims(i);
      if (first.size() != other.size() || element(0) != element(i))
        return say("its operands have different ranks or element types");
      other[axis] = first[axis];
      if (first != other)
        return say("its operands differ in a dim that is not joined");
    }
    return std::nullopt;
  }

  /// A permutation has all axes, axes to reduce ascend.
  Misfit checkAxes() {
    bool isPermutation = op->hasAttr("permutation");
    ArrayRef<int64_t> axes = integers(isPermutation ? "permutation" : "axes");
    SmallVector<bool> seen(rank(0));
    int64_t last = -1;
    for (int64_t axis : axes) {
      if (axis < 0 || axis >= rank(0) || seen[axis] || (!isPermutation && axis <= last))
        return say("its axes are not in range, or not in order");
      seen[axis] = true;
      last = axis;
    }
    return std::nullopt;
  }

  Misfit checkBox() {
    bool isSlice = op->hasAttr("starts");
    if (length(isSlice ? "starts" : "low") != size_t(rank(0)) || resultRank() != rank(0) ||
        (isSlice && length("steps") != size_t(rank(0))))
      return say("its lists do not have an element for each dim");
    if (!isSlice)
      return operands() == 2 && (rank(1) != 0 || element(0) != element(1)) ? say("the value is no scalar of its type")
                                                                           : std::nullopt;
    auto starts = prim::getExprs(op->getAttrOfType<ArrayAttr>("starts"));
    for (auto [start, step, from, to] :
         llvm::zip_equal(starts, integers("steps"), dims(0), prim::getDims(op->getResult(0)))) {
      if (step == 0)
        return say("a step is 0");
      if (!start.isConstant() || !from.isConstant() || !to.isConstant() || to.getValue() == 0)
        continue;
      int64_t first = start.getValue(), last, way;
      if (__builtin_mul_overflow(step, to.getValue() - 1, &way) || __builtin_add_overflow(first, way, &last) ||
          std::min(first, last) < 0 || std::max(first, last) >= from.getValue())
        return say("it reads outside of its operand");
    }
    return std::nullopt;
  }

  Misfit checkReshape() {
    if (operands() != 1 || op->getNumResults() != 1)
      return std::nullopt;
    MLIRContext *context = op->getContext();
    Expr before = product(context, dims(0)), after = product(context, prim::getDims(op->getResult(0)));
    if (before.isConstant() && after.isConstant() && before != after)
      return say("its result has other elements");
    return std::nullopt;
  }

  Misfit checkWindows() {
    int64_t spatial = rank(0) - 2;
    if (spatial < 0 || resultRank() != rank(0) || (operands() == 2 && rank(1) != rank(0)))
      return say("its values have other ranks than a window has");
    for (StringRef name : {"window", "strides", "dilations", "low"}) {
      if (op->hasAttr(name) && length(name) != size_t(spatial))
        return say("'" + name + "' does not have an element for each dim of the window");
      for (int64_t value : integers(name))
        if (value <= 0 || value > (int64_t(1) << 31))
          return say("'" + name + "' has a value that is not positive");
    }
    return integer("groups").value_or(1) < 1 ? say("it has no groups") : std::nullopt;
  }

  Misfit checkMatrices() {
    for (size_t i = 0; i < std::min<size_t>(operands(), 2); ++i)
      if (rank(i) < (op->getName().stripDialect() == "nms" ? 1 : 2))
        return say("an operand's rank is too low");
    if (op->getName().stripDialect() == "nms")
      return rank(0) != rank(1) + 2 || resultRank() != rank(1) + 1 ? say("its ranks do not fit") : std::nullopt;
    if (rank(1) != rank(0) && (rank(1) != 2 || op->getName().stripDialect() != "matmul"))
      return say("its operands have different ranks");
    if (rank(1) == rank(0))
      for (int64_t i = 0; i < rank(0) - 2; ++i)
        if (dims(0)[i] != dims(1)[i])
          return say("its operands have different batch dims");
    for (size_t i = 2; i < operands(); ++i)
      if (rank(i) > rank(0))
        return say("an operand's rank is too high");
    return std::nullopt;
  }

  Misfit checkSegments() {
    auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
    constexpr int segments = 4;
    int64_t sum = 0;
    if (!sizes || sizes.size() != segments)
      return say("operandSegmentSizes has not one element for each of " + Twine(segments) + " kinds of operands");
    for (int32_t size : sizes.asArrayRef()) {
      if (size < 0)
        return say("operandSegmentSizes is negative");
      sum += size;
    }
    return sum == int64_t(operands()) ? std::nullopt : say("operandSegmentSizes does not add up to its operands");
  }

  Operation *op;
};

} // namespace

std::optional<std::string> ptc::onnx_import::findMisfit(Operation *op) { return PrimCheck(op).run(); }
