// A model with 8-bit products, from one in floats and what it computes on samples.
//
// The caller runs the models: first the one in floats, once or twice on each sample, with what listValues() names shown
// to addExtremes and addHistogram; then, after write(), both on each sample, shown to expect and compare.
#ifndef PTC_COMPILER_QUANTIZE_QUANTIZER_H
#define PTC_COMPILER_QUANTIZE_QUANTIZER_H

#include "compiler/Pipeline.h"
#include "compiler/quantize/QuantizeReport.h"
#include "llvm/ADT/StringMap.h"

namespace ptc {

struct QuantizeSettings {
  std::string method = "minmax"; // entropy, percentile
  double percent = 99.99;        // with percentile: of the elements within the range
  bool isSymmetric = false;      // int8 activations with zero point 0, else uint8
  bool isPerChannel = true;      // scales of weights
  std::vector<std::string> keep; // nodes that stay in floats
};

/// Not thread-safe. Functions that fail have reported diagnostics, or return an error of the outside world.
class Quantizer {
public:
  /// The model is that of the options.
  Quantizer(const CompileOptions &options, const CompileHooks &hooks, QuantizeSettings settings);

  /// Reads the model and decides what is to become 8 bits; an error if nothing can.
  llvm::Error readModel();
  /// An error if the new model, or the file beside it, would take the place of one that is read.
  llvm::Error checkInputsKept(llvm::StringRef output) const;
  /// Of the graph, without its inputs: what calibration and report look at.
  std::vector<std::string> listValues() const;
  /// Results of the products.
  std::vector<std::string> listResults() const;
  int countNested() const { return plan.nested; }

  /// A value in one run. Those that are not looked at are ignored.
  void addExtremes(llvm::StringRef value, llvm::ArrayRef<float> elements);
  /// After the extremes of all samples. Leaves in floats what reads values that no sample has shown.
  llvm::Error endExtremes();
  bool needsHistogram() const { return calibration.needsHistogram(); }
  void addHistogram(llvm::StringRef value, llvm::ArrayRef<float> elements);
  /// After all samples. Returns how many elements of activations were not finite.
  uint64_t chooseScales();

  /// Writes the model as FOLDER/NAME, and NAME.data beside it if one file cannot hold it. Returns the names.
  llvm::Expected<std::vector<std::string>> write(llvm::StringRef folder, llvm::StringRef name);

  /// A value of the model in floats; then, of the new one on the same sample.
  void expect(llvm::StringRef value, llvm::ArrayRef<float> elements);
  void compare(llvm::StringRef value, llvm::ArrayRef<float> elements);
  void compareOutput(llvm::StringRef name, llvm::ArrayRef<float> expected, llvm::ArrayRef<float> actual);

  QuantizeReport takeReport(size_t samples);

private:
  llvm::Error makePlan();

  CompileHooks hooks;
  Compilation compilation; // for its context and its handling of diagnostics
  QuantizeSettings settings;
  quantize::Calibration calibration;
  std::unique_ptr<onnx_import::ModelFile> file;
  quantize::QuantizationPlan plan;
  llvm::StringMap<quantize::ActivationRange> ranges; // by value
  std::vector<quantize::Quantization> scales;        // by group
  llvm::StringMap<std::vector<float>> expected;      // results in the sample at hand
  llvm::StringMap<size_t> productOf;                 // by result
  llvm::StringMap<std::vector<size_t>> readersOf;    // products, by activation
  QuantizeReport report;
};

/// What a compiled model rounds to few bits.
struct FewBits {
  bool ofActivations = false; // 8 or 16, where the model says so
  bool ofRows = false;        // 8, of products, inside of kernels
};

/// What the model of the options rounds when it is compiled with them.
llvm::Expected<FewBits> findFewBits(const CompileOptions &options, CompileHooks hooks);

} // namespace ptc

#endif // PTC_COMPILER_QUANTIZE_QUANTIZER_H
