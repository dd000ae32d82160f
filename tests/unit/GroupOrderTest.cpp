#include "compiler/schedule/GroupOrder.h"

#include "llvm/ADT/STLExtras.h"
#include <catch2/catch.hpp>

#include <random>

using namespace ptc::loop;

namespace {

/// Whether `from` must run before `to` by way of a third group: all paths, whatever the ranks say.
bool searchPathAround(const GroupOrder &order, unsigned from, unsigned to) {
  llvm::SmallVector<unsigned> stack;
  llvm::SmallDenseSet<unsigned> seen;
  for (unsigned earlier : order.getEarlier(to))
    if (earlier != from)
      stack.push_back(earlier);
  while (!stack.empty()) {
    unsigned number = stack.pop_back_val();
    if (number == from)
      return true;
    if (seen.insert(number).second)
      stack.append(order.getEarlier(number).begin(), order.getEarlier(number).end());
  }
  return false;
}

GroupOrder makeRandomOrder(std::mt19937 &random, unsigned count) {
  GroupOrder order(count);
  for (unsigned number = 1; number < count; ++number)
    for (unsigned edges = random() % 4; edges > 0; --edges) {
      unsigned reach = random() % 5 ? std::min(number, 6u) : number; // mostly neighbours
      order.addEarlier(number, {number - 1 - unsigned(random() % reach)});
    }
  return order;
}

} // namespace

TEST_CASE("Paths between groups are found whatever was fused before, and the order keeps to all dependences") {
  std::mt19937 random(1);
  for (unsigned count : {1u, 2u, 5u, 40u, 120u}) {
    GroupOrder order = makeRandomOrder(random, count);
    for (unsigned round = 0; round < 6 * count; ++round) {
      unsigned consumer = order.getKept(random() % count);
      llvm::SmallVector<unsigned> earlier(order.getEarlier(consumer).begin(), order.getEarlier(consumer).end());
      llvm::sort(earlier);
      if (earlier.empty())
        continue;
      unsigned producer = earlier[random() % earlier.size()];
      bool isAround = searchPathAround(order, producer, consumer);
      REQUIRE(order.hasPathAround(producer, consumer) == isAround);
      if (!isAround)
        order.fuse(producer, consumer);
    }
    llvm::SmallVector<bool> isDone(count, false);
    unsigned groups = 0;
    for (unsigned number : order.getOrder()) {
      CHECK(order.getKept(number) == number);
      for (unsigned earlier : order.getEarlier(number))
        CHECK(isDone[earlier]);
      isDone[number] = true;
      ++groups;
    }
    for (unsigned number = 0; number < count; ++number)
      groups -= order.getKept(number) == number;
    CHECK(groups == 0);
  }
}
