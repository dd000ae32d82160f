// What a model shows to the outside, as plain values: the source of the descriptor (codegen/host), of the C header and
// of the manifest (compiler/artifact). The members correspond to the structs of runtime/include/ptc/abi.h.
#ifndef PTC_CODEGEN_HOST_INTERFACE_H
#define PTC_CODEGEN_HOST_INTERFACE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptc::host {

/// An element type at the ABI, by DLPack's codes.
struct DType {
  uint8_t code = 0;
  uint8_t bits = 0;

  bool operator==(const DType &) const = default;
  /// "float32", "uint8", "bfloat16", "bool": numpy's names where it has one.
  std::string name() const;
  /// The C type of an element: "float", "uint8_t", "ptc_bfloat16". Packed types: of a byte of them.
  llvm::StringRef cType() const;
};

struct Dim {
  int64_t extent = -1; // >= 0: constant
  int symbol = -1;     // >= 0: exactly this symbol; both negative: an expression of symbols
  std::string text;
  bool isFound = false; // by the run: uses a symbol that the program binds
};

struct Value {
  std::string name, cName;
  std::string shapeName; // of a found output: the parameter that its dims go to
  DType dtype;
  std::vector<Dim> dims;
  bool isFound() const; // one of its dims is
  int alias = -1;       // index of the output (for an input; and reverse) with the same buffer
  int32_t role = 0;     // PTC_PLAIN, ...
  // Of a sequence:
  std::shared_ptr<Value> element; // a tensor of it, without names
  bool isUnranked = false;        // of such a tensor, if nothing is known of its dims
};

struct Symbol {
  std::string name, cName;
  int64_t min = 0, max = std::numeric_limits<int64_t>::max(), divisor = 1, hint = 1;
};

struct Guard {
  std::string text;
  std::vector<unsigned> symbols; // that occur in it
  std::string nodes;             // that need it; empty: none of the model's
};

/// A size that a run finds, and the most that it can be, as text; empty: nothing bounds it.
struct FoundSize {
  std::string name, atMost;
};

/// A program of the function for calls that meet more guards than the function's own.
struct Variant {
  std::string name;          // "batch=1,seq=128"
  std::vector<Guard> guards; // of all, those that the function has not
};

struct Function {
  std::string name;
  std::string cPrefix; // "resnet50", or "resnet50_decode" for a function that is not the main one
  std::vector<Value> inputs, outputs;
  std::vector<Symbol> symbols;
  std::vector<Guard> guards;
  std::vector<Variant> variants; // in the order in which they are tried; the general program, which has none, is last
  std::vector<FoundSize> found;  // that dims of outputs are made of
};

/// How a stored form is gathered from a weight's dense tensor (ptc_rt_recipe in runtime/include/ptc/descriptor.h).
struct Recipe {
  unsigned elementBytes = 0;
  int64_t offset = 0;
  std::vector<int64_t> extents, strides;
  int64_t panel = -1, lane = -1, limit = 0;
  std::vector<double> transform; // rows x columns, row-major; empty: none. Of three dims the outermost one's behind it
  int64_t transformColumns = 3, transformDims = 2, depthRows = 0;
};

/// One form in which kernels read a weight.
struct StoredForm {
  uint64_t offset = 0, bytes = 0;
  std::optional<Recipe> recipe; // none: the dense tensor itself
  std::optional<DType> narrow;  // what the tensor's floats are rounded to; none: they are stored as they are
};

/// A weight that set_weight can replace.
struct Weight {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<StoredForm> forms;
  /// The dense row-major bytes that set_weight takes.
  uint64_t bytes() const;
};

/// An operator of the user's own, which a library brings that the model opens.
struct CustomOperator {
  std::string name; // "my.domain.Scale"
  std::string library, symbol;
  std::vector<std::string> nodes;
};

struct ModelInterface {
  std::string name; // a C identifier: the prefix of all names
  std::string compiler;
  std::vector<Function> functions; // the main one first
  std::vector<Weight> weights;
  std::vector<CustomOperator> customOperators; // in the order of first use
};

/// The C identifier for a name of the user's: characters other than letters, digits and '_' become '_'; a leading digit
/// gets a '_' before it, a keyword of C or C++ one behind it; nothing becomes "unnamed".
std::string cIdentifier(llvm::StringRef name);

/// Sets every cName and cPrefix: identifiers that are unique within a function, none of them a name that the headers
/// use for parameters and variables of their own. Equal identifiers get _2, _3, ... in order: inputs, outputs; symbols
/// among themselves.
void assignCNames(ModelInterface &model);

/// All names that the library exports, "ptc_model_v1" and NAME_model_v1 left out.
std::vector<std::string> typedNames(const ModelInterface &model);

} // namespace ptc::host

#endif
