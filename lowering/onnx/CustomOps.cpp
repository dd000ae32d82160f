//===- CustomOps.cpp - nodes of the user's own operators ------------------===//
//
// A node becomes prim.call "custom_run". The library's `infer` is given a text for each dim of the inputs: a number,
// the name of a symbol, or of a longer expression a name that stands for it, equal names for equal expressions. What it
// answers is parsed, and the names are put back. Sizes that it leaves open become symbols that the program binds to
// what prim.call "custom_dims" finds.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/CustomOps.h"
#include "lowering/onnx/GraphImporter.h"
#include "lowering/onnx/Tensors.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using decomp::Dims;
using decomp::Values;
using onnx::AttributeProto;

//===----------------------------------------------------------------------===//
// Which operators
//===----------------------------------------------------------------------===//

const CustomOp *CustomOps::find(const onnx::NodeProto &node) const {
  auto found = llvm::find_if(ops, [&](const CustomOp &op) {
    return Opsets::normalize(op.domain) == Opsets::normalize(node.domain()) && op.op == node.op_type();
  });
  return found == ops.end() ? nullptr : &*found;
}

const CustomOp *CustomOps::use(const onnx::NodeProto &node) {
  const CustomOp *op = find(node);
  if (op)
    isUsed[op - ops.data()] = true;
  return op;
}

bool CustomOps::reportUnused(Location loc) const {
  bool areUsed = true;
  for (auto [op, used] : llvm::zip_equal(ops, isUsed)) {
    if (used)
      continue;
    diagnose(loc, DiagId::UnusedCustomOp, op.name());
    areUsed = false;
  }
  return areUsed;
}

//===----------------------------------------------------------------------===//
// A node
//===----------------------------------------------------------------------===//

namespace {

/// Texts for dims, and back.
class DimTexts {
public:
  explicit DimTexts(decomp::PrimBuilder &n) : n(n) {}

  std::string textOf(Expr dim) {
    if (dim.isConstant())
      return std::to_string(dim.getValue());
    auto [entry, isNew] = names.try_emplace(ExprAttr(dim));
    if (isNew) {
      entry->second = dim.isSymbol() && isWord(dim.getSymbol()) ? dim.getSymbol().str() : unusedName();
      exprs[entry->second] = dim;
    }
    return entry->second;
  }

  /// Null if the text is no expression of the names that were given.
  Expr exprOf(StringRef text) const {
    Expr expr = Expr::parse(n.getContext(), text.trim());
    if (!expr)
      return {};
    if (expr.usesAny([&](StringRef name) { return !exprs.contains(name); }) || !dividesByPositive(expr))
      return {};
    return n.shapes.simplify(expr.substitute([&](StringRef name) { return exprs.lookup(name); }));
  }

private:
  /// Whether all divisors are known to be positive.
  bool dividesByPositive(Expr expr) const {
    bool divides = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
    if (divides &&
        !n.shapes.isPositive(expr.getOperands()[1].substitute([&](StringRef name) { return exprs.lookup(name); })))
      return false;
    return llvm::all_of(expr.getOperands(), [&](Expr operand) { return dividesByPositive(operand); });
  }
  static bool isWord(StringRef name) {
    return name.size() < 64 && !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') &&
           llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  }
  std::string unusedName() {
    std::string name;
    do
      name = "size" + std::to_string(count++);
    while (n.shapes.isDeclared(name) || exprs.contains(name));
    return name;
  }

  decomp::PrimBuilder &n;
  llvm::MapVector<Attribute, std::string> names;
  llvm::StringMap<Expr> exprs;
  unsigned count = 0;
};

/// A dim that infer left open.
struct OpenDim {
  size_t output, axis;
  Expr atMost;
};

class CustomNodeImporter {
public:
  CustomNodeImporter(decomp::NodeContext &n, const onnx::NodeProto &node, const CustomOp &op, const ModelFile &file)
      : n(n), node(node), op(op), file(file), texts(n) {}

