#include "ArtifactFixture.h"
#include "codegen/object/EmitObject.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include <catch2/catch.hpp>

using namespace llvm;

namespace ptc::test {

static const char programText[] = R"(
loop.kernel @scale(%x: !loop.buffer<[n] x f32>, %w: !loop.buffer<[4] x f32>, %y: !loop.buffer<[n] x f32>) attributes {
    symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>,
    iterations = #prim.expr<n>, grain = #prim.expr<1>, scratch = #prim.expr<64>} {}
loop.kernel @negate(%y: !loop.buffer<[n] x f32>) attributes {
    symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 0>,
    iterations = #prim.expr<n>, grain = #prim.expr<1>} {}
loop.kernel @increment(%p: !loop.buffer<[1] x i64>) attributes {
    symbols = [], parallel = 1 : i64, arguments_written = array<i64: 0>, iterations = #prim.expr<1>} {}
loop.kernel @copy(%x: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>) attributes {
    symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, iterations = #prim.expr<n>} {}
loop.program @main(%x: !loop.buffer<[batch, 4] x f32>, %flag: !loop.buffer<[] x i1>, %past: !loop.buffer<[1] x i64>
                   | %y: !loop.buffer<[batch, 4] x f32>, %next: !loop.buffer<[1] x i64>) attributes {
    input_names = ["x:0", "flag", "past"], output_names = ["y", "next"],
    input_types = [f32, i1, si64], output_types = [f32, si64],
    symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 8>}, symbol_sources = {batch = array<i64: 0, 0>},
    guards = [#prim.expr<lt(batch, 33)>], aliases = array<i64: 2, 1>, arena = #prim.expr<batch*16 + 64>} {
  %t = loop.at 64 : !loop.buffer<[batch, 4] x f32>
  %w = loop.weight <"w", "", 0, 16> : !loop.buffer<[4] x f32>
  loop.launch @scale(%x, %w, %t) symbols [batch*4] : !loop.buffer<[batch, 4] x f32>, !loop.buffer<[4] x f32>, !loop.buffer<[batch, 4] x f32>
  %b = loop.flatten %flag : <[] x i1> -> <[1] x i1>
  loop.if %b then {
    loop.launch @negate(%t) symbols [batch*4] : !loop.buffer<[batch, 4] x f32>
  } else {
  } : !loop.buffer<[1] x i1>
  loop.launch @copy(%t, %y) symbols [batch*4] : !loop.buffer<[batch, 4] x f32>, !loop.buffer<[batch, 4] x f32>
  loop.launch @increment(%past) symbols [] : !loop.buffer<[1] x i64>
)";

static const char negationText[] = "loop.launch @negate(%y) symbols [batch*4] : !loop.buffer<[batch, 4] x f32>\n";

/// Every kernel loops over [begin, end); LEVEL is replaced.
static const char kernelText[] = R"(
define i32 @"scale.LEVEL"(ptr %b, ptr %s, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %x = load ptr, ptr %b
  %bw = getelementptr ptr, ptr %b, i64 1
  %w = load ptr, ptr %bw
  %by = getelementptr ptr, ptr %b, i64 2
  %y = load ptr, ptr %by
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %px = getelementptr float, ptr %x, i64 %i
  %vx = load float, ptr %px
  %j = and i64 %i, 3
  %pw = getelementptr float, ptr %w, i64 %j
  %vw = load float, ptr %pw
  %m = fmul float %vx, %vw
  %r = fadd float %m, 1.0
  %py = getelementptr float, ptr %y, i64 %i
  store float %r, ptr %py
  store float %r, ptr %scratch
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
define i32 @"negate.LEVEL"(ptr %b, ptr %s, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %y = load ptr, ptr %b
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %py = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %py
  %r = fneg float %v
  store float %r, ptr %py
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @"copy.LEVEL"(ptr %b, ptr %s, i64 %begin, i64 %end, ptr %scratch) {
  %x = load ptr, ptr %b
  %by = getelementptr ptr, ptr %b, i64 1
  %y = load ptr, ptr %by
  %px = getelementptr float, ptr %x, i64 %begin
  %py = getelementptr float, ptr %y, i64 %begin
  %n = sub i64 %end, %begin
  %bytes = shl i64 %n, 2
  call void @llvm.memcpy.p0.p0.i64(ptr %py, ptr %px, i64 %bytes, i1 false)
  ret i32 0
}
define i32 @"increment.LEVEL"(ptr %b, ptr %s, i64 %begin, i64 %end, ptr %scratch) {
  %p = load ptr, ptr %b
  %v = load i64, ptr %p
  %r = add i64 %v, 1
  store i64 %r, ptr %p
  ret i32 0
}
)";

static SmallVector<char, 0> compileKernels(StringRef level) {
  std::string text = kernelText;
  for (size_t at; (at = text.find("LEVEL")) != std::string::npos;)
    text.replace(at, 5, level);
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseAssemblyString(text, diagnostic, context);
  REQUIRE(module);
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      function.setVisibility(GlobalValue::HiddenVisibility);
  return cantFail(object::emitObject(*module, {.cpu = level.str()}));
}

Artifact::~Artifact() {
  if (!folder.empty())
    sys::fs::remove_directories(folder);
}

static std::vector<artifact::WeightBlob> makeWeights(const ArtifactOptions &options) {
  auto fill = [options](MutableArrayRef<char> bytes) -> Error {
    if (options.failFill)
      return createStringError(std::make_error_code(std::errc::io_error), "the source is gone");
    const float values[] = {2, 3, 4, 5};
    memcpy(bytes.data(), values, sizeof(values));
    return Error::success();
  };
  auto pad = [](MutableArrayRef<char> bytes) -> Error {
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = char(i * 31);
    return Error::success();
  };
  return {{.name = "padding", .bytes = options.padding, .align = 4096, .fill = pad},
          {.name = "w", .bytes = 16, .key = "w", .fill = fill},
          {.name = "w again", .bytes = 16, .key = "w", .fill = fill}};
}

static Error link(const ArtifactOptions &options, const artifact::LinkInputs &inputs, Artifact &result) {
  artifact::Outputs outputs;
  artifact::LinkInputs complete = inputs;
  if (options.weightsFile) {
    Expected<std::string> staged = outputs.stage(result.folder + "/m.weights");
    if (!staged)
      return staged.takeError();
    Expected<artifact::Digest> digest =
        artifact::writeWeightsFile(*staged, inputs.weights, *inputs.layout, options.jobs);
    if (!digest)
      return digest.takeError();
    complete.weightsDigest = *digest;
  }
  auto *linker = options.output == Output::SharedLibrary   ? artifact::linkSharedLibrary
                 : options.output == Output::StaticLibrary ? artifact::linkStaticLibrary
                                                           : artifact::linkObject;
  Expected<artifact::LinkResult> linked = linker(outputs, result.path, complete);
  if (!linked)
    return linked.takeError();
  result.result = *linked;
  return outputs.commit();
}

Artifact build(const ArtifactOptions &options, std::string *error) {
  mlir::MLIRContext context;
  context.loadDialect<loop::LoopDialect>();
  std::string text = programText;
  for (unsigned i = 0; i < options.negations; ++i)
    text += negationText;
  text += options.last;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(text + "}" + options.locations, &context);
  REQUIRE(module);
  std::vector<artifact::WeightBlob> blobs = makeWeights(options);
  artifact::WeightLayout layout = artifact::layOutWeights(blobs);

  host::HostInputs host{
      .name = "m", .compiler = "ptc test", .threading = options.threading, .weightBytes = layout.bytes};
  host.functions.push_back({"main", {*module->getOps<loop::ProgramOp>().begin()}});
  for (const char *level : {"x86-64-v2", "x86-64-v3"})
    host.levels.push_back({level, cantFail(object::runtimeFeatures(level, ""))});
  if (options.weightsFile) {
    host.weightsPlace = host::WeightsPlace::File;
    host.weightsFile = "m.weights";
  }
  host.weights = {{"w", {2, 32}, {4}, {{layout.offsets[1], 16, std::nullopt}}}};
  auto offset = [&](mlir::Operation *op) -> std::optional<uint64_t> {
    return isa<loop::WeightOp>(op) ? std::optional(layout.offsets[2]) : std::nullopt;
  };
  host.storedOffset = offset;

  Artifact result;
  SmallString<64> folder;
  REQUIRE(!sys::fs::createUniqueDirectory("ptc-artifact", folder));
  result.folder = folder.str();
  const char *names[] = {"/m.so", "/m.a", "/m.o"};
  result.path = result.folder + names[unsigned(options.output)];
  result.interface = host::describeInterface(host);

  LLVMContext llvmContext;
  std::unique_ptr<Module> hostModule = cantFail(host::emitHostModule(&host, result.interface, llvmContext));
  SmallVector<char, 0> hostObject = cantFail(object::emitObject(*hostModule, {}, 0));
  SmallVector<char, 0> v2 = compileKernels("x86-64-v2"), v3 = compileKernels("x86-64-v3");

  artifact::LinkInputs inputs{.triple = Triple("x86_64-unknown-linux-gnu"), .name = "m"};
  inputs.objects = {
      {"host", {hostObject.data(), hostObject.size()}}, {"v2", {v2.data(), v2.size()}}, {"v3", {v3.data(), v3.size()}}};
  inputs.exported = host::typedNames(result.interface);
  inputs.exported.push_back("ptc_model_v1");
  inputs.weights = blobs;
  inputs.layout = &layout;
  inputs.embedWeights = !options.weightsFile;
  inputs.jobs = options.jobs;
  Error failed = link(options, inputs, result);
  if (error)
    *error = toString(std::move(failed));
  else
    REQUIRE(toString(std::move(failed)) == "");
  return result;
}

} // namespace ptc::test
