//===- ChooseStrassen.cpp - which products Strassen's algorithm computes --===//
//
// One level of the algorithm takes 7 multiplications for 8 (ir/loop/Strassen.h). It pays where rows, columns and terms
// are many: what it adds up besides is a part of 1/rows, 1/columns and 1/terms of the product, each.
//
// Rows and columns of the weight that meet must have norms within a factor of each other, or errors of the larger ones
// would show in what the smaller ones make. That is asked of the values that the model has; a weight that comes at run
// time has none, and its products are plain. One that is replaced is taken to be of the same kind.
//
// A weight is read once, where the model's file has it: squares are added up along both dims, those of several weights
// that are joined part by part.
//
//===----------------------------------------------------------------------===//

#include "ir/eval/ReferenceEval.h"
#include "ir/loop/Strassen.h"
#include "ir/loop/Winograd.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/prim_to_loop/Passes.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_CHOOSESTRASSEN
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

static constexpr int64_t fewestRows = 32, fewestColumns = 192, fewestTerms = 192;
static constexpr int64_t fewestOddRows = 96; // of which the last few are multiplied plainly

namespace {
/// A matrix, row-major in the model's file.
struct Matrix {
  const char *bytes;
  int64_t rows, columns;
};

/// Squares of the norms of rows and of columns.
struct Squares {
  SmallVector<float> rows, columns;
};
} // namespace

/// In floats, several sums side by side: compilers take vectors for them.
static Squares addSquares(const Matrix &matrix) {
  constexpr int64_t lanes = 16;
  Squares squares{SmallVector<float>(size_t(matrix.rows), 0), SmallVector<float>(size_t(matrix.columns), 0)};
  const char *from = matrix.bytes;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    float sums[lanes] = {};
    for (int64_t column = 0; column < matrix.columns; column += lanes, from += lanes * sizeof(float)) {
      float block[lanes], *columns = &squares.columns[size_t(column)];
      std::memcpy(block, from, sizeof(block)); // may be unaligned
      for (int64_t lane = 0; lane < lanes; ++lane) {
        float square = block[lane] * block[lane];
        sums[lane] += square;
        columns[lane] += square;
      }
    }
    squares.rows[size_t(row)] = std::accumulate(std::begin(sums), std::end(sums), 0.0f);
  }
  return squares;
}

/// The weight's parts as matrices of so many columns; empty where they are none, or their bytes cannot be read.
static SmallVector<Squares> addSquares(WeightOp weight, int64_t columns, eval::WeightSource &source) {
  SmallVector<Squares> parts;
  for (auto [number, ref] : llvm::enumerate(weight.getRefs())) {
    llvm::Expected<ArrayRef<char>> bytes = source.getBytes(ref);
    if (!bytes) {
      llvm::consumeError(bytes.takeError()); // linking reports it
      return {};
    }
    int64_t rows = int64_t(bytes->size() / sizeof(float)) / columns;
    if (bytes->size() != size_t(rows * columns) * sizeof(float) || rows % strassenTerms)
      return {};
    bool isTurned = prim::isTurnedPart(weight, number);
    parts.push_back(addSquares({bytes->data(), isTurned ? columns : rows, isTurned ? rows : columns}));
    if (isTurned)
      std::swap(parts.back().rows, parts.back().columns);
  }
  return parts;
}

/// Of one matrix whose rows are those of one part behind those of another.
static Squares join(ArrayRef<Squares> parts) {
  Squares all{{}, SmallVector<float>(parts.front().columns.size(), 0)};
  for (const Squares &part : parts) {
    llvm::append_range(all.rows, part.rows);
    for (auto [sum, square] : llvm::zip_equal(all.columns, part.columns))
      sum += square;
  }
  return all;
}

/// Whether each norm is near the one so many places on that it meets.
static bool areNear(ArrayRef<float> squares, size_t apart) {
  constexpr float most = float(mostApart * mostApart);
  for (size_t at = 0; at + apart < squares.size(); at += at % (2 * apart) + 1 == apart ? apart + 1 : 1) {
    float one = squares[at], other = squares[at + apart];
    if (!(one <= most * other && other <= most * one && one < mostSquare && one > leastSquare))
      return false;
  }
  return true;
}

namespace {
/// A product that is worth it: its packed weight, of so many matrices.
struct LargeProduct {
  PanelsOp panels;
  WeightOp weight;
  int64_t matrices = 1, columns = 1, terms = 1;
};
} // namespace