  Values run() {
    if (!readAttributes() || !readInputs())
      return {};
    llvm::Expected<std::vector<CustomValue>> types = op.infer(asked);
    if (!types) {
      n.fail(DiagId::CustomOpFailed, op.name(), llvm::toString(types.takeError()));
      return {};
    }
    if (!readOutputs(*types))
      return {};
    return call();
  }

private:
  bool fail(const Twine &what) {
    n.fail(DiagId::CustomOpFailed, op.name(), what.str());
    return false;
  }

  static Attribute openType(Type element, size_t rank) {
    return TypeAttr::get(RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic), element));
  }

  //===--- What the library is asked ---===//
  Attribute attributeOf(const AttributeProto &attribute) {
    OpBuilder &b = n.getBuilder();
    auto strings = [&] {
      return b.getStrArrayAttr(SmallVector<StringRef>(attribute.strings().begin(), attribute.strings().end()));
    };
    switch (attribute.type()) {
    case AttributeProto::INT:
      return b.getI64IntegerAttr(attribute.i());
    case AttributeProto::FLOAT:
      return b.getF32FloatAttr(attribute.f());
    case AttributeProto::STRING:
      return b.getStringAttr(attribute.s());
    case AttributeProto::INTS:
      return b.getDenseI64ArrayAttr(SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case AttributeProto::FLOATS:
      return b.getDenseF32ArrayAttr(SmallVector<float>(attribute.floats().begin(), attribute.floats().end()));
    case AttributeProto::STRINGS:
      return strings();
    case AttributeProto::TENSOR:
      return elementsOf(attribute.t());
    case AttributeProto::TENSORS: {
      SmallVector<Attribute> tensors;
      for (const onnx::TensorProto &tensor : attribute.tensors()) {
        tensors.push_back(elementsOf(tensor));
        if (!tensors.back())
          return {};
      }
      return b.getArrayAttr(tensors);
    }
    default:
      n.fail(DiagId::UnsupportedAttribute, attribute.name(),
             "a value of type " + AttributeProto::AttributeType_Name(attribute.type()));
      return {};
    }
  }

  Attribute elementsOf(const onnx::TensorProto &tensor) {
    Value value = importTensor(n.getBuilder(), n.getLoc(), file, tensor, tensor.name(), /*isInline=*/true);
    auto constant = value ? value.getDefiningOp<prim::ConstantOp>() : nullptr;
    if (!constant)
      return {};
    Attribute elements = constant.getValue();
    constant.erase();
    return elements;
  }

  bool readAttributes() {
    NamedAttrList list;
    for (const AttributeProto &attribute : node.attribute()) {
      Attribute value = attributeOf(attribute);
      if (!value)
        return false;
      list.set(attribute.name().empty() ? "unnamed" : attribute.name(), value);
    }
    asked.attributes = list.getDictionary(n.getContext());
    return true;
  }

  bool readInputs() {
    asked.name = node.name();
    asked.version = n.opset();
    asked.outputs = node.output_size();
    for (Value input : n.allInputs()) {
      CustomValue &value = asked.inputs.emplace_back();
      inputTypes.push_back(input ? openType(n.elementType(input), n.rank(input)) : n.getBuilder().getUnitAttr());
      if (!input)
        continue;
      if (n.isSequence(input))
        return fail("an input is a sequence; tensors can be passed");
      operands.push_back(input);
      value.element = n.elementType(input);
      for (Expr dim : n.dims(input)) {
        value.dims.push_back(texts.textOf(dim));
        inputDims.push_back(dim);
      }
      value.known = knownElements(input);
    }
    return true;
  }

  /// The elements of a small constant, or of a shape that is known.
  DenseElementsAttr knownElements(Value x) {
    if (auto constant = x.getDefiningOp<prim::ConstantOp>())
      return dyn_cast<DenseElementsAttr>(constant.getValue());
    std::optional<decomp::Ints> known = n.isInteger(x) ? n.knownInts(x) : std::nullopt;
    auto type = cast<RankedTensorType>(x.getType());
    if (!known || !type.hasStaticShape() || int64_t(known->size()) != type.getNumElements())
      return {};
    unsigned width = type.getElementTypeBitWidth();
    auto values = llvm::map_to_vector(*known, [&](int64_t v) { return APInt(width, v, true, /*implicitTrunc=*/true); });
    return DenseElementsAttr::get(type, values);
  }

  //===--- What it answers ---===//
  bool readOutputs(ArrayRef<CustomValue> types) {
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) {
        outputTypes.push_back(n.getBuilder().getUnitAttr());
        continue;
      }
      if (i >= int(types.size()) || !types[i].element)
        return fail("infer says nothing of output " + Twine(i));
      outputTypes.push_back(openType(types[i].element, types[i].dims.size()));
      elements.push_back(types[i].element);
      dims.emplace_back();
      for (StringRef text : types[i].dims)
        if (!readDim(i, text))
          return false;
    }
    return true;
  }

  bool readDim(size_t output, StringRef text) {
    text = text.trim();
    bool isBounded = text.consume_front("<="), isOpen = isBounded || text == "?";
    Expr expr = isOpen && !isBounded ? Expr() : texts.exprOf(text);
    if (!expr && !(isOpen && !isBounded))
      return fail(
          "infer gives the dim '" + text + "' of output " + Twine(output) +
          ", which is no expression of the inputs' dims, divides by what may be 0, or has numbers above 64 bits");
    if (!isOpen && !n.shapes.isNonNegative(expr) && !n.shapes.assume(Expr::lt(n.expr(-1), expr)))
      return fail("infer gives the dim '" + text + "' of output " + Twine(output) + ", which is negative");
    if (isOpen)
      open.push_back({dims.size() - 1, dims.back().size(), expr});
    dims.back().push_back(isOpen ? Expr() : n.settle(expr));
    return true;
  }

  //===--- The call ---===//
  void addOutputDims(Dims &numbers) const {
    for (ArrayRef<Expr> list : dims)
      for (Expr dim : list)
        numbers.push_back(dim ? dim : n.expr(-1));
  }

  prim::CallOp create(StringRef callee, ArrayRef<Type> results, ArrayRef<Value> inputs, ArrayRef<Expr> numbers) {
    OpBuilder &b = n.getBuilder();
    auto custom = prim::CustomAttr::get(n.getContext(), op.library, op.symbol, op.domain, op.op, asked.version,
                                        b.getArrayAttr(inputTypes), b.getArrayAttr(outputTypes), asked.attributes);
    return prim::CallOp::create(b, n.getLoc(), results, b.getStringAttr(callee), inputs,
                                prim::getExprArray(n.getContext(), numbers), custom);
  }

  Values call() {
    Dims numbers = inputDims;
    if (!open.empty()) {
      Dims asking = numbers;
      addOutputDims(asking);
      Type type = n.resultType(n.expr(int64_t(open.size()) + 1), n.si64());
      Value found = create("custom_dims", type, operands, asking).getResult(0);
      for (auto [i, dim] : llvm::enumerate(open))
        dims[dim.output][dim.axis] = n.bind(n.at(found, 0, int64_t(i)), dim.atMost);
      operands.push_back(found);
    }
    numbers.push_back(n.expr(open.empty() ? -1 : int64_t(open.size())));
    addOutputDims(numbers);
    SmallVector<Type> types;
    for (auto [element, list] : llvm::zip_equal(elements, dims))
      types.push_back(n.resultType(list, element));
    if (n.hasFailed())
      return {};
    prim::CallOp made = create("custom_run", types, operands, numbers);
    Values results;
    unsigned next = 0;
    for (Attribute type : outputTypes)
      results.push_back(isa<UnitAttr>(type) ? Value() : Value(made.getResult(next++)));
    return results;
  }

  decomp::NodeContext &n;
  const onnx::NodeProto &node;
  const CustomOp &op;
  const ModelFile &file;
  DimTexts texts;
  CustomNode asked;
  Values operands;
  Dims inputDims;
  SmallVector<Attribute> inputTypes, outputTypes; // as in #prim.custom
  SmallVector<Type> elements;                     // of the outputs that are wanted
  SmallVector<Dims> dims;
  SmallVector<OpenDim> open;
};

} // namespace

Values ptc::onnx_import::importCustomNode(decomp::NodeContext &context, const onnx::NodeProto &node, const CustomOp &op,
                                          const ModelFile &file) {
  return CustomNodeImporter(context, node, op, file).run();
}
