//===- PackWeights.cpp - weights in the form that kernels read ------------===//
//
// The rhs of a contraction that is a plain, affine read of a weight is stored in
// unit panels, [batch...][n/16][k...][16] (first dims of the batch that it does not depend on are left out: its
// matrices repeat) for a target whose panels have 16 columns: every register tile of each of its levels reads them
// front to back; of 8-bit integers four neighbours in k lie side by side, [n/16][k/4][16][4], of bf16 two, and of
// numbers of fewer bits than a byte as many as 32 bits hold. What converts a weight of few bits stays in the rhs; the
// scales and zero points that it reads are stored as panels, too, with a row for each block of the sum. Panels do not
// pay below six columns: vectors then run along k, or along another dim, and the weight is one more operand.
//
// Columns may be several dims that do not follow each other in the source: the phases of a transposed convolution and
// its channels. A column's number then has digits, each with a step of its own, and a panel is the last of them, of
// which one may be cut. Where panels end within a digit that does not divide them, the weight is one more operand.
//
// Such weights, and those of reductions (depthwise convolutions), are stored with
// their dims in the order in which the node walks memory: beside channels that lie
// innermost, a window's weights lie [window...][channel], columns before those on a target without panels.
//
// Of a convolution that Winograd's algorithm computes faster (ChooseWinograd.cpp)
// it is the transformed weight that is stored, [positions][n/16][channel][16].
//
// The recipe says for each dim of the stored form how far it steps in the source;
// linking executes it. Nothing is moved here but constants, which are small.
//
// One stored form per weight: a weight that another node reads as well keeps
// its plain form beside the packed one (tied embeddings, for example), and is not
// reordered, but for bytes that products without panels take along k, which share what is.
//
//===----------------------------------------------------------------------===//

#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/prim_to_loop/ChooseWinograd.h"
#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <cstring>
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

//===----------------------------------------------------------------------===//
// Stored forms
//===----------------------------------------------------------------------===//

/// Whether the buffer is constant and holds something.
bool isConstantBuffer(Value buffer) {
  return isa_and_nonnull<WeightOp, ConstantOp>(buffer.getDefiningOp()) &&
         !cast<BufferType>(buffer.getType()).getElementCount().isConstant(0);
}

/// The constant's elements as the recipe gathers them; null for element types that have no bytes of their own.
DenseElementsAttr gather(ElementsAttr source, RecipeAttr recipe, ArrayRef<int64_t> shape) {
  auto elements = dyn_cast<DenseElementsAttr>(source);
  Type element = source.getElementType();
  if (!elements || !element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8)
    return {};
  auto type = RankedTensorType::get(shape, element);
  int64_t count = 1;
  for (int64_t extent : recipe.getExtents())
    count *= extent;
  ArrayRef<char> all = elements.getRawData(); // a splat has one element
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  std::vector<char> gathered(count * bytes, 0);
  SmallVector<int64_t> index(recipe.getExtents().size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = recipe.getOffset();
    for (auto [at, stride] : llvm::zip(index, recipe.getStrides()))
      position += at * stride;
    bool isInside =
        recipe.getPanel() < 0 ||
        index[recipe.getPanel()] * recipe.getExtents()[recipe.getLane()] + index[recipe.getLane()] < recipe.getLimit();
    if (isInside)
      std::memcpy(&gathered[i * bytes], &all[elements.isSplat() ? 0 : position * bytes], bytes);
    for (int64_t dim = int64_t(index.size()) - 1; dim >= 0; --dim) {
      if (++index[dim] < recipe.getExtents()[dim])
        break;
      index[dim] = 0;
    }
  }
  return DenseElementsAttr::getFromRawBuffer(type, gathered);
}

/// What becomes of gathered elements.
struct StoredAs {
  WinogradTile winograd = {}; // for which they are transformed
  int64_t packedBits = 0;     // so many of each, side by side in bytes
};

