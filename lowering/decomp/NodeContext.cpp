//===- NodeContext.cpp - one ONNX node under decomposition ----------------===//
#include "lowering/decomp/NodeContext.h"
#include "lowering/decomp/ElementTypes.h"
#include <onnx/onnx_pb.h>

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using onnx::AttributeProto;

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

size_t NodeContext::outputCount() const { return node.output_size(); }

bool NodeContext::hasOutput(size_t i) const { return int(i) < node.output_size() && !node.output(i).empty(); }

Value NodeContext::input(size_t i) { return hasInput(i) ? inputs[i] : fail(DiagId::MissingInput, i); }

template <typename Known> static Known orNeedsConstant(NodeContext &n, Known known, size_t i, StringRef what) {
  if (!known && n.hasInput(i))
    n.failWithHelp("pin the dims it depends on with --dim or --shape, or simplify the model so that it is a constant",
                   DiagId::NeedsConstant, i, what);
  else if (!known)
    n.fail(DiagId::MissingInput, i);
  return known;
}

std::optional<Dims> NodeContext::inputExprs(size_t i, StringRef what) {
  return orNeedsConstant(*this, knownExprs(optionalInput(i)), i, what);
}
std::optional<Ints> NodeContext::inputInts(size_t i, StringRef what) {
  return orNeedsConstant(*this, knownInts(optionalInput(i)), i, what);
}
std::optional<SmallVector<double>> NodeContext::inputFloats(size_t i, StringRef what) {
  return orNeedsConstant(*this, knownFloats(optionalInput(i)), i, what);
}

template <typename Element, typename List>
static std::optional<Element> single(NodeContext &n, const std::optional<List> &list, size_t i, StringRef what) {
  if (list && list->size() == 1)
    return list->front();
  if (list)
    n.fail(DiagId::DimMismatch, llvm::formatv("the size of input {0} ({1})", i, what).str(), list->size(),
           "the size needed", 1);
  return std::nullopt;
}
std::optional<Expr> NodeContext::inputExpr(size_t i, StringRef what) {
  return single<Expr>(*this, inputExprs(i, what), i, what);
}
std::optional<int64_t> NodeContext::inputInt(size_t i, StringRef what) {
  return single<int64_t>(*this, inputInts(i, what), i, what);
}
std::optional<double> NodeContext::inputReal(size_t i, StringRef what) {
  return single<double>(*this, inputFloats(i, what), i, what);
}

Value NodeContext::elementOf(Value x, int64_t index) {
  if (!x)
    return {};
  Operation *op = x.getDefiningOp();
  if (auto concat = dyn_cast_or_null<prim::ConcatOp>(op); concat && rank(x) == 1) {
    for (Value part : concat.getInputs()) {
      Expr size = dim(part, 0);
      if (!size.isConstant())
        return at(x, 0, index);
      if (index < size.getValue())
        return elementOf(part, index);
      index -= size.getValue();
    }
    return at(x, 0, index);
  }
  if (auto view = dyn_cast_or_null<prim::ReshapeOp>(op); view && rank(view.getX()) == 0)
    return view.getX();
  return rank(x) == 0 ? x : at(x, 0, index);
}

/// The number of elements of a vector, where a guard fixes it, too.
static std::optional<int64_t> knownLength(NodeContext &n, Value x) {
  constexpr int64_t mostDims = 64;
  Expr length = n.dim(x, 0);
  for (int64_t count = 0; !length.isConstant() && count <= mostDims; ++count)
    if (n.shapes.equal(length, n.expr(count)) == true)
      return count;
  return length.asConstant();
}

std::optional<Values> NodeContext::inputScalars(size_t i, StringRef what) {
  Value x = optionalInput(i);
  if (x && rank(x) == 1 && isInteger(x) && !knownLength(*this, x)) { // the result's rank, or which axes are meant
    Expr length = dim(x, 0);
    bool canBePinned = length.isSymbol() && !shapes.isBoundInside(length);
    failWithHelp(canBePinned ? "pin its length, its values may stay open: --dim " + length.str() + "=2"
                             : "make its length a constant of the model",
                 DiagId::NeedsConstant, i, (what + ", at least its length").str());
    return std::nullopt;
  }
  if (!x || rank(x) > 1 || !isInteger(x)) {
    orNeedsConstant(*this, std::optional<Ints>(), i, what);
    return std::nullopt;
  }
  Values scalars;
  for (int64_t e = 0, count = rank(x) == 0 ? 1 : *knownLength(*this, x); e < count; ++e)
    scalars.push_back(convert(elementOf(x, e), si64()));
  return scalars;
}

