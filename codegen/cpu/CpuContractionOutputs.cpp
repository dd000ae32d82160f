//===- CpuContractionOutputs.cpp - several outputs in a row of the tile ---===//
//
// Problem. A convolution to few channels has columns for a part of a vector alone: with 8 of them half of a 512-bit
// multiply-add's lanes are unused, and a tile of one vector loads an element of A for each multiply-add, which is as
// much as a core can.
//
// Idea. Outputs that follow each other in a line of the image read the same pixels, each with another weight of its
// window's row. So a row of the tile is several outputs, with 8 columns each, and an element of A is multiplied by the
// weights that it meets in all of them:
//
//   B of pixel x    [ w[x] of output 0 | w[x - s] of output 1 | w[x - 2 s] of output 2 | ... ]     s: the stride
//
// for x in [0, window + (outputs - 1) s). In B these lie s pixels apart, so a vector is loaded in parts. Near both ends
// of that range some outputs have no weight: there the range is cut, and in each piece vectors without a product are
// left out, and lanes without one masked. So each output's sum has the terms that it has alone, whatever the
// pixels hold, though not in the same order.
//
// Invariant. The line's outputs are a multiple of those of a row, so no row lies in two lines.
//
// Cost. The range is longer than the window: (window + (outputs - 1) s) / window loads of A, and as many multiply-adds
// for the outputs of a vector. With 39 pixels 4 outputs take half of the time, with 3 two thirds.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t fewestRows = 256;    // of a product: fewer are a tile or two, cut into tasks
static constexpr int64_t mostTerms = 1 << 12; // which are not cut into blocks: B stays in the second-level cache
static constexpr int64_t mostOfRow = 4; // outputs: two 512-bit vectors, beside 14 rows of which nothing is to gain

/// Steps of loop `tap` over k that move A and its conditions as one step along the image's line does; 0: none do.
static int64_t stepsOfOutput(const ContractionForm &form, int64_t tap) {
  int64_t across = form.firstN() - 1, window = form.kLoops[tap].dim, steps = 0;
  if (window < 0)
    return 0;
  auto movesAlike = [&](Expr index) {
    Expr ofOutput = loop::strideOf(index, across), ofTap = loop::strideOf(index, window);
    auto output = ofOutput ? ofOutput.asConstant() : std::nullopt, step = ofTap ? ofTap.asConstant() : std::nullopt;
    if (!output || !step)
      return false;
    if (*step == 0)
      return *output == 0;
    int64_t count = *output / *step;
    bool fits = *output % *step == 0 && count > 0 && (steps == 0 || steps == count);
    steps = count;
    return fits;
  };
  return llvm::all_of(form.lhs.movedExprs(), movesAlike) ? steps : 0;
}

void cpu::findTaps(ContractionForm &form) {
  auto n = form.n.asConstant(), k = form.k.asConstant();
  if (!form.lhs.readsMemory() || form.rhs.isPacked() || form.group != 1 || !form.conversion.besidePanels.empty() ||
      form.mDims == 0 || form.nDims != 1 || !k || *k > mostTerms || !n || *n > outputColumns ||
      *n <= outputColumns / 2 || form.rowUnit() < fewestRows || !form.accumulator.isF32() || !ownsTasks(form))
    return;
  // What B holds is what is multiplied.
  auto yield = cast<loop::YieldOp>(form.op.getRhs().front().getTerminator());
  auto element = cast<loop::BufferType>(form.rhs.panels.getBuffer().getType()).getElementType();
  auto line = form.domain[form.firstN() - 1].asConstant();
  if (yield.getValue() != form.rhs.panels.getResult() || element != form.accumulator || !line)
    return;
  for (int64_t tap = int64_t(form.kLoops.size()) - 1; tap >= 0 && tap + 2 >= int64_t(form.kLoops.size()); --tap) {
    int64_t steps = form.kLoops[tap].extent.isConstant() ? stepsOfOutput(form, tap) : 0;
    if (steps == 0)
      continue;
    form.taps.loop = tap;
    form.taps.step = steps;
    for (int64_t outputs = 2; outputs <= mostOfRow; outputs *= 2)
      if (*line % outputs == 0)
        form.taps.mostOutputs = outputs;
    return;
  }
}

