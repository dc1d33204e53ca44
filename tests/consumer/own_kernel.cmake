# Installs Tessera, moves it, and builds examples/own_kernel against it outside the tree, then touches what the kernels depend on.
# Arguments: BUILD (Tessera's build folder), SOURCE (its checkout), WORK (a folder to make), GENERATOR (of CMake).
file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/moved here")
set(project "${WORK}/own kernel")

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

# build(<REBUILDS|KEEPS>): builds, runs the app, and checks whether the kernel with the schedule was generated again.
macro(build expected)
  run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
  run("the app" "${WORK}/build/app")
  file(READ "${WORK}/build/tessera/linear_silu/linear_silu.manifest.json" manifest)
  string(SHA256 now "${manifest}")
  if("${expected}" STREQUAL REBUILDS AND "${now}" STREQUAL "${before}")
    message(FATAL_ERROR "linear_silu was not generated again")
  elseif("${expected}" STREQUAL KEEPS AND NOT "${now}" STREQUAL "${before}")
    message(FATAL_ERROR "linear_silu changed though nothing else did")
  endif()
  set(before "${now}")
endmacro()

run("installing" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
file(RENAME "${WORK}/installed" "${prefix}")
file(COPY "${SOURCE}/examples/own_kernel/" DESTINATION "${project}")
# A generator that knows more than algorithms: a target, and an analyser of tile programs.
file(READ "${project}/generator.cpp" text)
string(REPLACE "    return generator_main" "    Target laptop = target_named(\"avx2\");
    laptop.l2_bytes = 256 << 10;
    registry.add_target(\"laptop\", laptop).add_analyser(\"names\", \"arguments by name\", [](const TileProgram &program) {
        std::string names;
        for (const Argument &argument : program.arguments) names += argument.tensor.name + \" \";
        return names + \"\\n\";
    });
    return generator_main" text "${text}")
file(WRITE "${project}/generator.cpp" "${text}")
# A kernel as C, compiled with the application.
file(APPEND "${project}/CMakeLists.txt" "
tessera_add_kernel(softmax_in_c ALGORITHM softmax TARGETS avx2 EMIT c)
file(WRITE \"\${CMAKE_CURRENT_BINARY_DIR}/calls_c.c\" \"#include <softmax_in_c.h>\\nint main(void) { return softmax_in_c(0, 0, 0) == TESS_OK; }\\n\")
add_executable(calls_c \"\${CMAKE_CURRENT_BINARY_DIR}/calls_c.c\")
target_link_libraries(calls_c PRIVATE softmax_in_c)
# Several kernels in one library, by words and by a file; and a kernel whose algorithm is a file.
tessera_add_library(layer GENERATOR own_generator KERNELS linear_silu:N=96,K=64 wide=linear_silu:N=192,K=64
  SCHEDULES linear_silu=schedules/linear_silu/small.json TARGETS avx2)
tessera_add_library(two MODULE two.json TARGETS avx2 EMIT c)
execute_process(COMMAND \"\${Tessera_GENERATOR_PROGRAM}\" show matmul --json OUTPUT_FILE \"\${CMAKE_CURRENT_BINARY_DIR}/own.json\" COMMAND_ERROR_IS_FATAL ANY)
tessera_add_kernel(of_file ALGORITHM \"\${CMAKE_CURRENT_BINARY_DIR}/own.json\" SHAPE N=8 TARGETS avx2)
file(WRITE \"\${CMAKE_CURRENT_BINARY_DIR}/calls_libraries.c\" \"#include <layer.h>\n#include <two.h>\n#include <of_file.h>
int main(void) { return linear_silu(0, 0, 0, 0, 0) == TESS_OK || wide(0, 0, 0, 0, 0) == TESS_OK || rows(0, 0, 0) == TESS_OK || sums(0, 0, 0, 0) == TESS_OK || of_file(0, 0, 0, 0) == TESS_OK; }\n\")
add_executable(calls_libraries \"\${CMAKE_CURRENT_BINARY_DIR}/calls_libraries.c\")
target_link_libraries(calls_libraries PRIVATE layer two of_file)
tessera_add_kernel(matched ALGORITHM matmul SHAPE M=64 N=96 K=32 SCHEDULE_DIRS schedules TARGETS avx2)
tessera_add_kernel(named ALGORITHM matmul SCHEDULE matmul/prepacked_avx2 TARGETS avx2)
tessera_add_kernel(extended GENERATOR own_generator ALGORITHM linear_silu SHAPE N=96 K=64 TARGETS laptop)
tessera_add_kernel(silu_forward GENERATOR own_generator ALGORITHM linear_silu TRANSFORM \"forward x w\" SHAPE N=96 K=64 SCHEDULE none TARGETS avx2)
tessera_add_kernel(silu_backward GENERATOR own_generator ALGORITHM linear_silu TRANSFORM \"backward x w\" SHAPE N=96 K=64 SCHEDULE none TARGETS avx2)
tessera_add_kernel(plain ALGORITHM matmul SCHEDULE matmul/prepacked_avx512 SCHEDULE_FOR avx2=none TARGETS avx2)
")
file(WRITE "${project}/two.json" "{\"format\": \"tessera-module\", \"version\": 1, \"name\": \"two\", \"kernels\": [
  {\"name\": \"rows\", \"algorithm\": \"softmax\", \"schedule\": \"none\"},
  {\"name\": \"sums\", \"algorithm\": \"matmul\", \"shape\": {\"N\": 8, \"K\": 8}, \"schedules\": {\"avx2\": \"none\"}}]}\n")
run("configuring" "${CMAKE_COMMAND}" -S "${project}" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_BUILD_TYPE=Release
  "-DTessera_GENERATOR_PROGRAM=${prefix}/bin/tessera-generator")
set(before "")
build(REBUILDS)
build(KEEPS)
run("the application with a kernel in C" "${WORK}/build/calls_c")
run("the application with libraries of several kernels" "${WORK}/build/calls_libraries")
file(READ "${WORK}/build/tessera/layer/layer.manifest.json" manifest)
string(JSON taken GET "${manifest}" kernels 0 targets 0 schedule name)
if(NOT taken STREQUAL "linear_silu/small")
  message(FATAL_ERROR "expected linear_silu/small in the library, got ${taken}")
endif()
# What its file says changes the library.
file(READ "${WORK}/build/tessera/two/two.h" header)
file(READ "${project}/two.json" text)
string(REPLACE "\"sums\"" "\"sums_of_8\"" text "${text}")
file(WRITE "${project}/two.json" "${text}")
run("building a changed module" "${CMAKE_COMMAND}" --build "${WORK}/build" --target two_kernel)
file(READ "${WORK}/build/tessera/two/two.h" changed)
if(NOT changed MATCHES "int32_t sums_of_8\\(" OR changed STREQUAL header)
  message(FATAL_ERROR "the library two was not generated again")
endif()
string(REPLACE "\"sums_of_8\"" "\"sums\"" text "${text}")
file(WRITE "${project}/two.json" "${text}")

# Without SCHEDULE the best match is taken, and looked for again where a better one appears or goes.
# matches(<exact|nearest|family>): builds, and checks how the schedule was come by.
macro(matches expected)
  run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --target matched_kernel)
  file(READ "${WORK}/build/tessera/matched/matched.manifest.json" manifest)
  string(JSON how GET "${manifest}" targets 0 schedule match)
  if(NOT how STREQUAL "${expected}")
    message(FATAL_ERROR "expected the ${expected} match, got ${how}")
  endif()
endmacro()
# tuned(<name> <M>): an artifact for that shape.
macro(tuned name m)
  file(WRITE "${project}/schedules/matmul/f32/avx2/${name}.json" "{\"format\": \"tessera-schedule\", \"version\": 1, \"name\": \"matmul/f32/avx2/${name}\",
    \"stages\": {\"y\": {\"vector\": {\"N\": 8}}}, \"measured\": {\"resolved\": \"sha256:0\",
    \"task\": {\"algorithm\": \"matmul\", \"target\": \"avx2\", \"fixed\": {\"M\": ${m}, \"N\": 96, \"K\": 32}}}}\n")
endmacro()
matches(family)
tuned(far 128)
matches(nearest)
tuned(here 64)
matches(exact)
file(REMOVE "${project}/schedules/matmul/f32/avx2/here.json")
matches(nearest)

# By name, and without one.
run("building with named schedules" "${CMAKE_COMMAND}" --build "${WORK}/build" --target named_kernel plain_kernel)
file(READ "${WORK}/build/tessera/named/named.manifest.json" manifest)
string(JSON name GET "${manifest}" targets 0 schedule name)
file(READ "${WORK}/build/tessera/plain/plain.manifest.json" manifest)
string(JSON plain GET "${manifest}" targets 0 schedule)
if(NOT name STREQUAL "matmul/prepacked_avx2" OR plain MATCHES "matmul")
  message(FATAL_ERROR "expected matmul/prepacked_avx2 and none, got ${name} and ${plain}")
endif()
# wrong(<keyword and value>): the stock generator's names are known when the project is configured.
macro(wrong argument)
  file(WRITE "${WORK}/wrong/CMakeLists.txt" "cmake_minimum_required(VERSION 3.20)\nproject(wrong C)\nfind_package(Tessera REQUIRED)\n"
    "tessera_add_kernel(matmul ${argument} TARGETS avx2)\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${WORK}/wrong" -B "${WORK}/wrong/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}"
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
  string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
  string(REGEX REPLACE "^([A-Z_]+) (avx2=)?(.*)$" "\\1 '\\3' is not the name of a schedule in " expected "${argument}")
  string(FIND "${errors}" "${expected}" at)
  if(result EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "expected '${expected}', got\n${errors}")
  endif()
endmacro()
wrong("SCHEDULE matmul/prepacked")
wrong("SCHEDULE_FOR avx2=softmax")

# The project's own schedule.
set(leaf "${project}/schedules/linear_silu/small.json")
file(READ "${leaf}" text)
string(REPLACE "\"M\": 2" "\"M\": 3" text "${text}")
file(WRITE "${leaf}" "${text}")
build(REBUILDS)

# Its ancestor, in the installed tree.
set(ancestor "${prefix}/share/tessera/schedules/linear/avx2.json")
file(READ "${ancestor}" text)
string(REPLACE "\"vector\": {\"N\": 8}" "\"vector\": {\"N\": 4}" changed "${text}")
if("${changed}" STREQUAL "${text}")
  message(FATAL_ERROR "the ancestor has nothing to change")
endif()
file(WRITE "${ancestor}" "${changed}")
build(REBUILDS)

# A mistake in the schedule stops the build with the generator's words.
file(WRITE "${leaf}" "{\"format\": \"tessera-schedule\", \"version\": 1, \"name\": \"linear_silu/small\", \"extends\": \"linear/avx\"}\n")
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(FIND "${output}${errors}" "error[schedule.missing-parent]" at)
if(result EQUAL 0 OR at EQUAL -1)
  message(FATAL_ERROR "expected the build to fail with error[schedule.missing-parent]\n${output}\n${errors}")
endif()

# The installed generators find Tessera's schedules by themselves.
run("the installed generator" "${prefix}/bin/tessera-generator" explain linear/avx512)
run("the project's generator" "${WORK}/build/own_generator" list)
execute_process(COMMAND "${WORK}/build/own_generator" show linear_silu --target laptop --schedule none --quiet --what names
  RESULT_VARIABLE result OUTPUT_VARIABLE names)
if(NOT result EQUAL 0 OR NOT names STREQUAL "x w b y \n")
  message(FATAL_ERROR "expected the registered analyser's line, got '${names}'")
endif()
run("building for a registered target" "${CMAKE_COMMAND}" --build "${WORK}/build" --target extended_kernel)
file(REMOVE_RECURSE "${WORK}")