/// Another stored form of the weight.
Value createWeight(OpBuilder &b, WeightOp weight, BufferType type, RecipeAttr recipe, StoredAs as) {
  auto stored = WeightOp::create(b, weight.getLoc(), type, weight.getRef(), weight.getOthersAttr(), recipe);
  if (as.winograd)
    setWinogradTile(stored, as.winograd);
  if (as.packedBits)
    stored->setAttr(prim::packedBitsAttr, b.getI64IntegerAttr(as.packedBits));
  for (StringRef name : {prim::sourceTypeAttr, prim::partRowsAttr, prim::turnedAttr})
    if (Attribute kept = weight->getAttr(name))
      stored->setAttr(name, kept);
  return stored;
}

/// A gathered constant with its planes transformed.
DenseElementsAttr transform(DenseElementsAttr planes, WinogradTile winograd) {
  SmallVector<float> elements(planes.getValues<float>());
  int64_t count = int64_t(elements.size()) / winograd.elements() * winograd.positions();
  elements.resize(count);
  transformWinogradWeights(winograd, elements);
  return DenseElementsAttr::get(RankedTensorType::get(count, planes.getElementType()), ArrayRef<float>(elements));
}

/// The stored form of a weight or constant as a buffer of `shape`, row-major; null if it cannot be made.
Value createStored(Value buffer, RecipeAttr recipe, ArrayRef<int64_t> shape, StoredAs as = {}) {
  Operation *source = buffer.getDefiningOp();
  MLIRContext *context = source->getContext();
  SmallVector<Expr> dims;
  for (int64_t extent : shape)
    dims.push_back(Expr::constant(context, extent));
  Type elementType = cast<BufferType>(buffer.getType()).getElementType();
  if (as.packedBits)
    elementType = IntegerType::get(context, 8);
  auto type = BufferType::get(context, dims, elementType, LayoutAttr::getRowMajor(context, shape.size()));
  OpBuilder b(source);
  if (auto weight = dyn_cast<WeightOp>(source))
    return createWeight(b, weight, type, recipe, as);
  if (as.packedBits)
    return {};
  int64_t gathered = 1;
  for (int64_t extent : recipe.getExtents())
    gathered *= extent;
  DenseElementsAttr value =
      gather(cast<ConstantOp>(source).getValue(), recipe, as.winograd ? ArrayRef<int64_t>(gathered) : shape);
  if (value && as.winograd)
    value = transform(value, as.winograd);
  return value ? ConstantOp::create(b, source->getLoc(), type, value).getResult() : Value();
}

