# tessera_add_benchmark(<name>
#   KERNEL <target>                  what tessera_add_kernel made, for processors
#   [EXTENTS <dim>=<extent>[,<dim>=<extent>...]...])   shapes of its dynamic dims, for example "M=1,K=768;M=512,K=768"; each is a benchmark
#
# Makes the executable <name> of Google Benchmark (Debian: libbenchmark-dev); the project has to enable the languages C and CXX. A benchmark is
# named <kernel>/<dim>:<extent>/..., dims in order of the alphabet, such as linear_silu/K:768/M:512, which --benchmark_filter and compare.py take. The
# generator says what inputs it has, those of the command `bench`, and its counters:
#   operations, bytes                       of one call, as `bench --json` has them; no operations where a dim's extent depends on data
#   operations_per_second, bytes_per_second
#   share_of_limit                          the roofline's time by that of a call, one thread: 1 is what the target could do at most. The context
#                                           `tessera_limit` says whether its rates were measured: they are where TARGETS has a file of
#                                           `doctor --calibrate`. Otherwise they are those of the fastest processors of its kind, so the share is low
cmake_policy(VERSION 3.20)

function(tessera_add_benchmark name)
  set(subject "error[cmake.add-benchmark]: tessera_add_benchmark(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KERNEL" "EXTENTS")
  _tessera_check_arguments("a program and a target" "KERNEL, EXTENTS" "give the benchmark another name")
  set(options)
  string(REPLACE "\\;" ";" arg_EXTENTS "${arg_EXTENTS}")  # a list in quotes is one argument
  foreach(shape IN LISTS arg_EXTENTS)
    if(NOT shape MATCHES "^[A-Za-z_][A-Za-z0-9_]*=[0-9]+(,[A-Za-z_][A-Za-z0-9_]*=[0-9]+)*$")
      message(FATAL_ERROR "${subject}: EXTENTS '${shape}'; expected <dim>=<extent>,... for each shape, for example M=512,K=768")
    endif()
    list(APPEND options --benchmark-at "${shape}")
  endforeach()
  if(NOT arg_KERNEL)
    message(FATAL_ERROR "${subject}: expected KERNEL, got none; name what tessera_add_kernel made")
  elseif(TARGET ${arg_KERNEL}_kernel)
    get_target_property(command ${arg_KERNEL}_kernel TESSERA_BENCHMARK_COMMAND)
  endif()
  if(NOT command)
    message(FATAL_ERROR "${subject}: KERNEL '${arg_KERNEL}' is not a target of tessera_add_kernel for processors; make it before the benchmark, with "
      "tessera_add_kernel(${arg_KERNEL} ...)")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages OR NOT "CXX" IN_LIST languages)
    message(FATAL_ERROR "${subject}: expected the languages C and CXX, got ${languages}; enable both in project()")
  endif()
  find_package(benchmark QUIET)
  if(NOT TARGET benchmark::benchmark)
    message(FATAL_ERROR "${subject}: expected the package benchmark, Google Benchmark, which find_package has not found; install it (Debian: "
      "libbenchmark-dev) or say where it is with benchmark_DIR")
  endif()
  get_target_property(inputs ${arg_KERNEL}_kernel TESSERA_INPUTS)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/tessera/${name}")
  set(source "${out}/${arg_KERNEL}.benchmark.cpp")
  file(MAKE_DIRECTORY "${out}")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND ${command} --benchmark ${options} --out "${out}" --depfile "${out}/${name}.d"
    DEPENDS ${inputs}
    DEPFILE "${out}/${name}.d"
    COMMENT "Generating the benchmark ${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_executable(${name} "${source}" "${Tessera_BENCHMARK_DIR}/bench/measure/random_elements.c")
  target_compile_features(${name} PRIVATE cxx_std_17 c_std_99)
  target_include_directories(${name} PRIVATE "${Tessera_BENCHMARK_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_KERNEL} benchmark::benchmark)
endfunction()
