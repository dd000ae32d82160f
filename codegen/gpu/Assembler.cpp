//===- Assembler.cpp - ptxas of the CUDA toolkit --------------------------===//
//
// The one program outside of ptc that a compile may run: NVIDIA's assembler is not open, and what it makes loads
// without the driver's own compiler. Its verbose report is the only source of registers and spills.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/Assembler.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace ptc;

ArrayRef<StringRef> gpu::getToolkitFolders() {
  static constexpr StringRef folders[] = {"/usr/local/cuda/bin", "/opt/cuda/bin", "/usr/lib/cuda/bin"};
  return folders;
}

std::string gpu::findAssembler() {
  ErrorOr<std::string> path = sys::findProgramByName("ptxas");
  if (!path)
    path = sys::findProgramByName("ptxas", getToolkitFolders());
  return path ? *path : "";
}

/// The number that stands before `words` in the report; 0: none. "ptxas info : Used 24 registers, ...".
static int64_t numberBefore(StringRef report, StringRef words) {
  size_t at = report.find((" " + words).str());
  if (at == StringRef::npos)
    return 0;
  StringRef number = report.take_front(at);
  number = number.drop_front(number.find_last_not_of("0123456789") + 1);
  int64_t value = 0;
  return number.getAsInteger(10, value) ? 0 : value;
}

static void readReport(StringRef report, ptc::object::CodeFacts &facts) {
  constexpr int64_t registerBytes = 4;
  facts.generalRegisters = numberBefore(report, "registers");
  facts.spills = numberBefore(report, "bytes spill stores") / registerBytes;
  facts.reloads = numberBefore(report, "bytes spill loads") / registerBytes;
  facts.stackBytes = numberBefore(report, "bytes stack frame");
}

static uint64_t codeBytesOf(StringRef cubin) {
  Expected<llvm::object::ELF64LEFile> file = llvm::object::ELF64LEFile::create(cubin);
  if (!file)
    return consumeError(file.takeError()), 0;
  auto sections = file->sections();
  if (!sections)
    return consumeError(sections.takeError()), 0;
  uint64_t bytes = 0;
  for (const auto &section : *sections)
    if (section.sh_flags & ELF::SHF_EXECINSTR)
      bytes += section.sh_size;
  return bytes;
}

static Error writeFile(StringRef path, StringRef text) {
  std::error_code code;
  raw_fd_ostream os(path, code);
  if (!code)
    os << text;
  os.close();
  return errorCodeToError(code ? code : os.error());
}

/// Whether it is the program that does not fit, and not the text: it does not run, is no ptxas, or is too old for the
/// architecture or the version of the text.
static bool isUnfit(StringRef words, StringRef reason) {
  return !reason.empty() || !words.contains("ptxas") || words.contains("is not defined for option 'gpu-name'") ||
         words.contains("Unsupported .version");
}

/// "ptxas fatal   : Value 'sm_100' is not defined for option 'gpu-name'" without what stands before every such line.
static StringRef withoutPrefix(StringRef words) {
  return words.trim().starts_with("ptxas") && words.contains(" : ") ? words.split(" : ").second.trim() : words.trim();
}

namespace {
/// A run of the assembler.
struct Run {
  int status = 0;
  std::string said, reason; // why it did not run
};
} // namespace

static Run run(StringRef assembler, ArrayRef<StringRef> arguments, StringRef report) {
  SmallVector<StringRef> words = {assembler};
  append_range(words, arguments);
  std::optional<StringRef> streams[] = {StringRef(), report, report};
  Run result;
  result.status = sys::ExecuteAndWait(assembler, words, /*Env=*/std::nullopt, streams, /*SecondsToWait=*/600,
                                      /*MemoryLimit=*/0, &result.reason);
  if (auto said = MemoryBuffer::getFile(report, /*IsText=*/true))
    result.said = (*said)->getBuffer().str();
  return result;
}

// "Cuda compilation tools, release 13.0, V13.0.88"
std::string gpu::getToolkitVersion(StringRef assembler) {
  SmallString<128> report;
  if (sys::fs::createTemporaryFile("ptc-ptxas", "txt", report))
    return "";
  auto removed = scope_exit([&] { sys::fs::remove(report); });
  Run asked = run(assembler, {"--version"}, report);
  StringRef version = StringRef(asked.said).split("release ").second.take_until([](char c) { return c == ','; });
  return asked.status == 0 && !version.empty() && isDigit(version.front()) ? version.str() : "";
}

Expected<gpu::Assembled> gpu::assemble(StringRef assembler, StringRef text, StringRef architecture,
                                       ptc::object::CodeFacts &facts) {
  SmallString<128> folder;
  if (std::error_code code = sys::fs::createUniqueDirectory("ptc-ptxas", folder))
    return errorCodeToError(code);
  auto removed = scope_exit([&] { sys::fs::remove_directories(folder); });
  std::string input = (folder + "/kernel.ptx").str(), output = (folder + "/kernel.cubin").str(),
              report = (folder + "/report").str();
  if (Error error = writeFile(input, text))
    return std::move(error);
  std::string arch = ("-arch=" + architecture).str();
  Run assembled = run(assembler, {arch, "-O3", "-v", input, "-o", output}, report);
  StringRef words = assembled.said, reason = assembled.reason;
  if (assembled.status != 0)
    return createStringError(isUnfit(words, reason) ? std::make_error_code(std::errc::not_supported)
                                                    : inconvertibleErrorCode(),
                             assembler + " fails for " + architecture + ": " +
                                 (!reason.empty() ? reason
                                  : words.empty() ? "it says nothing"
                                                  : withoutPrefix(words)));
  auto cubin = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!cubin)
    return createStringError(cubin.getError(), "cannot read what " + assembler + " has written");
  StringRef bytes = (*cubin)->getBuffer();
  readReport(words, facts);
  return Assembled{SmallVector<char, 0>(bytes.begin(), bytes.end()), codeBytesOf(bytes)};
}