void eraseIfUnused(Value buffer) {
  if (buffer.use_empty())
    buffer.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

/// Element position in the weight's row-major source.
Expr getPosition(LoadOp load) {
  auto type = cast<BufferType>(load.getBuffer().getType());
  Expr position = Expr::constant(load.getContext(), 0);
  for (auto [index, stride] : llvm::zip(prim::getExprs(load.getIndices()), type.getStrides()))
    position = position + index * stride;
  return position;
}

/// Step of `position` for each dim in [begin, end), all constant; nothing if
/// one is not. What remains of the position goes to `rest`.
/// Of dim `column`, whose steps need not be equal, `rest` then keeps its part.
std::optional<SmallVector<int64_t>> getSteps(Expr position, unsigned rank, unsigned column, Expr &rest) {
  SmallVector<int64_t> steps;
  rest = position;
  for (unsigned dim = 0; dim < rank; ++dim) {
    std::string name = dimName(dim);
    if (!rest.uses(name)) {
      steps.push_back(0);
      continue;
    }
    Expr remainder;
    Expr step = rest.coefficientOf(name, &remainder);
    if (dim == column && (!step || !step.isConstant())) {
      steps.push_back(0);
      continue;
    }
    if (!step || !step.isConstant())
      return std::nullopt;
    steps.push_back(step.getValue());
    rest = remainder;
  }
  return steps;
}

/// A digit of the number of a column: as many values, and how far each steps in the source.
struct Digit {
  int64_t extent, step;
};

/// The digits, the last one first, by which the positions of columns are told: those of a weight whose columns are
/// several dims that do not follow each other in memory. Nothing if there are none such.
std::optional<SmallVector<Digit>> getDigits(ArrayRef<int64_t> positions) {
  SmallVector<Digit> digits;
  for (size_t apart = 1; apart < positions.size();) { // columns between those that differ in the next digit alone
    int64_t step = positions[apart] - positions[0];
    size_t end = apart;
    while (end < positions.size() && positions[end] == positions[0] + step * int64_t(end / apart))
      end += apart;
    if (positions.size() % end)
      return std::nullopt;
    digits.push_back({int64_t(end / apart), step});
    apart = end;
  }
  for (auto [column, position] : llvm::enumerate(positions)) {
    int64_t left = int64_t(column), told = positions[0];
    for (const Digit &digit : digits) {
      told += left % digit.extent * digit.step;
      left /= digit.extent;
    }
    if (told != position)
      return std::nullopt;
  }
  return digits;
}

/// A read of a weight or constant in its source's order, and how far each dim of the node steps in the source; where
/// the columns have no such step, their digits.
struct WeightRead {
  LoadOp load;
  SmallVector<int64_t> steps;
  SmallVector<Digit> columns;
  int64_t offset = 0;
};

std::optional<WeightRead> matchWeightRead(LoadOp load, ArrayRef<Expr> domain, unsigned nDim) {
  if (!load.getIndexOperands().empty() || !isConstantBuffer(load.getBuffer()))
    return std::nullopt;
  auto weight = load.getBuffer().getDefiningOp<WeightOp>();
  if (weight && weight.getRecipe())
    return std::nullopt;
  Expr rest;
  auto steps = getSteps(getPosition(load), unsigned(domain.size()), nDim, rest);
  if (!steps)
    return std::nullopt;
  if (rest.isConstant())
    return WeightRead{load, *steps, {}, rest.getValue()};
  std::optional<int64_t> columns = nDim < domain.size() ? domain[nDim].asConstant() : std::nullopt;
  SmallVector<int64_t> positions;
  for (int64_t column = 0; column < columns.value_or(0); ++column) {
    SymbolValues at;
    at[dimName(nDim)] = column;
    std::optional<int64_t> position = rest.evaluate(at);
    if (!position)
      return std::nullopt; // of other dims, too
    positions.push_back(*position);
  }
  std::optional<SmallVector<Digit>> digits = getDigits(positions);
  if (!digits || digits->empty())
    return std::nullopt;
  return WeightRead{load, *steps, *digits, positions.front()};
}

/// A rhs that reads a weight's elements, converts them and reads other weights for that, but computes nothing of its
/// own.
struct RhsReads {
  WeightRead element;
  SmallVector<WeightRead> others;
  // Elements of fewer than 8 bits, whose own type that is, or (`number`) the one at the place of dim `part` in a byte.
  int64_t bits = 0;
  arith::AndIOp number;
  unsigned part = 0;
};

constexpr unsigned mostConversions = 24; // operations after which a weight is better computed beforehand

/// Finds elements of few bits, or (byte >> bits * d) & (2^bits - 1), the byte being that of the rhs's largest weight.
void matchBits(RhsReads &reads) {
  auto onlyUser = [](Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; };
  LoadOp load = reads.element.load;
  unsigned width = load.getType().isInteger() ? load.getType().getIntOrFloatBitWidth() : 0;
  if ((width == 2 || width == 4) && load.getBuffer().getDefiningOp<WeightOp>()) {
    reads.bits = width;
    return;
  }
  auto shift = dyn_cast_or_null<arith::ShRUIOp>(onlyUser(load.getResult()));
  auto number = shift ? dyn_cast_or_null<arith::AndIOp>(onlyUser(shift.getResult())) : arith::AndIOp();
  APInt mask, factor;
  if (!number || shift.getLhs() != load.getResult() || !load.getType().isInteger(8) ||
      !matchPattern(number.getRhs(), m_ConstantInt(&mask)) || !mask.isMask())
    return;
  auto product = shift.getRhs().getDefiningOp<arith::MulIOp>();
  auto narrowed = product ? product.getLhs().getDefiningOp<arith::TruncIOp>() : arith::TruncIOp();
  auto index = narrowed ? narrowed.getIn().getDefiningOp<IndexOp>() : IndexOp();
  if (!index || !matchPattern(product.getRhs(), m_ConstantInt(&factor)) || factor != mask.popcount())
    return;
  Expr at = index.getExpr();
  for (unsigned dim = 1; dim < reads.element.steps.size(); ++dim)
    if (at.isSymbol(dimName(dim)) && reads.element.steps[dim] == 0) {
      reads.bits = mask.popcount();
      reads.number = number;
      reads.part = dim;
    }
}

std::optional<RhsReads> matchRhs(ContractionOp node) {
  RhsReads reads;
  SmallVector<Expr> domain = getDomain(node);
  unsigned conversions = 0;
  SmallVector<WeightRead> all;
  for (Operation &op : node.getRhs().front()) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      auto read = matchWeightRead(load, domain, node.getBatch() + node.getM());
      if (!read)
        return std::nullopt;
      all.push_back(*read);
      continue;
    }
    auto index = dyn_cast<IndexOp>(op);
    bool isArithmetic = op.getDialect() == node->getContext()->getLoadedDialect<arith::ArithDialect>();
    if (!isArithmetic && !isa<YieldOp>(op) && !(index && index.getOperands().empty()))
      return std::nullopt;
    conversions += !isa<arith::ConstantOp>(op);
  }
  auto sizeOf = [](LoadOp load) { return cast<BufferType>(load.getBuffer().getType()).getElementCount().getValue(); };
  auto largest =
      std::max_element(all.begin(), all.end(), [&](auto &a, auto &b) { return sizeOf(a.load) < sizeOf(b.load); });
  bool hasDigits = llvm::any_of(all, [](const WeightRead &read) { return !read.columns.empty(); });
  if (largest == all.end() || conversions > mostConversions || (hasDigits && all.size() > 1))
    return std::nullopt;
  reads.element = *largest;
  all.erase(largest);
  reads.others = all;
  matchBits(reads);
  return reads;
}

