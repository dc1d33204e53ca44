#include "compiler/abi/wasm_object.h"

#include <functional>

#include "support/text/error.h"

namespace tessera {

namespace {

enum Section { custom = 0, imports = 2, code = 10, data = 11 };
enum ImportKind { import_function = 0, import_table = 1, import_memory = 2, import_global = 3, import_tag = 4 };
enum SymbolKind { function_symbol = 0, data_symbol = 1, section_symbol = 3 };
enum SymbolFlag { local_binding = 0x2, hidden_visibility = 0x4, undefined = 0x10, explicit_name = 0x40 };
constexpr uint64_t symbol_table = 8, shared_limits = 1;

class Reader {
public:
    Reader(const std::string &bytes, size_t from, size_t to) : bytes(bytes), position(from), end(to) {
        require(from <= to && to <= bytes.size(), "a WebAssembly object is whole");
    }

    bool more() const { return position < end; }
    size_t at() const { return position; }
    uint8_t byte() {
        require(more(), "a WebAssembly object is whole");
        return static_cast<uint8_t>(bytes[position++]);
    }
    // LEB128
    uint64_t number() {
        uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const uint8_t part = byte();
            require(shift < 64, "a number in a WebAssembly object ends");
            value |= uint64_t{part & 0x7fu} << shift;
            if (part < 0x80) return value;
        }
    }
    std::string text() { return take(number()).rest(); }
    // The next n bytes.
    Reader take(uint64_t n) {
        require(n <= end - position, "a WebAssembly object is whole");
        position += n;
        return {bytes, position - n, position};
    }
    std::string rest() const { return bytes.substr(position, end - position); }
    size_t left() const { return end - position; }

private:
    const std::string &bytes;
    size_t position, end;
};

void each_section(const std::string &object, const std::function<void(uint8_t, Reader)> &visit) {
    if (!is_wasm(object)) return;
    for (Reader file(object, 8, object.size()); file.more();) {
        const uint8_t id = file.byte();
        visit(id, file.take(file.number()));
    }
}

void skip_limits(Reader &r) {
    const uint64_t flags = r.number();
    r.number();
    if (flags & shared_limits) r.number();
}

std::vector<std::string> imported_functions(Reader r) {
    std::vector<std::string> names;
    for (uint64_t n = r.number(); n-- > 0;) {
        r.text();
        const std::string field = r.text();
        switch (r.byte()) {
        case import_function: r.number(), names.push_back(field); break;
        case import_table: r.byte(), skip_limits(r); break;
        case import_memory: skip_limits(r); break;
        case import_global: r.byte(), r.byte(); break;
        case import_tag: r.byte(), r.number(); break;
        default: throw InternalError("an import of a WebAssembly object is of a known kind");
        }
    }
    return names;
}

struct Symbol {
    uint64_t kind = 0, flags = 0, index = 0, bytes = 0;
    size_t flags_at = 0;
    std::string name;  // "" where the import has it
};

Symbol read_symbol(Reader &r) {
    Symbol s;
    s.kind = r.byte();
    s.flags_at = r.at();
    s.flags = r.number();
    const bool defined = !(s.flags & undefined);
    if (s.kind == data_symbol) {
        s.name = r.text();
        if (defined) s.index = r.number(), r.number(), s.bytes = r.number();
        return s;
    }
    s.index = r.number();
    if (s.kind != section_symbol && (defined || s.flags & explicit_name)) s.name = r.text();
    return s;
}

void each_symbol(const std::string &object, const std::function<void(const Symbol &)> &visit) {
    std::vector<std::string> imported;
    std::vector<uint64_t> sizes;
    each_section(object, [&](uint8_t id, Reader r) {
        if (id == imports) imported = imported_functions(r);
        if (id == code)
            for (uint64_t n = r.number(); n-- > 0;) sizes.push_back(r.number()), r.take(sizes.back());
        if (id != custom || r.text() != "linking") return;
        for (r.number(); r.more();) {
            const uint8_t kind = r.byte();
            Reader table = r.take(r.number());
            if (kind != symbol_table) continue;
            for (uint64_t n = table.number(); n-- > 0;) {
                Symbol s = read_symbol(table);
                if (s.kind == function_symbol) {
                    const bool defined = s.index >= imported.size();
                    if (s.name.empty() && !defined) s.name = imported[s.index];
                    if (defined && s.index - imported.size() < sizes.size()) s.bytes = sizes[s.index - imported.size()];
                }
                visit(s);
            }
        }
    });
}

}  // namespace

bool is_wasm(const std::string &object) { return object.starts_with(std::string("\0asm\1\0\0\0", 8)); }

std::vector<ObjectSymbol> wasm_symbols_of(const std::string &object) {
    std::vector<ObjectSymbol> symbols;
    each_symbol(object, [&](const Symbol &s) {
        if (!s.name.empty())
            symbols.push_back({s.name, s.bytes, !(s.flags & undefined), !(s.flags & local_binding), (s.flags & hidden_visibility) != 0,
                               s.kind == function_symbol});
    });
    return symbols;
}

uint64_t wasm_loaded_bytes(const std::string &object) {
    uint64_t bytes = 0;
    each_section(object, [&](uint8_t id, const Reader &r) {
        if (id == code || id == data) bytes += r.left();
    });
    return bytes;
}

// The flag is in the first byte of its number.
void hide_wasm_symbols(std::string &object, const std::set<std::string> &kept) {
    std::vector<size_t> hidden;
    each_symbol(object, [&](const Symbol &s) {
        if (!(s.flags & (undefined | local_binding)) && !kept.count(s.name)) hidden.push_back(s.flags_at);
    });
    for (size_t offset : hidden) object[offset] = static_cast<char>(object[offset] | hidden_visibility);
}

}  // namespace tessera
