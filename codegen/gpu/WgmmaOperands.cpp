//===- WgmmaOperands.cpp - contractions of warpgroups: operands -----------===//
//
// Operands must be boxes of a tensor in memory: elements of 8 or 16 bits or f32 that are read as they are, through an
// index that is linear in the dims, whose free dims and whose k are one dim each (of a batch, up to three dims stay),
// contiguous in one of the two (of f32 and bytes in k: wgmma reads no other), all extents known. Copies put zeros where
// a box reaches over an end, so that no extent needs to be a multiple of the tile's. Windows of an image:
// WgmmaWindow.cpp.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/WgmmaOperands.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t mostBatchDims = 3;    // beside the two of a box
static constexpr int64_t mostExtent = 1 << 30; // coordinates are i32

std::optional<Axis> gpu::mergeAxes(ArrayRef<Axis> axes) {
  Axis merged;
  for (const Axis &axis : llvm::reverse(axes)) {
    if (axis.extent == 1)
      continue;
    if (merged.extent == 1)
      merged = axis;
    else if (axis.stride == merged.stride * merged.extent)
      merged.extent *= axis.extent;
    else
      return std::nullopt;
  }
  if (merged.extent > mostExtent)
    return std::nullopt;
  return merged;
}

std::optional<SmallVector<Axis>> gpu::readAxes(ArrayRef<Expr> domain, Expr index, int64_t &offset) {
  SmallVector<Axis> axes;
  for (auto [dim, extent] : llvm::enumerate(domain)) {
    std::optional<int64_t> known = extent.asConstant();
    if (!known || *known < 1 || *known > mostExtent)
      return std::nullopt;
    Axis &axis = axes.emplace_back(Axis{*known, 0});
    std::string name = dimName(dim);
    if (!index.uses(name))
      continue;
    Expr rest, coefficient = index.coefficientOf(name, &rest);
    if (!coefficient || !coefficient.isConstant())
      return std::nullopt;
    axis.stride = coefficient.getValue();
    index = rest;
  }
  if (!index.isConstant())
    return std::nullopt;
  offset = index.getValue();
  return axes;
}

bool gpu::isAligned(int64_t elements, const WgmmaTile &tile) {
  return elements >= 0 && elements * tile.elementBytes() % MmaTile::vectorBytes == 0;
}

void gpu::addDim(codegen::TensorMap &map, const Axis &axis) {
  map.extents.push_back(axis.extent);
  map.strides.push_back(axis.stride * map.elementBytes);
}

static bool isOfKind(Type type, MmaKind kind) {
  switch (kind) {
  case MmaKind::F16:
    return type.isF16();
  case MmaKind::BF16:
    return type.isBF16();
  case MmaKind::SplitF32:
    return type.isF32();
  default:
    return type.isInteger(8);
  }
}

std::optional<WgmmaLoad> gpu::analyzeLoad(loop::ContractionOp op, bool isRhs, const WgmmaTile &tile) {
  MmaSource source;
  if (!matchLoad(isRhs ? op.getRhs() : op.getLhs(), source) || !isOfKind(source.load.getType(), tile.kind) ||
      source.padding != 0)
    return std::nullopt;
  auto buffer = dyn_cast<BlockArgument>(source.load.getBuffer());
  if (!buffer || buffer.getOwner() != &op->getParentOfType<loop::KernelOp>().getBlock())
    return std::nullopt;
  WgmmaLoad load{.buffer = buffer.getArgNumber(), .offset = 0};
  auto axes = readAxes(loop::getDomain(op), Expr(cast<ExprAttr>(source.load.getIndices()[0])), load.offset);
  if (!axes)
    return std::nullopt;
  load.axes = std::move(*axes);
  if (source.mask)
    for (Attribute condition : source.mask.getConditions())
      load.conditions.push_back(Expr(cast<ExprAttr>(condition)));
  return load;
}

static std::optional<WgmmaOperand> analyzeBoxes(loop::ContractionOp op, bool isRhs, const WgmmaTile &tile) {
  ContractionDims dims(op);
  std::optional<WgmmaLoad> load = analyzeLoad(op, isRhs, tile);
  if (!load || !load->conditions.empty() || !isAligned(load->offset, tile))
    return std::nullopt;
  auto slice = [&](int64_t from, int64_t to) { return ArrayRef(load->axes).slice(size_t(from), size_t(to - from)); };
  std::optional<Axis> free =
      isRhs ? mergeAxes(slice(dims.firstN, dims.firstK)) : mergeAxes(slice(dims.firstM, dims.firstN));
  std::optional<Axis> k = mergeAxes(slice(dims.firstK, int64_t(load->axes.size())));
  if (!free || !k)
    return std::nullopt;
  WgmmaOperand operand{.isAlongK = k->stride == 1};
  const Axis &inner = operand.isAlongK ? *k : *free, &outer = operand.isAlongK ? *free : *k;
  if (inner.stride != 1 || outer.stride <= 0 || !isAligned(outer.stride, tile))
    return std::nullopt;
  int64_t size = isRhs ? tile.n : tile.m;
  if (!operand.isAlongK && (tile.elementBytes() != 2 || size % tile.k() != 0))
    return std::nullopt;
  operand.boxes = operand.isAlongK ? 1 : size / tile.k();
  operand.map = {.buffer = load->buffer,
                 .elementBytes = unsigned(tile.elementBytes()),
                 .offset = load->offset * tile.elementBytes(),
                 .box = {tile.k(), operand.isAlongK ? size : tile.k()}};
  addDim(operand.map, inner);
  addDim(operand.map, outer);
  for (auto [dim, axis] : llvm::enumerate(slice(0, dims.firstM))) {
    if (axis.extent == 1 || axis.stride == 0)
      continue;
    if (!isAligned(axis.stride, tile) || operand.dims.size() == mostBatchDims)
      return std::nullopt;
    operand.dims.push_back(dim);
    operand.map.box.push_back(1);
    addDim(operand.map, axis);
  }
  return operand;
}

std::optional<WgmmaOperands> gpu::analyzeOperands(loop::ContractionOp op, const WgmmaTile &tile) {
  std::optional<WgmmaOperand> lhs = analyzeBoxes(op, false, tile);
  if (!lhs)
    return analyzeWindow(op, tile);
  std::optional<WgmmaOperand> rhs = analyzeBoxes(op, true, tile);
  if (!rhs)
    return std::nullopt;
  int64_t depth = 1;
  for (Expr extent : ContractionDims(op).k())
    depth *= *extent.asConstant();
  int64_t steps = llvm::divideCeil(depth, tile.k());
  return WgmmaOperands{.lhs = std::move(*lhs), .rhs = std::move(*rhs), .steps = steps, .stepsOfPlace = steps};
}
