// The objects of a library, ELF or WebAssembly: read for the manifest's sizes, and changed in one respect (hide_symbols).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "compiler/abi/object_symbol.h"

namespace tessera {

// Whether the bytes are a little-endian 64-bit ELF object or a WebAssembly one. The functions below give nothing for others.
bool is_object(const std::string &bytes);
std::vector<ObjectSymbol> symbols_of(const std::string &object);
// The bytes of its sections that have code; of ELF objects.
std::vector<std::string> code_of(const std::string &object);
// Bytes that the object adds to a program: of all sections that are loaded.
uint64_t loaded_bytes(const std::string &object);

// Gives every defined global symbol but `kept` hidden visibility: it links inside one program or shared object and is not
// seen from outside.
void hide_symbols(std::string &object, const std::set<std::string> &kept);

}  // namespace tessera