/// The dims of a packed weight as they are put together.
struct PanelDims {
  SmallVector<int64_t> extents, strides;
  int64_t panel = -1, lane = -1;
  int64_t limit = 0; // of what `panel` counts panels of: columns, or the first digit of them; 0: none
  void add(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }
  int64_t count() const { return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>()); }
  RecipeAttr recipe(MLIRContext *context, int64_t offset) const {
    return RecipeAttr::get(context, extents, strides, offset, panel, lane, limit);
  }
};

/// Adds the digits of columns but for those of a panel, which are returned, the last one first. What is no whole panel
/// is told by the panels' limit, whose dims are then those of the first digit. Nothing if panels end within a digit.
std::optional<SmallVector<Digit>> addPanels(PanelDims &dims, ArrayRef<Digit> digits, int64_t panelWidth) {
  SmallVector<Digit> lanes, outer;
  int64_t width = 1;
  for (auto [number, digit] : llvm::enumerate(digits)) {
    int64_t part = panelWidth / width;
    if (digit.extent <= part && number + 1 < digits.size()) {
      if (part % digit.extent)
        return std::nullopt;
      lanes.push_back(digit);
      width *= digit.extent;
      continue;
    }
    bool isFirst = number + 1 == digits.size();
    if (digit.extent % part && !isFirst)
      return std::nullopt;
    if (digit.extent % part) {
      dims.limit = digit.extent;
      dims.panel = int64_t(dims.extents.size());
    }
    if (part > 1)
      lanes.push_back({part, digit.step});
    outer.push_back({int64_t(llvm::divideCeil(digit.extent, part)), digit.step * part});
    width = panelWidth;
  }
  for (const Digit &digit : llvm::reverse(outer))
    dims.add(digit.extent, digit.step);
  return lanes;
}

