//===- QuantizeModel.h - a model with 8-bit products ------------*- C++ -*-===//
#ifndef PTC_LOWERING_QUANTIZE_QUANTIZEMODEL_H
#define PTC_LOWERING_QUANTIZE_QUANTIZEMODEL_H

#include "lowering/quantize/ActivationRange.h"
#include "lowering/quantize/QuantizationPlan.h"

namespace ptc::quantize {

/// Sums of squares of what rounding is measured by.
struct SignalAndNoise {
  double signal = 0, noise = 0;
  uint64_t count = 0;
  void add(double expected, double actual) {
    signal += expected * expected;
    noise += (expected - actual) * (expected - actual);
    ++count;
  }
  void add(const SignalAndNoise &other) {
    signal += other.signal;
    noise += other.noise;
    count += other.count;
  }
  /// 10 log10 of the ratio; infinity without noise.
  double decibels() const;
};

struct WeightOptions {
  bool perChannel = true; // else one scale for all of a product's weights
};

/// The model with QuantizeLinear and DequantizeLinear around the plan's products. Its large tensors are marks into the
/// same files (WireFormat.h), but for the new ones.
struct QuantizedModel {
  onnx::ModelProto proto;
  std::vector<SignalAndNoise> weights; // of each product of the plan
};

/// `scales`: of each group of the plan.
QuantizedModel quantizeModel(const onnx_import::ModelFile &file, const QuantizationPlan &plan,
                             llvm::ArrayRef<Quantization> scales, const WeightOptions &options = {});

} // namespace ptc::quantize

#endif // PTC_LOWERING_QUANTIZE_QUANTIZEMODEL_H
