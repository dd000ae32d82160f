// Linking in the process, and weights that never pass through it.
//
// lld links the code, which is small, against an object that only *reserves* the weights: a read-only NOBITS section,
// placed behind .bss so that it is a loadable segment of its own, last in memory. Code therefore keeps short distances
// whatever the size of the weights; only the descriptor's 64-bit pointer reaches them. lld's output then has addresses
// for the weights but no bytes. The file is extended, the segment and the section are pointed at the new end, and the
// weights are made there, in place, in mapped pages of the file. So a weight is written once, and never lies in memory
// of this process.
//
//     [ lld's image: headers, code, data, section table ][ pad to a page ][ weights ]
//
// The page is a huge one in shared libraries with many weights, in the file as in memory: systems that cache files in
// huge pages then map them as such. Products that stream weights from memory take 2 to 9 % less time, and touching all
// weights for the first time a hundredth.
//
// A relocatable object goes the same way, with one step between: names that are not public become local.
//
// The C library is linked through stand-ins written here (LibcSymbols.def), so that the result asks for symbol versions
// of glibc 2.17 at most, whatever the machine has.
//
// The build id is a digest of all bytes (weights by their own digest). Nothing in the file depends on names of inputs,
// on time or on the order of threads: same inputs, same bytes.
#include "compiler/artifact/Link.h"
#include "compiler/artifact/ElfFiles.h"
#include "compiler/artifact/Lld.h"
#include "compiler/artifact/MappedFile.h"
#include "compiler/artifact/RuntimeObject.h"
#include "runtime/include/ptc/descriptor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <deque>

using namespace llvm;

namespace ptc::artifact {
namespace {

constexpr uint64_t pageBytes = 4096;

/// Where so many bytes of weights start in a file that is mapped.
constexpr uint64_t alignmentOfWeights(uint64_t bytes) {
  return bytes < PTC_RT_WEIGHTS_HUGE ? pageBytes : PTC_RT_HUGE_PAGE;
}

struct StubLibrary {
  std::string soname;
  std::vector<VersionedSymbol> symbols;
};

/// The libraries that an artefact may need, in the order of their NEEDED entries.
std::vector<StubLibrary> stubLibraries(const Triple &triple) {
  std::vector<StubLibrary> libraries;
  auto add = [&](StringRef soname, StringRef name, StringRef version) {
    if (libraries.empty() || libraries.back().soname != soname)
      libraries.push_back({soname.str(), {}});
    libraries.back().symbols.push_back({name, version});
  };
  [[maybe_unused]] bool x86 = triple.isX86();
#define LIBC(library, name, version) add(library, #name, x86 ? version : "GLIBC_2.17");
#define OPENMP(library, name, version) add(library, #name, version);
#include "compiler/artifact/LibcSymbols.def"
#undef LIBC
#undef OPENMP
  return libraries;
}

/// The linker's command line together with the files in memory that it names.
struct Link {
  std::vector<std::string> arguments;
  std::deque<MemoryFile> files;