void replaceByPanels(Operation *element, LoadOp load, PanelsOp panels) {
  Value source = load.getBuffer();
  Block *block = element->getBlock();
  element->getResult(0).replaceAllUsesWith(panels.getResult());
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block))) // what led to the element
    if (op.use_empty() && !isa<YieldOp>(op))
      op.erase();
  eraseIfUnused(source);
}

/// A weight that is read beside the elements, with rows for those dims of the sum that it depends on.
void packBeside(ContractionOp node, const WeightRead &read, int64_t panelWidth) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned nDim = node.getBatch() + node.getM();
  if (read.steps[nDim] == 0)
    return; // the same for all columns
  PanelDims dims;
  for (unsigned dim = 0; dim < node.getBatch(); ++dim)
    dims.add(domain[dim].getValue(), read.steps[dim]);
  dims.limit = domain[nDim].getValue();
  dims.panel = dims.extents.size();
  dims.add(llvm::divideCeil(dims.limit, panelWidth), read.steps[nDim] * panelWidth);
  Expr row = Expr::constant(node.getContext(), 0);
  for (unsigned dim = nDim + 1; dim < domain.size(); ++dim)
    if (read.steps[dim]) {
      dims.add(domain[dim].getValue(), read.steps[dim]);
      row = row * domain[dim] + Expr::dim(node.getContext(), dim);
    }
  dims.lane = dims.extents.size();
  dims.add(panelWidth, read.steps[nDim]);
  LoadOp load = read.load;
  Value packed = createStored(load.getBuffer(), dims.recipe(node.getContext(), read.offset), dims.count());
  if (!packed)
    return;
  OpBuilder b(load);
  replaceByPanels(load, load, PanelsOp::create(b, load.getLoc(), load.getType(), packed, 1, 0, ExprAttr(row)));
}

/// Makes a batch that counts elements and, in each of them, the matrices of a weight (12*batch for 12 heads) two dims.
void splitRepeated(ContractionOp node) {
  auto load = dyn_cast<LoadOp>(node.getRhs().front().front());
  if (!load || !load.getIndexOperands().empty() || !isConstantBuffer(load.getBuffer()) ||
      !llvm::hasNItems(node.getRhs().front(), 2))
    return;
  for (unsigned dim = 0; dim < node.getBatch(); ++dim) {
    std::string name = dimName(dim);
    Expr extent = getDomain(node)[dim], d = Expr::symbol(node.getContext(), name);
    for (Expr index : prim::getExprs(load.getIndices())) {
      bool isRest = index.getKind() == ExprKind::Mod && index.getOperands()[0] == d;
      int64_t matrices = isRest ? index.getOperands()[1].asConstant().value_or(0) : 0;
      if (matrices > 1 && extent != Expr::constant(node.getContext(), matrices) &&
          extent.floorDiv(matrices) * matrices == extent)
        return splitDim(node, dim, matrices);
    }
  }
}

/// First dims of a batch that the weight does not depend on.
unsigned countRepeating(ContractionOp node, const RhsReads &reads) {
  unsigned count = 0;
  bool isPlain = reads.others.empty() && llvm::hasNItems(node.getRhs().front(), 2);
  while (isPlain && count < node.getBatch() && reads.element.steps[count] == 0)
    ++count;
  return count;
}

/// The dim `from` becomes dim `to`, and those between take a place in front of theirs.
void moveBack(ContractionOp node, unsigned from, unsigned to) {
  SmallVector<Expr> domain = getDomain(node);
  std::rotate(domain.begin() + from, domain.begin() + from + 1, domain.begin() + to + 1);
  auto moved = [&](StringRef name) -> Expr {
    std::optional<unsigned> number = parseNumbered(name, 'd');
    if (!number || *number < from || *number > to)
      return {};
    return Expr::dim(node.getContext(), *number == from ? to : *number - 1);
  };
  if (from != to)
    mapBodyExprs(node, [&](Expr expr) { return expr.substitute(moved); });
  setDomain(node, domain);
}

