//===- CpuContractionConvert.cpp - weights that are converted on the way --===//
//
// A rhs that begins with the elements of a weight in panels may go on: widening, the scales and zero points of numbers
// of few bits. The rest of the region is emitted on vectors of elements, in one of three places:
//
//   in the tile          for each step of k; numbers of few bits are taken out of their words there
//   behind its k loop    what is the same along the last k dim (the scale of a block) multiplies the sums of that loop,
//                        where the tile has accumulators to spare
//   beforehand           many rows: the task converts its columns once, into panels in scratch
//
// What operations make of each number of few bits alone is known when code is generated: a table in a register, from
// which one instruction fetches a vector of values, where the level has one.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionConvert.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t prefetchedBytes = 256; // ahead in what is read once for a block of a weight's rows

//===----------------------------------------------------------------------===//
// What is converted
//===----------------------------------------------------------------------===//

/// What a vector of all numbers of few bits is converted to by operations on each alone, the last of which is returned.
static std::pair<DenseElementsAttr, Value> tabulate(Value element, int64_t bits, const CpuLevel &level) {
  int64_t lanes = level.lanesOf(32);
  MLIRContext *context = element.getContext();
  if (level.lookUpOf(lanes * 32).empty() || lanes < (1 << bits))
    return {};
  SmallVector<Attribute> table;
  for (int64_t lane = 0; lane < lanes; ++lane)
    table.push_back(IntegerAttr::get(element.getType(),
                                     APInt(element.getType().getIntOrFloatBitWidth(), uint64_t(lane % (1 << bits)))));
  while (element.hasOneUse()) {
    Operation *op = *element.user_begin();
    SmallVector<Attribute> results;
    for (Attribute number : table) {
      SmallVector<Attribute> operands; // null: not known, which no op folds away here
      for (Value operand : op->getOperands()) {
        Attribute known = operand == element ? number : Attribute();
        matchPattern(operand, m_Constant(&known));
        operands.push_back(known);
      }
      SmallVector<OpFoldResult> folded;
      bool isKnown = !llvm::is_contained(operands, Attribute()) && op->getNumResults() == 1 &&
                     succeeded(op->fold(operands, folded)) && folded.size() == 1 && isa<Attribute>(folded[0]);
      if (isKnown)
        results.push_back(cast<Attribute>(folded[0]));
    }
    if (results.size() != table.size())
      break;
    table = results;
    element = op->getResult(0);
  }
  if (!element.getType().isF32())
    return {};
  return {DenseElementsAttr::get(VectorType::get(lanes, Float32Type::get(context)), table), element};
}

/// Whether a value of the rhs is the same along the last k dim.
static bool isSameAlongLast(const ContractionForm &form, Value value) {
  std::string last = dimName(form.kLoops.back().dim);
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (argument.getArgNumber() == 0 || form.conversion.beside[argument.getArgNumber() - 1].row.uses(last))
        return false;
      continue;
    }
    Operation *op = next.getDefiningOp();
    auto index = dyn_cast<loop::IndexOp>(op);
    if (isa<loop::LoadOp>(op) || (index && index.getExpr().uses(last)))
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return true;
}

/// Finds a product of an element and of what is the same along the last k dim.
static void findFactor(ContractionForm &form) {
  Block &block = form.op.getRhs().front();
  auto product = cast<loop::YieldOp>(block.getTerminator()).getValue().getDefiningOp<arith::MulFOp>();
  bool changesAlongLast = form.kLoops.back().dim < 0; // several dims in one loop
  if (!product || changesAlongLast)
    return;
  for (bool isSecond : {false, true})
    if (isSameAlongLast(form, product->getOperand(isSecond))) {
      form.conversion.factor = product->getOperand(isSecond);
      form.conversion.factored = product->getOperand(!isSecond);
      return;
    }
}

/// How the numbers of a table follow each other, if each is the one before it plus 1.
static WeightConversion::Numbers orderOfTable(DenseElementsAttr table, int64_t bits) {
  SmallVector<float> values(table.getValues<float>());
  int64_t count = int64_t(1) << bits;
  for (auto [numbers, lowest] : {std::pair(WeightConversion::Numbers::Unsigned, int64_t(0)),
                                 std::pair(WeightConversion::Numbers::Signed, count / 2)})
    if (llvm::all_of(llvm::seq<int64_t>(0, count), [&](int64_t number) {
          return values[size_t(number ^ lowest)] == values[size_t(lowest)] + float(number);
        }))
      return numbers;
  return WeightConversion::Numbers::Other;
}

