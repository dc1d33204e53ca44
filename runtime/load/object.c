#include "runtime/load/object.h"

#include <string.h>

#include "runtime/load/refusal.h"
#include "runtime/load/relocation.h"

/* How a name is shown in a message. */
#define SHOWN "%.100s"
#define REMEDY "The library is damaged; generate it again."
#define KIND_REMEDY "Libraries that 'generate' writes have none; load what it wrote."

enum { MAX_ALIGNMENT = 4096, LLVM_ADDRSIG = 0x6fff4c03, X86_64_UNWIND = 0x70000001 };

/* Subject, expected, got. */
static TessLoadStatus broken(const TessLoadObject *o, TessLoadError *error, const char *what, uint64_t expected, uint64_t got) {
    return tess_load_refuse(error, TESS_LOAD_OBJECT, "object '%.*s': expected %s %llu, got %llu. " REMEDY, o->member.name_bytes,
                            o->member.name, what, (unsigned long long)expected, (unsigned long long)got);
}

static TessLoadStatus broken_section(const TessLoadObject *o, TessLoadError *error, uint32_t section, const char *what, uint64_t expected,
                                     uint64_t got) {
    return tess_load_refuse(error, TESS_LOAD_OBJECT, "object '%.*s', section %u: expected %s %llu, got %llu. " REMEDY, o->member.name_bytes,
                            o->member.name, section, what, (unsigned long long)expected, (unsigned long long)got);
}

static TessLoadStatus unsupported_section(const TessLoadObject *o, TessLoadError *error, uint32_t section, const char *expected,
                                          uint64_t got) {
    return tess_load_refuse(error, TESS_LOAD_UNSUPPORTED, "object '%.*s', section %u: expected %s, got %#llx. " KIND_REMEDY,
                            o->member.name_bytes, o->member.name, section, expected, (unsigned long long)got);
}

static TessLoadStatus unsupported_symbol(const TessLoadObject *o, TessLoadError *error, const Elf64_Sym *symbol, const char *expected,
                                         unsigned got) {
    return tess_load_refuse(error, TESS_LOAD_UNSUPPORTED, "object '%.*s', symbol '" SHOWN "': expected %s, got %#x. " KIND_REMEDY,
                            o->member.name_bytes, o->member.name, tess_load_symbol_name(o, symbol), expected, got);
}

Elf64_Shdr tess_load_section(const TessLoadObject *o, uint32_t section) {
    Elf64_Shdr value; /* a member begins at any even byte */
    memcpy(&value, o->member.bytes + o->sections_at + section * sizeof value, sizeof value);
    return value;
}

Elf64_Sym tess_load_symbol(const TessLoadObject *o, uint32_t symbol) {
    Elf64_Sym value;
    memcpy(&value, o->member.bytes + o->symbols_at + symbol * sizeof value, sizeof value);
    return value;
}

Elf64_Rela tess_load_rela(const TessLoadObject *o, const Elf64_Shdr *section, uint64_t number) {
    Elf64_Rela value;
    memcpy(&value, o->member.bytes + section->sh_offset + number * sizeof value, sizeof value);
    return value;
}

int tess_load_has_relocations(const TessLoadObject *o, const Elf64_Shdr *section) {
    Elf64_Shdr target;
    if (section->sh_type != SHT_RELA || section->sh_info >= o->n_sections) return 0;
    target = tess_load_section(o, section->sh_info);
    return tess_load_is_loaded(&target);
}

static const char *machine_name(unsigned machine) {
    return machine == EM_X86_64 ? "x86-64" : machine == EM_AARCH64 ? "64-bit ARM" : "another processor";
}

