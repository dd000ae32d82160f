//===- DeviceShape.h - what plans take a device to be -----------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_DEVICESHAPE_H
#define PTC_CODEGEN_GPU_DEVICESHAPE_H

#include <cstdint>

namespace ptc::gpu {

inline constexpr int64_t multiprocessors = 132;  // of an H100 or H200; an order of magnitude elsewhere
inline constexpr int64_t sharedLimit = 99 << 10; // bytes of a block's shared memory, on every architecture

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_DEVICESHAPE_H
