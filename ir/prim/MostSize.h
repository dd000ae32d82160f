//===- MostSize.h - the bound of a size without one -------------*- C++ -*-===//
#ifndef PTC_IR_PRIM_MOSTSIZE_H
#define PTC_IR_PRIM_MOSTSIZE_H

#include <cstdint>

namespace ptc::prim {

/// The upper bound of a size that nobody bounds: keeps products of a few dims within 64 bits.
inline constexpr int64_t mostSize = int64_t(1) << 31;

} // namespace ptc::prim

#endif // PTC_IR_PRIM_MOSTSIZE_H
