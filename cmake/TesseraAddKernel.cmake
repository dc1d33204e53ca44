# tessera_add_kernel(<name>
#   [GENERATOR <target or path>]     the program that knows the algorithm; default: Tessera::generator
#   [ALGORITHM <name>]               default: <name>
#   [NUMERICS <policy>]              for example f32
#   [OPTIONS <name>=<integer>...]    what the algorithm is declared with, for example stride=2; see the generator's list
#   [SHAPE <dim>=<extent>...]        dims fixed at build time; the others stay dynamic
#   [SCHEDULE <schedule>]            for all targets: a file that ends in .json, relative to the current source folder; the name of one
#                                    in the folders below, such as matmul/prepacked_avx2; none, for plain loops; or derived, for the
#                                    cost model's choice; default: the best match in those folders: tuned for this shape, for one near
#                                    it, or the algorithm's for the target; where there is none, derived
#   [DERIVE_FOR <dim>=<extent>...]   extents that the kernel mostly runs with: what a derived schedule is for
#   [SCHEDULE_FOR <target>=<schedule>...]   for one target of several
#   [SCHEDULE_DIRS <folder>...]      where schedules and their ancestors are looked for, before Tessera's own
#   [EMIT library|c]                 c: as one file of C, for one target, which this project's C compiler compiles; default: library
#   [TARGETS <target>...])           as the generator's list shows them, with features of a processor added by +, or a target file,
#                                    relative to the current source folder, or one that GENERATOR, an executable of this project,
#                                    registers; one only for a GPU; default: host, and the baseline of CMAKE_SYSTEM_PROCESSOR when
#                                    cross-compiling
#
# With several targets the library holds a body for each and runs the best one that the processor has. When cross-compiling,
# a GENERATOR is a program of the build machine: Tessera::generator is one; give the path of another.
#
# Generates lib<name>.a, <name>.h and <name>.manifest.json at build time, again whenever the generator, the schedule,
# one of its ancestors or the target file changes, or a better match appears or goes, and makes the library target <name>: link it,
# include "<name>.h", call <name>().
# With EMIT c it is <name>.c in place of the library; the project has to enable the language C. So it is for a GPU, whose kernels
# are a text in that file, for people to read in <name>.cl or .cu; the target then links OpenCL or the CUDA driver.
cmake_policy(VERSION 3.20)

