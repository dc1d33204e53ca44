// What object_file.h says of ELF objects, of WebAssembly ones (WebAssembly/tool-conventions, Linking.md).
#pragma once
#include <set>
#include <vector>

#include "compiler/abi/object_symbol.h"

namespace tessera {

bool is_wasm(const std::string &object);
std::vector<ObjectSymbol> wasm_symbols_of(const std::string &object);
// The bytes of code and data.
uint64_t wasm_loaded_bytes(const std::string &object);
void hide_wasm_symbols(std::string &object, const std::set<std::string> &kept);

}  // namespace tessera