/// Says how numbers are to be read where the factored value is one plus what is the same along the last k dim.
static void findNumbers(ContractionForm &form) {
  using Numbers = WeightConversion::Numbers;
  Value value = form.op.getRhs().getArgument(0);
  bool isTable = bool(form.conversion.table), isMoved = false; // so that it may be negative
  Numbers numbers = isTable ? orderOfTable(form.conversion.table, form.bits) : Numbers::Unsigned;
  bool fillsType = !isTable && value.getType().getIntOrFloatBitWidth() == form.bits;
  while (value != form.conversion.factored) {
    if (!value.hasOneUse())
      return;
    Operation *op = *value.user_begin();
    if (isa<arith::ExtSIOp, arith::SIToFPOp>(op)) {
      numbers = fillsType ? Numbers::Signed : numbers;
    } else if (isa<arith::ExtUIOp, arith::UIToFPOp>(op)) {
      if (isMoved)
        return;
    } else if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(op)) {
      bool isFirst = op->getOperand(0) == value, isSum = isa<arith::AddFOp, arith::AddIOp>(op);
      if ((!isFirst && !isSum) || fillsType || !isSameAlongLast(form, op->getOperand(isFirst)))
        return;
      isMoved = true;
    } else {
      return;
    }
    value = op->getResult(0);
    fillsType = false;
  }
  form.conversion.numbers = numbers;
}

/// What follows the panels' elements is emitted on loaded vectors: the elements become arguments.
void cpu::bindPanels(ContractionForm &form, const CpuLevel &level, bool isStrict) {
  Block &block = form.op.getRhs().front();
  form.rhs.buffer = form.rhs.panels.getBuffer();
  Value element = form.rhs.panels.getResult();
  if (form.bits)
    if (auto [table, last] = tabulate(element, form.bits, level); table) {
      form.conversion.table = table;
      element = last;
    }
  element.replaceAllUsesWith(block.addArgument(element.getType(), form.op.getLoc()));
  if (form.conversion.table) // what led to it is not emitted
    for (Operation *op = element.getDefiningOp(); op != form.rhs.panels;) {
      Operation *before = nullptr;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp(); producer && !producer->hasTrait<OpTrait::ConstantLike>())
          before = producer;
      op->erase();
      op = before;
    }
  form.rhs.panels.erase();
  form.rhs.panels = {};
  for (loop::PanelsOp beside : form.conversion.besidePanels) {
    form.conversion.beside.push_back({beside.getBuffer(), Expr(beside.getRowAttr()), beside.getType()});
    beside.getResult().replaceAllUsesWith(block.addArgument(beside.getType(), form.op.getLoc()));
    beside.erase();
  }
  form.conversion.besidePanels.clear();
  form.conversion.value = cast<loop::YieldOp>(block.getTerminator()).getValue();
  if (!isStrict)
    findFactor(form);
  if (form.bits && form.conversion.factor)
    findNumbers(form);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Value WeightConverter::convertGroups(Value groups) const {
  EmissionPoint at = c.taskPoint(task);
  at.lanes = cast<VectorType>(groups.getType()).getNumElements() * f.group;
  at.vectorDim = f.firstK() - 1;
  auto type = VectorType::get(at.lanes, f.lhs.element);
  Value elements = LLVM::BitcastOp::create(e.builder, e.loc, type, groups);
  elements = e.splat(e.emitRegion(f.op.getRhs(), at, {elements}), at.lanes);
  return LLVM::BitcastOp::create(e.builder, e.loc, groups.getType(), elements);
}