/// How a node's weight is packed.
struct PanelForm {
  RhsReads reads;
  WinogradTile winograd;   // none: not transformed
  unsigned firstBatch = 0; // of the dims of the batch, the first that the weight depends on
  unsigned lastDim = 0;    // of the weight's elements, or of its bytes
  bool isPartOfByte = false;
  int64_t bits = 0;       // of a weight that stays packed in words
  int64_t group = 1;      // of elements that lie together
  int64_t neighbours = 1; // elements of the source in a group
};

/// Nothing where the weight stays as it is.
std::optional<PanelForm> choosePanelForm(ContractionOp node, int64_t fewestColumns, const WinogradChoice &choice) {
  std::optional<RhsReads> reads = matchRhs(node);
  if (!reads || node.getN() != 1)
    return std::nullopt;
  PanelForm form{.reads = *reads, .winograd = choice.tile};
  const WeightRead &element = form.reads.element;
  SmallVector<Expr> domain = getDomain(node);
  unsigned nDim = node.getBatch() + node.getM(), kDim = nDim + 1;
  for (unsigned dim = 0; dim < node.getBatch(); ++dim)
    if (element.steps[dim] == 0 && !domain[dim].isConstant(1))
      form.winograd = {}; // one weight for the whole batch, stored once
  form.firstBatch = form.winograd ? 0 : countRepeating(node, form.reads);
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    if (((dim >= form.firstBatch && dim < node.getBatch()) || dim >= nDim) && !domain[dim].isConstant())
      return std::nullopt; // a weight's own dims are constant
  if (domain[nDim].getValue() < fewestColumns || (!form.reads.others.empty() && element.steps[nDim] == 0) ||
      (!element.columns.empty() && form.winograd))
    return std::nullopt;
  form.lastDim = domain.size() - 1;
  form.isPartOfByte = bool(form.reads.number);
  form.bits = form.reads.bits;
  if (form.bits && !form.isPartOfByte && (node.getK() == 0 || domain[form.lastDim].getValue() % (32 / form.bits)))
    form.bits = 0; // one a byte
  form.group = form.bits ? 32 / form.bits : getGroup(node);
  form.neighbours = form.isPartOfByte ? 4 : form.group;
  if (form.isPartOfByte) {
    // The dims of the byte and of the number in it become one, which is that of the group.
    bool isInnermost =
        form.reads.part == form.lastDim && form.lastDim > kDim && domain[form.lastDim].isConstant(8 / form.bits);
    --form.lastDim;
    if (!isInnermost || domain[form.lastDim].getValue() % form.neighbours ||
        !mergesIn(node.getLhs(), form.lastDim, domain[form.lastDim + 1]))
      return std::nullopt;
  }
  return form;
}

/// The dims of the packed weight, outermost first. Nothing if panels end within a digit.
std::optional<PanelDims> layOutPanels(ContractionOp node, const PanelForm &form, int64_t panelWidth,
                                      const WinogradChoice &choice) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned nDim = node.getBatch() + node.getM(), kDim = nDim + 1;
  const WeightRead &element = form.reads.element;
  auto isTransformed = [&](unsigned dim) {
    return form.winograd && dim <= choice.window && dim + form.winograd.dims() > choice.window;
  };
  PanelDims dims;
  for (unsigned dim = kDim; dim < domain.size(); ++dim)
    if (isTransformed(dim)) // the outermost ones, which become positions
      dims.add(domain[dim].getValue(), element.steps[dim]);
  for (unsigned dim = form.firstBatch; dim < node.getBatch(); ++dim)
    dims.add(domain[dim].getValue(), element.steps[dim]);
  std::optional<SmallVector<Digit>> lanes = SmallVector<Digit>{{panelWidth, element.steps[nDim]}};
  if (element.columns.empty()) {
    dims.limit = domain[nDim].getValue();
    dims.panel = dims.extents.size();
    dims.add(llvm::divideCeil(dims.limit, panelWidth), element.steps[nDim] * panelWidth);
  } else {
    lanes = addPanels(dims, element.columns, panelWidth);
  }
  if (!lanes)
    return std::nullopt;
  for (unsigned dim = kDim; dim <= form.lastDim; ++dim) {
    if (isTransformed(dim))
      continue;
    int64_t terms = dim == form.lastDim ? form.neighbours : 1;
    dims.add(domain[dim].getValue() / terms, element.steps[dim] * terms);
  }
  if (dims.panel >= 0)
    dims.lane = dims.extents.size();
  for (const Digit &digit : llvm::reverse(*lanes))
    dims.add(digit.extent, digit.step);
  if (form.neighbours > 1)
    dims.add(form.neighbours, element.steps[form.lastDim]);
  return dims;
}

