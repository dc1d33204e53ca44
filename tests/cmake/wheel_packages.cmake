# What the build of the Python package says where headers of Debian's are missing: as a script, CMake looks in no system folder.
execute_process(COMMAND "${CMAKE_COMMAND}" "-DPROJECT_SOURCE_DIR=${CMAKE_CURRENT_LIST_DIR}/../.." "-DHALIDE_ROOT=${CMAKE_CURRENT_LIST_DIR}"
  -P "${CMAKE_CURRENT_LIST_DIR}/../../cmake/TesseraWheel.cmake" RESULT_VARIABLE result ERROR_VARIABLE got)
string(REGEX REPLACE "[ \n]+" " " got "${got}")
foreach(piece IN ITEMS "error[build.packages]: there are no headers nlohmann/json.hpp, fmt/format.h, CLI/CLI.hpp, hwloc.h, mimalloc.h,"
    "On Debian, run this, and the same command again: apt-get install --no-install-recommends libcli11-dev ")
  string(FIND "${got}" "${piece}" at)
  if(result EQUAL 0 OR at EQUAL -1)
    message(SEND_ERROR "expected: ${piece}\n  got: ${got}")
  endif()
endforeach()