Value WeightConverter::convert(EmissionPoint at, Value wanted, Value panel, Value elements, int64_t column,
                               bool prefetches) const {
  at.lanes = cast<VectorType>(elements.getType()).getNumElements();
  at.vectorDim = f.firstK() - 1;
  c.setDims(at, f.firstN(), f.nDims, i.add(i.mul(panel, i.constant(panelWidth)), i.constant(column)));
  SmallVector<Value> arguments{elements};
  for (const BesidePanels &beside : f.conversion.beside) {
    int64_t size = cast<loop::BufferType>(beside.buffer.getType()).getElementCount().getValue();
    Value count = i.floorDiv(i.constant(size), i.mul(i.mul(value(f.batch), c.panels), i.constant(panelWidth)), true);
    Value flat = i.add(i.add(i.mul(task.batch, c.panels), panel), i.constant(column / panelWidth));
    Value row = i.mul(i.add(i.mul(flat, count), e.emitExpr(beside.row, at)), i.constant(panelWidth));
    Value offset = i.add(row, i.constant(column % panelWidth));
    Value address = e.getAddress(e.getPointer(beside.buffer), beside.type, offset);
    arguments.push_back(e.createLoad(beside.type, at.lanes, address));
    if (prefetches)
      createPrefetch(e, e.getAddress(address, e.builder.getI8Type(), i.constant(prefetchedBytes)));
  }
  auto yield = cast<loop::YieldOp>(f.op.getRhs().front().getTerminator());
  yield->setOperand(0, wanted); // what else is emitted has no use
  Value value = c.widened(e.splat(e.emitRegion(f.op.getRhs(), at, arguments), at.lanes));
  yield->setOperand(0, f.conversion.value);
  return value;
}

Value WeightConverter::numberOf(Value words, int64_t term) const {
  auto type = cast<VectorType>(words.getType());
  auto splat = [&](uint64_t number) {
    return i.constant(cast<TypedAttr>(DenseElementsAttr::get(type, APInt(32, number))));
  };
  Value moved = words;
  if (term)
    moved = arith::ShRUIOp::create(e.builder, e.loc, moved, splat(term * f.bits));
  if (f.conversion.table) {
    Value table = i.constant(cast<TypedAttr>(f.conversion.table));
    int64_t lanes = f.conversion.table.getNumElements(), wanted = type.getNumElements();
    StringRef lookUp = e.level.lookUpOf(lanes * 32);
    auto resized = [&](Value vector, int64_t count) { // lanes beyond the vector's own are not looked at
      SmallVector<int32_t> order;
      for (int64_t lane = 0; lane < count; ++lane)
        order.push_back(int32_t(lane % wanted));
      return count == cast<VectorType>(vector.getType()).getNumElements()
                 ? vector
                 : LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, order).getResult();
    };
    Value found = LLVM::CallIntrinsicOp::create(e.builder, e.loc, table.getType(), e.builder.getStringAttr(lookUp),
                                                ValueRange{table, resized(moved, lanes)})
                      .getResult(0);
    return resized(found, wanted);
  }
  moved = arith::AndIOp::create(e.builder, e.loc, moved, splat((1 << f.bits) - 1));
  return arith::TruncIOp::create(e.builder, e.loc, type.clone(f.op.getRhs().getArgument(0).getType()), moved);
}

EmissionPoint WeightConverter::pointInLoops(ValueRange ks, int64_t term) const {
  EmissionPoint at = c.taskPoint(task);
  // Loops over several dims at once are the innermost ones.
  for (auto [index, k] : llvm::enumerate(ks)) {
    int64_t dim = f.kLoops[index].dim, first = f.firstK() + int64_t(index);
    bool isGroup = f.bits && index + 1 == ks.size();
    Value position = isGroup ? i.add(i.mul(k, i.constant(f.group)), i.constant(term)) : k;
    if (dim >= 0)
      at.dims[dim] = position;
    else
      c.setDims(at, first, f.firstK() + f.kDims - first, position);
  }
  return at;
}

Value WeightConverter::factorOf(Value panel, const TileVector &vector, ValueRange outer, bool prefetches) const {
  Type type = f.op.getRhs().getArgument(0).getType();
  Value none = LLVM::PoisonOp::create(e.builder, e.loc, VectorType::get(vector.lanes, type));
  SmallVector<Value> ks(outer);
  ks.push_back(i.constant(0));
  return convert(pointInLoops(ks, /*term=*/0), f.conversion.factor, panel, none, vector.column, prefetches);
}

