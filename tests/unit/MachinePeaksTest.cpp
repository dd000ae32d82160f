#include "compiler/MachinePeaks.h"
#include "codegen/gpu/Assembler.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace ptc;

namespace {
MachinePeaks examplePeaks(double scale) {
  MachinePeaks peaks;
  peaks.operations["f32"] = 100 * scale;
  peaks.operations["i8"] = 400;
  peaks.bandwidths = {{32, 50 * scale}, {1024, 20}, {std::numeric_limits<double>::infinity(), 5 * scale}};
  return peaks;
}
} // namespace

TEST_CASE("a type without instructions of its own is multiplied as f32", "[peaks]") {
  MachinePeaks peaks = examplePeaks(1);
  CHECK(peaks.operationsOf("i8") == 400);
  CHECK(peaks.operationsOf("f16") == 100);
  CHECK(MachinePeaks().operationsOf("f32") == 0);
}

TEST_CASE("bytes come from the smallest memory that they fit in", "[peaks]") {
  MachinePeaks peaks = examplePeaks(1);
  CHECK(peaks.bandwidthOf(0) == 50);
  CHECK(peaks.bandwidthOf(32) == 50);
  CHECK(peaks.bandwidthOf(33) == 20);
  CHECK(peaks.bandwidthOf(1e12) == 5);
  CHECK(MachinePeaks().bandwidthOf(1) == 0);
}

TEST_CASE("two measurements together keep the better figure of each", "[peaks]") {
  MachinePeaks slow = examplePeaks(0.5), quick = examplePeaks(2);
  slow.merge(quick);
  CHECK(slow.operationsOf("f32") == 200);
  CHECK(slow.bandwidthOf(10) == 100);
  quick.merge(examplePeaks(0.5));
  CHECK(quick.bandwidthOf(1e12) == 10);
}

TEST_CASE("a reading of memory is slower than the nearest cache", "[peaks]") {
  MachinePeaks peaks = measurePeaks(1);
  double reading = MemoryReading(1).measure();
  if (peaks.bandwidths.empty()) {
    CHECK(reading == 0);
    return;
  }
  CHECK(reading > 0);
  CHECK(reading < peaks.bandwidths.front().bytesPerSecond);
}

TEST_CASE("what measures a device is text that ptxas takes", "[peaks]") {
  std::string assembler = gpu::findAssembler();
  if (assembler.empty()) {
    WARN("no ptxas on this machine: not checked");
    return;
  }
  for (bool hasWarpgroups : {false, true}) {
    llvm::SmallString<128> path, log;
    REQUIRE(!llvm::sys::fs::createTemporaryFile("ptc-peaks", "ptx", path));
    REQUIRE(!llvm::sys::fs::createTemporaryFile("ptc-peaks", "log", log));
    llvm::FileRemover removePath(path), removeLog(log);
    std::error_code failed;
    llvm::raw_fd_ostream(path, failed) << getDevicePeakText(hasWarpgroups);
    REQUIRE(!failed);
    std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(log), llvm::StringRef(log)};
    int code = llvm::sys::ExecuteAndWait(
        assembler, {assembler, "-v", hasWarpgroups ? "-arch=sm_90a" : "-arch=sm_80", path, "-o", "/dev/null"},
        std::nullopt, redirects);
    auto said = llvm::MemoryBuffer::getFile(log);
    REQUIRE(said);
    INFO((*said)->getBuffer().str());
    CHECK(code == 0);
    CHECK((*said)->getBuffer().contains("0 bytes spill stores"));
    CHECK_FALSE((*said)->getBuffer().contains("warning"));
  }
}
