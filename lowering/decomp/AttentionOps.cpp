//===- AttentionOps.cpp - onnxruntime's attention operators ---------------===//
//
// com.microsoft: what its transformer optimiser and its model builder write. All of
// them project or take queries, keys and values, append keys and values to those of
// earlier calls, and attend. Spelled out, so that one pass recognises attention
// whoever wrote it.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/HeadAttention.h"
#include "lowering/decomp/OnnxOps.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

/// Whether an attribute has the one value that is supported; diagnosed if not.
static bool isOnly(NodeContext &n, llvm::StringRef name, int64_t value) {
  int64_t given = n.integer(name, value);
  if (given != value)
    n.fail(DiagId::UnsupportedAttribute, name, given);
  return given == value;
}

/// Whether an input that is not supported is absent; diagnosed if not.
static bool isAbsent(NodeContext &n, size_t input, llvm::StringRef name) {
  if (n.hasInput(input))
    n.fail(DiagId::UnsupportedForm, "input " + std::to_string(input) + " (" + name.str() + ")");
  return !n.hasInput(input);
}

/// Elements [begin, begin + size) of a vector.
static Value part(NodeContext &n, Value vector, Expr begin, Expr size) { return n.sliceAxis(vector, 0, begin, size); }

static Value addIf(NodeContext &n, Value a, Value b) { return a && b ? n.add(a, b) : a ? a : b; }

/// The masks of a node with `past` keys of earlier calls.
static HeadMasks commonMasks(NodeContext &n, Value added, Expr rows, Expr keys, Expr past) {
  HeadMasks masks{added, {}};
  if (n.flag("unidirectional"))
    masks.isVisible = causalMask(n, rows, keys, past);
  return masks;
}

//===----------------------------------------------------------------------===//
// Attention: one product projects the input to queries, keys and values
//===----------------------------------------------------------------------===//

/// `projected` [batch, rows, q + k + v]; inputs of the node from `mask` on: mask_index, past, attention_bias.
static Values attendProjected(NodeContext &n, Value projected, size_t maskInput, size_t pastInput, Value bias) {
  int64_t heads = n.integer("num_heads", 0);
  if (n.rank(projected) != 3)
    return {n.fail(DiagId::WrongRank, 0, n.rank(projected), "[batch, rows, width] is needed")};
  Expr batch = n.dim(projected, 0), rows = n.dim(projected, 1), width = n.dim(projected, 2);
  Dims widths(3, n.shapes.simplify(width.floorDiv(3)));
  if (std::optional<Ints> given = n.integers("qkv_hidden_sizes")) {
    if (given->size() != 3 || !n.shapes.assumeEqual(width, n.expr((*given)[0] + (*given)[1] + (*given)[2])))
      return {n.fail(DiagId::BadAttribute, "qkv_hidden_sizes", n.describe(n.exprs(*given)),
                     "three sizes are needed that sum up to the weights' columns")};
    widths = n.exprs(*given);
  }
  Value parts[3];
  Expr begin = n.expr(0);
  for (int i = 0; i < 3; ++i) {
    parts[i] = splitHeads(n, n.sliceAxis(projected, 2, begin, widths[i]), heads);
    begin = n.shapes.simplify(begin + widths[i]);
  }
  auto [q, k, v] = parts;
  Expr past = n.expr(0);
  if (Value before = n.optionalInput(pastInput)) {
    if (n.rank(before) != 5 || !expectDim(n, "the first dim of the past", n.dim(before, 0), n.expr(2)))
      return {n.fail(DiagId::WrongRank, pastInput, n.rank(before), "[2, batch, heads, rows, size] is needed")};
    past = n.dim(before, 3);
    k = n.concat({n.at(before, 0, 0), k}, 2);
    v = n.concat({n.at(before, 0, 1), v}, 2);
  }
  Expr keys = n.dim(k, 2);
  Value added = n.hasInput(maskInput) ? paddingMask(n, maskInput, batch, rows, keys, n.elementType(q)) : Value();
  HeadMasks masks = commonMasks(n, addIf(n, added, bias), rows, keys, past);
  Value present = n.hasOutput(1) ? n.stack({k, v}, 0) : Value();
  return {joinHeads(n, attendHeads(n, q, k, v, scoreScale(n, q), masks)), present};
}

