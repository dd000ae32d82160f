#include "compiler/memory/PlaceInSlots.h"

#include "ir/prim/Prim.h"
#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>

#include <random>

using namespace ptc;

namespace {

/// Blocks of sizes in three symbols, of which none is known to be larger.
class Lives {
public:
  Lives() {
    context.loadDialect<prim::PrimDialect>();
    for (const char *name : {"a", "b", "c"})
      ranges[name] = {.min = 1, .max = 4096};
  }

  void add(unsigned begin, unsigned end, llvm::StringRef symbol, int64_t lines, const SymbolValues &hints) {
    Expr size = Expr::symbol(&context, symbol) * (64 * lines);
    blocks.push_back({{begin, end}, size, *size.evaluate(hints)});
  }

  /// Bytes in all with these values, after a check that no two blocks alive at one time share bytes.
  int64_t check(const SymbolicPlacement &placement, const SymbolValues &values) const {
    int64_t height = *placement.size.evaluate(values);
    for (size_t i = 0; i < blocks.size(); ++i) {
      int64_t begin = *placement.offsets[i].evaluate(values), end = begin + *blocks[i].size.evaluate(values);
      REQUIRE(begin >= 0);
      REQUIRE(begin % 64 == 0);
      REQUIRE(end <= height);
      for (size_t j = 0; j < i; ++j) {
        int64_t other = *placement.offsets[j].evaluate(values), otherEnd = other + *blocks[j].size.evaluate(values);
        if (blocks[i].life.overlaps(blocks[j].life))
          REQUIRE((end <= other || otherEnd <= begin));
      }
    }
    return height;
  }

  int64_t getBound(const SymbolValues &values) const {
    llvm::SmallVector<SizedLife> sized;
    for (const SymbolicLife &block : blocks)
      sized.push_back({block.life, *block.size.evaluate(values)});
    return getLowerBound(sized);
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  SymbolRanges ranges;
  std::vector<SymbolicLife> blocks;
};

SymbolValues makeValues(int64_t a, int64_t b, int64_t c) {
  SymbolValues values;
  values["a"] = a, values["b"] = b, values["c"] = c;
  return values;
}

const SymbolValues valuesTried[] = {makeValues(1, 1, 1), makeValues(5, 3, 2), makeValues(1, 100, 7),
                                    makeValues(900, 1, 30)};

} // namespace

TEST_CASE("Blocks of symbolic sizes share no bytes while alive, whatever the symbols' values") {
  std::mt19937 random(1);
  auto pick = [&](unsigned below) { return unsigned(random() % below); };
  for (unsigned count : {1u, 2u, 5u, 20u, 60u}) {
    Lives lives;
    for (unsigned i = 0; i < count; ++i) {
      unsigned begin = pick(40), length = pick(4) ? 1 : pick(20);
      lives.add(begin, begin + length, llvm::StringRef("abc").substr(pick(3), 1), 1 + pick(16), valuesTried[1]);
    }
    SymbolicPlacement placement = placeInSlots(lives.blocks, lives.ranges);
    for (const SymbolValues &values : valuesTried)
      CHECK(lives.check(placement, values) >= lives.getBound(values));
  }
}

TEST_CASE("A chain of layers needs the lower bound for all values, beside what is alive for long") {
  // Of a column's slots one is as large as 16 b, the other as 12 a, which are not alive at one time.
  Lives lives;
  const std::tuple<const char *, int64_t> chain[] = {{"b", 8}, {"b", 16}, {"c", 4},  {"c", 6}, {"a", 12},
                                                     {"a", 3}, {"a", 12}, {"a", 12}, {"c", 2}};
  for (auto [time, layer] : llvm::enumerate(chain))
    lives.add(unsigned(time), unsigned(time) + 1, std::get<0>(layer), std::get<1>(layer), makeValues(100, 100, 100));
  SymbolicPlacement placement = placeInSlots(lives.blocks, lives.ranges);
  for (const SymbolValues &values : valuesTried)
    CHECK(lives.check(placement, values) == lives.getBound(values));

  SymbolValues hints = makeValues(100, 100, 100);
  lives.add(3, 6, "c", 1, hints); // two slots of an end become one, in which it is a part
  placement = placeInSlots(lives.blocks, lives.ranges);
  CHECK(lives.check(placement, hints) <= lives.getBound(hints) * 1.1);
}

TEST_CASE("The same symbolic blocks are placed the same") {
  Lives lives;
  for (unsigned i = 0; i < 30; ++i)
    lives.add(i, i + 1 + i % 3, llvm::StringRef("abc").substr(i % 3, 1), 1 + i * 7 % 11, makeValues(3, 4, 5));
  auto first = placeInSlots(lives.blocks, lives.ranges), second = placeInSlots(lives.blocks, lives.ranges);
  CHECK(first.offsets == second.offsets);
}