/// `choice`: how Winograd's algorithm computes the node, if it does.
void pack(ContractionOp node, int64_t panelWidth, int64_t fewestColumns, WinogradChoice choice) {
  std::optional<PanelForm> form = choosePanelForm(node, fewestColumns, choice);
  if (!form)
    return;
  std::optional<PanelDims> dims = layOutPanels(node, *form, panelWidth, choice);
  if (!dims)
    return;
  const WinogradTile &winograd = form->winograd;
  int64_t count = dims->count();
  if (winograd)
    count = count / winograd.elements() * winograd.positions();
  StoredAs as{.winograd = winograd, .packedBits = form->isPartOfByte ? 0 : form->bits};
  if (as.packedBits)
    count = count * form->bits / 8;
  LoadOp load = form->reads.element.load;
  Value packed = createStored(load.getBuffer(), dims->recipe(node.getContext(), form->reads.element.offset), count, as);
  if (!packed)
    return;
  OpBuilder b(load);
  auto panels = PanelsOp::create(b, load.getLoc(), load.getType(), packed, form->group, form->bits, ExprAttr());
  if (winograd) {
    setWinogradTile(panels, winograd);
    if (choice.dilations != WinogradDilations{1, 1})
      panels->setAttr(winogradDilationsAttr, b.getDenseI64ArrayAttr(choice.dilations));
  }
  replaceByPanels(form->isPartOfByte ? form->reads.number.getOperation() : load.getOperation(), load, panels);
  for (const WeightRead &other : form->reads.others)
    packBeside(node, other, panelWidth);
  if (form->isPartOfByte)
    mergeDims(node);
  if (winograd) { // which dims are transformed is told by their places
    moveBack(node, choice.output, node.getBatch() + node.getM() - 1);
    moveBack(node, choice.window, form->lastDim - 1);
  }
}

//===----------------------------------------------------------------------===//
// Reordering
//===----------------------------------------------------------------------===//

/// A rhs of bytes, or what is read beside them: without panels they lie along k, as tensor cores and what converts
/// several at once take them.
bool isRhsOfBytes(LoadOp load) {
  auto product = dyn_cast<ContractionOp>(load->getParentOp());
  return product && load->getParentRegion() == &product.getRhs() &&
         llvm::any_of(product.getRhs().getOps<LoadOp>(), [](LoadOp each) { return each.getType().isInteger(8); });
}

/// A stored form of a weight that several nodes read.
struct SharedForm {
  Value source, stored;
  SmallVector<int64_t> order;
};