/// How far the packed matrix's columns and terms step in its source.
static std::optional<std::pair<int64_t, int64_t>> stepsOf(RecipeAttr recipe, const LargeProduct &product) {
  ArrayRef<int64_t> extents = recipe.getExtents(), strides = recipe.getStrides();
  unsigned first = product.matrices > 1 ? 1 : 0; // the dim of panels, behind it those of terms, then columns
  if (extents.size() < first + 3 || recipe.getPanel() != first || recipe.getLane() != int64_t(extents.size()) - 1 ||
      recipe.getOffset() != 0 || (first && strides[0] != product.columns * product.terms))
    return std::nullopt;
  size_t last = extents.size() - 2;
  for (size_t dim = last; dim > first + 1; --dim) // one dim in the source, beside those of windows of one element
    if (extents[dim - 1] != 1 && strides[dim - 1] != strides[dim] * extents[dim])
      return std::nullopt;
  return std::pair(strides.back(), strides[last]);
}

/// Whether rows and columns of the weight may meet, in all of its matrices.
static bool isBalanced(const LargeProduct &product, eval::WeightSource &source) {
  RecipeAttr recipe = WeightOp(product.weight).getRecipeAttr();
  auto steps = recipe ? stepsOf(recipe, product) : std::nullopt;
  if (!steps)
    return false;
  auto [ofColumn, ofTerm] = *steps;
  bool hasTermsInside = ofTerm == 1 && ofColumn == product.terms;
  if (!hasTermsInside && (ofColumn != 1 || ofTerm != product.columns))
    return false;
  SmallVector<Squares> parts = addSquares(product.weight, hasTermsInside ? product.terms : product.columns, source);
  if (parts.empty() || (product.matrices > 1 && int64_t(parts.size()) != product.matrices))
    return false;
  if (product.matrices == 1)
    parts = {join(parts)};
  return llvm::all_of(parts, [&](Squares &matrix) {
    if (hasTermsInside)
      std::swap(matrix.rows, matrix.columns);
    return int64_t(matrix.rows.size()) == product.terms && int64_t(matrix.columns.size()) == product.columns &&
           areNear(matrix.rows, 1) &&
           llvm::all_of(strassenColumns, [&](int64_t columns) { return areNear(matrix.columns, size_t(columns)); });
  });
}

/// The product of so many dims from `first` on; nothing where one is not known.
static std::optional<int64_t> countOf(ArrayRef<Expr> domain, unsigned first, unsigned dims) {
  int64_t count = 1;
  for (Expr extent : domain.slice(first, dims)) {
    if (!extent.isConstant())
      return std::nullopt;
    count *= extent.getValue();
  }
  return count;
}

static std::optional<LargeProduct> matchLargeProduct(ContractionOp node) {
  Block &rhs = node.getRhs().front();
  auto panels = llvm::hasNItems(rhs, 2) ? dyn_cast<PanelsOp>(rhs.front()) : PanelsOp();
  auto weight = panels ? panels.getBuffer().getDefiningOp<WeightOp>() : WeightOp();
  if (!weight || !cast<BufferType>(weight.getType()).getElementType().isF32() || panels.getGroup() != 1 ||
      panels->hasAttr(winogradAttr) || node.getBatch() > 1 || node.getN() != 1)
    return std::nullopt;
  SmallVector<Expr> domain = getDomain(node);
  unsigned firstN = node.getBatch() + node.getM();
  auto matrices = countOf(domain, 0, node.getBatch()), rows = countOf(domain, node.getBatch(), node.getM());
  auto columns = countOf(domain, firstN, 1), terms = countOf(domain, firstN + 1, unsigned(domain.size()) - firstN - 1);
  if (!matrices || !rows || !columns || !terms || *rows < (*rows % 2 ? fewestOddRows : fewestRows) ||
      *columns < fewestColumns || *terms < fewestTerms || *columns % strassenUnit || *terms % strassenTerms)
    return std::nullopt;
  return LargeProduct{panels, weight, *matrices, *columns, *terms};
}

namespace {
struct ChooseStrassen : ptc::impl::ChooseStrassenBase<ChooseStrassen> {
  using ChooseStrassenBase::ChooseStrassenBase;
  explicit ChooseStrassen(eval::WeightSource *weights) : weights(weights) {}

  void runOnOperation() override {
    eval::NoWeights none;
    getOperation().walk([&](ContractionOp node) {
      std::optional<LargeProduct> product = matchLargeProduct(node);
      if (product && isBalanced(*product, weights ? *weights : none))
        product->panels->setAttr(strassenAttr, UnitAttr::get(&getContext()));
    });
  }

  eval::WeightSource *weights = nullptr;
};
} // namespace

std::unique_ptr<Pass> ptc::createChooseStrassen(eval::WeightSource *weights) {
  return std::make_unique<ChooseStrassen>(weights);
}
