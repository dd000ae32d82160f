// How much rounding to 8 bits takes from a model, node by node.
#ifndef PTC_COMPILER_QUANTIZE_QUANTIZEREPORT_H
#define PTC_COMPILER_QUANTIZE_QUANTIZEREPORT_H

#include "lowering/quantize/QuantizeModel.h"
#include "llvm/Support/raw_ostream.h"

namespace ptc {

/// Of a product: what its own rounding costs, and what has come together at its result.
struct ProductError {
  std::string title, value;
  quantize::SignalAndNoise weights, input, result;

  /// Noise over signal that the node itself adds: sums of many terms have the relative noise of either operand.
  double ownNoise() const;
};

struct OutputError {
  std::string name;
  quantize::SignalAndNoise error;
  double largestDifference = 0, largest = 0;
  uint64_t notFinite = 0; // elements that are numbers in floats alone
};

struct QuantizeReport {
  std::string model, output, method;
  size_t samples = 0, scales = 0;
  uint64_t bytesBefore = 0, bytesAfter = 0; // of the model files
  std::vector<ProductError> products;
  std::vector<quantize::Skipped> skipped;
  std::vector<OutputError> outputs; // of float32
  bool isMeasured = false;          // results of products and outputs have been compared
};

/// The products that cost the most, or all of them; what stays in floats; the outputs.
void printReport(llvm::raw_ostream &os, const QuantizeReport &report, bool all);
/// All of it as JSON; what is without noise has no decibels.
std::string formatReport(const QuantizeReport &report);

} // namespace ptc

#endif // PTC_COMPILER_QUANTIZE_QUANTIZEREPORT_H
