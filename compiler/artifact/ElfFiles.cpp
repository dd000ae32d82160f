// Writes ELF files section by section: contents are laid out in order behind the header, the section table comes last.
// Both files are 64-bit and little-endian, as all processors that ptc compiles for.
#include "compiler/artifact/ElfFiles.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>

using namespace llvm;

namespace ptc::artifact {
namespace {

struct Section {
  std::string name;
  ELF::Elf64_Shdr header = {};
  std::string contents; // empty for NOBITS, whose size is header.sh_size
};

class ElfFile {
public:
  ElfFile(const Triple &triple, uint16_t type) : triple(triple), type(type) { add("", ELF::SHT_NULL, 0, 0); }

  unsigned add(StringRef name, uint32_t sectionType, uint64_t flags, uint64_t align, std::string contents = {}) {
    Section section;
    section.name = name;
    section.header.sh_type = sectionType;
    section.header.sh_flags = flags;
    section.header.sh_addralign = align;
    section.header.sh_size = contents.size();
    section.contents = std::move(contents);
    sections.push_back(std::move(section));
    return sections.size() - 1;
  }

  ELF::Elf64_Shdr &header(unsigned index) { return sections[index].header; }

  SmallVector<char, 0> write() {
    std::string names;
    unsigned last = add(".shstrtab", ELF::SHT_STRTAB, 0, 1);
    for (Section &section : sections) {
      section.header.sh_name = names.size();
      names += section.name + '\0';
    }
    sections[last].header.sh_size = names.size();
    sections[last].contents = std::move(names);

    uint64_t offset = sizeof(ELF::Elf64_Ehdr);
    for (Section &section : sections) {
      offset = alignTo(offset, std::max<uint64_t>(section.header.sh_addralign, 1));
      section.header.sh_offset = section.header.sh_type == ELF::SHT_NULL ? 0 : offset;
      offset += section.contents.size();
    }
    offset = alignTo(offset, 8);

    SmallVector<char, 0> file(offset + sections.size() * sizeof(ELF::Elf64_Shdr));
    ELF::Elf64_Ehdr ehdr = fileHeader(offset, last);
    std::memcpy(file.data(), &ehdr, sizeof(ehdr));
    for (const Section &section : sections) {
      if (!section.contents.empty())
        std::memcpy(file.data() + section.header.sh_offset, section.contents.data(), section.contents.size());
      std::memcpy(file.data() + offset, &section.header, sizeof(section.header));
      offset += sizeof(section.header);
    }
    return file;
  }

private:
  ELF::Elf64_Ehdr fileHeader(uint64_t sectionTable, unsigned namesIndex) const {
    ELF::Elf64_Ehdr ehdr = {};
    std::memcpy(ehdr.e_ident, ELF::ElfMagic, 4);
    ehdr.e_ident[ELF::EI_CLASS] = ELF::ELFCLASS64;
    ehdr.e_ident[ELF::EI_DATA] = ELF::ELFDATA2LSB;
    ehdr.e_ident[ELF::EI_VERSION] = ELF::EV_CURRENT;
    ehdr.e_type = type;
    ehdr.e_machine = triple.isAArch64() ? ELF::EM_AARCH64 : ELF::EM_X86_64;
    ehdr.e_version = ELF::EV_CURRENT;
    ehdr.e_ehsize = sizeof(ehdr);
    ehdr.e_shentsize = sizeof(ELF::Elf64_Shdr);
    ehdr.e_shoff = sectionTable;
    ehdr.e_shnum = sections.size();
    ehdr.e_shstrndx = namesIndex;
    return ehdr;
  }

