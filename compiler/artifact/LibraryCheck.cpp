// A loader maps what the headers say, and touching a page behind the end of a file that was cut off is a signal. So the
// headers are compared with the file first, by a reader that checks every offset. The build id then tells whether any
// other byte has changed: it is a digest of the file up to the weights with its own place zeroed (Link.cpp), and is
// made again here.
#include "compiler/artifact/LibraryCheck.h"
#include "compiler/artifact/ElfFiles.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace ptc::artifact {

using Image = object::ELFFile<object::ELF64LE>;

static Error fault(const Twine &what) { return createStringError(std::make_error_code(std::errc::io_error), what); }

static uint16_t hostMachine() { return Triple(sys::getProcessTriple()).isAArch64() ? ELF::EM_AARCH64 : ELF::EM_X86_64; }

/// Segments and sections lie within the file.
static Error checkExtents(const Image &image, uint64_t fileBytes) {
  auto inside = [&](uint64_t offset, uint64_t size) { return offset <= fileBytes && size <= fileBytes - offset; };
  auto segments = image.program_headers();
  if (!segments)
    return fault("it is cut off: " + toString(segments.takeError()));
  for (const auto &segment : *segments)
    if (!inside(segment.p_offset, segment.p_filesz))
      return fault("it is cut off: a segment ends behind byte " + Twine(fileBytes) + ", the last one");
  auto sections = image.sections();
  if (!sections)
    return fault("it is cut off: " + toString(sections.takeError()));
  for (const auto &section : *sections)
    if (section.sh_type != ELF::SHT_NOBITS && !inside(section.sh_offset, section.sh_size))
      return fault("it is cut off: a section ends behind byte " + Twine(fileBytes) + ", the last one");
  return Error::success();
}

static Expected<LibraryState> compareBuildId(const Image &image, ArrayRef<uint8_t> bytes) {
  uint64_t idEnd = 0, weights = bytes.size();
  for (const auto &section : cantFail(image.sections())) {
    Expected<StringRef> name = image.getSectionName(section);
    if (!name)
      return fault("it is damaged: " + toString(name.takeError()));
    if (*name == ".note.gnu.build-id")
      idEnd = section.sh_offset + section.sh_size;
    else if (*name == weightsSection && section.sh_type != ELF::SHT_NOBITS)
      weights = section.sh_offset;
  }
  if (idEnd < buildIdBytes || idEnd > weights)
    return LibraryState::Foreign;
  ArrayRef<uint8_t> before = bytes.take_front(idEnd - buildIdBytes), id = bytes.slice(before.size(), buildIdBytes);
  BLAKE3 hasher;
  hasher.update(before);
  hasher.update(std::array<uint8_t, buildIdBytes>{});
  hasher.update(bytes.slice(idEnd, weights - idEnd));
  BLAKE3Result<buildIdBytes> expected = hasher.final<buildIdBytes>();
  return ArrayRef<uint8_t>(expected) == id ? LibraryState::Whole : LibraryState::Changed;
}

Expected<LibraryState> checkLibrary(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError(file.getError(), file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  if (!bytes.starts_with(ELF::ElfMagic))
    return fault(bytes.empty() ? "it is empty" : "it is not a shared library");
  Expected<Image> image = Image::create(bytes);
  if (!image)
    return fault("it is cut off: " + toString(image.takeError()));
  const auto &header = image->getHeader();
  if (header.e_ident[ELF::EI_CLASS] != ELF::ELFCLASS64 || header.e_type != ELF::ET_DYN)
    return fault("it is not a shared library");
  if (header.e_machine != hostMachine())
    return LibraryState::OtherProcessor;
  if (Error error = checkExtents(*image, bytes.size()))
    return std::move(error);
  return compareBuildId(*image, arrayRefFromStringRef(bytes));
}

} // namespace ptc::artifact