/// Cycles of a term of an output, of a core that has two multiply-adds and two loads in each.
static double costOfOutput(const ContractionForm &form, const CpuLevel &level, int64_t outputs) {
  constexpr double entry = 12; // of a loop over k
  int64_t lanes = std::min(panelWidth, level.lanesOf(32));
  double vectors = double(llvm::divideCeil(outputs * outputColumns, lanes));
  double height = std::min<double>(std::floor((level.vectorRegisters - 2 - vectors) / vectors), tallestTile);
  if (vectors > double(widestTile) || height < 1)
    return std::numeric_limits<double>::infinity();
  double loadsOfVector = outputs > 1 ? double(llvm::divideCeil(lanes, outputColumns)) : 1;
  double outputsOfVector = outputs > 1 ? loadsOfVector : 1;
  double taps = double(form.kLoops[form.taps.loop].extent.getValue()), k = double(form.k.getValue());
  double step = double(form.taps.step) / taps; // of the window
  double multiplyAdds = vectors * (1 + (outputsOfVector - 1) * step);
  double loads = (1 + vectors * loadsOfVector / height) * (1 + double(outputs - 1) * step);
  double inner =
      double(form.kLoops.back().extent.getValue()) * (form.taps.loop + 1 < int64_t(form.kLoops.size()) ? taps : 1);
  double entries = k / inner * double(2 * outputs - 1) * entry;
  return (std::max(multiplyAdds, loads) / 2 + entries / (height * k)) / double(outputs);
}

int64_t cpu::chooseOutputs(const ContractionForm &form, const CpuLevel &level) {
  constexpr double leastGain = 0.95; // what is closer the estimate does not tell
  if (form.taps.step == 0 || sharesPixels(form, level))
    return 1;
  double best = leastGain * costOfOutput(form, level, 1);
  int64_t choice = 1;
  for (int64_t outputs = 2; outputs <= form.taps.mostOutputs; outputs *= 2)
    if (double cost = costOfOutput(form, level, outputs); cost < best) {
      best = cost;
      choice = outputs;
    }
  return choice;
}

SmallVector<Value> ContractionEmission::multiplyOutputs(TileShape shape, const TileOperands &operands,
                                                        ValueRange init) {
  // Joined with the loop over channels, the loop over the window's pixels has as many steps for each.
  int64_t taps = f.kLoops[f.taps.loop].extent.getValue(), ofTap = 1;
  if (operands.loops.size() < f.kLoops.size())
    ofTap = f.kLoops.back().extent.getValue();
  SmallVector<int64_t> cuts;
  for (int64_t output = 0; output < outputs; ++output)
    cuts.append({output * f.taps.step, output * f.taps.step + taps});
  llvm::sort(cuts);
  SmallVector<Value> sums(init);
  for (auto [lower, upper] : llvm::zip(ArrayRef(cuts), ArrayRef(cuts).drop_front())) {
    SmallVector<int64_t> present;
    for (int64_t output = 0; output < outputs; ++output)
      if (output * f.taps.step <= lower && upper <= output * f.taps.step + taps)
        present.push_back(output);
    if (lower == upper || present.empty())
      continue;
    TileOperands piece = operands;
    TileLoop &loop = piece.loops[f.taps.loop];
    loop.lower = i.constant(lower * ofTap);
    loop.upper = i.constant(upper * ofTap);
    piece.outputs = {.count = outputs,
                     .first = present.front(),
                     .end = present.back() + 1,
                     .distance = i.mul(loop.bStride, i.constant(f.taps.step * ofTap))};
    sums = emitRegisterTile(e, shape, piece, sums);
  }
  return sums;
}

SmallVector<Value> ContractionEmission::separateOutputs(TileShape shape, ValueRange accumulators) {
  SmallVector<TileVector> vectors = getTileVectors(shape.panels, shape.lastColumns, lanes);
  SmallVector<TileVector> wanted = getTileVectors(1, f.n.getValue(), lanes);
  SmallVector<Value> separate;
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t output = 0; output < outputs; ++output)
      for (const TileVector &vector : wanted) {
        int64_t column = output * outputColumns + vector.column;
        Value sum = accumulators[row * int64_t(vectors.size()) + column / lanes];
        if (vector.lanes == lanes) {
          separate.push_back(sum);
          continue;
        }
        int32_t first = int32_t(column % lanes);
        SmallVector<int32_t> order = llvm::to_vector(llvm::seq<int32_t>(first, first + int32_t(vector.lanes)));
        separate.push_back(LLVM::ShuffleVectorOp::create(e.builder, e.loc, sum, sum, order));
      }
  return separate;
}
