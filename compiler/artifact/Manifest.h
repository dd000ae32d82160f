// model.json: what a library is made of, for people, gates and build systems.
#ifndef PTC_COMPILER_ARTIFACT_MANIFEST_H
#define PTC_COMPILER_ARTIFACT_MANIFEST_H

#include "codegen/host/Interface.h"
#include "codegen/object/CodeFacts.h"

#include "llvm/Support/JSON.h"

namespace ptc::artifact {

/// A size that may depend on symbols: its expression, and its value at the hint.
struct Amount {
  std::string text;
  int64_t atHint = 0;
};

/// What a kernel became for one level.
struct CodeEntry {
  std::string level;
  int64_t bytes = 0; // of executable sections; 0 where an assembler comes after
  object::CodeFacts facts;
};

/// What the programs of all variants launch: a kernel that two launch has two entries.
struct KernelEntry {
  std::string name, kind;                         // "pointwise", "reduction", "contraction", ...
  std::string products;                           // the type whose products it adds up: "f32"; empty: none
  std::string target;                             // whose, where the library has several; else empty
  std::string variant;                            // "seq=128"; empty: the general one
  std::vector<std::vector<std::string>> launches; // in order: the fused nodes of each, as the user named them
  int64_t executions = 0;                         // launches in a run at the hints, in loops once for each round
  int64_t joinedLaunches = 0;                     // those that run in one parallel loop with the launch before them
  Amount flops, bytesRead, bytesWritten;          // of the first launch
  int64_t weightBytesRead = 0;                    // of bytesRead, at the hint
  Amount argumentBytes;                           // of the function's inputs and outputs; of all launches
  std::optional<Amount> steps, stepBytesRead;     // of a recurrence; of the first launch
  std::vector<CodeEntry> code;
  std::optional<Amount> grid; // blocks of the first launch, where kernels run on a device
  int64_t block[2] = {};      // threads, rows of one
  std::string library;        // of a device: what computes it in the place of its code, where it is; empty: nothing
  std::string onHost;         // of a device: why its launches run on the host; empty: they do not
};

/// Memory beside the arena that grows when a run needs more.
struct GrowingEntry {
  std::string node;
  std::vector<std::string> bytes; // expressions
};

struct MemoryEntry {
  std::string target, function, variant;
  Amount peak, lowerBound; // bytes of the arena; the largest live set
  int64_t hostSyncs = 0;   // places where the host waits for a value before it goes on
  std::vector<GrowingEntry> growing;
};

/// A buffer of the arena. Launches are numbered in a function's order.
struct BufferEntry {
  std::string target, function, variant, node; // the node whose result it holds
  Amount bytes, offset;
  int64_t alignment = 0;                              // a power of two that the offset is a multiple of at any dims
  int64_t written = 0, lastRead = 0, keptUntil = 0;   // launches: first and last use, and for how long it is reserved
  std::string writtenBy, lastReadBy, keptFor, reuses; // nodes of these; the buffer that it replaces in place
};

struct WeightsEntry {
  std::string place; // "embedded", "file", "absent"
  std::string file;  // when place is "file"
  uint64_t bytes = 0;
  std::string digest; // hexadecimal
};

struct Manifest {
  host::ModelInterface interface;
  std::string modelDigest;        // of the source file
  std::vector<std::string> flags; // that influence the artefact, in canonical order
  std::string target;             // "cpu", "cpu,cuda"
  std::vector<std::string> levels;
  std::vector<KernelEntry> kernels;
  std::vector<MemoryEntry> memory;
  std::vector<BufferEntry> buffers;
  WeightsEntry weights;
  std::string buildId;
  uint64_t fileBytes = 0, codeBytes = 0;
};

/// Canonical: keys in alphabetical order, two spaces a level, integers only, one trailing newline.
std::string writeManifest(const Manifest &manifest);

/// The interface of one function, as it stands in the manifest.
llvm::json::Value describeFunction(const host::Function &function);

/// Makefile syntax: `outputs` depend on `inputs`; every input is also a target without prerequisites, so that a removed
/// file does not stop make.
std::string writeDepfile(llvm::ArrayRef<std::string> outputs, llvm::ArrayRef<std::string> inputs);

} // namespace ptc::artifact

#endif
