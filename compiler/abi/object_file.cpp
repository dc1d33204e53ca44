#include "compiler/abi/object_file.h"

#include <elf.h>

#include <cstring>
#include <functional>

#include "compiler/abi/wasm_object.h"
#include "support/text/error.h"

namespace tessera {

template <typename T>
static T at(const std::string &bytes, size_t offset) {
    require(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset, "an object file is whole");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

static std::string text_at(const std::string &bytes, size_t offset, char end) {
    const size_t stop = bytes.find(end, offset);
    require(stop != std::string::npos, "a name in an object file ends");
    return bytes.substr(offset, stop - offset);
}

static bool is_elf(const std::string &object) {
    return object.size() >= sizeof(Elf64_Ehdr) && std::memcmp(object.data(), ELFMAG, SELFMAG) == 0 && object[EI_CLASS] == ELFCLASS64 &&
           object[EI_DATA] == ELFDATA2LSB;
}

bool is_object(const std::string &bytes) { return is_elf(bytes) || is_wasm(bytes); }

static std::vector<Elf64_Shdr> sections_of(const std::string &object) {
    std::vector<Elf64_Shdr> sections;
    if (!is_elf(object)) return sections;
    const auto head = at<Elf64_Ehdr>(object, 0);
    for (size_t i = 0; i < head.e_shnum; i++) sections.push_back(at<Elf64_Shdr>(object, head.e_shoff + i * head.e_shentsize));
    return sections;
}

// Calls `visit` with each symbol, its name and where in the object it stands.
static void each_symbol(const std::string &object, const std::function<void(const Elf64_Sym &, const std::string &, size_t)> &visit) {
    const std::vector<Elf64_Shdr> sections = sections_of(object);
    for (const Elf64_Shdr &table : sections) {
        if (table.sh_type != SHT_SYMTAB) continue;
        require(table.sh_link < sections.size(), "a table of symbols has a table of names");
        for (size_t offset = table.sh_offset; offset < table.sh_offset + table.sh_size; offset += table.sh_entsize) {
            const auto symbol = at<Elf64_Sym>(object, offset);
            visit(symbol, text_at(object, sections[table.sh_link].sh_offset + symbol.st_name, '\0'), offset);
        }
    }
}

std::vector<ObjectSymbol> symbols_of(const std::string &object) {
    if (is_wasm(object)) return wasm_symbols_of(object);
    std::vector<ObjectSymbol> symbols;
    each_symbol(object, [&](const Elf64_Sym &s, const std::string &name, size_t) {
        if (!name.empty())
            symbols.push_back({name, s.st_size, s.st_shndx != SHN_UNDEF, ELF64_ST_BIND(s.st_info) != STB_LOCAL,
                               ELF64_ST_VISIBILITY(s.st_other) == STV_HIDDEN, ELF64_ST_TYPE(s.st_info) == STT_FUNC});
    });
    return symbols;
}

std::vector<std::string> code_of(const std::string &object) {
    std::vector<std::string> code;
    for (const Elf64_Shdr &section : sections_of(object)) {
        if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR)) continue;
        require(section.sh_offset <= object.size() && section.sh_size <= object.size() - section.sh_offset, "an object file is whole");
        code.push_back(object.substr(section.sh_offset, section.sh_size));
    }
    return code;
}

uint64_t loaded_bytes(const std::string &object) {
    if (is_wasm(object)) return wasm_loaded_bytes(object);
    uint64_t bytes = 0;
    for (const Elf64_Shdr &section : sections_of(object))
        if (section.sh_flags & SHF_ALLOC) bytes += section.sh_size;
    return bytes;
}

void hide_symbols(std::string &object, const std::set<std::string> &kept) {
    if (is_wasm(object)) return hide_wasm_symbols(object, kept);
    std::vector<size_t> hidden;
    each_symbol(object, [&](const Elf64_Sym &s, const std::string &name, size_t offset) {
        if (s.st_shndx != SHN_UNDEF && ELF64_ST_BIND(s.st_info) != STB_LOCAL && !kept.count(name))
            hidden.push_back(offset + offsetof(Elf64_Sym, st_other));
    });
    for (size_t offset : hidden) object[offset] = static_cast<char>((object[offset] & ~3) | STV_HIDDEN);
}

}  // namespace tessera
