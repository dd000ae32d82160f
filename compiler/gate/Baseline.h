// What is recorded of one model for one target: a canonical JSON file that is reviewed like code.
#ifndef PTC_COMPILER_GATE_BASELINE_H
#define PTC_COMPILER_GATE_BASELINE_H

#include "compiler/artifact/Manifest.h"
#include "compiler/gate/Numerics.h"

namespace ptc::gate {

/// Of the file. Another number is another meaning of its lines: such a baseline is recorded anew.
constexpr int64_t baselineFormat = 1;

/// Better alignment of a buffer than this is an accident of its place and not recorded.
constexpr int64_t arenaAlignment = 64;

/// A finding that may be, until a day. Empty `node` and `finding` match everything, but one of them is there.
struct Waiver {
  std::string finding; // name of a row of FindingKinds.def
  std::string node;    // one of the finding's nodes, inputs or outputs
  std::string reason;  // for people
  std::string until;   // YYYY-MM-DD, the last day
};

/// Pairs of nodes that the scheduler would not fuse, for one reason.
struct Refusal {
  std::string reason;
  std::vector<std::pair<std::string, std::string>> pairs; // producer, consumer
};

/// How far facts may move: "1%" of what was recorded, or an absolute number.
struct Tolerances {
  std::string codeBytes = "1%";
};

struct Baseline {
  std::string model;       // the file, relative to the baseline's folder if it lies there, or its name alone
  std::string modelDigest; // as in the manifest
  std::string target;
  std::vector<std::string> levels, flags; // flags: those to compile with again
  Tolerances tolerances;
  std::vector<Waiver> waivers;
  llvm::json::Array interface;                // objects: functions with guards, then their inputs, outputs, symbols
  std::vector<artifact::KernelEntry> kernels; // names without the digest of their content
  std::vector<artifact::MemoryEntry> memory;
  std::vector<artifact::BufferEntry> buffers; // of the arena
  std::vector<Refusal> refusals;
  int64_t weightBytes = 0;
  std::vector<std::string> inputs;  // specs of what numerics were measured on, besides random numbers
  std::vector<NumericRow> numerics; // empty: not measured
};

/// The manifest's functions, an object for each function, input, output and symbol.
llvm::json::Array flattenInterface(const llvm::json::Array &functions);

/// Canonical: sorted keys, one kernel, buffer, refusal or output a line, no time, no absolute path.
std::string writeBaseline(const Baseline &baseline);
/// An ExitError that tells how to mend it if the text is no baseline of this format.
llvm::Expected<Baseline> parseBaseline(llvm::StringRef text, llvm::StringRef path);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_BASELINE_H