/// Stores what `load` reads with its dims in the order of `places`.
void reorder(LoadOp load, ArrayRef<int64_t> places, bool mayShare, SmallVectorImpl<SharedForm> &shared) {
  Value source = load.getBuffer();
  auto weight = source.getDefiningOp<WeightOp>();
  bool isShared = !source.hasOneUse();
  if (!isConstantBuffer(source) || (isShared && !mayShare) || (weight && weight.getRecipe()))
    return;
  SmallVector<Expr> indices = prim::getExprs(load.getIndices());
  SmallVector<int64_t> order = getBufferOrder(indices, places);
  auto type = cast<BufferType>(source.getType());
  SmallVector<int64_t> extents, strides;
  SmallVector<Expr> reordered;
  bool moves = false;
  int64_t before = -1;
  for (int64_t dim : order) {
    std::optional<int64_t> extent = type.getShape()[dim].asConstant(), stride = type.getStrides()[dim].asConstant();
    if (!extent || !stride)
      return;
    extents.push_back(*extent);
    strides.push_back(*stride);
    reordered.push_back(indices[dim]);
    if (*extent == 1)
      continue;
    moves |= dim < before;
    before = dim;
  }
  if (!moves)
    return;
  auto recipe = RecipeAttr::get(load.getContext(), extents, strides, 0, -1, -1, 0);
  auto *found = llvm::find_if(shared, [&](SharedForm &f) { return f.source == source && f.order == order; });
  Value stored = found != shared.end() ? found->stored : createStored(source, recipe, extents);
  if (!stored)
    return;
  if (isShared && found == shared.end())
    shared.push_back({source, stored, order});
  load.getBufferMutable().assign(stored);
  load.setIndicesAttr(prim::getExprArray(load.getContext(), reordered));
  eraseIfUnused(source);
}

/// Of the rhs of a convolution without panels: columns, of all groups, come first where the last terms of a sum are
/// innermost in memory. So the weights of a window beside channels that lie innermost are [column][window...][channel],
/// which libraries read.
SmallVector<int64_t> putColumnsFirst(LoadOp load, ArrayRef<int64_t> places) {
  SmallVector<int64_t> result(places);
  auto product = dyn_cast<ContractionOp>(load->getParentOp());
  if (!product || load->getParentRegion() != &product.getRhs() || product.getK() < 2 ||
      places.back() != *llvm::max_element(places))
    return result;
  unsigned firstColumn = product.getBatch() + product.getM(), firstTerm = firstColumn + product.getN();
  for (auto [dim, place] : llvm::enumerate(result))
    place = dim < product.getBatch() || (dim >= firstColumn && dim < firstTerm) ? 0 : place + 1;
  return result;
}

/// Where channels lie innermost and a sum runs over those of a group, vectors run along all of them: the weights of one
/// term lie side by side.
void putLanesLast(ReductionOp node, SmallVectorImpl<int64_t> &places) {
  size_t kept = places.size() - node.getReduced();
  if (places.empty())
    return;
  int64_t last = *llvm::max_element(places);
  if (llvm::is_contained(ArrayRef(places).drop_front(kept), last))
    for (int64_t &place : MutableArrayRef(places).take_front(kept))
      place += place == last;
}

/// In the order of the node's walk through memory; bytes of a rhs along k.
void reorderWeights(Operation *node, const SymbolValues &hints, bool hasPanels, SmallVectorImpl<SharedForm> &shared) {
  SmallVector<int64_t> places = getMemoryPlaces(node, hints);
  if (auto reduction = dyn_cast<ReductionOp>(node); reduction && hasPanels)
    putLanesLast(reduction, places);
  SmallVector<int64_t> alongK = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(getDomain(node).size())));
  node->walk([&](LoadOp load) {
    if (!hasPanels && isRhsOfBytes(load))
      reorder(load, alongK, /*mayShare=*/true, shared);
    else if (!places.empty())
      reorder(load, hasPanels ? places : putColumnsFirst(load, places), /*mayShare=*/false, shared);
  });
}

struct PackWeights : ptc::impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      if (panelWidth > 0)
        program.walk([&](ContractionOp node) {
          splitRepeated(node);
          pack(node, panelWidth, fewestColumns, winograd ? chooseWinograd(node, hints) : WinogradChoice());
        });
      SmallVector<SharedForm> shared;
      program.walk([&](Operation *op) {
        if (isa<ContractionOp, ReductionOp>(op))
          reorderWeights(op, hints, panelWidth > 0, shared);
      });
    }
  }
};

} // namespace