Values attention(NodeContext &n) {
  if (!isOnly(n, "do_rotary", 0) || !isOnly(n, "past_present_share_buffer", 0))
    return {};
  Value projected = n.matmul(n.input(0), n.input(1));
  if (n.hasInput(2))
    projected = n.add(projected, n.input(2));
  return attendProjected(n, projected, 3, 4, n.optionalInput(5));
}

/// Attention whose input and weights are quantised: (x - zero) (w - zero) * scales + bias.
Values qattention(NodeContext &n) {
  if (!isOnly(n, "do_rotary", 0) || !isOnly(n, "past_present_share_buffer", 0))
    return {};
  auto shifted = [&](size_t i, size_t zero) {
    Value x = n.convert(n.input(i), n.si32());
    Value z = n.optionalInput(zero);
    z = z && n.rank(z) == 1 && n.dim(z, 0).isConstant(1) ? n.reshape(z, {}) : z;
    return z ? n.sub(x, n.convert(z, n.si32())) : x;
  };
  auto scale = [&](size_t i) {
    Value s = n.input(i);
    return n.rank(s) == 1 && n.dim(s, 0).isConstant(1) ? n.reshape(s, {}) : s;
  };
  Value product = n.convertLike(n.matmul(shifted(0, 6), shifted(1, 7)), n.input(3));
  Value projected = n.add(n.mul(product, n.mul(scale(3), scale(4))), n.input(2));
  return attendProjected(n, projected, 5, 8, {});
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention: queries, keys and values are given, apart or packed
//===----------------------------------------------------------------------===//

/// [batch, rows, heads, parts, size]: part i as [batch, heads, rows, size].
static Value packedPart(NodeContext &n, Value packed, int64_t i, int64_t parts) {
  if (!expectDim(n, "the number of packed parts", n.dim(packed, 3), n.expr(parts)))
    return {};
  return n.transpose(n.at(packed, 3, i), {0, 2, 1, 3});
}

Values multiHeadAttention(NodeContext &n) {
  if (!isAbsent(n, 8, "past_sequence_length") || !isAbsent(n, 9, "cache_indirection"))
    return {};
  int64_t heads = n.integer("num_heads", 0);
  Value query = n.input(0), key = n.optionalInput(1), bias = n.optionalInput(3);
  Value q, k, v;
  bool areProjected = true; // keys and values, else those of another node
  if (n.rank(query) == 5) {
    q = packedPart(n, query, 0, 3);
    k = packedPart(n, query, 1, 3);
    v = packedPart(n, query, 2, 3);
  } else if (n.rank(key) == 5) {
    q = splitHeads(n, query, heads);
    k = packedPart(n, key, 0, 2);
    v = packedPart(n, key, 1, 2);
  } else if (n.rank(key) == 4) {
    q = splitHeads(n, query, heads);
    k = key;
    v = n.input(2);
    areProjected = false;
  } else {
    q = splitHeads(n, query, heads);
    k = splitHeads(n, n.input(1), heads);
    v = splitHeads(n, n.input(2), heads);
  }
  if (bias) { // of queries, keys and values in turn
    auto perHead = [&](Value x, Expr begin) {
      Expr width = n.shapes.simplify(n.dim(x, 1) * n.dim(x, 3));
      return n.unsqueeze(n.reshape(part(n, bias, begin, width), {n.dim(x, 1), n.dim(x, 3)}), 1); // [heads, 1, size]
    };
    Expr width = n.shapes.simplify(n.dim(q, 1) * n.dim(q, 3)), values = n.dim(v, 1) * n.dim(v, 3);
    if (n.rank(bias) != 1 ||
        !expectDim(n, "the length of the bias", n.dim(bias, 0), n.shapes.simplify(width * 2 + values)))
      return {n.fail(DiagId::WrongRank, 3, n.rank(bias), "a vector is needed")};
    q = n.add(q, perHead(q, n.expr(0)));
    k = areProjected ? n.add(k, perHead(k, width)) : k;
    v = areProjected ? n.add(v, perHead(v, n.shapes.simplify(width * 2))) : v;
  }
  Expr past = n.expr(0);
  if (n.hasInput(6)) {
    past = n.dim(n.input(6), 2);
    k = n.concat({n.input(6), k}, 2);
    v = n.concat({n.input(7), v}, 2);
  }
  Expr batch = n.dim(q, 0), rows = n.dim(q, 2), keys = n.dim(k, 2);
  Value added = n.hasInput(4) ? paddingMask(n, 4, batch, rows, keys, n.elementType(q)) : Value();
  HeadMasks masks = commonMasks(n, addIf(n, added, n.optionalInput(5)), rows, keys, past);
  return {joinHeads(n, attendHeads(n, q, k, v, scoreScale(n, q), masks)), k, v};
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

/// Rows `positions` [batch or 1, rows] of a cache, as [batch, 1, rows, pairs].
static Value angles(NodeContext &n, Value cache, Value positions) {
  return n.unsqueeze(n.gather(cache, positions, 0), 1);
}

Values rotaryEmbedding(NodeContext &n) {
  Value x = n.input(0), positions = n.input(1), cos = n.input(2), sin = n.input(3);
  if (!isOnly(n, "is_packed_batching", 0))
    return {};
  if (n.real("scale", 1.0) != 1.0)
    return {n.fail(DiagId::UnsupportedAttribute, "scale", n.real("scale", 1.0))};
  int64_t heads = n.integer("num_heads", 0), width = n.integer("rotary_embedding_dim", 0);
  bool isFlat = n.rank(x) == 3;
  if (isFlat && heads == 0) {
    // The caches hold half a head, unless a part of a head is rotated.
    Expr size = n.shapes.simplify(n.dim(cos, 1) * 2);
    if (width > 0 || !n.dim(x, 2).isConstant() || !size.isConstant() || size.getValue() == 0)
      return {n.fail(DiagId::BadAttribute, "num_heads", heads, "it is needed where a part of a head is rotated")};
    heads = n.dim(x, 2).getValue() / size.getValue();
  }
  Value q = isFlat ? splitHeads(n, x, heads) : x;
  if (n.rank(q) != 4)
    return {n.fail(DiagId::WrongRank, 0, n.rank(q), "rank 3 or 4 is needed")};
  Expr rows = n.dim(q, 2);
  if (n.rank(positions) < 2) // the first position; the others follow
    positions = n.unsqueeze(n.add(n.reshape(positions, {}), n.iota(0, rows, n.elementType(positions))), 0);
  Value rotated = rotatePairs(n, q, angles(n, cos, positions), angles(n, sin, positions), n.flag("interleaved"));
  return {isFlat ? joinHeads(n, rotated) : rotated};
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention: several heads of queries share one of keys and values
//===----------------------------------------------------------------------===//

namespace {

/// One node, step by step.
class GroupedAttention {
public:
  explicit GroupedAttention(NodeContext &n)
      : n(n), heads(n.integer("num_heads", 0)), shared(n.integer("kv_num_heads", 0)) {}

  Values run() {
    if (!isSupported() || !takeHeads())
      return {};
    if (!findLengths())
      return {};
    normalizeHeads();
    if (n.flag("do_rotary"))
      rotate();
    Value keys = append(n.optionalInput(3), k), values = append(n.optionalInput(4), v);
    return {attend(keys, values), keys, values};
  }

private:
  bool isSupported() {
    if (heads < 1 || shared < 1 || heads % shared) {
      n.fail(DiagId::BadAttribute, "kv_num_heads", shared, "it must divide num_heads");
      return false;
    }
    for (llvm::StringRef name : {"k_quant_type", "v_quant_type"})
      if (std::string kind = n.text(name, "NONE"); kind != "NONE") {
        n.fail(DiagId::UnsupportedAttribute, name, kind);
        return false;
      }
    return isOnly(n, "qk_output", 0) && isOnly(n, "sliding_window_cache", 0);
  }

  /// Queries, keys and values, which may come as one tensor.
  bool takeHeads() {
    Value query = n.input(0);
    if (n.hasInput(1)) {
      q = splitHeads(n, query, heads);
      k = splitHeads(n, n.input(1), shared);
      v = splitHeads(n, n.input(2), shared);
    } else if (Value all = splitHeads(n, query, heads + 2 * shared)) {
      q = n.sliceAxis(all, 1, n.expr(0), n.expr(heads));
      k = n.sliceAxis(all, 1, n.expr(heads), n.expr(shared));
      v = n.sliceAxis(all, 1, n.expr(heads + shared), n.expr(shared));
    }
    if (!q || !k || !v)
      return false;
    batch = n.dim(q, 0);
    rows = n.dim(q, 2);
    return true;
  }

  /// Where the new rows begin in the cache. A batch of one, or no cache: behind what is there. Else each sequence has a
  /// length of its own, which `seqlens_k` (less one) states; a prompt begins at 0.
  bool findLengths() {
    std::optional<Expr> total = n.inputExpr(6, "total_sequence_length");
    if (!total)
      return false;
    capacity = n.hasInput(3) ? n.dim(n.input(3), 2) : n.expr(0);
    bool hasRoom = n.shapes.equal(capacity, *total) == std::optional(true) ||
                   n.shapes.less(*total, capacity) == std::optional(true); // the cache is as long as it may get
    keyCount = hasRoom ? capacity : n.shapes.simplify(capacity + rows);
    isAppended = !hasRoom && (batch.isConstant(1) || capacity.isConstant(0));
    if (!hasRoom && !n.shapes.assumeEqual(*total, keyCount)) {
      n.fail(DiagId::DimMismatch, "input 6 (total_sequence_length)", *total, "the cache with the new rows", keyCount);
      return false;
    }
    if (isAppended) {
      first = n.fromExprs(capacity, n.si64(), /*isScalar=*/true);
      return true;
    }
    Value length = n.add(n.convert(n.reshape(n.input(5), batch), n.si64()), 1.0);
    Value begin = n.sub(length, n.fromExprs(rows, n.si64(), true));
    Value isPrompt = n.equal(n.fromExprs(rows, n.si64(), true), n.fromExprs(*total, n.si64(), true));
    first = n.unsqueeze(n.select(isPrompt, n.scalar(0, n.si64()), begin), 1); // [batch, 1]
    return true;
  }

  /// The position of each new row: [batch or 1, rows].
  Value positions() {
    Value row = n.unsqueeze(n.iota(0, rows, n.si64()), 0);
    return n.add(row, first);
  }

  void normalizeHeads() {
    double epsilon = n.real("qk_norm_epsilon", 1e-6);
    auto normalized = [&](Value x, Value weight) {
      Value scale = n.rsqrt(n.add(n.mean(n.mul(x, x), n.rank(x) - 1, true), epsilon));
      return n.mul(n.mul(x, scale), weight);
    };
    if (Value weight = n.optionalInput(14))
      q = normalized(q, weight);
    if (Value weight = n.optionalInput(15))
      k = normalized(k, weight);
  }

  void rotate() {
    Value at = n.hasInput(9) ? n.input(9) : positions();
    Value cos = angles(n, n.input(7), at), sin = angles(n, n.input(8), at);
    bool areNeighbours = n.flag("rotary_interleaved");
    q = rotatePairs(n, q, cos, sin, areNeighbours);
    k = rotatePairs(n, k, cos, sin, areNeighbours);
  }

  /// The cache with the new rows in their places.
  Value append(Value past, Value x) {
    if (isAppended)
      return past ? n.concat({past, x}, 2) : x;
    Dims dims = n.dims(past);
    if (past && dims[2] != keyCount) {
      Dims low(4, n.expr(0)), high = low;
      high[2] = n.shapes.simplify(keyCount - dims[2]);
      past = n.pad(past, n.scalarLike(0, past), low, high);
    }
    Value row = n.broadcast(positions(), {0, 2}, n.dims(x));
    return n.scatterElements(past, row, x, 2, ScatterKind::Set);
  }

  HeadMasks masks() {
    HeadMasks result;
    result.added = n.optionalInput(10);
    int64_t window = n.integer("local_window_size", -1);
    if (n.integer("causal", 1) && isAppended && window <= 0) {
      result.isVisible = causalMask(n, rows, keyCount, capacity);
      return result;
    }
    if (n.integer("causal", 1)) {
      Value key = n.iota(0, keyCount, n.si64()), last = n.unsqueeze(positions(), 2); // [batch or 1, rows, 1]
      result.isVisible = n.lessEqual(key, last);
      if (window > 0)
        result.isVisible = n.logicalAnd(result.isVisible, n.less(n.add(last, -double(window)), key));
    } else if (!isAppended) {
      Value length = n.add(n.convert(n.reshape(n.input(5), batch), n.si64()), 1.0);
      result.isVisible = n.less(n.iota(0, keyCount, n.si64()), n.unsqueeze(length, {1, 2}));
    }
    if (result.isVisible)
      result.isVisible = n.unsqueeze(result.isVisible, 1);
    return result;
  }

  /// Keys and values stretch over the heads that share them.
  Value attend(Value keys, Value values) {
    Ints grouped = {0, 1, 3, 4};
    auto spread = [&](Value x) {
      Dims dims = n.dims(x);
      return n.broadcast(x, grouped, {dims[0], dims[1], n.expr(heads / shared), dims[2], dims[3]});
    };
    auto joined = [&](Value x) {
      Dims dims = n.dims(x);
      return n.reshape(x, {dims[0], n.expr(heads), dims[3], dims[4]});
    };
    if (heads != shared) {
      keys = joined(spread(keys));
      values = joined(spread(values));
    }
    double softcap = n.real("softcap", 0), scale = scoreScale(n, q);
    bool hasSink = n.hasInput(11) || n.integer("smooth_softmax", 0) == 1;
    if (!softcap && !hasSink)
      return joinHeads(n, attendHeads(n, q, keys, values, scale, masks()));
    HeadMasks mask = masks();
    Value scores = n.mul(n.matmul(q, n.swapAxes(keys, 2, 3)), scale);
    if (softcap)
      scores = n.mul(n.tanh(n.div(scores, softcap)), softcap);
    if (mask.added)
      scores = n.add(scores, mask.added);
    if (mask.isVisible)
      scores = n.select(mask.isVisible, scores, n.lowest(n.elementType(scores)));
    return joinHeads(n, n.matmul(hasSink ? sinkSoftmax(scores) : n.softmax(scores, 3), values));
  }

  /// A softmax with one more score a head (0 where none is given), whose weight goes nowhere.
  Value sinkSoftmax(Value scores) {
    Value sink = n.hasInput(11) ? n.unsqueeze(n.convertLike(n.input(11), scores), {1, 2}) : n.scalarLike(0, scores);
    Value high = n.maximum(n.reduce(ReduceKind::Max, scores, 3, true), sink);
    Value e = n.exp(n.sub(scores, high));
    return n.div(e, n.add(n.sum(e, 3, true), n.exp(n.sub(sink, high))));
  }

  NodeContext &n;
  int64_t heads, shared;
  Value q, k, v;
  Expr batch, rows, capacity, keyCount;
  bool isAppended = false;
  Value first; // the position of the first new row: a scalar, or [batch, 1]
};

} // namespace

Values groupQueryAttention(NodeContext &n) { return GroupedAttention(n).run(); }

} // namespace ptc::decomp