std::optional<Dims> NodeContext::runtimeExprs(size_t i, StringRef what) {
  if (std::optional<Dims> known = knownExprs(optionalInput(i)))
    return known;
  std::optional<Values> scalars = inputScalars(i, what);
  if (!scalars)
    return std::nullopt;
  constexpr int64_t least = -(int64_t(1) << 31);
  Dims exprs;
  for (Value scalar : *scalars)
    exprs.push_back(bind(scalar, {}, least));
  return exprs;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeProto *NodeContext::find(StringRef name, int type) {
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.name() != name)
      continue;
    if (attribute.type() == type)
      return &attribute;
    fail(DiagId::WrongAttributeType, name, AttributeProto::AttributeType_Name(attribute.type()),
         AttributeProto::AttributeType_Name(AttributeProto::AttributeType(type)));
    return nullptr;
  }
  return nullptr;
}

bool NodeContext::has(StringRef name) const {
  return llvm::any_of(node.attribute(), [&](const AttributeProto &a) { return a.name() == name; });
}

int64_t NodeContext::integer(StringRef name, int64_t otherwise) {
  const AttributeProto *attribute = find(name, AttributeProto::INT);
  return attribute ? attribute->i() : otherwise;
}

double NodeContext::real(StringRef name, double otherwise) {
  const AttributeProto *attribute = find(name, AttributeProto::FLOAT);
  return attribute ? attribute->f() : float(otherwise); // a default of 0.2 is what f32 has for it, in f64 too
}

std::string NodeContext::text(StringRef name, StringRef otherwise) {
  const AttributeProto *attribute = find(name, AttributeProto::STRING);
  return attribute ? attribute->s() : otherwise.str();
}

std::optional<Ints> NodeContext::integers(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::INTS);
  if (!attribute)
    return std::nullopt;
  return Ints(attribute->ints().begin(), attribute->ints().end());
}

Ints NodeContext::integers(StringRef name, Ints otherwise) { return integers(name).value_or(std::move(otherwise)); }

std::optional<SmallVector<double>> NodeContext::reals(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::FLOATS);
  if (!attribute)
    return std::nullopt;
  return SmallVector<double>(attribute->floats().begin(), attribute->floats().end());
}

SmallVector<std::string> NodeContext::texts(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::STRINGS);
  if (!attribute)
    return {};
  return SmallVector<std::string>(attribute->strings().begin(), attribute->strings().end());
}

Value NodeContext::tensor(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::TENSOR);
  if (!attribute)
    return fail(DiagId::MissingAttribute, name);
  Value value = hooks.tensor(attribute->t(), loc);
  failed |= !value;
  return value;
}

DenseElementsAttr NodeContext::constantAttribute(StringRef name) {
  const AttributeProto *attribute = has(name) ? find(name, AttributeProto::TENSOR) : nullptr;
  if (!attribute)
    return {};
  Value value = hooks.constant(attribute->t(), loc);
  failed |= !value;
  auto op = value ? value.getDefiningOp<prim::ConstantOp>() : prim::ConstantOp();
  return op ? dyn_cast<DenseElementsAttr>(op.getValue()) : DenseElementsAttr();
}

