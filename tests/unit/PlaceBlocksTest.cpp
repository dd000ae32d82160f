#include "compiler/memory/PlaceBlocks.h"

#include <catch2/catch.hpp>

#include <random>

using namespace ptc;

namespace {

std::vector<SizedLife> makeRandomBlocks(std::mt19937 &random, unsigned count) {
  std::uniform_int_distribution<unsigned> begin(0, 40), length(0, 12);
  std::uniform_int_distribution<int64_t> lines(1, 64);
  std::vector<SizedLife> blocks;
  for (unsigned i = 0; i < count; ++i) {
    unsigned start = begin(random);
    blocks.push_back({{start, start + length(random)}, 64 * lines(random)});
  }
  return blocks;
}

bool sharesBytes(const SizedLife &a, int64_t offsetOfA, const SizedLife &b, int64_t offsetOfB) {
  return offsetOfA < offsetOfB + b.size && offsetOfB < offsetOfA + a.size;
}

} // namespace

TEST_CASE("Blocks alive at one time share no bytes and stay below the height") {
  std::mt19937 random(1);
  for (unsigned count : {0u, 1u, 2u, 7u, 60u, 200u}) {
    auto blocks = makeRandomBlocks(random, count);
    Placement placement = placeBlocks(blocks);
    REQUIRE(placement.offsets.size() == count);
    REQUIRE(placement.height >= getLowerBound(blocks));
    for (unsigned i = 0; i < count; ++i) {
      REQUIRE(placement.offsets[i] >= 0);
      REQUIRE(placement.offsets[i] + blocks[i].size <= placement.height);
      for (unsigned j = 0; j < i; ++j)
        if (blocks[i].life.overlaps(blocks[j].life))
          REQUIRE(!sharesBytes(blocks[i], placement.offsets[i], blocks[j], placement.offsets[j]));
    }
  }
}

TEST_CASE("Random lives are packed within a tenth of the lower bound") {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    auto blocks = makeRandomBlocks(random, 100);
    CHECK(placeBlocks(blocks).height <= 1.1 * getLowerBound(blocks));
  }
}

TEST_CASE("A block that the largest first would push to the top is placed at the bound") {
  // Largest first, the two of 4 lie at 0, the block of 3 on both; then 2 finds no room below 7.
  std::vector<SizedLife> blocks = {{{0, 1}, 4}, {{1, 2}, 3}, {{2, 3}, 4}, {{3, 4}, 3}, {{4, 5}, 4}, {{0, 0}, 3}};
  CHECK(placeBlocks(blocks).height == getLowerBound(blocks));
}

TEST_CASE("The same blocks are placed the same") {
  std::mt19937 random(3);
  auto blocks = makeRandomBlocks(random, 80);
  CHECK(placeBlocks(blocks).offsets == placeBlocks(blocks).offsets);
}
