// Names in C and C++: which a kernel may have, and which its arguments get.
#pragma once
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

// Whether C and C++ take `name` for an identifier.
bool is_c_name(const std::string &name);
// Whether a header may have `name` for a macro or a type: one in small letters that is known, or all in capitals (four
// of them or a known one), or at its end _t.
bool may_be_in_headers(const std::string &name);
// UserError emit.name unless `name` can be the name of a public C function: an identifier that C, C++, the C library and Tessera's
// runtime neither have nor reserve. The second form refuses it, saying that it is `whose`.
void check_c_name(const std::string &name);
[[noreturn]] void refuse_c_name(const std::string &name, const std::string &whose);

// The names of a kernel's arguments in C: first its tensors, then its parameters; all differ. Each dot becomes '_'. A name that
// cannot be a macro, type or keyword (it begins with a small letter and is none that is known) stays; any other gets "arg_" in
// front, and a number if that is taken.
std::vector<std::string> c_argument_names(const TileProgram &program);

// "_pack_<operand>": what follows a kernel's name in that of the function that packs an operand for it.
std::string c_packing_suffix(const std::string &operand);

// Whether a kernel has so few tensors that its functions take them by name; others take a table.
bool has_named_tensors(const TileProgram &program);
// The public functions of a kernel with this name.
std::vector<std::string> public_functions(const std::string &name, const TileProgram &program);

// The type of a kernel's parameter in its C struct.
const char *c_parameter_type(DType type);

}  // namespace tessera