# The absolute path of a file; an error where there is none.
function(_tessera_file result subject keyword file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  if(NOT EXISTS "${file}" OR IS_DIRECTORY "${file}")
    message(FATAL_ERROR "${subject}: ${keyword} '${file}' is not a file")
  endif()
  set(${result} "${file}" PARENT_SCOPE)
endfunction()

# What the generator is told of a schedule, and the file it is in, "" where only the generator knows. One's own generator may have
# schedules that are in no folder.
function(_tessera_schedule result_value result_file subject keyword value generator)
  set(file)
  if(value MATCHES "\\.json$")
    _tessera_file(value "${subject}" ${keyword} "${value}")
    set(file "${value}")
  elseif(NOT value MATCHES "^(none|derived)$")
    foreach(dir IN LISTS ARGN)
      if(NOT file AND EXISTS "${dir}/${value}.json")
        set(file "${dir}/${value}.json")
      endif()
    endforeach()
    if(NOT file AND generator STREQUAL "Tessera::generator")
      list(JOIN ARGN ", " folders)
      message(FATAL_ERROR "${subject}: ${keyword} '${value}' is not the name of a schedule in ${folders}; expected one, or a file that ends in "
        ".json, or none, or derived")
    endif()
  endif()
  set(${result_value} "${value}" PARENT_SCOPE)
  set(${result_file} "${file}" PARENT_SCOPE)
endfunction()

# The generator's --<option> with what a keyword has, pairs of a name and a value; nothing where it has none.
function(_tessera_pairs result subject keyword option value expected)
  foreach(pair IN LISTS ARGN)
    if(NOT pair MATCHES "^[A-Za-z_][A-Za-z0-9_]*=${value}$")
      message(FATAL_ERROR "${subject}: ${keyword} '${pair}'; expected ${expected}")
    endif()
  endforeach()
  set(${result})
  if(ARGN)
    set(${result} --${option} ${ARGN})
  endif()
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

# Makes Tessera::<kind>, opencl or cuda, unless it is there: what kernels for GPUs link, built by this project.
function(_tessera_gpu_runtime subject kind)
  if(TARGET Tessera::${kind})
    return()
  elseif(kind STREQUAL "opencl")
    set(package OpenCL)
    set(driver OpenCL::OpenCL)
    set(remedy "install an OpenCL loader and its headers (Debian: ocl-icd-opencl-dev opencl-headers)")
  else()
    set(package CUDAToolkit)
    set(driver CUDA::cuda_driver)
    set(remedy "install the CUDA toolkit")
  endif()
  find_package(${package} QUIET)
  if(NOT TARGET ${driver})
    message(FATAL_ERROR "${subject}: TARGETS ${kind} needs ${package}, which find_package has not found; ${remedy}")
  endif()
  add_library(tessera_${kind} STATIC EXCLUDE_FROM_ALL "${Tessera_GPU_DIR}/${kind}.c")
  add_library(Tessera::${kind} ALIAS tessera_${kind})
  set_target_properties(tessera_${kind} PROPERTIES
    C_STANDARD 99 C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  target_include_directories(tessera_${kind} PRIVATE "${Tessera_GPU_DIR}/..")
  target_link_libraries(tessera_${kind} PUBLIC Tessera::runtime ${driver})
endfunction()

function(tessera_add_kernel name)
  set(subject "error[cmake.add-kernel]: tessera_add_kernel(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GENERATOR;ALGORITHM;NUMERICS;SCHEDULE;EMIT" "OPTIONS;SHAPE;DERIVE_FOR;SCHEDULE_FOR;SCHEDULE_DIRS;TARGETS")

  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "${subject}: the name becomes a C function; expected letters, digits and _, got '${name}'")
  elseif(TARGET ${name})
    message(FATAL_ERROR "${subject}: there is already a target '${name}'; give the kernel another name and say ALGORITHM")
  elseif(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${subject}: no argument '${arg_UNPARSED_ARGUMENTS}'; the keywords are GENERATOR, ALGORITHM, "
      "NUMERICS, OPTIONS, SHAPE, DERIVE_FOR, SCHEDULE, SCHEDULE_FOR, SCHEDULE_DIRS, EMIT, TARGETS")
  elseif(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${subject}: ${arg_KEYWORDS_MISSING_VALUES} has no value")
  endif()

  set(generator Tessera::generator)
  if(arg_GENERATOR)
    set(generator "${arg_GENERATOR}")
  endif()
  if(TARGET ${generator})
    get_target_property(type ${generator} TYPE)
    if(NOT type STREQUAL "EXECUTABLE")
      message(FATAL_ERROR "${subject}: GENERATOR '${generator}' is a target of type ${type}; expected an executable")
    endif()
    set(program "$<TARGET_FILE:${generator}>")
  elseif(EXISTS "${generator}" AND NOT IS_DIRECTORY "${generator}" AND IS_ABSOLUTE "${generator}")
    set(program "${generator}")
  else()
    message(FATAL_ERROR "${subject}: GENERATOR '${generator}' is neither an executable target nor an absolute path of a "
      "program; make the generator before the kernel, with add_executable(${generator} ...)")
  endif()

  set(algorithm ${name})
  if(arg_ALGORITHM)
    set(algorithm "${arg_ALGORITHM}")
  endif()
  set(options --name ${name})
  if(arg_NUMERICS)
    list(APPEND options --numerics "${arg_NUMERICS}")
  endif()
  _tessera_pairs(pairs "${subject}" OPTIONS option "-?[0-9]+" "<name>=<integer>, for example stride=2" ${arg_OPTIONS})
  list(APPEND options ${pairs})
  _tessera_pairs(pairs "${subject}" SHAPE shape "[0-9]+" "<dim>=<extent>, for example N=768" ${arg_SHAPE})
  list(APPEND options ${pairs})
  _tessera_pairs(pairs "${subject}" DERIVE_FOR derive-for "[0-9]+" "<dim>=<extent>, for example M=512" ${arg_DERIVE_FOR})
  list(APPEND options ${pairs})
  set(inputs)
  set(folders)
  foreach(dir IN LISTS arg_SCHEDULE_DIRS Tessera_SCHEDULES_DIR)
    cmake_path(ABSOLUTE_PATH dir BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT IS_DIRECTORY "${dir}")
      message(FATAL_ERROR "${subject}: SCHEDULE_DIRS '${dir}' is not a folder")
    endif()
    list(APPEND folders "${dir}")
    list(APPEND options --schedule-dir "${dir}")
  endforeach()
  if(arg_SCHEDULE)
    _tessera_schedule(schedule file "${subject}" SCHEDULE "${arg_SCHEDULE}" "${generator}" ${folders})
    list(APPEND options --schedule "${schedule}")
    list(APPEND inputs ${file})
  endif()
  foreach(one IN LISTS arg_SCHEDULE_FOR)
    if(NOT one MATCHES "^([^=]+)=(.+)$")
      message(FATAL_ERROR "${subject}: SCHEDULE_FOR '${one}'; expected <target>=<schedule>, for example avx2=mine.json")
    endif()
    set(for "${CMAKE_MATCH_1}")
    _tessera_schedule(schedule file "${subject}" SCHEDULE_FOR "${CMAKE_MATCH_2}" "${generator}" ${folders})
    list(APPEND options --schedule-for "${for}=${schedule}")
    list(APPEND inputs ${file})
  endforeach()
  if(NOT arg_TARGETS AND CMAKE_CROSSCOMPILING)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
      set(arg_TARGETS arm64)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
      set(arg_TARGETS x86-64)
    elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
      set(arg_TARGETS wasm32)
    else()
      message(FATAL_ERROR "${subject}: no target for CMAKE_SYSTEM_PROCESSOR '${CMAKE_SYSTEM_PROCESSOR}'; say TARGETS")
    endif()
  endif()
  set(targets)
  set(gpu)
  set(machine)
  foreach(target IN LISTS arg_TARGETS)
    set(known x86-64 avx2 avx512 avx512_bf16 arm64 wasm32 opencl cuda-sm80 cuda-sm86 host)
    set(full "${target}")
    string(REGEX REPLACE "\\+.*" "" base "${target}")
    if(target MATCHES "\\.json$")
      _tessera_file(target "${subject}" TARGETS "${target}")
      list(APPEND inputs "${target}")
      # The target that it names decides what is made; of a file that names none, the generator says what is wrong with it.
      file(READ "${target}" full)
      string(JSON full ERROR_VARIABLE no_name GET "${full}" name)
      if(NOT CMAKE_SCRIPT_MODE_FILE)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${target}")
      endif()
    elseif(NOT base IN_LIST known AND NOT (arg_GENERATOR AND TARGET "${arg_GENERATOR}"))  # a project's own may register it
      list(JOIN known ", " known)
      message(FATAL_ERROR "${subject}: TARGETS has no '${target}'; the targets are ${known}, with features added by +")
    endif()
    if(full MATCHES "^(opencl|cuda)")
      set(gpu "${CMAKE_MATCH_1}")
    elseif(full MATCHES "asimddp" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
      set(machine -march=armv8.2-a+dotprod)
    elseif(full MATCHES "^wasm32")
      set(machine -msimd128)
    endif()
    list(APPEND targets "${target}")
  endforeach()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  list(LENGTH targets count)
  if(gpu AND count GREATER 1)
    message(FATAL_ERROR "${subject}: TARGETS '${arg_TARGETS}'; a kernel for a GPU is made for one target. Make one kernel for each")
  elseif(gpu AND arg_EMIT)
    message(FATAL_ERROR "${subject}: EMIT '${arg_EMIT}' with TARGETS ${targets}; a kernel for a GPU is a C file. Leave out EMIT")
  elseif((gpu OR arg_EMIT STREQUAL "c") AND NOT "C" IN_LIST languages AND NOT CMAKE_SCRIPT_MODE_FILE)
    message(FATAL_ERROR "${subject}: the kernel is a C file; enable the language C in project()")
  endif()
  if(targets)
    list(JOIN targets "," targets)
    list(APPEND options --target "${targets}")
  endif()

  set(out "${CMAKE_CURRENT_BINARY_DIR}/tessera/${name}")
  set(library "${out}/lib${name}.a")
  if(gpu)
    set(library "${out}/${name}.c")
  elseif(arg_EMIT STREQUAL "c")
    set(library "${out}/${name}.c")
    list(APPEND options --emit c)
  elseif(arg_EMIT AND NOT arg_EMIT STREQUAL "library")
    message(FATAL_ERROR "${subject}: no EMIT '${arg_EMIT}'; expected library or c")
  endif()
  file(MAKE_DIRECTORY "${out}")
  add_custom_command(
    OUTPUT "${library}" "${out}/${name}.h" "${out}/${name}.manifest.json"
    COMMAND "${CMAKE_COMMAND}" -E env "TESSERA_CACHE=${CMAKE_BINARY_DIR}/tessera-derived" "${program}" generate "${algorithm}" ${options} --out "${out}" --depfile "${out}/${name}.d"
    DEPENDS ${generator} ${inputs}
    DEPFILE "${out}/${name}.d"
    COMMENT "Generating the kernel ${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name}_kernel DEPENDS "${library}")

  set(runtime runtime)
  if(gpu)
    _tessera_gpu_runtime("${subject}" ${gpu})
    set(runtime ${gpu})
  endif()
  if(gpu OR arg_EMIT STREQUAL "c")
    add_library(${name} STATIC "${library}")
    add_dependencies(${name} ${name}_kernel)
    target_compile_options(${name} PRIVATE -Wno-psabi ${machine})
    target_include_directories(${name} PUBLIC "${out}" $<$<BOOL:${gpu}>:${Tessera_GPU_DIR}/..>)
    target_link_libraries(${name} PUBLIC Tessera::${runtime})
    return()
  endif()
  add_library(${name} STATIC IMPORTED GLOBAL)
  add_dependencies(${name} ${name}_kernel)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${library}")
  target_include_directories(${name} INTERFACE "${out}")
  target_link_libraries(${name} INTERFACE Tessera::runtime)
endfunction()