std::optional<SmallVector<double>> NodeContext::tensorReals(StringRef name) {
  DenseElementsAttr elements = constantAttribute(name);
  if (elements && isa<IntegerType>(elements.getElementType())) {
    Ints integers = *tensorIntegers(name);
    return SmallVector<double>(integers.begin(), integers.end());
  }
  if (!elements || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return llvm::map_to_vector(elements.getValues<APFloat>(), [](APFloat value) {
    bool losesInfo;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  });
}

std::optional<Ints> NodeContext::tensorIntegers(StringRef name) {
  DenseElementsAttr elements = constantAttribute(name);
  auto type = elements ? dyn_cast<IntegerType>(elements.getElementType()) : IntegerType();
  if (!type)
    return std::nullopt;
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  return llvm::map_to_vector<6>(elements.getValues<APInt>(), [&](const APInt &value) {
    return isUnsigned ? int64_t(value.getZExtValue()) : value.getSExtValue();
  });
}

std::optional<SmallVector<std::string>> NodeContext::tensorTexts(StringRef name) {
  auto elements = dyn_cast_if_present<DenseStringElementsAttr>(constantAttribute(name));
  if (!elements)
    return std::nullopt;
  return llvm::map_to_vector(elements.getValues<StringRef>(), [](StringRef text) { return text.str(); });
}

Type NodeContext::tensorType(StringRef name) {
  const AttributeProto *attribute = has(name) ? find(name, AttributeProto::TENSOR) : nullptr;
  return attribute ? fromOnnxType(getContext(), attribute->t().data_type()) : Type();
}

Type NodeContext::typeAttribute(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::INT);
  if (!attribute)
    return {};
  Type type = fromOnnxType(getContext(), attribute->i());
  if (!type)
    fail(DiagId::UnsupportedType, ("the type that '" + name + "' names").str(), onnxTypeName(attribute->i()));
  return type;
}

Type NodeContext::valueType(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::TYPE_PROTO);
  if (!attribute)
    return fail(DiagId::MissingAttribute, name), Type();
  std::string problem;
  Type type = fromTypeProto(getContext(), attribute->tp(), problem);
  if (!type)
    fail(DiagId::UnsupportedAttribute, name, "a " + problem);
  return type;
}

std::optional<SmallVector<Type>> NodeContext::subgraphTypes(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::GRAPH);
  if (!attribute)
    return fail(DiagId::MissingAttribute, name), std::nullopt;
  SmallVector<Type> types;
  for (const onnx::ValueInfoProto &output : attribute->g().output()) {
    std::string problem = "value without a type";
    Type type = output.has_type() ? fromTypeProto(getContext(), output.type(), problem) : Type();
    if (!type)
      return fail(DiagId::UnsupportedAttribute, name, "a " + problem), std::nullopt;
    types.push_back(cast<TensorType>(type).getElementType());
  }
  return types;
}

std::optional<Values> NodeContext::subgraph(StringRef name, ArrayRef<Value> inputs) {
  const AttributeProto *attribute = find(name, AttributeProto::GRAPH);
  if (!attribute) {
    fail(DiagId::MissingAttribute, name);
    return std::nullopt;
  }
  std::optional<Values> outputs = hooks.subgraph(attribute->g(), inputs);
  failed |= !outputs;
  return outputs;
}

std::optional<int64_t> NodeContext::axis(int64_t rank, int64_t otherwise, StringRef name) {
  return normalizeAxis(integer(name, otherwise), rank);
}

std::optional<Ints> NodeContext::axes(size_t i, int64_t rank) {
  Ints result;
  if (hasInput(i)) {
    std::optional<Ints> known = inputInts(i, "axes");
    if (!known)
      return std::nullopt;
    result = *known;
  } else if (std::optional<Ints> attribute = integers("axes")) {
    result = *attribute;
  }
  for (int64_t &axis : result) {
    std::optional<int64_t> normalized = normalizeAxis(axis, rank);
    if (!normalized)
      return std::nullopt;
    axis = *normalized;
  }
  llvm::sort(result);
  result.erase(llvm::unique(result), result.end());
  return result;
}

//===----------------------------------------------------------------------===//
// Complex numbers
//===----------------------------------------------------------------------===//

Values NodeContext::byParts(Values (*decompose)(NodeContext &)) {
  SmallVector<Value> real(inputs), imaginary(inputs);
  for (auto [i, x] : llvm::enumerate(inputs))
    if (x && prim::isComplex(prim::getElementType(x)))
      std::tie(real[i], imaginary[i]) = complexParts(x);
  Values re, im;
  for (auto [parts, results] : {std::pair(&real, &re), std::pair(&imaginary, &im)}) {
    NodeContext part(builder, loc, shapes, node, version, *parts, hooks);
    *results = decompose(part);
    failed |= part.failed;
    if (failed)
      return {};
  }
  Values whole;
  for (auto [a, b] : llvm::zip_equal(re, im))
    whole.push_back(complex(a, b));
  return whole;
}
