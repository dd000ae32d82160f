//===- Quantized.h - arithmetic of quantised tensors ------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_QUANTIZED_H
#define PTC_LOWERING_DECOMP_QUANTIZED_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// x / scale, rounded half to even, shifted by the zero point (null: 0) and saturated.
Value quantize(NodeContext &n, Value x, Value scale, Value zeroPoint, Type to);
/// (x - zero point) * scale
Value dequantize(NodeContext &n, Value x, Value scale, Value zeroPoint);
/// x - zero point in 32-bit integers; a vector of zero points belongs to the dim `axis`.
Value centered(NodeContext &n, Value x, Value zeroPoint, int64_t axis);
/// A vector of scales along `axis` of x, with dims that broadcast to it.
Value scaleAlong(NodeContext &n, Value scale, Value x, int64_t axis);
/// The scale of the product y: scales of the rows and of the columns, vectors along `rows` and `columns` or scalars.
Value scaleOfProduct(NodeContext &n, Value rowScale, int64_t rows, Value columnScale, int64_t columns, Value y);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_QUANTIZED_H
