/* Passes: members are counted; each is opened, which checks it, and its symbols are looked through; the image is laid out; sections are
 * copied; globals get addresses; relocations are written; memory is protected.
 *
 *     one mapping:  [this library, its globals, their names, addresses (GOT), constants]  read
 *                   [code that jumps outside, code]                                       read, run
 *                   [data]                                                                read, write */
#define _GNU_SOURCE
#include "runtime/load/link.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/load/externals.h"
#include "runtime/load/object.h"
#include "runtime/load/perf_map.h"
#include "runtime/load/refusal.h"
#include "runtime/load/relocation.h"

#ifdef __x86_64__
static const unsigned machine = EM_X86_64;
#else
static const unsigned machine = EM_AARCH64;
#endif

enum { CONSTANTS, CODE, DATA, PARTS };

/* A symbol of one object. Of the numbers, 0 is none; what no relocation wants may be defined nowhere. */
typedef struct Use {
    uint64_t address;
    uint32_t got, stub, wanted;
} Use;

/* An object and what is known of its sections and symbols while it is loaded. */
typedef struct Part {
    TessLoadObject object;
    uint64_t *sections; /* where they are: from the beginning of their part, then their addresses */
    Use *uses;
    const char *names; /* in the image */
} Part;

typedef struct Loading {
    const void *bytes;
    uint64_t size;
    TessLoadError *error;
    Part *parts;
    uint64_t scratch_bytes;
    uint64_t n_parts, n_sections, n_symbols, n_globals, n_got, n_stubs, name_bytes;
    uint64_t places; /* for globals */
    uint64_t sizes[PARTS], begins[PARTS], names_at, got_at;
    TessLoaded *image;
} Loading;

static TessLoadStatus refuse_memory(const Loading *l, const char *what, uint64_t bytes) {
    return tess_load_refuse(l->error, TESS_LOAD_MEMORY, "%s: expected %llu bytes of memory, got none: %s. Free some, or raise its limit.",
                            what, (unsigned long long)bytes, strerror(errno));
}