static TessLoadStatus check_header(TessLoadObject *o, unsigned machine, TessLoadError *error) {
    Elf64_Ehdr head;
    if (o->member.size < sizeof head || memcmp(o->member.bytes, ELFMAG, SELFMAG) != 0)
        return tess_load_refuse(
            error, TESS_LOAD_MACHINE,
            "object '%.*s': expected an ELF object, got %s. A library for WebAssembly, Windows or macOS cannot be loaded "
            "here; generate it with --target host.",
            o->member.name_bytes, o->member.name, o->member.size < sizeof head ? "fewer bytes" : "other bytes");
    memcpy(&head, o->member.bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != machine)
        return tess_load_refuse(
            error, TESS_LOAD_MACHINE,
            "object '%.*s': expected code for %s (ELF machine %u), got code for %s (class %d, byte order %d, machine %d). "
            "Generate it with --target host.",
            o->member.name_bytes, o->member.name, machine_name(machine), machine, machine_name(head.e_machine), head.e_ident[EI_CLASS],
            head.e_ident[EI_DATA], head.e_machine);
    if (head.e_ident[EI_OSABI] != ELFOSABI_NONE || head.e_flags != 0)
        return tess_load_refuse(error, TESS_LOAD_UNSUPPORTED,
                                "object '%.*s': expected no ABI of a system and no flags, got ABI %d, flags %#x. " KIND_REMEDY,
                                o->member.name_bytes, o->member.name, head.e_ident[EI_OSABI], head.e_flags);
    if (head.e_type != ET_REL)
        return tess_load_refuse(
            error, TESS_LOAD_UNSUPPORTED,
            "object '%.*s': expected a relocatable object (type 1), got type %d. Load lib<name>.a as 'generate' wrote it.",
            o->member.name_bytes, o->member.name, head.e_type);
    if (head.e_ident[EI_VERSION] != EV_CURRENT || head.e_version != EV_CURRENT)
        return broken(o, error, "version", EV_CURRENT, head.e_version);
    if (head.e_ehsize != sizeof head) return broken(o, error, "a header of bytes", sizeof head, head.e_ehsize);
    if (head.e_shentsize != sizeof(Elf64_Shdr)) return broken(o, error, "section headers of bytes", sizeof(Elf64_Shdr), head.e_shentsize);
    if (head.e_shnum == 0 || head.e_shnum >= SHN_LORESERVE)
        return broken(o, error, "sections, at least one and at most", SHN_LORESERVE - 1, head.e_shnum);
    if (head.e_shoff > o->member.size || head.e_shnum * sizeof(Elf64_Shdr) > o->member.size - head.e_shoff)
        return broken(o, error, "section headers that end at or before byte", o->member.size, head.e_shoff);
    o->sections_at = head.e_shoff;
    o->n_sections = head.e_shnum;
    return TESS_LOAD_OK;
}

static int is_known(const Elf64_Shdr *section) {
    switch (section->sh_type) {
    case SHT_NULL:
    case SHT_PROGBITS:
    case SHT_NOBITS:
    case SHT_NOTE:
    case SHT_SYMTAB:
    case SHT_STRTAB:
    case SHT_RELA:
    case LLVM_ADDRSIG: return 1;
    default: return section->sh_type == X86_64_UNWIND;
    }
}

static TessLoadStatus check_section(const TessLoadObject *o, uint32_t i, TessLoadError *error) {
    const uint64_t known = SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS, both = SHF_WRITE | SHF_EXECINSTR;
    const Elf64_Shdr s = tess_load_section(o, i);
    if (!is_known(&s))
        return unsupported_section(o, error, i, "code, data, notes, symbols, names or relocations with addends by its type", s.sh_type);
    if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS && (s.sh_offset > o->member.size || s.sh_size > o->member.size - s.sh_offset))
        return broken_section(o, error, i, "bytes that end at or before", o->member.size, s.sh_offset + s.sh_size);
    if (!tess_load_is_loaded(&s)) return TESS_LOAD_OK;
    if (s.sh_type == SHT_NULL || s.sh_type == SHT_SYMTAB || s.sh_type == SHT_STRTAB || s.sh_type == SHT_RELA)
        return unsupported_section(o, error, i, "code or data where the flags say that it becomes memory", s.sh_type);
    if ((s.sh_flags & ~known) != 0)
        return unsupported_section(o, error, i, "no flags but those of code, data and constants (no thread-local storage, no groups)",
                                   s.sh_flags);
    if ((s.sh_flags & both) == both) return unsupported_section(o, error, i, "memory that is written or run, and not both", s.sh_flags);
    if (s.sh_size > TESS_LOAD_MAX_BYTES)
        return tess_load_refuse(error, TESS_LOAD_LARGE, "object '%.*s', section %u: expected at most %llu bytes, got %llu. " REMEDY,
                                o->member.name_bytes, o->member.name, i, (unsigned long long)TESS_LOAD_MAX_BYTES,
                                (unsigned long long)s.sh_size);
    if ((s.sh_addralign & (s.sh_addralign - 1)) != 0 || s.sh_addralign > MAX_ALIGNMENT)
        return broken_section(o, error, i, "an alignment that is a power of two of at most", MAX_ALIGNMENT, s.sh_addralign);
    return TESS_LOAD_OK;
}

