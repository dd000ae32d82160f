//===- HeadAttention.h - attention over heads -------------------*- C++ -*-===//
//
// What the attention operators of onnxruntime share. Heads stand as
// [batch, heads, rows, size]; masks broadcast to [batch, heads, rows, keys].
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_HEADATTENTION_H
#define PTC_LOWERING_DECOMP_HEADATTENTION_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// Makes a dim have the size that is needed; false after a diagnostic.
bool expectDim(NodeContext &n, llvm::StringRef what, Expr dim, Expr needed);

/// [batch, rows, heads * size] as [batch, heads, rows, size]; null after a diagnostic.
Value splitHeads(NodeContext &n, Value x, int64_t heads);
/// The inverse.
Value joinHeads(NodeContext &n, Value x);

struct HeadMasks {
  Value added;     // a float added to the scores, or null
  Value isVisible; // i1: where false a score counts as -inf; or null
};

/// softmax(q k^T * scale, masked) v, spelled out.
Value attendHeads(NodeContext &n, Value q, Value k, Value v, double scale, const HeadMasks &masks);

/// The attribute `scale`, or 1 / sqrt(size) where it is absent or 0; 0 after a diagnostic.
double scoreScale(NodeContext &n, Value heads);

/// i1 [rows, keys]: query i sees the keys up to `past` + i.
Value causalMask(NodeContext &n, Expr rows, Expr keys, Expr past);

/// What onnxruntime's `mask_index` and `key_padding_mask` mean, as a float added to the scores: the attribute
/// `mask_filter_value` where a key is masked. Null after a diagnostic.
Value paddingMask(NodeContext &n, size_t input, Expr batch, Expr rows, Expr keys, Type type);

/// Rotates pairs of the first `2 * dim(cos, -1)` elements of each head by angles; cos and sin broadcast to
/// [batch, heads, rows, pairs]. Pairs are neighbours, or an element of each half.
Value rotatePairs(NodeContext &n, Value x, Value cos, Value sin, bool areNeighbours);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_HEADATTENTION_H
