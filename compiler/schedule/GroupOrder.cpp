#include "compiler/schedule/GroupOrder.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>

using namespace llvm;

namespace ptc::loop {

GroupOrder::GroupOrder(unsigned count) {
  for (unsigned number = 0; number < count; ++number) { // dependences come from the program's order
    Node node;
    node.rank = node.keptIn = number;
    nodes.push_back(std::move(node));
  }
}

void GroupOrder::addEarlier(unsigned number, ArrayRef<unsigned> earlier) {
  for (unsigned other : earlier)
    if (other != number && nodes[number].earlier.insert(other).second)
      nodes[other].later.insert(number);
}

bool GroupOrder::hasPathAround(unsigned from, unsigned to) const {
  SmallVector<unsigned> stack;
  Numbers seen;
  for (unsigned earlier : nodes[to].earlier)
    if (earlier != from)
      stack.push_back(earlier);
  while (!stack.empty()) {
    unsigned number = stack.pop_back_val();
    if (nodes[number].rank <= nodes[from].rank || !seen.insert(number).second)
      continue;
    for (unsigned earlier : nodes[number].earlier) {
      if (earlier == from)
        return true;
      stack.push_back(earlier);
    }
  }
  return false;
}

/// The groups ranked between the two that must run later than `number` (`isLater`), or earlier, by way of such groups.
SmallVector<unsigned> GroupOrder::collectBetween(unsigned number, unsigned other, bool isLater) const {
  SmallVector<unsigned> found, stack = {number};
  Numbers seen;
  unsigned bound = nodes[other].rank;
  while (!stack.empty()) {
    const Node &node = nodes[stack.pop_back_val()];
    for (unsigned next : isLater ? node.later : node.earlier) {
      bool isBetween = isLater ? nodes[next].rank < bound : nodes[next].rank > bound;
      if (!isBetween || !seen.insert(next).second)
        continue;
      found.push_back(next);
      stack.push_back(next);
    }
  }
  sort(found, [&](unsigned a, unsigned b) { return nodes[a].rank < nodes[b].rank; });
  return found;
}

/// What `gone` waits for comes before the two, what waits for `kept` behind them. They share the ranks that they had.
void GroupOrder::rankFused(unsigned kept, unsigned gone) {
  SmallVector<unsigned> order = collectBetween(gone, kept, /*isLater=*/false), ranks;
  order.append({kept, gone});
  append_range(order, collectBetween(kept, gone, /*isLater=*/true));
  for (unsigned number : order)
    ranks.push_back(nodes[number].rank);
  sort(ranks);
  for (auto [number, rank] : zip_equal(order, ranks))
    nodes[number].rank = rank;
}

void GroupOrder::fuse(unsigned kept, unsigned gone) {
  rankFused(kept, gone);
  Node &from = nodes[gone], &to = nodes[kept];
  for (unsigned earlier : from.earlier) {
    nodes[earlier].later.erase(gone);
    if (earlier != kept && to.earlier.insert(earlier).second)
      nodes[earlier].later.insert(kept);
  }
  for (unsigned later : from.later) {
    nodes[later].earlier.erase(gone);
    if (later != kept && nodes[later].earlier.insert(kept).second)
      to.later.insert(later);
  }
  from.earlier.clear();
  from.later.clear();
  from.keptIn = kept;
}

unsigned GroupOrder::getKept(unsigned number) {
  while (nodes[number].keptIn != number)
    number = nodes[number].keptIn = nodes[nodes[number].keptIn].keptIn;
  return number;
}

SmallVector<unsigned> GroupOrder::getOrder() const {
  SmallVector<unsigned> order, waitsFor;
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (auto [number, node] : enumerate(nodes)) {
    waitsFor.push_back(node.earlier.size());
    if (node.keptIn == number && node.earlier.empty())
      ready.push(number);
  }
  while (!ready.empty()) {
    unsigned number = ready.top();
    ready.pop();
    order.push_back(number);
    for (unsigned later : nodes[number].later)
      if (--waitsFor[later] == 0)
        ready.push(later);
  }
  return order;
}

} // namespace ptc::loop