/* The table of symbols and that of their names. */
static TessLoadStatus find_symbols(TessLoadObject *o, uint32_t *table, TessLoadError *error) {
    Elf64_Shdr s, names;
    uint32_t i;
    *table = 0;
    for (i = 0; i < o->n_sections; ++i) {
        s = tess_load_section(o, i);
        if (s.sh_type != SHT_SYMTAB) continue;
        if (*table) return broken_section(o, error, i, "one table of symbols, in section", *table, i);
        *table = i;
    }
    if (!*table) return TESS_LOAD_OK;
    s = tess_load_section(o, *table);
    if (s.sh_entsize != sizeof(Elf64_Sym)) return broken_section(o, error, *table, "symbols of bytes", sizeof(Elf64_Sym), s.sh_entsize);
    if (s.sh_size % sizeof(Elf64_Sym) != 0) return broken_section(o, error, *table, "bytes, a multiple of", sizeof(Elf64_Sym), s.sh_size);
    if (s.sh_link >= o->n_sections) return broken_section(o, error, *table, "names in a section below", o->n_sections, s.sh_link);
    names = tess_load_section(o, s.sh_link);
    if (names.sh_type != SHT_STRTAB) return broken_section(o, error, s.sh_link, "names, which are of type", SHT_STRTAB, names.sh_type);
    if (names.sh_size == 0 || o->member.bytes[names.sh_offset + names.sh_size - 1] != 0)
        return broken_section(o, error, s.sh_link, "names that end with the byte", 0, names.sh_size);
    o->names = (const char *)o->member.bytes + names.sh_offset;
    o->name_bytes = names.sh_size;
    o->symbols_at = s.sh_offset;
    o->n_symbols = (uint32_t)(s.sh_size / sizeof(Elf64_Sym));
    return TESS_LOAD_OK;
}

static TessLoadStatus check_symbol(const TessLoadObject *o, uint32_t i, TessLoadError *error) {
    const Elf64_Sym s = tess_load_symbol(o, i);
    const unsigned type = ELF64_ST_TYPE(s.st_info), bind = ELF64_ST_BIND(s.st_info);
    Elf64_Shdr section;
    if (s.st_name >= o->name_bytes) return broken(o, error, "the name of a symbol below byte", o->name_bytes, s.st_name);
    if (type != STT_NOTYPE && type != STT_OBJECT && type != STT_FUNC && type != STT_SECTION && type != STT_FILE)
        return unsupported_symbol(o, error, &s, "a function, an object or a section (no thread-local storage, nothing chosen at load)",
                                  type);
    if (bind != STB_LOCAL && bind != STB_GLOBAL)
        return unsupported_symbol(o, error, &s, "a local or a global symbol (no weak or unique one)", bind);
    if (bind == STB_GLOBAL && s.st_name == 0) return broken(o, error, "a name of the global symbol with number", i, 0);
    if (s.st_shndx == SHN_UNDEF || (s.st_shndx == SHN_ABS && type == STT_FILE && bind == STB_LOCAL)) return TESS_LOAD_OK;
    if (s.st_shndx >= SHN_LORESERVE) return unsupported_symbol(o, error, &s, "a symbol of a section (none absolute or common)", s.st_shndx);
    if (s.st_shndx >= o->n_sections) return broken(o, error, "the section of a symbol below", o->n_sections, s.st_shndx);
    section = tess_load_section(o, s.st_shndx);
    if (!tess_load_is_loaded(&section)) {
        if (bind == STB_LOCAL) return TESS_LOAD_OK;
        return unsupported_symbol(o, error, &s, "a global symbol of code or data", s.st_shndx);
    }
    if (s.st_value > section.sh_size || s.st_size > section.sh_size - s.st_value)
        return broken(o, error, "a symbol that ends at or before byte", section.sh_size, s.st_value + s.st_size);
    return TESS_LOAD_OK;
}

