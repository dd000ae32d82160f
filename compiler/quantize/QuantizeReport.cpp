#include "compiler/quantize/QuantizeReport.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace llvm;

namespace ptc {

using quantize::SignalAndNoise;

static double noiseOverSignal(const SignalAndNoise &error) { return error.signal > 0 ? error.noise / error.signal : 0; }

double ProductError::ownNoise() const { return noiseOverSignal(weights) + noiseOverSignal(input); }

/// "38.2", "exact", or "none" where there was no number to compare.
static std::string formatDecibels(const SignalAndNoise &error) {
  if (error.count == 0)
    return "none";
  if (error.noise == 0)
    return "exact";
  return formatv("{0:f1}", error.decibels()).str();
}

static std::string plural(size_t count, StringRef what) {
  return (Twine(count) + " " + what + (count == 1 ? "" : "s")).str();
}

void printReport(raw_ostream &os, const QuantizeReport &report, bool all) {
  constexpr size_t shown = 10;
  size_t total = report.products.size() + report.skipped.size();
  os << report.output << ": " << report.products.size() << " of " << plural(total, "product") << " in 8 bits, "
     << plural(report.scales, "scale") << " of activations from " << plural(report.samples, "sample") << " ("
     << report.method << "); "
     << formatv("{0:f1} MB, was {1:f1}", double(report.bytesAfter) / 1e6, double(report.bytesBefore) / 1e6) << '\n';
  std::vector<const ProductError *> order;
  for (const ProductError &product : report.products)
    order.push_back(&product);
  llvm::stable_sort(order, [](const ProductError *a, const ProductError *b) { return a->ownNoise() > b->ownNoise(); });
  if (!all && order.size() > shown)
    order.resize(shown);
  os << "signal over noise in dB (20: a tenth of it is noise, 40: a hundredth), the noisiest first\n";
  os << (report.isMeasured ? " weights   input  result\n" : " weights   input\n");
  for (const ProductError *product : order) {
    os << right_justify(formatDecibels(product->weights), 8) << right_justify(formatDecibels(product->input), 8);
    if (report.isMeasured)
      os << right_justify(formatDecibels(product->result), 8);
    os << "  " << product->title << '\n';
  }
  if (order.size() < report.products.size())
    os << "and " << report.products.size() - order.size() << " more (-v lists them)\n";
  for (const quantize::Skipped &skipped : report.skipped)
    os << "in floats: " << skipped.title << ": " << skipped.reason << '\n';
  for (const OutputError &output : report.outputs) {
    os << "output '" << output.name << "': ";
    if (output.error.count == 0)
      os << "no element of it is finite in floats";
    else if (output.notFinite)
      os << plural(output.notFinite, "element") << " not finite, but in floats";
    else
      os << formatDecibels(output.error);
    if (output.error.noise != 0 && !output.notFinite)
      os << " dB, "
         << format("largest difference %.3g where the largest value is %.3g", output.largestDifference, output.largest);
    os << '\n';
  }
}

static void addDecibels(json::Object &object, StringRef key, const SignalAndNoise &error) {
  if (double decibels = error.decibels(); std::isfinite(decibels))
    object[key] = decibels;
}

std::string formatReport(const QuantizeReport &report) {
  json::Array products, skipped, outputs;
  for (const ProductError &product : report.products) {
    json::Object object{{"node", product.title}, {"value", product.value}};
    addDecibels(object, "weights_db", product.weights);
    addDecibels(object, "input_db", product.input);
    if (report.isMeasured)
      addDecibels(object, "result_db", product.result);
    products.push_back(std::move(object));
  }
  for (const quantize::Skipped &product : report.skipped)
    skipped.push_back(json::Object{{"node", product.title}, {"reason", product.reason}});
  for (const OutputError &output : report.outputs) {
    json::Object object{
        {"name", output.name}, {"largest_difference", output.largestDifference}, {"largest", output.largest}};
    addDecibels(object, "db", output.error);
    if (output.notFinite)
      object["not_finite"] = int64_t(output.notFinite);
    outputs.push_back(std::move(object));
  }
  return formatv("{0:2}\n", json::Value(json::Object{{"model", report.model},
                                                     {"output", report.output},
                                                     {"method", report.method},
                                                     {"samples", int64_t(report.samples)},
                                                     {"bytes_before", int64_t(report.bytesBefore)},
                                                     {"bytes_after", int64_t(report.bytesAfter)},
                                                     {"products", std::move(products)},
                                                     {"floats", std::move(skipped)},
                                                     {"outputs", std::move(outputs)}}))
      .str();
}

} // namespace ptc
