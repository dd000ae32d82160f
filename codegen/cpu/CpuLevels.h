//===- CpuLevels.h - the CPU levels that code is generated for --*- C++ -*-===//
//
// A library holds a kernel once for each level that has code of its own for it, and takes the best that the processor
// has when a model is created. A level is a row of a table: nothing else asks for the name of an instruction set.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPULEVELS_H
#define PTC_CODEGEN_CPU_CPULEVELS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace ptc::cpu {

struct CpuLevel {
  llvm::StringRef name;      // "x86-64-v3": the user's word, the suffix of symbols
  llvm::StringRef triple;    // "x86_64-unknown-linux-gnu"
  llvm::StringRef cpu;       // LLVM's -mcpu; instructions
  llvm::StringRef tuneCpu;   // LLVM's -mtune; scheduling only
  llvm::StringRef features;  // LLVM's -mattr, on top of cpu; sse4a, the last, only tells processors from each other
  int64_t vectorBits;        // native vector register
  int64_t vectorRegisters;   // architectural vector registers
  int64_t maskedElementBits; // smallest element that masked loads and stores take natively; 0: none
  bool hasFma;
  bool hasGather;                  // gathers are worth more than scalar loads
  bool hasHalfConversions;         // f16 <-> f32 in hardware
  bool hasByteDot;                 // u8 x s8 dot products into i32
  bool hasSignedByteDot;           // s8 x s8 dot products into i32
  bool hasBf16Dot;                 // bf16 dot products into f32
  bool hasScalef = false;          // x * 2^floor(y) in one x86 instruction
  bool hasMatrixRegisters = false; // of 16 rows of 64 bytes, with dot products of both kinds
  bool addsBesideProducts = false; // sums of floats cost nothing beside multiply-adds
  bool followsStreams = false;     // reads on by itself, which lines that are fetched from far ahead disturb
  /// The level whose code a kernel has here, too, where it asks for nothing of what this one adds (CpuTarget.cpp).
  llvm::StringRef base = {};

  int64_t lanesOf(int64_t elementBits) const { return vectorBits / elementBits; }
  /// LLVM's intrinsics on vectors of so many bits, empty where there is none: u8 x s8 (s8 x s8) products, four added to
  /// each i32; s16 x s16 products, pairs added up to i32; bf16 products, pairs added to each f32.
  llvm::StringRef byteDotOf(int64_t bits) const;
  llvm::StringRef signedByteDotOf(int64_t bits) const;
  llvm::StringRef bf16DotOf(int64_t bits) const;
  llvm::StringRef pairProductOf(int64_t bits) const;
  /// u8 x s8 products, pairs added up to s16, of which larger sums saturate.
  llvm::StringRef bytePairsOf(int64_t bits) const;
  /// Bytes are multiplied in pairs (CpuContractionBytes.cpp), or as 16-bit integers.
  bool multipliesPairs() const { return !hasByteDot && !hasSignedByteDot && !pairProductOf(128).empty(); }
  /// Elements of a vector of f32 at the places that the low bits of 32-bit lanes say.
  llvm::StringRef lookUpOf(int64_t bits) const;
  /// The one that loads the word that says how floats are computed (MXCSR), where denormal numbers may be slow.
  llvm::StringRef loadFloatMode() const;
  bool hasMasksFor(int64_t elementBits) const { return maskedElementBits && elementBits >= maskedElementBits; }
};

/// All levels, of one processor family from low to high.
llvm::ArrayRef<CpuLevel> getCpuLevels();
/// The level of this name, or null.
const CpuLevel *findCpuLevel(llvm::StringRef name);
/// Whether the processor of this machine has all of the level, and this process may use it.
bool isOfHost(const CpuLevel &level);
/// The highest such level, or null.
const CpuLevel *findHostLevel();

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPULEVELS_H
