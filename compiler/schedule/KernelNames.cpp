//===- KernelNames.cpp - kernels are named by content ---------------------===//
#include "compiler/schedule/KernelNames.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace ptc;

std::string loop::getKernelText(KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("kernel");
  kernel->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  kernel.setSymNameAttr(name);
  return text;
}

std::string loop::makeKernelName(StringRef stem, StringRef text) {
  return (stem + "_" + llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16).substr(0, 12)).str();
}

StringRef loop::getKernelStem(StringRef name) { return name.rsplit('_').first; }
