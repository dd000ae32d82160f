//===- Sequences.cpp - sequences and optional values ----------------------===//
//
// Of a sequence of known length (Sequences.h) nothing remains at run time. Another
// one, an input or what a branch or loop yields, is a handle, and the operators are
// functions of the runtime. An optional value is a sequence of at most one tensor.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/Sequences.h"
#include "lowering/decomp/OnnxOps.h"
#include <onnx/onnx_pb.h>

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static SequenceType sequenceTypeOf(Value sequence) { return cast<SequenceType>(getElementType(sequence)); }
static TensorType itemsOf(Value sequence) { return cast<TensorType>(sequenceTypeOf(sequence).getElement()); }

std::optional<Values> decomp::knownItems(Value sequence) {
  while (auto view = sequence ? sequence.getDefiningOp<BitcastOp>() : BitcastOp())
    sequence = view.getX();
  auto made = sequence ? sequence.getDefiningOp<CallOp>() : CallOp();
  if (!made || made.getCallee() != "sequence_construct")
    return std::nullopt;
  return Values(made.getInputs());
}

TensorType decomp::itemType(Value tensor) {
  return RankedTensorType::get(cast<RankedTensorType>(tensor.getType()).getShape(), getElementType(tensor));
}

TensorType decomp::joinItems(TensorType a, TensorType b) {
  if (a == b)
    return a;
  Type element = a.getElementType();
  if (element != b.getElementType()) {
    auto first = dyn_cast<SequenceType>(element), second = dyn_cast<SequenceType>(b.getElementType());
    TensorType inner = first && second && first.getOptional() == second.getOptional()
                           ? joinItems(cast<TensorType>(first.getElement()), cast<TensorType>(second.getElement()))
                           : TensorType();
    return inner ? TensorType(sequenceOf(inner, first.getOptional())) : TensorType();
  }
  if (!a.hasRank() || !b.hasRank() || a.getRank() != b.getRank())
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip_equal(a.getShape(), b.getShape()))
    shape.push_back(x == y ? x : ShapedType::kDynamic);
  return RankedTensorType::get(shape, element);
}

RankedTensorType decomp::sequenceOf(TensorType item, bool isOptional) {
  return RankedTensorType::get({}, SequenceType::get(item.getContext(), item, isOptional));
}

namespace {
/// Follows a sequence back to where it begins, through branches and loops.
class AddedItems {
public:
  explicit AddedItems(ArrayRef<Value> empty) : visited(llvm::from_range, empty) {}

  TensorType of(Value sequence) {
    if (visited.contains(sequence))
      return {}; // round again: what is added on the way is joined by who came here first
    if (std::optional<Values> items = knownItems(sequence))
      return ofItems(*items);
    Operation *op = sequence.getDefiningOp();
    if (auto view = dyn_cast_or_null<BitcastOp>(op))
      return of(view.getX());
    if (auto call = dyn_cast_or_null<CallOp>(op)) {
      if (call.getCallee() == "sequence_insert")
        return join(of(call.getInputs()[0]), itemType(call.getInputs()[1]));
      if (call.getCallee() == "sequence_erase")
        return of(call.getInputs()[0]);
    }
    unsigned number = op ? cast<OpResult>(sequence).getResultNumber() : 0;
    if (auto branch = dyn_cast_or_null<IfOp>(op))
      return join(of(branch.getThenRegion().front().getTerminator()->getOperand(number)),
                  of(branch.getElseRegion().front().getTerminator()->getOperand(number)));
    if (auto loop = dyn_cast_or_null<LoopOp>(op); loop && number < loop.getStateCount()) {
      visited.insert(loop.getStateArgs()[number]);
      return join(of(loop.getInitial()[number]), of(loop.getNextStates()[number]));
    }
    return itemsOf(sequence);
  }

private:
  static TensorType join(TensorType a, TensorType b) { return a && b ? joinItems(a, b) : a ? a : b; }
  static TensorType ofItems(ArrayRef<Value> items) {
    TensorType type;
    for (Value item : items)
      type = join(type, itemType(item));
    return type;
  }

  llvm::SmallDenseSet<Value> visited;
};
} // namespace

TensorType decomp::itemsAdded(Value sequence, ArrayRef<Value> empty) { return AddedItems(empty).of(sequence); }

//===----------------------------------------------------------------------===//
// Making and changing
//===----------------------------------------------------------------------===//

/// A tensor as functions of the runtime are told of it.
static void appendTensor(PrimBuilder &n, SmallVectorImpl<Expr> &numbers, Type element, ArrayRef<Expr> dims) {
  numbers.append({n.expr(getTypeCode(element)), n.expr(int64_t(dims.size()))});
  numbers.append(dims.begin(), dims.end());
}