void WeightConverter::convertIn(TileOperands &operands, const TileShape &shape, const ContractionTile &tile) const {
  if (!c.convertsWeight() && operands.bElement == accumulator)
    return;
  if (f.isDot()) {
    if (c.convertsWeight())
      operands.convertB = [own = *this](Value loaded, int64_t, ValueRange) { return own.convertGroups(loaded); };
    return;
  }
  Value element = f.conversion.value;
  int64_t accumulators = shape.rows * int64_t(getTileVectors(shape.panels, shape.lastColumns, lanes).size());
  // The panel that a column of the tile lies in, and where: from the tile's first panel on, or its own.
  auto placeOf = [&i = i, columns = tile.columns, panel = tile.panel](int64_t column) -> std::pair<Value, int64_t> {
    if (!columns.apart)
      return {panel, column};
    return {i.add(panel, i.mul(columns.apart, i.constant(column / panelWidth))), column % panelWidth};
  };
  auto inPanel = [own = *this, placeOf](const EmissionPoint &at, Value wanted, Value elements, int64_t column) {
    auto [panel, within] = placeOf(column);
    return own.convert(at, wanted, panel, elements, within);
  };
  if (f.conversion.factor && accumulators * (shape.unroll + 1) <= e.level.vectorRegisters * 3 / 4) {
    element = f.conversion.factored;
    operands.factorB = [own = *this, placeOf, prefetches = operands.fetchedAhead > 0](int64_t column, int64_t width,
                                                                                      ValueRange outer) {
      auto [panel, within] = placeOf(column);
      return own.factorOf(panel, {within, width}, outer, prefetches);
    };
  }
  if (f.bits)
    operands.splitB = [own = *this, inPanel, element](Value words, int64_t term, int64_t column, ValueRange ks) {
      return inPanel(own.pointInLoops(ks, term), element, own.numberOf(words, term), column);
    };
  else
    operands.convertB = [own = *this, inPanel, element](Value loaded, int64_t column, ValueRange ks) {
      return inPanel(own.pointInLoops(ks, /*term=*/0), element, loaded, column);
    };
}

void WeightConverter::pack(Value kLower, Value kUpper) const {
  EmissionPoint point = c.taskPoint(task);
  int64_t last = int64_t(f.domain.size()) - 1;
  SmallVector<int64_t> outer = llvm::to_vector<4>(llvm::seq<int64_t>(f.firstK(), last));
  Value width = i.constant(panelWidth), words = i.constant(f.conversion.words);
  bool isSplitHere = f.blocks.isSplitK() && last == f.firstK();
  Value lower = isSplitHere ? kLower : i.constant(0), upper = isSplitHere ? kUpper : value(f.domain[last]);
  Value skipped = f.blocks.isSplitK() ? i.mul(kLower, value(f.kLoops[0].bStride)) : i.constant(0);
  Type stored = f.bits ? e.builder.getI32Type() : cast<loop::BufferType>(f.rhs.buffer.getType()).getElementType();
  loop(task.firstPanel, task.endPanel, 1, [&](Value panel) {
    Value target = e.getAddress(c.rhsPack, accumulator,
                                i.mul(i.mul(i.sub(panel, task.firstPanel), value(f.scratch.rhsRows)), width));
    Value flat = i.mul(i.add(i.mul(task.matrix, c.panels), panel), i.floorDiv(c.k, words, true));
    c.forEachK(outer, f.blocks.isSplitK() ? kLower : Value(), kUpper, point, [&] {
      loop(lower, upper, f.conversion.words, [&](Value first) {
        point.dims[last] = first;
        Value group = i.floorDiv(c.flatK(point), words, true);
        for (int64_t part = 0; part < panelWidth; part += lanes) {
          Value offset = i.add(i.mul(i.add(flat, group), width), i.constant(part));
          Value loaded = e.createLoad(stored, lanes, e.getAddress(e.getPointer(f.rhs.buffer), stored, offset));
          for (int64_t term = 0; term < f.conversion.words; ++term) {
            EmissionPoint at = point;
            at.dims[last] = i.add(first, i.constant(term));
            Value number = f.bits ? numberOf(loaded, term) : loaded;
            Value row = i.mul(i.sub(c.flatK(at), skipped), width);
            e.createStore(convert(at, f.conversion.value, panel, number, part),
                          e.getAddress(target, accumulator, i.add(row, i.constant(part))));
          }
        }
      });
    });
  });
}
