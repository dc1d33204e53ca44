# The build of the Python package by scikit-build-core (pyproject.toml). Halide's library is in its own package, a neighbour of this one, and
# what Debian has is asked for in one line.
set(TESSERA_HALIDE_INSTALL_DIR "../halide/lib64")
if(NOT EXISTS "${HALIDE_ROOT}")
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('halide').origin))"
    OUTPUT_VARIABLE HALIDE_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

set(missing)
foreach(header IN ITEMS nlohmann/json.hpp fmt/format.h CLI/CLI.hpp hwloc.h mimalloc.h sqlite3.h xgboost/c_api.h)
  find_path(place "${header}" NO_CACHE)
  if(NOT place)
    list(APPEND missing "${header}")
  endif()
  unset(place)
endforeach()
if(missing)
  file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/packages.txt" packages REGEX "^(lib.*-dev|nlohmann-json3-dev)$")
  list(REMOVE_ITEM packages libbenchmark-dev) # for programs of a user's own
  list(JOIN packages " " packages)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "error[build.packages]: there are no headers ${missing}. On Debian, run this, and the same command again:\n"
    "  apt-get install --no-install-recommends ${packages}")
endif()