static Value makeSequence(PrimBuilder &n, ArrayRef<Value> items, TensorType item, bool isOptional = false) {
  SmallVector<Expr> numbers = {n.expr(int64_t(items.size()))};
  for (auto [i, value] : llvm::enumerate(items)) {
    if (!value)
      return {};
    appendTensor(n, numbers, n.elementType(value), n.dims(value));
    item = i == 0 ? itemType(value) : joinItems(item, itemType(value));
    if (!item)
      return n.fail(DiagId::TypeMismatch, n.elementType(items[0]), n.elementType(value));
  }
  return n.call("sequence_construct", items, numbers, Type(sequenceOf(item, isOptional))).front();
}

Type decomp::joinSequences(PrimBuilder &n, Value a, Value b) {
  if (!n.isSequence(a) || !n.isSequence(b))
    return {};
  std::optional<Values> first = knownItems(a), second = knownItems(b);
  // An empty list says nothing of its tensors but their elements.
  bool isFirstEmpty = first && first->empty(), isSecondEmpty = second && second->empty();
  bool hasOptional = isOptional(a) || isOptional(b), isMixed = hasOptional && !(isOptional(a) && isOptional(b));
  auto itemOf = [&](Value x) { return isMixed && !isOptional(x) ? itemType(x) : itemsOf(x); };
  TensorType items = joinItems(itemOf(a), itemOf(b));
  if (items && isFirstEmpty && isOptional(a) == hasOptional)
    items = itemOf(b);
  else if (items && isSecondEmpty && isOptional(b) == hasOptional)
    items = itemOf(a);
  return items ? sequenceOf(items, hasOptional) : Type();
}

Value decomp::convertSequence(PrimBuilder &n, Value sequence, Type type) {
  auto to = cast<SequenceType>(cast<RankedTensorType>(type).getElementType());
  if (to.getOptional() && !isOptional(sequence))
    sequence = makeSequence(n, sequence, {}, /*isOptional=*/true);
  return sequence ? n.bitcast(sequence, to) : Value();
}

/// A position as an si64 scalar.
static Value positionOf(NodeContext &n, size_t i) { return n.convert(n.reshape(n.input(i), {}), n.si64()); }

/// The place in a list of `count` that input i says, if it is known; nothing after a diagnostic too.
static std::optional<int64_t> knownPlace(NodeContext &n, size_t i, int64_t count, int64_t limit) {
  std::optional<Ints> known = n.knownInts(n.optionalInput(i));
  if (!known || known->size() != 1)
    return std::nullopt;
  int64_t place = known->front() < 0 ? known->front() + count : known->front();
  if (place >= 0 && place < limit)
    return place;
  n.fail(DiagId::DimMismatch, "a position in a sequence", known->front(), "its number of tensors", count);
  return std::nullopt;
}

/// The sequence that an input must be; null after a diagnostic.
static Value sequenceInput(NodeContext &n, size_t i) {
  Value sequence = n.input(i);
  if (sequence && !n.isSequence(sequence))
    return n.fail(DiagId::WrongInputType, i, sequence.getType(), "a sequence is needed");
  return sequence;
}

