# Finds the C++ SDK inside PyPI's Halide wheel, unpacked at HALIDE_ROOT, and makes Halide::Halide. The wheel's own CMake
# package also wants its generators' helpers and image libraries; Tessera needs one library and one header.
include(FindPackageHandleStandardArgs)

find_path(HalideWheel_INCLUDE_DIR Halide.h PATHS "${HALIDE_ROOT}/include" NO_DEFAULT_PATH)
find_library(HalideWheel_LIBRARY Halide PATHS "${HALIDE_ROOT}/lib64" "${HALIDE_ROOT}/lib" NO_DEFAULT_PATH)
mark_as_advanced(HalideWheel_INCLUDE_DIR HalideWheel_LIBRARY)

if(HalideWheel_INCLUDE_DIR)
  file(STRINGS "${HalideWheel_INCLUDE_DIR}/HalideRuntime.h" versions REGEX "#define HALIDE_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" versions "${versions}")
  string(REPLACE ";" "." HalideWheel_VERSION "${versions}")
endif()

find_package_handle_standard_args(HalideWheel
  REQUIRED_VARS HalideWheel_LIBRARY HalideWheel_INCLUDE_DIR
  VERSION_VAR HalideWheel_VERSION
  REASON_FAILURE_MESSAGE "Run './tessera setup', or set HALIDE_ROOT to an unpacked Halide 21 wheel.")

if(HalideWheel_FOUND AND NOT TARGET Halide::Halide)
  add_library(Halide::Halide SHARED IMPORTED GLOBAL)
  set_target_properties(Halide::Halide PROPERTIES
    IMPORTED_LOCATION "${HalideWheel_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${HalideWheel_INCLUDE_DIR}")
endif()
