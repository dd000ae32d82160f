//===- Strides.cpp - lanes that step over elements ------------------------===//
#include "codegen/common/Strides.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc::codegen;

StridedLanes::StridedLanes(int64_t lanes, int64_t stride) : order(size_t(lanes), -1) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    int64_t vector = std::min(lane * stride / (lanes - 1), stride - 1);
    Place place{vector, lane * stride - vector * (lanes - 1)};
    places.push_back(place);
    if (order.empty())
      continue;
    if (order[size_t(place.lane)] >= 0)
      order.clear();
    else
      order[size_t(place.lane)] = int32_t(lane);
  }
}

static Value shuffle(OpBuilder &builder, Location loc, Value a, Value b, ArrayRef<int32_t> order) {
  bool isSame = llvm::all_of(llvm::enumerate(order), [](auto at) { return int64_t(at.index()) == at.value(); });
  return isSame ? a : Value(LLVM::ShuffleVectorOp::create(builder, loc, a, b, order));
}

Value StridedLanes::maskOf(OpBuilder &builder, Location loc, Value mask, int64_t vector, bool isMerged) const {
  Value none = LLVM::ConstantOp::create(builder, loc, builder.getZeroAttr(mask.getType()));
  SmallVector<int32_t> from(places.size(), int32_t(places.size()));
  for (auto [lane, place] : llvm::enumerate(places))
    if (place.vector == vector)
      from[size_t(place.lane)] = isMerged ? int32_t(place.lane) : int32_t(lane);
  return shuffle(builder, loc, mask, none, from);
}

Value StridedLanes::join(OpBuilder &builder, Location loc, ArrayRef<Value> vectors, bool inOrder) const {
  assert((inOrder || !order.empty()) && "without an order there is nothing but the lanes'");
  auto lanes = int32_t(places.size());
  Value joined = vectors.front();
  for (int64_t vector = 1; vector < int64_t(vectors.size()); ++vector) {
    SmallVector<int32_t> from;
    for (int32_t at = 0; at < lanes; ++at) {
      const Place &place = places[size_t(order.empty() ? at : order[size_t(at)])];
      bool isFirst = vector == 1 && place.vector == 0;
      from.push_back(place.vector == vector ? lanes + int32_t(place.lane) : isFirst ? int32_t(place.lane) : at);
    }
    joined = shuffle(builder, loc, joined, vectors[size_t(vector)], from);
  }
  return inOrder && !order.empty() ? toLanes(builder, loc, joined) : joined;
}

Value StridedLanes::toLanes(OpBuilder &builder, Location loc, Value merged) const {
  return shuffle(builder, loc, merged, merged,
                 llvm::map_to_vector(places, [](const Place &place) { return int32_t(place.lane); }));
}

Value StridedLanes::fromLanes(OpBuilder &builder, Location loc, Value vector) const {
  return shuffle(builder, loc, vector, vector, order);
}
