/// What the loader refuses, in its words, and libraries that were damaged at random: each is loaded or refused, and nothing else happens.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "runtime/load/load.h"
#include "tests/runtime/object_writer.h"

namespace tessera::test::load_refusals {

using Catch::Matchers::Contains;

constexpr bool on_x86 = host_machine == EM_X86_64;
constexpr uint32_t word = on_x86 ? R_X86_64_64 : R_AARCH64_ABS64, call = on_x86 ? R_X86_64_PLT32 : R_AARCH64_CALL26,
                   got = on_x86 ? R_X86_64_GOTPCREL : R_AARCH64_ADR_GOT_PAGE;

// What a load gives: its id and what it says.
std::string refusal_of(const std::string &bytes) {
    TessLoaded *loaded = nullptr;
    TessLoadError error{};
    const std::vector<char> own(bytes.begin(), bytes.end());  // of just this size, which a sanitizer watches
    const TessLoadStatus status = tess_load_archive(own.data(), own.size(), &loaded, &error);
    CHECK((loaded == nullptr) == (status != TESS_LOAD_OK));
    tess_loaded_close(loaded);
    if (status == TESS_LOAD_OK) return "loaded";
    CHECK(error.status == status);
    const std::string text = error.text;
    CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    return std::string(tess_load_status_id(status)) + ": " + text;
}

// Code, constants, data and zeros; sections 1 to 4, whose relocations are 5 and 6; names are 7, symbols 8.
WrittenObject sound() {
    WrittenObject o;
    o.sections = {{SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(32, '\0')},
                  {SHT_PROGBITS, SHF_ALLOC, std::string(40, 'c')},
                  {SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, std::string(24, 'd')},
                  {SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", 32, 100}};
    o.symbols = {
        {"function", 1, 0, 32, STB_GLOBAL, STT_FUNC}, {"constants", 2, 8, 16}, {"memset"}, {"other_part"}, {"local", 3, 0, 8, STB_LOCAL}};
    o.relocations = {{1, call, 4, 3}, {1, got, 8, 2}, {1, call, 12, 4}, {3, word, 8, 2, 5}};
    return o;
}

std::string library_of(const WrittenObject &object) {
    WrittenObject other;
    other.sections = {{SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(8, '\0')}};
    other.symbols = {{"other_part", 1}};
    return archive_bytes({object_bytes(object), object_bytes(other)});
}

std::string refusal_of(const std::function<void(WrittenObject &)> &change) {
    WrittenObject object = sound();
    change(object);
    return refusal_of(library_of(object));
}

template <typename T>
T at(const std::string &bytes, size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

// The header of the object.
std::string refusal_of_head(const std::function<void(Elf64_Ehdr &)> &change) {
    std::string object = object_bytes(sound());
    auto head = at<Elf64_Ehdr>(object, 0);
    change(head);
    std::memcpy(object.data(), &head, sizeof head);
    return refusal_of(archive_bytes({object}));
}

// The header of one of its sections.
std::string refusal_of_section(size_t section, const std::function<void(Elf64_Shdr &)> &change) {
    std::string object = object_bytes(sound());
    const size_t offset = at<Elf64_Ehdr>(object, 0).e_shoff + section * sizeof(Elf64_Shdr);
    auto header = at<Elf64_Shdr>(object, offset);
    change(header);
    std::memcpy(object.data() + offset, &header, sizeof header);
    return refusal_of(archive_bytes({object}));
}

// Every text begins with the id and has its other parts in this order.
void says(const std::string &text, const std::string &id, const std::vector<std::string> &parts) {
    INFO(text);
    CHECK(text.starts_with(id + ": "));
    size_t from = 0;
    for (const std::string &part : parts) {
        INFO(part);
        const size_t found = text.find(part, from);
        CHECK(found != text.npos);
        if (found != text.npos) from = found + part.size();
    }
}

TEST_CASE("The library that the others here change is loaded", "[load]") { CHECK(refusal_of(library_of(sound())) == "loaded"); }

TEST_CASE("What is no library is refused", "[load]") {
    says(refusal_of("text"), "load.archive",
         {"library: expected a static library, which begins with '!<arch>', got 4 bytes that do not", "generate it again"});
    says(refusal_of("!<thin>\n"), "load.archive", {"expected one that has its objects in itself, got a thin one", "Make it without 'T'"});
    says(refusal_of("!<arch>\n"), "load.archive", {"expected at least one object, got none. Load lib<name>.a"});
    const std::string sound_library = library_of(sound());
    says(refusal_of(sound_library.substr(0, 40)), "load.archive", {"expected the header of a member at byte 8, got the end of the file"});
    says(refusal_of(sound_library.substr(0, 400)), "load.archive",
         {"expected a size of at most 332 in the header of the member at byte 8, got '"});
    std::string bytes = sound_library;
    bytes[8 + 58] = 'x';
    says(refusal_of(bytes), "load.archive", {"expected the header of a member at byte 8, got something else"});
    bytes = sound_library, bytes[8 + 48] = '-';
    says(refusal_of(bytes), "load.archive", {"expected a size of at most ", "got '-"});
    for (const char *name : {"no_slash_at_all!", "/999", "/x", "#1/20"}) {
        INFO(name);
        const std::string text = refusal_of("!<arch>\n" + member_bytes(name, object_bytes(sound())));
        if (name[0] == '#') says(text, "load.symbol", {"object '#1': expected 'other_part' in another object"});
        else says(text, "load.archive", {"expected a name that ends with '/' for the member at byte 8", "got '" + std::string(name)});
    }
    TessLoaded *loaded = nullptr;
    TessLoadError error;
    CHECK(tess_load_archive(nullptr, 5, &loaded, &error) == TESS_LOAD_ARGUMENT);
    CHECK(error.text == std::string("library: expected its bytes and a place for what is loaded, got a null pointer."));
    CHECK(tess_load_archive("x", 1, nullptr, nullptr) == TESS_LOAD_ARGUMENT);
    CHECK(tess_load_file(nullptr, &loaded, &error) == TESS_LOAD_ARGUMENT);
    CHECK(error.text == std::string("library: expected a path and a place for what is loaded, got a null pointer."));
    CHECK(tess_load_archive("x", TESS_LOAD_MAX_BYTES + 1, &loaded, &error) == TESS_LOAD_LARGE);
    CHECK_THAT(error.text, Contains("library: expected at most 1073741824 bytes, got 1073741825. Generate several libraries."));
}

TEST_CASE("Files that cannot be read are refused by their names", "[load]") {
    TessLoaded *loaded = nullptr;
    TessLoadError error;
    CHECK(tess_load_file("/none/lib\xc3\xa4.a", &loaded, &error) == TESS_LOAD_FILE);
    CHECK(error.text == std::string("file '/none/lib\xc3\xa4.a': expected a library that can be read, got: No such file or directory. Name "
                                    "lib<name>.a as 'generate' wrote it."));
    CHECK(tess_load_file("/", &loaded, &error) == TESS_LOAD_FILE);
    CHECK_THAT(error.text, Contains("it is no regular file"));
    CHECK(tess_load_file("/proc/self/maps", &loaded, &error) == TESS_LOAD_FILE);
    CHECK_THAT(error.text, Contains("it is empty"));
    CHECK(tess_load_file(TESSERA_PATH_OF_KERNEL_H, &loaded, &error) == TESS_LOAD_ARCHIVE);
    CHECK_THAT(error.text, Contains("kernel.h': library: expected a static library"));
    CHECK(loaded == nullptr);
}

TEST_CASE("Objects for other machines and of other kinds are refused", "[load]") {
    const std::string here = on_x86 ? "expected code for x86-64 (ELF machine 62)" : "expected code for 64-bit ARM (ELF machine 183)";
    says(refusal_of_head([](auto &h) { h.e_machine = on_x86 ? EM_AARCH64 : EM_X86_64; }), "load.machine",
         {"object 'part0.o': " + here + ", got code for " + (on_x86 ? "64-bit ARM" : "x86-64"), "--target host"});
    says(refusal_of_head([](auto &h) { h.e_machine = EM_PPC64; }), "load.machine", {here, "got code for another processor"});
    says(refusal_of_head([](auto &h) { h.e_ident[EI_CLASS] = ELFCLASS32; }), "load.machine", {"(class 1, byte order 1"});
    says(refusal_of_head([](auto &h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }), "load.machine", {"byte order 2"});
    says(refusal_of("!<arch>\n" + member_bytes("a.o/", std::string("\0asm", 4) + std::string(100, '\1'))), "load.machine",
         {"object 'a.o': expected an ELF object, got other bytes", "WebAssembly", "--target host"});
    says(refusal_of("!<arch>\n" + member_bytes("a.o/",
                                               "\x7f"
                                               "ELF")),
         "load.machine", {"got fewer bytes"});
    says(refusal_of_head([](auto &h) { h.e_ident[EI_OSABI] = ELFOSABI_GNU; }), "load.unsupported",
         {"expected no ABI of a system and no flags, got ABI 3"});
    says(refusal_of_head([](auto &h) { h.e_flags = 2; }), "load.unsupported", {"flags 0x2"});
    says(refusal_of_head([](auto &h) { h.e_type = ET_DYN; }), "load.unsupported", {"expected a relocatable object (type 1), got type 3"});
    says(refusal_of_head([](auto &h) { h.e_version = 7; }), "load.object", {"expected version 1, got 7"});
    says(refusal_of_head([](auto &h) { h.e_ehsize = 52; }), "load.object", {"expected a header of bytes 64, got 52"});
    says(refusal_of_head([](auto &h) { h.e_shentsize = 40; }), "load.object", {"expected section headers of bytes 64, got 40"});
    says(refusal_of_head([](auto &h) { h.e_shnum = 0; }), "load.object", {"expected sections, at least one and at most 65279, got 0"});
    says(refusal_of_head([](auto &h) { h.e_shoff = ~uint64_t{0} - 8; }), "load.object",
         {"expected section headers that end at or before byte"});
    says(refusal_of_head([](auto &h) { h.e_shnum = 60000; }), "load.object", {"expected section headers that end at or before byte"});
}

TEST_CASE("Sections that contradict the file or are not known are refused", "[load]") {
    const auto unsupported = [](size_t section, const std::function<void(Elf64_Shdr &)> &change, const std::string &words) {
        says(refusal_of_section(section, change), "load.unsupported",
             {"object 'part0.o', section " + std::to_string(section) + ": expected ", words, "'generate'"});
    };
    const auto broken = [](size_t section, const std::function<void(Elf64_Shdr &)> &change, const std::string &words) {
        says(refusal_of_section(section, change), "load.object", {"object 'part0.o'", words, "generate it again"});
    };
    for (const uint32_t type : {SHT_REL, SHT_GROUP, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_DYNAMIC, SHT_SYMTAB_SHNDX, 0x6ffffff6, 99})
        unsupported(
            2, [&](auto &s) { s.sh_type = type; }, "code, data, notes, symbols, names or relocations with addends by its type, got 0x");
    for (const uint64_t flags : {SHF_TLS, SHF_GROUP, SHF_LINK_ORDER, SHF_COMPRESSED, 1 << 28})
        unsupported(
            2, [&](auto &s) { s.sh_flags |= flags; },
            "no flags but those of code, data and constants (no thread-local storage, no groups)");
    unsupported(
        1, [](auto &s) { s.sh_flags |= SHF_WRITE; }, "memory that is written or run, and not both, got 0x7");
    unsupported(
        7, [](auto &s) { s.sh_flags |= SHF_ALLOC; }, "code or data where the flags say that it becomes memory, got 0x3");
    for (const uint64_t offset : {uint64_t{1} << 20, ~uint64_t{0} - 3, uint64_t{1} << 63})
        broken(
            2, [&](auto &s) { s.sh_offset = offset; }, "section 2: expected bytes that end at or before");
    for (const uint64_t size : {uint64_t{1} << 20, ~uint64_t{0} - 3, uint64_t{1} << 63})
        broken(
            2, [&](auto &s) { s.sh_size = size; }, "section 2: expected bytes that end at or before");
    for (const uint64_t alignment : {3, 24, 8192})
        broken(
            2, [&](auto &s) { s.sh_addralign = alignment; }, "expected an alignment that is a power of two of at most 4096, got");
    says(refusal_of_section(4, [](auto &s) { s.sh_size = ~uint64_t{0}; }), "load.large",
         {"section 4: expected at most 1073741824 bytes, got 18446744073709551615"});
    says(refusal_of([](auto &o) { o.sections[3].size_of_nothing = TESS_LOAD_MAX_BYTES; }), "load.large",
         {"library: expected at most 1073741824 bytes of code and data, got 1073"});
    broken(
        8, [](auto &s) { s.sh_entsize = 16; }, "section 8: expected symbols of bytes 24, got 16");
    broken(
        8, [](auto &s) { s.sh_size -= 1; }, "expected bytes, a multiple of 24, got 143");
    broken(
        8, [](auto &s) { s.sh_link = 90; }, "expected names in a section below 9, got 90");
    broken(
        8, [](auto &s) { s.sh_link = 2; }, "section 2: expected names, which are of type 3, got 1");
    broken(
        7, [](auto &s) { s.sh_size -= 1; }, "section 7: expected names that end with the byte 0");
    broken(
        7, [](auto &s) { s.sh_type = SHT_SYMTAB; }, "section 8: expected one table of symbols, in section 7, got 8");
    broken(
        5, [](auto &s) { s.sh_info = 9; }, "section 5: expected relocations of a section below 9, got 9");
    broken(
        5, [](auto &s) { s.sh_link = 1; }, "section 5: expected symbols in section 8, got 1");
    broken(
        5, [](auto &s) { s.sh_entsize = 8; }, "section 5: expected relocations of bytes 24, got 8");
    broken(
        5, [](auto &s) { s.sh_size -= 8; }, "section 5: expected bytes, a multiple of 24, got 64");
    broken(
        6, [](auto &s) { s.sh_info = 4; }, "section 6: expected relocations of a section of type 1, got 8");
}

TEST_CASE("Symbols that are not known, defined twice or nowhere are refused", "[load]") {
    const auto unsupported = [](const std::function<void(WrittenSymbol &)> &change, const std::string &words) {
        says(refusal_of([&](auto &o) { change(o.symbols[1]); }), "load.unsupported",
             {"object 'part0.o', symbol 'constants': expected ", words});
    };
    const auto broken = [](const std::function<void(WrittenSymbol &)> &change, const std::string &words) {
        says(refusal_of([&](auto &o) { change(o.symbols[1]); }), "load.object", {"object 'part0.o': expected ", words});
    };
    for (const unsigned type : {STT_TLS, STT_COMMON, STT_GNU_IFUNC, 15})
        unsupported([&](auto &s) { s.type = type; },
                    "a function, an object or a section (no thread-local storage, nothing chosen at load), got 0x");
    for (const unsigned bind : {STB_WEAK, STB_GNU_UNIQUE, 15})
        unsupported([&](auto &s) { s.bind = bind; }, "a local or a global symbol (no weak or unique one), got 0x");
    for (const uint16_t section : {SHN_ABS, SHN_COMMON, SHN_XINDEX})
        unsupported([&](auto &s) { s.section = section; }, "a symbol of a section (none absolute or common), got 0x");
    unsupported([](auto &s) { s.section = 7; }, "a global symbol of code or data, got 0x7");
    broken([](auto &s) { s.section = 77; }, "the section of a symbol below 9, got 77");
    broken([](auto &s) { s.value = 41, s.size = 0; }, "a symbol that ends at or before byte 40, got 41");
    broken([](auto &s) { s.value = 8, s.size = ~uint64_t{0}; }, "a symbol that ends at or before byte 40, got 7");
    broken([](auto &s) { s.name.clear(); }, "a name of the global symbol with number 2, got 0");
    says(refusal_of([](auto &o) { o.symbols.push_back({"other_part", 1}); }), "load.symbol", {"object 'part1.o'", "defines 'other_part'"});
    const std::string twice = object_bytes(sound());
    says(refusal_of(archive_bytes({twice, twice})), "load.symbol",
         {"object 'part1.o': expected to be the only one that defines 'function', got a second definition", "different names"});
    says(refusal_of([](auto &o) { o.symbols[2].name = "system"; }), "load.symbol",
         {"object 'part0.o': expected 'system' in another object of the library, or among the functions of the runtime", "it is in none",
          "link it with a linker"});
    says(refusal_of([](auto &o) { o.symbols[2].name = "a\nb\x80" + std::string(300, 'n'); }), "load.symbol",
         {"expected 'a?b?nnn", "n' in another"});
    CHECK(refusal_of([](auto &o) { o.symbols.push_back({"nobody_wants_it"}); }) == "loaded");
    std::string object = object_bytes(sound());
    const auto head = at<Elf64_Ehdr>(object, 0);
    const auto table = at<Elf64_Shdr>(object, head.e_shoff + 8 * sizeof(Elf64_Shdr));
    const uint32_t far = 100000;
    std::memcpy(object.data() + table.sh_offset + sizeof(Elf64_Sym), &far, sizeof far);
    says(refusal_of(archive_bytes({object})), "load.object", {"expected the name of a symbol below byte", "got 100000"});
}

TEST_CASE("Relocations that are not known, lead outside or do not fit are refused", "[load]") {
    const auto changed = [](const std::function<void(WrittenRelocation &)> &change) {
        return refusal_of([&](auto &o) { change(o.relocations[0]); });
    };
    for (const uint32_t type :
         {on_x86 ? uint32_t(R_X86_64_32S) : uint32_t(R_AARCH64_ABS32), on_x86 ? uint32_t(R_X86_64_TPOFF32) : 561u, 7u, 0xffffffffu})
        says(changed([&](auto &r) { r.type = type; }), "load.unsupported",
             {"object 'part0.o': expected relocations of position-independent code (", on_x86 ? "PC32, PC64, PLT32" : "JUMP26, CALL26",
              "got type " + std::to_string(type)});
    for (const uint64_t offset : {uint64_t{29}, uint64_t{32}, uint64_t{1000}, ~uint64_t{0}, ~uint64_t{0} - 3})
        says(changed([&](auto &r) { r.offset = offset; }), "load.object", {"expected a relocation that ends at or before byte 32, got"});
    says(changed([](auto &r) { r.symbol = 6; }), "load.object", {"expected the symbol of a relocation below 6, got 6"});
    says(changed([](auto &r) { r.symbol = 0; }), "load.object", {"expected a global symbol where none is defined"});
    says(refusal_of([](auto &o) {
             o.symbols.push_back({"names", 7, 0, 0, STB_LOCAL}), o.relocations[0].symbol = 6;
         }),
         "load.unsupported", {"symbol 'names': expected a symbol of code or data, got 0x7"});
    says(changed([](auto &r) { r.addend = int64_t{1} << 40; }), "load.range",
         {"object 'part0.o', relocation 0 of section 1: expected an address that fits into ", on_x86 ? "PLT32" : "CALL26",
          "('memset' and 1099511627776)"});
}

TEST_CASE("A library that is cut off anywhere is refused", "[load][hostile]") {
    for (const std::string &bytes : {library_of(sound()), file_bytes(TESSERA_LOAD_LIBRARY)}) {
        size_t loaded = 0;
        for (size_t size = 0; size < bytes.size(); size++) loaded += refusal_of(bytes.substr(0, size)) == "loaded";
        CHECK(loaded <= 1);  // the last byte may be padding
    }
}

TEST_CASE("A library with any byte changed is loaded or refused", "[load][hostile]") {
    for (const std::string &bytes : {library_of(sound()), file_bytes(TESSERA_LOAD_LIBRARY)}) {
        size_t refused = 0;
        for (size_t i = 0; i < bytes.size(); i++)
            for (const char value : {char(0), char(0xff), char(0x7f), char(0x80), char(bytes[i] ^ 1), char(bytes[i] + 1)}) {
                std::string changed = bytes;
                changed[i] = value;
                refused += refusal_of(changed) != "loaded";
            }
        CHECK(refused > bytes.size());
    }
}

TEST_CASE("A library with words changed at random is loaded or refused", "[load][hostile]") {
    std::mt19937_64 random(1);
    const std::string bases[] = {library_of(sound()), file_bytes(TESSERA_LOAD_LIBRARY)};
    const uint64_t numbers[] = {0,
                                1,
                                2,
                                7,
                                8,
                                9,
                                0x7f,
                                0xff,
                                0xffff,
                                0x7fffffff,
                                0xffffffff,
                                uint64_t{1} << 30,
                                uint64_t{1} << 32,
                                uint64_t{1} << 63,
                                ~uint64_t{0},
                                ~uint64_t{0} - 7};
    for (int round = 0; round < 20000; round++) {
        std::string changed = bases[round % 2];
        for (uint64_t n = 1 + random() % 4; n > 0; n--) {
            const size_t width = size_t{1} << random() % 4, at = random() % (changed.size() - 8) / width * width;
            const uint64_t value = random() % 2 ? numbers[random() % std::size(numbers)] : random();
            std::memcpy(changed.data() + at, &value, width);
        }
        refusal_of(changed);
    }
}

}  // namespace tessera::test::load_refusals