namespace ptc::decomp {

Values sequenceConstruct(NodeContext &n) { return {makeSequence(n, n.allInputs(), {})}; }

Value emptySequence(PrimBuilder &n, Type element) { return makeSequence(n, {}, UnrankedTensorType::get(element)); }

Values sequenceEmpty(NodeContext &n) {
  Type element = n.has("dtype") ? n.typeAttribute("dtype") : n.f32();
  return {element ? emptySequence(n, element) : Value()};
}

Value sequenceLengthOf(PrimBuilder &n, Value sequence) {
  if (std::optional<Values> items = knownItems(sequence))
    return n.fromExprs(n.expr(int64_t(items->size())), n.si64(), /*isScalar=*/true);
  return n.call("sequence_length", sequence, {}, ArrayRef<Expr>(), n.si64());
}

Values sequenceLength(NodeContext &n) {
  Value sequence = sequenceInput(n, 0);
  return {sequence ? sequenceLengthOf(n, sequence) : Value()};
}

/// A sequence of a length that is not known with the tensor at a position.
static Value insertItem(PrimBuilder &n, Value sequence, Value tensor, Value position) {
  SmallVector<Expr> numbers;
  appendTensor(n, numbers, n.elementType(tensor), n.dims(tensor));
  std::optional<Values> items = knownItems(sequence);
  TensorType item = items && items->empty() ? itemType(tensor) : joinItems(itemsOf(sequence), itemType(tensor));
  return n.call("sequence_insert", {sequence, tensor, position}, numbers, Type(sequenceOf(item))).front();
}

Value appendItem(PrimBuilder &n, Value sequence, Value tensor) {
  if (!sequence || !tensor)
    return {};
  if (itemsOf(sequence).getElementType() != n.elementType(tensor))
    return n.fail(DiagId::TypeMismatch, itemsOf(sequence).getElementType(), n.elementType(tensor));
  std::optional<Values> items = knownItems(sequence);
  if (!items)
    return insertItem(n, sequence, tensor, sequenceLengthOf(n, sequence));
  items->push_back(tensor);
  return makeSequence(n, *items, {});
}

Values sequenceInsert(NodeContext &n) {
  Value sequence = sequenceInput(n, 0), tensor = n.input(1);
  if (!sequence || !tensor)
    return {};
  std::optional<Values> items = knownItems(sequence);
  if (itemsOf(sequence).getElementType() != n.elementType(tensor))
    return {n.fail(DiagId::TypeMismatch, itemsOf(sequence).getElementType(), n.elementType(tensor))};
  if (items) {
    int64_t count = items->size();
    std::optional<int64_t> place = n.hasInput(2) ? knownPlace(n, 2, count, count + 1) : count;
    if (place) {
      items->insert(items->begin() + *place, tensor);
      return {makeSequence(n, *items, {})};
    }
  }
  return {insertItem(n, sequence, tensor, n.hasInput(2) ? positionOf(n, 2) : sequenceLengthOf(n, sequence))};
}

Values sequenceErase(NodeContext &n) {
  Value sequence = sequenceInput(n, 0);
  if (!sequence)
    return {};
  std::optional<Values> items = knownItems(sequence);
  int64_t count = items ? items->size() : 0;
  std::optional<int64_t> place = !items ? std::nullopt : n.hasInput(1) ? knownPlace(n, 1, count, count) : count - 1;
  if (place && *place >= 0) {
    items->erase(items->begin() + *place);
    return {makeSequence(n, *items, itemsOf(sequence))};
  }
  Value position = n.hasInput(1) ? positionOf(n, 1) : n.intVector({-1});
  return {n.call("sequence_erase", {sequence, n.reshape(position, {})}, {}, sequence.getType()).front()};
}

//===----------------------------------------------------------------------===//
// Taking out
//===----------------------------------------------------------------------===//

/// Extents, those that are not known as symbols that the program binds to the elements of `found`.
static Dims bindUnknown(PrimBuilder &n, ArrayRef<int64_t> shape, Value found) {
  Dims dims;
  for (auto [axis, extent] : llvm::enumerate(shape))
    dims.push_back(ShapedType::isDynamic(extent) ? n.bind(n.at(found, 0, axis), Expr()) : n.expr(extent));
  return dims;
}

/// The tensor at a position of a sequence whose length is not known.
static Value itemAt(PrimBuilder &n, Value sequence, Value position) {
  TensorType item = itemsOf(sequence);
  if (!item.hasRank())
    return n.failWithHelp("declare the shape of the sequence's tensors, with `?` for dims that differ",
                          DiagId::UnsupportedForm, "taking a tensor of unknown rank out of a sequence");
  Value found; // the dims, as the run finds them
  if (!item.hasStaticShape())
    found = n.call("sequence_dims", {sequence, position}, n.expr(item.getRank()), n.expr(item.getRank()), n.si64());
  Dims dims = bindUnknown(n, item.getShape(), found);
  SmallVector<Expr> numbers;
  appendTensor(n, numbers, item.getElementType(), dims);
  return n.call("sequence_at", {sequence, position}, numbers, dims, item.getElementType());
}

Value sequenceItem(PrimBuilder &n, Value sequence, Value position) {
  std::optional<Values> items = knownItems(sequence);
  std::optional<Ints> place = items ? n.knownInts(position) : std::nullopt;
  if (place && place->front() >= 0 && place->front() < int64_t(items->size()))
    return (*items)[place->front()];
  return itemAt(n, sequence, position);
}

Values sequenceAt(NodeContext &n) {
  Value sequence = sequenceInput(n, 0);
  if (!sequence)
    return {};
  if (std::optional<Values> items = knownItems(sequence))
    if (std::optional<int64_t> place = knownPlace(n, 1, items->size(), items->size()))
      return {(*items)[*place]};
  return {n.hasFailed() ? Value() : itemAt(n, sequence, positionOf(n, 1))};
}

/// All tensors side by side, or one behind the other along a new axis.
Values concatFromSequence(NodeContext &n) {
  Value sequence = sequenceInput(n, 0);
  std::optional<Values> items = knownItems(sequence);
  if (!sequence)
    return {};
  bool isNew = n.flag("new_axis");
  if (items && items->empty())
    return {n.fail(DiagId::UnsupportedForm, "joining a sequence without tensors")};
  TensorType item = itemsOf(sequence);
  if (!item.hasRank())
    return {n.fail(DiagId::UnsupportedForm, "joining tensors of unknown or different ranks")};
  std::optional<int64_t> axis = n.axis(item.getRank() + isNew, 0);
  if (!axis)
    return {};
  if (items)
    return {isNew ? n.stack(*items, *axis) : n.concat(*items, *axis)};
  SmallVector<int64_t> shape(item.getShape());
  if (isNew)
    shape.insert(shape.begin() + *axis, ShapedType::kDynamic);
  else
    shape[*axis] = ShapedType::kDynamic;
  SmallVector<Expr> numbers = {n.expr(item.getRank()), n.expr(*axis), n.expr(isNew)};
  Value found = n.call("sequence_concat_dims", sequence, numbers, n.expr(int64_t(shape.size())), n.si64());
  return {n.call("sequence_concat", sequence, numbers, bindUnknown(n, shape, found), item.getElementType())};
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

/// More pieces than this are made by a function of the runtime.
static constexpr int64_t mostPieces = 64;

/// The lengths of all pieces, where they are known and few.
static std::optional<Ints> knownLengths(NodeContext &n, Value split, Expr extent) {
  if (!extent.isConstant())
    return std::nullopt;
  Ints lengths;
  std::optional<Ints> known = split ? n.knownInts(split) : Ints{1};
  if (!known)
    return std::nullopt;
  if (split && n.rank(split) == 1) {
    lengths = *known;
  } else if (known->size() == 1 && known->front() > 0 && extent.getValue() / known->front() <= mostPieces) {
    for (int64_t at = 0; at < extent.getValue(); at += known->front())
      lengths.push_back(std::min(known->front(), extent.getValue() - at));
  } else {
    return std::nullopt;
  }
  bool isValid = llvm::all_of(lengths, [](int64_t length) { return length >= 0; });
  int64_t sum = 0;
  for (int64_t length : lengths)
    isValid &= !llvm::AddOverflow(sum, length, sum);
  if (isValid && sum == extent.getValue())
    return lengths.size() <= size_t(mostPieces) ? std::optional(lengths) : std::nullopt;
  n.fail(DiagId::DimMismatch, "the sum of the pieces", sum, "the dim", extent);
  return std::nullopt;
}

Values splitToSequence(NodeContext &n) {
  Value x = n.input(0), split = n.optionalInput(1);
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  if (!axis || !n.hasAxis(x, *axis))
    return {};
  bool isDropped = !split && !n.flag("keepdims", true);
  if (std::optional<Ints> lengths = knownLengths(n, split, n.dim(x, *axis))) {
    Values pieces;
    int64_t at = 0;
    for (int64_t length : *lengths) {
      Value piece = n.sliceAxis(x, *axis, n.expr(at), n.expr(length));
      pieces.push_back(isDropped ? n.squeeze(piece, *axis) : piece);
      at += length;
    }
    return {makeSequence(n, pieces, itemType(x))};
  }
  if (n.hasFailed())
    return {};
  bool isList = split && n.rank(split) == 1;
  SmallVector<Expr> numbers = {n.expr(*axis), n.expr(isDropped), n.expr(split ? 0 : 1),
                               isList ? n.dim(split, 0) : n.expr(split ? -1 : 0)};
  appendTensor(n, numbers, n.elementType(x), n.dims(x));
  SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
  shape[*axis] = split ? ShapedType::kDynamic : 1;
  if (isDropped)
    shape.erase(shape.begin() + *axis);
  Value lengths = split ? n.convert(split, n.si64()) : n.intVector({1});
  Type type = sequenceOf(RankedTensorType::get(shape, n.elementType(x)));
  return {n.call("sequence_split", {x, lengths}, numbers, type).front()};
}

//===----------------------------------------------------------------------===//
// Optional values
//===----------------------------------------------------------------------===//

Value presentValue(PrimBuilder &n, Value optional) {
  std::optional<Values> items = knownItems(optional);
  if (items && items->empty())
    return n.fail(DiagId::UnsupportedForm, "the value of an optional one that is absent");
  return items ? items->front() : itemAt(n, optional, n.fromExprs(n.expr(0), n.si64(), /*isScalar=*/true));
}

/// A tensor, a sequence, or nothing of a type.
Values optional(NodeContext &n) {
  if (Value x = n.optionalInput(0))
    return {makeSequence(n, x, {}, /*isOptional=*/true)};
  Type type = n.valueType("type");
  if (!type)
    return {};
  auto tensor = cast<TensorType>(type);
  return {makeSequence(n, {}, tensor, /*isOptional=*/true)};
}

Values optionalGetElement(NodeContext &n) {
  Value x = n.input(0);
  return {x && isOptional(x) ? presentValue(n, x) : x};
}

Values optionalHasElement(NodeContext &n) {
  Value x = n.optionalInput(0);
  if (!x || !isOptional(x))
    return {n.scalar(x ? 1 : 0, n.i1())};
  return {n.less(n.scalar(0, n.si64()), sequenceLengthOf(n, x))};
}

} // namespace ptc::decomp
