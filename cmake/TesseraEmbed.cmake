# tessera_embed(<target> <function> <file>...): a function `const std::map<std::string, std::string> &<function>()` of the
# namespace tessera, whose values are the texts of the files and whose keys are their paths from the project's root.
function(tessera_embed target function)
  set(code "#include <map>\n#include <string>\n\nnamespace tessera {\n\nconst std::map<std::string, std::string> &${function}() {\n    static const std::map<std::string, std::string> texts = {\n")
  foreach(file IN LISTS ARGN)
    file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
    string(APPEND code "        {\"${file}\", R\"~~~(${text})~~~\"},\n")
  endforeach()
  string(APPEND code "    };\n    return texts;\n}\n\n}  // namespace tessera\n")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${code}" @ONLY)
  target_sources(${target} PRIVATE "${source}")
endfunction()