static void *map(uint64_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t rounded(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

/* Which part of the image a section belongs to. */
static int part_of(const Elf64_Shdr *section) {
    return section->sh_flags & SHF_EXECINSTR ? CODE : section->sh_flags & SHF_WRITE ? DATA : CONSTANTS;
}

static TessLoadStatus count(Loading *l) {
    TessLoadArchive archive;
    TessLoadMember member;
    TessLoadObject object;
    TessLoadStatus status = tess_load_archive_begin(&archive, l->bytes, l->size, l->error);
    while (!status) {
        status = tess_load_archive_next(&archive, &member, l->error);
        if (status || !member.bytes) break;
        status = tess_load_object_open(&member, machine, &object, l->error);
        l->n_parts++;
        l->n_sections += object.n_sections;
        l->n_symbols += object.n_symbols;
        l->name_bytes += object.name_bytes;
    }
    if (!status && l->n_parts == 0)
        return tess_load_refuse(l->error, TESS_LOAD_ARCHIVE, "library: expected at least one object, got none. Load lib<name>.a.");
    return status;
}

/* Memory for what is known while loading: at most a few times as much as the file has. */
static TessLoadStatus take_scratch(Loading *l) {
    uint64_t *sections;
    Use *uses;
    l->scratch_bytes = l->n_parts * sizeof(Part) + l->n_sections * sizeof *sections + l->n_symbols * sizeof *uses;
    l->parts = map(l->scratch_bytes);
    return l->parts ? TESS_LOAD_OK : refuse_memory(l, "loading a library", l->scratch_bytes);
}

/* What relocations lead to: symbols whose address stands in the table, and those outside that are called. */
static void mark(Loading *l, const Part *part) {
    const TessLoadObject *o = &part->object;
    uint64_t number;
    uint32_t i;
    for (i = 0; i < o->n_sections; ++i) {
        const Elf64_Shdr s = tess_load_section(o, i);
        if (!tess_load_has_relocations(o, &s)) continue;
        for (number = 0; number < s.sh_size / sizeof(Elf64_Rela); ++number) {
            const Elf64_Rela r = tess_load_rela(o, &s, number);
            const uint32_t symbol = (uint32_t)ELF64_R_SYM(r.r_info);
            const TessLoadRelocation *kind = tess_load_relocation(machine, (uint32_t)ELF64_R_TYPE(r.r_info));
            Use *use = &part->uses[symbol];
            const int is_far = kind->through == TESS_LOAD_BY_CALL && tess_load_symbol(o, symbol).st_shndx == SHN_UNDEF;
            use->wanted = 1;
            if (is_far && !use->stub) use->stub = (uint32_t)++l->n_stubs;
            if ((is_far || kind->through == TESS_LOAD_BY_GOT) && !use->got) use->got = (uint32_t)++l->n_got;
        }
    }
}

static void read_objects(Loading *l) {
    TessLoadArchive archive;
    uint64_t *sections = (uint64_t *)(l->parts + l->n_parts);
    Use *uses = (Use *)(sections + l->n_sections);
    uint64_t p;
    uint32_t i;
    tess_load_archive_begin(&archive, l->bytes, l->size, NULL); /* it was read before */
    for (p = 0; p < l->n_parts; ++p) {
        Part *part = &l->parts[p];
        TessLoadMember member;
        tess_load_archive_next(&archive, &member, NULL);
        tess_load_object_open(&member, machine, &part->object, NULL);
        part->sections = sections;
        part->uses = uses;
        sections += part->object.n_sections;
        uses += part->object.n_symbols;
        for (i = 0; i < part->object.n_symbols; ++i) {
            const Elf64_Sym s = tess_load_symbol(&part->object, i);
            l->n_globals += ELF64_ST_BIND(s.st_info) == STB_GLOBAL && s.st_shndx != SHN_UNDEF;
        }
        mark(l, part);
    }
}

/* Sizes and places. No sum overflows: a section has at most TESS_LOAD_MAX_BYTES, and once the sum is above that, an object adds one. */
static TessLoadStatus lay_out(Loading *l) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t p, total = 0;
    uint32_t i;
    int part;
    l->places = tess_load_symbol_places(l->n_globals);
    l->names_at = rounded(sizeof(TessLoaded), 64) + l->places * sizeof(TessLoadGlobal);
    l->got_at = rounded(l->names_at + l->name_bytes, 64);
    l->sizes[CONSTANTS] = l->got_at + l->n_got * sizeof(uint64_t);
    l->sizes[CODE] = l->n_stubs * TESS_LOAD_STUB_BYTES;
    for (p = 0; p < l->n_parts; ++p) {
        const TessLoadObject *o = &l->parts[p].object;
        for (i = 0; i < o->n_sections; ++i) {
            const Elf64_Shdr s = tess_load_section(o, i);
            uint64_t *size = &l->sizes[part_of(&s)];
            if (!tess_load_is_loaded(&s)) continue;
            l->parts[p].sections[i] = rounded(*size, s.sh_addralign ? s.sh_addralign : 1);
            *size = l->parts[p].sections[i] + s.sh_size;
            if (*size > TESS_LOAD_MAX_BYTES) break;
        }
    }
    for (part = 0; part < PARTS; ++part) {
        l->begins[part] = total;
        total += rounded(l->sizes[part], page);
    }
    if (total > TESS_LOAD_MAX_BYTES)
        return tess_load_refuse(l->error, TESS_LOAD_LARGE,
                                "library: expected at most %llu bytes of code and data, got %llu or more. "
                                "Generate several libraries.",
                                (unsigned long long)TESS_LOAD_MAX_BYTES, (unsigned long long)total);
    l->image = map(total);
    if (!l->image) return refuse_memory(l, "the code and data of a library", total);
    l->image->bytes = total;
    l->image->code = (unsigned char *)l->image + l->begins[CODE];
    l->image->code_bytes = l->sizes[CODE];
    l->image->symbols.places = (TessLoadGlobal *)((unsigned char *)l->image + rounded(sizeof(TessLoaded), 64));
    l->image->symbols.mask = l->places - 1;
    return TESS_LOAD_OK;
}

static void copy(Loading *l) {
    char *names = (char *)l->image + l->names_at;
    uint64_t p;
    uint32_t i;
    for (p = 0; p < l->n_parts; ++p) {
        Part *part = &l->parts[p];
        const TessLoadObject *o = &part->object;
        part->names = names;
        if (o->name_bytes) memcpy(names, o->names, o->name_bytes);
        names += o->name_bytes;
        for (i = 0; i < o->n_sections; ++i) {
            const Elf64_Shdr s = tess_load_section(o, i);
            unsigned char *to;
            if (!tess_load_is_loaded(&s)) continue;
            to = (unsigned char *)l->image + l->begins[part_of(&s)] + part->sections[i];
            part->sections[i] = (uint64_t)(uintptr_t)to;
            if (s.sh_type != SHT_NOBITS && s.sh_size) memcpy(to, o->member.bytes + s.sh_offset, s.sh_size);
        }
    }
}

/* The addresses of what objects define, and the globals among them by name. */
static TessLoadStatus define(Loading *l, Part *part, FILE *perf) {
    const TessLoadObject *o = &part->object;
    uint32_t i, hash;
    for (i = 0; i < o->n_symbols; ++i) {
        const Elf64_Sym s = tess_load_symbol(o, i);
        TessLoadGlobal *place;
        if (s.st_shndx == SHN_UNDEF || s.st_shndx >= o->n_sections) continue;
        part->uses[i].address = part->sections[s.st_shndx] + s.st_value;
        if (perf && ELF64_ST_TYPE(s.st_info) == STT_FUNC)
            tess_load_perf_name(perf, part->uses[i].address, s.st_size, tess_load_symbol_name(o, &s));
        if (ELF64_ST_BIND(s.st_info) != STB_GLOBAL) continue;
        place = tess_load_find(&l->image->symbols, part->names + s.st_name, &hash);
        if (place->name)
            return tess_load_refuse(l->error, TESS_LOAD_SYMBOL,
                                    "object '%.*s': expected to be the only one that defines '%.100s', got a second definition. Give the "
                                    "kernels of a library different names.",
                                    o->member.name_bytes, o->member.name, place->name);
        place->name = part->names + s.st_name;
        place->address = part->uses[i].address;
        place->hash = hash;
        place->exported = ELF64_ST_VISIBILITY(s.st_other) != STV_HIDDEN && ELF64_ST_VISIBILITY(s.st_other) != STV_INTERNAL;
    }
    return TESS_LOAD_OK;
}

/* The addresses of what objects want: of another one's global, or of a function in the list. */
static TessLoadStatus resolve(const Loading *l, const Part *part) {
    const TessLoadObject *o = &part->object;
    uint64_t *got = (uint64_t *)(void *)((unsigned char *)l->image + l->got_at);
    uint32_t i, hash;
    for (i = 0; i < o->n_symbols; ++i) {
        const Elf64_Sym s = tess_load_symbol(o, i);
        const char *name = tess_load_symbol_name(o, &s);
        Use *use = &part->uses[i];
        if (s.st_shndx == SHN_UNDEF && use->wanted && ELF64_ST_BIND(s.st_info) == STB_GLOBAL) {
            const TessLoadGlobal *global = tess_load_find(&l->image->symbols, name, &hash);
            use->address = global->name ? global->address : tess_load_external(name);
            if (global->name) use->stub = 0; /* it is near */
            if (!use->address)
                return tess_load_refuse(l->error, TESS_LOAD_SYMBOL,
                                        "object '%.*s': expected '%.100s' in another object of the library, or among the functions of the "
                                        "runtime, memcpy, memmove, memset and those of exact results in libm; it is in none. Generate the "
                                        "library with the Tessera that this runtime is of, or link it with a linker.",
                                        o->member.name_bytes, o->member.name, name);
        }
        if (use->got) got[use->got - 1] = use->address;
        if (use->stub) {
            unsigned char *stub = l->image->code + (use->stub - 1) * TESS_LOAD_STUB_BYTES;
            tess_load_stub(machine, stub, (uint64_t)(uintptr_t)stub, (uint64_t)(uintptr_t)&got[use->got - 1]); /* the image is small */
            use->address = (uint64_t)(uintptr_t)stub;
        }
    }
    return TESS_LOAD_OK;
}

static TessLoadStatus relocate_section(const Loading *l, const Part *part, const Elf64_Shdr *s) {
    const TessLoadObject *o = &part->object;
    const uint64_t got = (uint64_t)(uintptr_t)l->image + l->got_at;
    uint64_t number;
    for (number = 0; number < s->sh_size / sizeof(Elf64_Rela); ++number) {
        const Elf64_Rela r = tess_load_rela(o, s, number);
        const uint32_t symbol = (uint32_t)ELF64_R_SYM(r.r_info);
        const TessLoadRelocation *kind = tess_load_relocation(machine, (uint32_t)ELF64_R_TYPE(r.r_info));
        const Use *use = &part->uses[symbol];
        const uint64_t from = part->sections[s->sh_info] + r.r_offset;
        uint64_t to = kind->through == TESS_LOAD_BY_GOT ? got + (use->got - 1) * sizeof(uint64_t) : use->address;
        to += (uint64_t)r.r_addend;
        if (!tess_load_relocate(kind, (unsigned char *)(uintptr_t)from, from, to)) {
            const Elf64_Sym named = tess_load_symbol(o, symbol);
            return tess_load_refuse(
                l->error, TESS_LOAD_RANGE,
                "object '%.*s', relocation %llu of section %u: expected an address that fits into %s, got one %lld bytes "
                "away ('%.100s' and %lld). The library is damaged, or too large: generate several.",
                o->member.name_bytes, o->member.name, (unsigned long long)number, s->sh_info, kind->name, (long long)(to - from),
                tess_load_symbol_name(o, &named), (long long)r.r_addend);
        }
    }
    return TESS_LOAD_OK;
}

static TessLoadStatus relocate(const Loading *l, const Part *part) {
    TessLoadStatus status = TESS_LOAD_OK;
    uint32_t i;
    for (i = 0; !status && i < part->object.n_sections; ++i) {
        const Elf64_Shdr s = tess_load_section(&part->object, i);
        if (tess_load_has_relocations(&part->object, &s)) status = relocate_section(l, part, &s);
    }
    return status;
}

/* Where a system lets no memory that was written become code, the code is written to a file in memory, which is mapped over it. */
static int map_code_of_file(unsigned char *code, uint64_t bytes) {
    const int file = memfd_create("tessera-code", MFD_CLOEXEC);
    uint64_t done = 0;
    void *mapped = MAP_FAILED;
    if (file < 0) return 0;
    while (done < bytes) {
        const ssize_t n = write(file, code + done, bytes - done);
        if (n <= 0 && errno != EINTR) break;
        if (n > 0) done += (uint64_t)n;
    }
    if (done == bytes) mapped = mmap(code, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
    close(file);
    return mapped != MAP_FAILED;
}

static TessLoadStatus protect(const Loading *l) {
    unsigned char *code = l->image->code;
    const uint64_t bytes = l->image->code_bytes;
    if (bytes) {
        if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0 && !map_code_of_file(code, bytes))
            return tess_load_refuse(
                l->error, TESS_LOAD_SYSTEM,
                "library: expected a system that lets this process run code that it loads, got a refusal: %s. Allow it, or "
                "link the library.",
                strerror(errno));
        __builtin___clear_cache((char *)code, (char *)code + bytes);
    }
    if (mprotect(l->image, l->sizes[CONSTANTS], PROT_READ) != 0) return refuse_memory(l, "the constants of a library", l->sizes[CONSTANTS]);
    return TESS_LOAD_OK;
}

/* From objects that were read to an image. */
static TessLoadStatus link_parts(Loading *l) {
    FILE *perf = tess_load_perf_map();
    TessLoadStatus status = TESS_LOAD_OK;
    uint64_t p;
    copy(l);
    for (p = 0; !status && p < l->n_parts; ++p) status = define(l, &l->parts[p], perf);
    for (p = 0; !status && p < l->n_parts; ++p) status = resolve(l, &l->parts[p]);
    for (p = 0; !status && p < l->n_parts; ++p) status = relocate(l, &l->parts[p]);
    if (perf) fclose(perf);
    return status ? status : protect(l);
}

TessLoadStatus tess_load_link(const void *bytes, uint64_t size, TessLoaded **loaded, TessLoadError *error) {
    Loading l;
    TessLoadStatus status;
    memset(&l, 0, sizeof l);
    l.bytes = bytes;
    l.size = size;
    l.error = error;
    status = count(&l);
    if (!status) status = take_scratch(&l);
    if (!status) read_objects(&l);
    if (!status) status = lay_out(&l);
    if (!status) status = link_parts(&l);
    if (l.parts) munmap(l.parts, l.scratch_bytes);
    if (!status) *loaded = l.image;
    else if (l.image) munmap(l.image, l.image->bytes);
    return status;
}

#endif
