// model.hpp: the C header's functions as a class for the model and one for its contexts.
//
// Only the C header's names are called, so a program may mix both. Names of tensors become parameters and members; the
// words that are used here beside them (model, ctx, dims, status, shapes, workspace, stream) are kept free by
// host::assignCNames, members are reached through `this`, and every other name is qualified from the outside, so that a
// tensor may be called "std" or "run". All names lie in ptc::NAME: several models go into one program.
#include "compiler/artifact/Header.h"
#include "compiler/artifact/HeaderText.h"
#include "compiler/artifact/RuntimeObject.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc::artifact {
namespace {

bool isComplex(const host::Value &value) { return StringRef(value.dtype.name()).starts_with("complex"); }

/// The number of elements as an expression over `dims`; none if an extent is more than a constant or a symbol.
std::optional<std::string> elementsOf(const host::Value &value, const host::Function &function) {
  std::string list;
  for (const host::Dim &dim : value.dims) {
    if (dim.extent < 0 && dim.symbol < 0)
      return std::nullopt;
    list += (list.empty() ? "" : ", ") +
            (dim.extent >= 0 ? std::to_string(dim.extent) : "dims." + function.symbols[dim.symbol].cName);
  }
  return "::std::array<::std::int64_t, " + std::to_string(value.dims.size()) + ">{" +
         (list.empty() ? "}" : "{" + list + "}}");
}

/// Writes the members that belong to one function of the model.
struct CppFunctionWriter {
  raw_ostream &os;
  const host::ModelInterface &model;
  const host::Function &function;

  bool dynamic() const { return !function.symbols.empty(); }
  /// "" or "decode_": what the members' names begin with.
  std::string prefix() const {
    return function.cPrefix == model.name ? "" : function.cPrefix.substr(model.name.size() + 1) + "_";
  }
  std::string dims() const { return dynamic() ? "const " + prefix() + "Dims &dims" : ""; }
  std::string passedDims() const { return dynamic() ? ", &dims" : ""; }

  void types() {
    if (dynamic())
      os << "/// The sizes that a call of " << prefix() << "run is free to choose.\nusing " << prefix()
         << "Dims = ::" << function.cPrefix << "_dims;\n\n";
    os << "/// Extents of the outputs of " << prefix() << "run.\nstruct " << prefix() << "Shapes {\n";
    for (const host::Value &value : function.outputs)
      os << "  ::std::array<::std::int64_t, " << value.dims.size() << "> " << value.cName << "{}; // "
         << inComment(dimsText(value)) << "\n";
    os << "};\n\n";
  }

  void shapesCall(StringRef object) {
    os << "::" << function.cPrefix << "_output_shapes(" << object << passedDims();
    for (const host::Value &value : function.outputs) // a scalar's array has one unused element
      os << ", " << (value.dims.empty() ? "&unused" : "shapes." + value.cName + ".data()");
    os << ")";
  }

  /// Members of Model.
  void queries() {
    os << "\n  ::ptc::Result<" << prefix() << "Shapes> " << prefix() << "output_shapes(" << dims() << ") const {\n    "
       << prefix() << "Shapes shapes;\n"
       << (llvm::any_of(function.outputs, [](const host::Value &value) { return value.dims.empty(); })
               ? "    ::std::int64_t unused = 0;\n"
               : "")
       << "    if (const ptc_status status = ";
    shapesCall("this->model.get()");
    os << "; status != PTC_OK)\n      return ::ptc::Status(status, \"the model has no output shapes for these "
          "sizes\");\n    return shapes;\n  }\n\n"
       << "  /// Bytes for `workspace`; PTC_NO_SIZE if the sizes are out of range.\n  ::std::size_t " << prefix()
       << "workspace_size(" << dims() << ") const noexcept {\n    return ::" << function.cPrefix
       << "_workspace_size(this->model.get()" << passedDims() << ");\n  }\n";
  }

  void check(const host::Value &value) {
    if (std::optional<std::string> elements = elementsOf(value, function))
      os << "    ::ptc::detail::check(status, \"" << value.cName << "\", " << value.cName << ", " << *elements << ", "
         << unsigned(value.dtype.bits) << ", " << (isComplex(value) ? 2 : 1) << ");\n";
  }

  void parameters() {
    const char *separator = dynamic() ? ", " : "";
    os << dims();
    for (const host::Value &value : function.inputs) {
      os << separator << "::ptc::Span<" << (value.alias < 0 ? "const " : "") << value.dtype.cType() << "> "
         << value.cName;
      separator = ", ";
    }
    for (const host::Value &value : function.outputs)
      if (value.alias < 0) {
        if (value.isFound())
          os << separator << "::ptc::Found<" << value.dtype.cType() << ", " << value.dims.size() << ", "
             << unsigned(value.dtype.bits) << "> &" << value.cName;
        else
          os << separator << "::ptc::Span<" << value.dtype.cType() << "> " << value.cName;
        separator = ", ";
      }
    os << separator << "void *workspace = nullptr, void *stream = nullptr";
  }

