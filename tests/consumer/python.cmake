# Builds the project `python`, whose kernels are functions of Python, against an installed Tessera outside of the tree; then changes a module
# that the function takes something from. Arguments: PREFIX (the installed tree), SOURCE (the project), WORK (a folder to make), GENERATOR
# (of CMake), PYTHON (which finds the package tessera).
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
file(COPY "${SOURCE}/" DESTINATION "${WORK}/a project")
run("configuring" "${CMAKE_COMMAND}" -S "${WORK}/a project" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}"
  "-DPython3_EXECUTABLE=${PYTHON}")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build")
run("the app" "${WORK}/build/app" 3)
file(WRITE "${WORK}/a project/numbers_of_ours.py" "FACTOR = 5.0\n")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build")
run("the app" "${WORK}/build/app" 5)
file(REMOVE_RECURSE "${WORK}")