  Error addFile(StringRef bytes, StringRef prefix = "") {
    Expected<MemoryFile> file = MemoryFile::create(bytes);
    if (!file)
      return file.takeError();
    files.push_back(std::move(*file));
    arguments.push_back(prefix.str() + files.back().path());
    return Error::success();
  }
};

} // namespace

StringRef runtimeTriple(const Triple &triple) { return triple.isAArch64() ? "aarch64-linux-gnu" : "x86_64-linux-gnu"; }

namespace {

uint64_t embeddedBytes(const LinkInputs &inputs) {
  return inputs.layout && inputs.embedWeights ? inputs.layout->bytes : 0;
}

Error addObjects(Link &link, const LinkInputs &inputs) {
  StringRef processor = runtimeTriple(inputs.triple);
  std::optional<StringRef> runtime = runtimeObject(processor);
  if (!runtime)
    return createStringError(inconvertibleErrorCode(), "this ptc was built without a runtime for " + processor);
  for (const ObjectRef &object : inputs.objects)
    if (Error error = link.addFile(object.bytes))
      return error;
  SmallVector<char, 0> weights = writeWeightsObject(inputs.triple, embeddedBytes(inputs));
  if (Error error = link.addFile({weights.data(), weights.size()}))
    return error;
  return link.addFile(*runtime);
}

std::string versionScript(const LinkInputs &inputs) {
  std::string script = "{ global: ";
  for (const std::string &name : inputs.exported)
    script += name + "; ";
  return script + "local: *; };";
}

/// Whether an object refers to the OpenMP runtime (the descriptor does, if its threads are OpenMP's).
bool usesOpenMP(const LinkInputs &inputs) {
  for (const ObjectRef &object : inputs.objects) {
    auto file = object::ObjectFile::createELFObjectFile({object.bytes, object.name});
    if (!file) {
      consumeError(file.takeError()); // the linker will say what is wrong with it
      continue;
    }
    for (const object::SymbolRef &symbol : (*file)->symbols()) {
      Expected<StringRef> name = symbol.getName();
      if (!name)
        consumeError(name.takeError());
      else if (*name == "GOMP_parallel")
        return true;
    }
  }
  return false;
}

Error addSharedLibraryArguments(Link &link, StringRef path, const LinkInputs &inputs) {
  link.arguments.insert(
      link.arguments.end(),
      {"-shared", "--hash-style=gnu", "-z", "relro", "-z", "now", "-z", "noexecstack", "-z", "text", "-z", "defs", "-z",
       "max-page-size=" + std::to_string(inputs.triple.isAArch64() ? 65536 : pageBytes), "--gc-sections", "--as-needed",
       "-soname", sys::path::filename(path).str(), "--build-id=0x" + std::string(2 * buildIdBytes, '0')});
  if (!inputs.keepsSymbols)
    link.arguments.push_back("--strip-all");
  // An OpenMP runtime cannot be unloaded: its threads would run on in memory that is gone.
  if (usesOpenMP(inputs))
    link.arguments.insert(link.arguments.end(), {"-z", "nodelete"});
  if (Error error = link.addFile(versionScript(inputs), "--version-script="))
    return error;
  if (uint64_t bytes = embeddedBytes(inputs)) {
    std::string name = weightsSection.str(), align = std::to_string(alignmentOfWeights(bytes));
    if (Error error = link.addFile(
            "SECTIONS { " + name + " ALIGN(" + align + ") : { *(" + name + ") } } INSERT AFTER .bss;", "--script="))
      return error;
  }
  if (Error error = addObjects(link, inputs))
    return error;
  for (const StubLibrary &library : stubLibraries(inputs.triple)) {
    SmallVector<char, 0> stub = writeStubLibrary(inputs.triple, library.soname, library.symbols);
    if (Error error = link.addFile({stub.data(), stub.size()}))
      return error;
  }
  return Error::success();
}

// ---- changes to the linked file, in its mapped bytes ----

using Image = object::ELFFile<object::ELF64LE>;

const Image::Elf_Shdr *findSection(const Image &image, StringRef name) {
  for (const Image::Elf_Shdr &section : cantFail(image.sections()))
    if (cantFail(image.getSectionName(section)) == name)
      return &section;
  return nullptr;
}

template <typename T> T &writable(const T &record) { return const_cast<T &>(record); }

/// Points the section and the segment of the weights at `offset` in the file, which is aligned as their address is. The
/// linker is not told of `align`, or its own file would have a gap of that size, too.
void placeWeights(const Image &image, uint64_t offset, uint64_t align) {
  Image::Elf_Shdr &section = writable(*findSection(image, weightsSection));
  section.sh_type = ELF::SHT_PROGBITS;
  section.sh_offset = offset;
  for (const Image::Elf_Phdr &segment : cantFail(image.program_headers()))
    if (segment.p_type == ELF::PT_LOAD && segment.p_vaddr == section.sh_addr && segment.p_filesz == 0) {
      writable(segment).p_offset = offset;
      writable(segment).p_filesz = segment.p_memsz;
      writable(segment).p_align = std::max<uint64_t>(segment.p_align, align);
    }
}

void writeDigest(const Image &image, MutableArrayRef<char> bytes, const Digest &digest) {
  if (const Image::Elf_Shdr *section = findSection(image, digestSection))
    std::memcpy(bytes.data() + section->sh_offset, digest.data(), digest.size());
}

/// The note's last 20 bytes are zero until here, so that the digest is over everything else.
std::string writeBuildId(const Image &image, MutableArrayRef<char> bytes) {
  const Image::Elf_Shdr *section = findSection(image, ".note.gnu.build-id");
  if (!section)
    return "";
  BLAKE3Result<buildIdBytes> id =
      BLAKE3::hash<buildIdBytes>({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  std::memcpy(bytes.data() + section->sh_offset + section->sh_size - buildIdBytes, id.data(), id.size());
  return toHex(id, /*LowerCase=*/true);
}

uint64_t codeBytes(const Image &image) {
  uint64_t sum = 0;
  for (const Image::Elf_Shdr &section : cantFail(image.sections()))
    if (section.sh_flags & ELF::SHF_EXECINSTR)
      sum += section.sh_size;
  return sum;
}

using Bytes = SmallVector<char, 0>;

/// Writes the image and the weights, aligned to `align` bytes, to `path`, which exists, and fills in what depends on
/// them.
Expected<LinkResult> writeArtifact(StringRef path, const Bytes &linked, const LinkInputs &inputs,
                                   uint64_t align = pageBytes) {
  uint64_t weights = embeddedBytes(inputs), start = weights ? alignTo(linked.size(), align) : linked.size();
  Expected<MappedFile> file = MappedFile::extend(path, start + weights);
  if (!file)
    return file.takeError();
  MutableArrayRef<char> bytes = file->bytes(), code = bytes.take_front(start);
  llvm::copy(linked, code.begin());
  Expected<Image> image = Image::create({code.data(), code.size()});
  if (!image)
    return image.takeError();
  LinkResult result;
  result.fileBytes = bytes.size();
  result.codeBytes = codeBytes(*image);
  result.weightsDigest = inputs.weightsDigest;
  if (weights) {
    placeWeights(*image, start, align);
    Expected<Digest> digest = fillWeights(inputs.weights, *inputs.layout, bytes.drop_front(start), inputs.jobs);
    if (!digest)
      return digest.takeError();
    result.weightsDigest = *digest;
  }
  writeDigest(*image, code, result.weightsDigest);
  result.buildId = writeBuildId(*image, code);
  return result;
}

Expected<Bytes> copyObject(StringRef bytes, objcopy::ConfigManager &config) {
  auto object = object::ObjectFile::createELFObjectFile({bytes, "model.o"});
  if (!object)
    return object.takeError();
  config.Common.InputFilename = config.Common.OutputFilename = "model.o";
  Bytes result;
  raw_svector_ostream stream(result);
  if (Error error = objcopy::executeObjcopyOnBinary(config, **object, stream))
    return error;
  return result;
}

/// Hidden symbols become local.
Expected<Bytes> localizeHidden(const Bytes &linked, bool keepsDebugInfo) {
  objcopy::ConfigManager config;
  config.Common.StripDebug = !keepsDebugInfo;
  config.ELF.LocalizeHidden = true;
  // Several models may be linked into one program, which tells them apart by NAME_model_v1.
  cantFail(config.Common.SymbolsToLocalize.addMatcher(
      objcopy::NameOrPattern::create("ptc_model_v1", objcopy::MatchStyle::Literal, [](Error error) { return error; })));
  return copyObject({linked.data(), linked.size()}, config);
}

Expected<Bytes> linkShared(StringRef path, const LinkInputs &inputs) {
  Link link;
  if (Error error = addSharedLibraryArguments(link, path, inputs))
    return error;
  return runLld(link.arguments);
}

Expected<Bytes> linkRelocatable(const LinkInputs &inputs) {
  Link link;
  link.arguments = {"-r"};
  if (Error error = addObjects(link, inputs))
    return error;
  Expected<Bytes> linked = runLld(link.arguments);
  return linked ? localizeHidden(*linked, inputs.keepsSymbols) : std::move(linked);
}

/// Stages `path`, and lets `write` write it.
Expected<LinkResult> writeStaged(Outputs &outputs, StringRef path, Expected<Bytes> linked,
                                 function_ref<Expected<LinkResult>(const std::string &, const Bytes &)> write) {
  if (!linked)
    return linked.takeError();
  Expected<std::string> temporary = outputs.stage(path);
  if (!temporary)
    return temporary.takeError();
  Expected<LinkResult> result = write(*temporary, *linked);
  if (!result)
    return outputs.explain(result.takeError());
  return result;
}

/// As the process's mask allows; a library is executable by custom, not by need.
void makeExecutable(StringRef path) {
  unsigned mask = sys::fs::getUmask();
  sys::fs::setPermissions(path, sys::fs::perms(0777 & ~mask));
}

} // namespace

Expected<SmallVector<char, 0>> renameSymbol(StringRef object, StringRef from, StringRef to) {
  objcopy::ConfigManager config;
  config.Common.SymbolsToRename[from] = to;
  return copyObject(object, config);
}

Expected<LinkResult> linkSharedLibrary(Outputs &outputs, StringRef path, const LinkInputs &inputs) {
  auto write = [&](const std::string &temporary, const Bytes &linked) {
    makeExecutable(temporary);
    return writeArtifact(temporary, linked, inputs, alignmentOfWeights(embeddedBytes(inputs)));
  };
  return writeStaged(outputs, path, linkShared(path, inputs), write);
}

Expected<LinkResult> linkObject(Outputs &outputs, StringRef path, const LinkInputs &inputs) {
  auto write = [&](const std::string &temporary, const Bytes &linked) {
    return writeArtifact(temporary, linked, inputs);
  };
  return writeStaged(outputs, path, linkRelocatable(inputs), write);
}

Expected<LinkResult> linkStaticLibrary(Outputs &outputs, StringRef path, const LinkInputs &inputs) {
  auto write = [&](const std::string &temporary, const Bytes &linked) -> Expected<LinkResult> {
    // Staged as well, and never committed: it goes when `scratch` does.
    Outputs scratch;
    Expected<std::string> member = scratch.stage(temporary + ".o");
    if (!member)
      return member.takeError();
    Expected<LinkResult> result = writeArtifact(*member, linked, inputs);
    if (!result)
      return result;
    Expected<NewArchiveMember> entry = NewArchiveMember::getFile(*member, /*Deterministic=*/true);
    if (!entry)
      return entry.takeError();
    std::string name = inputs.name + ".o";
    entry->MemberName = name;
    if (Error error = writeArchive(temporary, *entry, SymtabWritingMode::NormalSymtab, object::Archive::K_GNU,
                                   /*Deterministic=*/true, /*Thin=*/false))
      return error;
    sys::fs::file_size(temporary, result->fileBytes);
    return result;
  };
  return writeStaged(outputs, path, linkRelocatable(inputs), write);
}

} // namespace ptc::artifact