  /// Members of Context.
  void calls() {
    os << "\n  /// Makes every later run with no larger sizes free of allocations.\n  ::ptc::Status " << prefix()
       << "warmup(" << dims() << ") {\n    return this->result(::" << function.cPrefix << "_warmup(this->ctx.get()"
       << passedDims() << "));\n  }\n\n  /// Runs function '" << inComment(function.name) << "'.\n";
    describeValues(os, function, "  /// ");
    if (llvm::any_of(function.outputs, [](const host::Value &value) { return value.isFound(); }))
      os << "  /// Outputs of a size that the run finds are objects that hold what it allocated, and its shape.\n";
    os << "  /// Memory stays the caller's, dense and row-major; its size is checked where it is known. workspace: at "
          "least\n  /// "
       << prefix() << "workspace_size bytes, or null for the context's own.\n  ::ptc::Status " << prefix() << "run(";
    parameters();
    os << ") {\n    ::ptc::Status status;\n";
    for (const host::Value &value : function.inputs)
      check(value);
    for (const host::Value &value : function.outputs)
      if (value.isFound())
        os << "    " << value.cName << ".reset();\n";
      else if (value.alias < 0)
        check(value);
    os << "    if (!status)\n      return status;\n    return this->result(::" << function.cPrefix
       << "_run(this->ctx.get()" << passedDims();
    for (const host::Value &value : function.inputs)
      os << ", " << value.cName << ".data()";
    for (const host::Value &value : function.outputs)
      if (value.isFound())
        os << ", " << value.cName << ".place(), " << value.cName << ".extents()";
      else if (value.alias < 0)
        os << ", " << value.cName << ".data()";
    os << ", workspace, stream));\n  }\n";
  }
};

/// $N stands for the model's name.
void writeLines(raw_ostream &os, StringRef text, StringRef name) {
  SmallVector<StringRef> parts;
  text.split(parts, "$N");
  os << join(parts, name);
}

constexpr char modelClass[] =
    R"(/// The code and the weights. Constant once made, so that threads may share it; it outlives its contexts.
class Model {
public:
  static ::ptc::Result<Model> create(::ptc_options options = ::ptc::default_options()) {
    char sentence[512] = "";
    if (options.error == nullptr || options.error_size == 0) {
      options.error = sentence;
      options.error_size = sizeof sentence;
    }
    ::$N_model *made = nullptr;
    if (const ptc_status failed = ::$N_create(&options, &made); failed != PTC_OK)
      return ::ptc::Status(failed, options.error);
    return Model(made);
  }
#ifdef __cpp_exceptions
  explicit Model(const ::ptc_options &options = ::ptc::default_options()) : Model(create(options).or_throw()) {}
#endif

  /// Replaces a weight by a dense row-major tensor of exactly `bytes` bytes, while no call runs.
  ::ptc::Status set_weight(const char *name, const void *data, ::std::size_t bytes) {
    const ptc_status status = ::$N_set_weight(this->model.get(), name, data, bytes);
    return status == PTC_OK ? ::ptc::Status() : ::ptc::Status(status, ::std::string("cannot set weight ") + name);
  }
)";

constexpr char modelEnd[] = R"(
  ::$N_model *get() const noexcept { return this->model.get(); }

private:
  explicit Model(::$N_model *made) noexcept : model(made) {}
  ::ptc::detail::Owner<::$N_model, ::$N_destroy> model;
};

/// What one call at a time needs: one context per concurrent call.
class Context {
public:
  static ::ptc::Result<Context> create(const Model &model) {
    ::$N_ctx *made = nullptr;
    if (const ptc_status failed = ::$N_ctx_create(model.get(), &made); failed != PTC_OK)
      return ::ptc::Status(failed, "no context could be made");
    return Context(made);
  }
#ifdef __cpp_exceptions
  explicit Context(const Model &model) : Context(create(model).or_throw()) {}
#endif
)";

constexpr char contextEnd[] = R"(
  ::$N_ctx *get() const noexcept { return this->ctx.get(); }

private:
  explicit Context(::$N_ctx *made) noexcept : ctx(made) {}
  ::ptc::Status result(ptc_status code) const {
    return code == PTC_OK ? ::ptc::Status() : ::ptc::Status(code, ::$N_last_error(this->ctx.get()));
  }
  ::ptc::detail::Owner<::$N_ctx, ::$N_ctx_destroy> ctx;
};
)";

} // namespace

std::string writeCppHeader(const host::ModelInterface &model, const HeaderOptions &options) {
  std::string text;
  raw_string_ostream os(text);
  const std::string &name = model.name;
  std::string guard = includeGuard(model, options.fileName);
  os << "// " << inComment(name) << ": compiled by " << inComment(model.compiler)
     << (options.source.empty() ? "" : " from " + inComment(options.source)) << ".\n#ifndef " << guard << "\n#define "
     << guard << "\n\n#include \"" << options.cHeader << "\"\n\n"
     << runtimeHeader("abi.hpp").value_or("") << "\nnamespace ptc::" << name << " {\n\n";
  for (const host::Function &function : model.functions)
    CppFunctionWriter{os, model, function}.types();
  writeLines(os, modelClass, name);
  for (const host::Function &function : model.functions)
    CppFunctionWriter{os, model, function}.queries();
  writeLines(os, modelEnd, name);
  for (const host::Function &function : model.functions)
    CppFunctionWriter{os, model, function}.calls();
  writeLines(os, contextEnd, name);
  os << "\n} // namespace ptc::" << name << "\n\n#endif // " << guard << "\n";
  return text;
}

} // namespace ptc::artifact
