/// Static libraries of ELF objects that are written by hand, so that each of their fields can be wrong.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

#ifdef __aarch64__
constexpr uint16_t host_machine = EM_AARCH64;
#else
constexpr uint16_t host_machine = EM_X86_64;
#endif

struct WrittenSection {
    uint32_t type = SHT_PROGBITS;
    uint64_t flags = SHF_ALLOC;
    std::string bytes;
    uint64_t alignment = 16, size_of_nothing = 0;  // the second: of SHT_NOBITS
};

struct WrittenSymbol {
    std::string name;
    uint16_t section = SHN_UNDEF;
    uint64_t value = 0, size = 0;
    unsigned bind = STB_GLOBAL, type = STT_NOTYPE, visibility = STV_DEFAULT;
};

struct WrittenRelocation {
    uint32_t section, type;
    uint64_t offset, symbol;
    int64_t addend = 0;
};

/// Its sections are numbered from 1, then come the relocations of those that have some, then symbols and names; symbols from 1.
struct WrittenObject {
    std::vector<WrittenSection> sections;
    std::vector<WrittenSymbol> symbols;
    std::vector<WrittenRelocation> relocations;
    uint16_t machine = host_machine;
};

template <typename T>
void put(std::string &bytes, const T &value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

inline std::string object_bytes(const WrittenObject &object) {
    std::vector<Elf64_Shdr> headers(1);
    std::string content(sizeof(Elf64_Ehdr), '\0');
    const auto add = [&](Elf64_Shdr header, const std::string &bytes) {
        content.resize((content.size() + 15) / 16 * 16);
        header.sh_offset = content.size();
        if (header.sh_type != SHT_NOBITS) header.sh_size = bytes.size();
        content += bytes;
        headers.push_back(header);
        return headers.size() - 1;
    };
    for (const WrittenSection &s : object.sections) {
        Elf64_Shdr header{};
        header.sh_type = s.type, header.sh_flags = s.flags, header.sh_addralign = s.alignment, header.sh_size = s.size_of_nothing;
        add(header, s.bytes);
    }
    std::vector<size_t> tables;
    for (uint32_t section = 1; section <= object.sections.size(); section++) {
        std::string bytes;
        for (const WrittenRelocation &r : object.relocations)
            if (r.section == section) put(bytes, Elf64_Rela{r.offset, ELF64_R_INFO(r.symbol, r.type), r.addend});
        if (bytes.empty()) continue;
        Elf64_Shdr header{};
        header.sh_type = SHT_RELA, header.sh_flags = SHF_INFO_LINK, header.sh_info = section, header.sh_entsize = sizeof(Elf64_Rela);
        tables.push_back(add(header, bytes));
    }
    std::string names(1, '\0'), symbols;
    put(symbols, Elf64_Sym{});
    for (const WrittenSymbol &s : object.symbols) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<uint32_t>(s.name.empty() ? 0 : names.size());
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(s.bind, s.type));
        symbol.st_other = static_cast<unsigned char>(s.visibility);
        symbol.st_shndx = s.section, symbol.st_value = s.value, symbol.st_size = s.size;
        if (!s.name.empty()) names += s.name + '\0';
        put(symbols, symbol);
    }
    Elf64_Shdr header{};
    header.sh_type = SHT_STRTAB;
    const auto names_at = static_cast<uint32_t>(add(header, names));
    header.sh_type = SHT_SYMTAB, header.sh_link = names_at, header.sh_entsize = sizeof(Elf64_Sym);
    const auto symbols_at = static_cast<uint32_t>(add(header, symbols));
    for (const size_t table : tables) headers[table].sh_link = symbols_at;
    content.resize((content.size() + 15) / 16 * 16);
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64, head.e_ident[EI_DATA] = ELFDATA2LSB, head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_REL, head.e_machine = object.machine, head.e_version = EV_CURRENT, head.e_ehsize = sizeof head;
    head.e_shoff = content.size(), head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = static_cast<uint16_t>(headers.size()), head.e_shstrndx = static_cast<uint16_t>(names_at);
    std::memcpy(content.data(), &head, sizeof head);
    for (const Elf64_Shdr &h : headers) put(content, h);
    return content;
}

/// A member of a static library, whose name has at most 15 characters.
inline std::string member_bytes(const std::string &name, const std::string &bytes) {
    const auto field = [](std::string text, size_t width) {
        text.resize(width, ' ');
        return text;
    };
    std::string all = field(name, 16) + field("0", 12) + field("0", 6) + field("0", 6) + field("644", 8);
    all += field(std::to_string(bytes.size()), 10) + "`\n" + bytes;
    if (bytes.size() % 2) all += '\n';
    return all;
}

inline std::string archive_bytes(const std::vector<std::string> &objects) {
    std::string all = "!<arch>\n";
    for (size_t i = 0; i < objects.size(); i++) all += member_bytes("part" + std::to_string(i) + ".o/", objects[i]);
    return all;
}

inline std::string file_bytes(const char *path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace tessera::test