  Triple triple;
  uint16_t type;
  std::vector<Section> sections;
};

template <typename Record> void append(std::string &bytes, const Record &record) {
  bytes.append(reinterpret_cast<const char *>(&record), sizeof(record));
}

uint32_t addString(std::string &table, StringRef text) {
  uint32_t at = table.size();
  table += text;
  table += '\0';
  return at;
}

/// The chain of version definitions: the library itself first (index 1), then each version from index 2 on.
std::string versionDefinitions(StringRef soname, ArrayRef<StringRef> versions, std::string &strings) {
  std::string bytes;
  for (unsigned i = 0; i <= versions.size(); ++i) {
    StringRef name = i == 0 ? soname : versions[i - 1];
    object::Elf_Verdef_Impl<object::ELF64LE> definition = {};
    definition.vd_version = 1;
    definition.vd_flags = i == 0 ? ELF::VER_FLG_BASE : 0;
    definition.vd_ndx = i + 1;
    definition.vd_cnt = 1;
    definition.vd_hash = object::hashSysV(name);
    definition.vd_aux = sizeof(definition);
    definition.vd_next =
        i == versions.size() ? 0 : sizeof(definition) + sizeof(object::Elf_Verdaux_Impl<object::ELF64LE>);
    object::Elf_Verdaux_Impl<object::ELF64LE> aux = {};
    aux.vda_name = addString(strings, name);
    append(bytes, definition);
    append(bytes, aux);
  }
  return bytes;
}

} // namespace

SmallVector<char, 0> writeStubLibrary(const Triple &triple, StringRef soname, ArrayRef<VersionedSymbol> symbols) {
  std::string strings(1, '\0');
  SmallVector<StringRef> versions;
  std::string table, indices;
  append(table, ELF::Elf64_Sym{});
  append(indices, uint16_t(0));
  for (const VersionedSymbol &symbol : symbols) {
    auto *found = llvm::find(versions, symbol.version);
    uint16_t index = 2 + (found - versions.begin());
    if (found == versions.end())
      versions.push_back(symbol.version);
    ELF::Elf64_Sym entry = {};
    entry.st_name = addString(strings, symbol.name);
    entry.setBindingAndType(ELF::STB_GLOBAL, ELF::STT_FUNC);
    entry.st_shndx = ELF::SHN_ABS;
    append(table, entry);
    append(indices, index);
  }
  std::string definitions = versionDefinitions(soname, versions, strings);
  std::string dynamic;
  append(dynamic, ELF::Elf64_Dyn{ELF::DT_SONAME, {addString(strings, soname)}});
  append(dynamic, ELF::Elf64_Dyn{ELF::DT_NULL, {0}});

  ElfFile file(triple, ELF::ET_DYN);
  unsigned names = file.add(".dynstr", ELF::SHT_STRTAB, ELF::SHF_ALLOC, 1, std::move(strings));
  unsigned dynsym = file.add(".dynsym", ELF::SHT_DYNSYM, ELF::SHF_ALLOC, 8, std::move(table));
  file.header(dynsym).sh_link = names;
  file.header(dynsym).sh_info = 1;
  file.header(dynsym).sh_entsize = sizeof(ELF::Elf64_Sym);
  unsigned versym = file.add(".gnu.version", ELF::SHT_GNU_versym, ELF::SHF_ALLOC, 2, std::move(indices));
  file.header(versym).sh_link = dynsym;
  file.header(versym).sh_entsize = 2;
  unsigned verdef = file.add(".gnu.version_d", ELF::SHT_GNU_verdef, ELF::SHF_ALLOC, 8, std::move(definitions));
  file.header(verdef).sh_link = names;
  file.header(verdef).sh_info = versions.size() + 1;
  unsigned dyn = file.add(".dynamic", ELF::SHT_DYNAMIC, ELF::SHF_ALLOC, 8, std::move(dynamic));
  file.header(dyn).sh_link = names;
  file.header(dyn).sh_entsize = sizeof(ELF::Elf64_Dyn);
  return file.write();
}

SmallVector<char, 0> writeWeightsObject(const Triple &triple, uint64_t bytes) {
  ElfFile file(triple, ELF::ET_REL);
  std::string strings(1, '\0'), table;
  append(table, ELF::Elf64_Sym{});
  auto define = [&](StringRef name, unsigned section, uint64_t size) {
    ELF::Elf64_Sym entry = {};
    entry.st_name = addString(strings, name);
    entry.setBindingAndType(ELF::STB_GLOBAL, ELF::STT_OBJECT);
    entry.st_other = ELF::STV_HIDDEN;
    entry.st_shndx = section;
    entry.st_size = size;
    append(table, entry);
  };
  define(digestSymbol, file.add(digestSection, ELF::SHT_PROGBITS, ELF::SHF_ALLOC, 16, std::string(digestBytes, '\0')),
         digestBytes);
  if (bytes > 0) {
    unsigned index = file.add(weightsSection, ELF::SHT_NOBITS, ELF::SHF_ALLOC, 4096);
    file.header(index).sh_size = bytes;
    define(weightsSymbol, index, bytes);
  }
  file.add(".note.GNU-stack", ELF::SHT_PROGBITS, 0, 1);
  unsigned names = file.add(".strtab", ELF::SHT_STRTAB, 0, 1, std::move(strings));
  unsigned symtab = file.add(".symtab", ELF::SHT_SYMTAB, 0, 8, std::move(table));
  file.header(symtab).sh_link = names;
  file.header(symtab).sh_info = 1;
  file.header(symtab).sh_entsize = sizeof(ELF::Elf64_Sym);
  return file.write();
}

} // namespace ptc::artifact