static TessLoadStatus check_relocation(const TessLoadObject *o, unsigned machine, const Elf64_Rela *r, const Elf64_Shdr *target,
                                       TessLoadError *error) {
    const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
    const uint64_t number = ELF64_R_SYM(r->r_info);
    const TessLoadRelocation *kind = tess_load_relocation(machine, type);
    Elf64_Sym symbol;
    Elf64_Shdr section;
    if (!kind)
        return tess_load_refuse(error, TESS_LOAD_UNSUPPORTED,
                                "object '%.*s': expected relocations of position-independent code (%s), got type %u. " KIND_REMEDY,
                                o->member.name_bytes, o->member.name, tess_load_relocation_names(machine), type);
    if (r->r_offset > target->sh_size || kind->bytes > target->sh_size - r->r_offset)
        return broken(o, error, "a relocation that ends at or before byte", target->sh_size, r->r_offset + kind->bytes);
    if (r->r_offset % kind->alignment != 0) return broken(o, error, "a relocation at a multiple of", kind->alignment, r->r_offset);
    if (number >= o->n_symbols) return broken(o, error, "the symbol of a relocation below", o->n_symbols, number);
    if (kind->through == TESS_LOAD_BY_GOT && kind->alignment > 1 && r->r_addend != 0)
        return broken(o, error, "the addend of an address in a table", 0, (uint64_t)r->r_addend);
    symbol = tess_load_symbol(o, (uint32_t)number);
    if (symbol.st_shndx == SHN_UNDEF) {
        if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL || kind->bytes == 0) return TESS_LOAD_OK;
        return broken(o, error, "a global symbol where none is defined, got the local one with number", 1, number);
    }
    if (symbol.st_shndx >= o->n_sections) return unsupported_symbol(o, error, &symbol, "a symbol of a section", symbol.st_shndx);
    section = tess_load_section(o, symbol.st_shndx);
    if (!tess_load_is_loaded(&section)) return unsupported_symbol(o, error, &symbol, "a symbol of code or data", symbol.st_shndx);
    return TESS_LOAD_OK;
}

static TessLoadStatus check_relocations(const TessLoadObject *o, unsigned machine, uint32_t table, uint32_t i, TessLoadError *error) {
    const Elf64_Shdr s = tess_load_section(o, i);
    Elf64_Shdr target;
    uint64_t number;
    if (s.sh_info >= o->n_sections) return broken_section(o, error, i, "relocations of a section below", o->n_sections, s.sh_info);
    if (!tess_load_has_relocations(o, &s)) return TESS_LOAD_OK;
    target = tess_load_section(o, s.sh_info);
    if (s.sh_link != table || !table) return broken_section(o, error, i, "symbols in section", table, s.sh_link);
    if (s.sh_entsize != sizeof(Elf64_Rela)) return broken_section(o, error, i, "relocations of bytes", sizeof(Elf64_Rela), s.sh_entsize);
    if (s.sh_size % sizeof(Elf64_Rela) != 0) return broken_section(o, error, i, "bytes, a multiple of", sizeof(Elf64_Rela), s.sh_size);
    if (target.sh_type == SHT_NOBITS && s.sh_size != 0)
        return broken_section(o, error, i, "relocations of a section of type", SHT_PROGBITS, target.sh_type);
    for (number = 0; number < s.sh_size / sizeof(Elf64_Rela); ++number) {
        const Elf64_Rela r = tess_load_rela(o, &s, number);
        const TessLoadStatus status = check_relocation(o, machine, &r, &target, error);
        if (status) return status;
    }
    return TESS_LOAD_OK;
}

TessLoadStatus tess_load_object_open(const TessLoadMember *member, unsigned machine, TessLoadObject *o, TessLoadError *error) {
    TessLoadStatus status;
    uint32_t i, table = 0;
    memset(o, 0, sizeof *o);
    o->member = *member;
    if (o->member.name_bytes > TESS_LOAD_SHOWN_NAME) o->member.name_bytes = TESS_LOAD_SHOWN_NAME;
    status = check_header(o, machine, error);
    for (i = 0; !status && i < o->n_sections; ++i) status = check_section(o, i, error);
    if (!status) status = find_symbols(o, &table, error);
    for (i = 0; !status && i < o->n_symbols; ++i) status = check_symbol(o, i, error);
    for (i = 0; !status && i < o->n_sections; ++i)
        if (tess_load_section(o, i).sh_type == SHT_RELA) status = check_relocations(o, machine, table, i, error);
    return status;
}
