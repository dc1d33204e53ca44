# tessera_add_kernel(<name>
#   [GENERATOR <target or path>]     the program that knows the algorithm; default: Tessera::generator
#   [ALGORITHM <name>]               default: <name>; or a file of JSON (*.json), relative to the current source folder. As all files here it
#                                    may be the output of an add_custom_command, such as that of the command `import`
#   [PYTHON <file.py>:<function>]    in place of ALGORITHM: a function under @jit, by the package tessera in Python3_EXECUTABLE; the file is
#                                    relative to the current source folder
#   [NUMERICS <policy>]              for example f32; or a file of JSON (*.json), relative to the current source folder
#   [OPTIONS <name>=<value>...]      the algorithm's options, for example stride=2 activation=relu; see the generator's list
#   [GRADIENT <name>...]             in place of the algorithm its gradients by these inputs, states or parameters (docs/gradients.md)
#   [RESIDUALS <stages>=save|recompute...]   what the backward part of GRADIENT finds kept, the first pattern that fits counts; or a file
#                                    of JSON (*.json), such as 'residuals' writes, relative to the current source folder
#   [TANGENT <name>...]              the algorithm and how its outputs change with these
#   [VMAP <dim>[=<name>,...]...]     the algorithm for many of these at once, all inputs and states where none is named
#   [CHECKPOINT <call>=<rounds>...]  with the rounds of a call that repeats in groups; these are made in the order in which they stand
#   [TRANSFORM <words>...]           each of these in the words of modules, such as "forward x w" and "backward x w", the two kernels of a
#                                    gradient (docs/gradients.md)
#   [SHAPE <dim>=<extent>...]        dims fixed at build time; the others stay dynamic
#   [SCHEDULE <schedule>]            for all targets: a file that ends in .json, relative to the current source folder; the name of one
#                                    in the folders below, such as matmul/prepacked_avx2; none, for plain loops; or derived, for the
#                                    cost model's choice; default: the best match in those folders: tuned for this shape, for one near
#                                    it, or the algorithm's for the target; where there is none, derived
#   [DERIVE_FOR <dim>=<extent>...]   extents that the kernel mostly runs with: what a derived schedule is for
#   [COMPILE_LIMIT <seconds>]        most that compiling may take; default: 60, which is too little for a large network on a busy machine
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
#
# tessera_add_library(<name>
#   KERNELS <kernel>...              each [<function>=]<algorithm>[:<dim>=<extent>,...], such as up=linear_gelu:N=1536,K=384; an algorithm may
#                                    be a file (*.json), relative to the current source folder
#   [PYTHON <kernel>...]             each [<function>=]<file.py>:<function>[:<dim>=<extent>,...], as PYTHON above
#   [SCHEDULES <function>=<schedule>...]   as SCHEDULE above, of one kernel; default: the best match
#   [NUMERICS <policy>]              of all kernels
#   [MODULE <file>]                  in place of these four: a file (tessera-module.schema.json), relative to the current source folder,
#                                    which says the kernels, each with its own numerics, options and schedules
#   [GENERATOR ...] [COMPILE_LIMIT ...] [SCHEDULE_DIRS ...] [EMIT ...] [TARGETS ...])   as above; the limit is for each kernel
#
# One library and one header, lib<name>.a and <name>.h, that have all these kernels; what they call and their constants are shared where
# they are equal. The files and the target are as above.
cmake_policy(VERSION 3.20)

# The absolute path of a file; an error where there is none, unless this project makes it while it is built.
function(_tessera_file result subject keyword file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  set(is_made FALSE)
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    get_source_file_property(is_made "${file}" GENERATED)
  endif()
  if(NOT is_made AND (NOT EXISTS "${file}" OR IS_DIRECTORY "${file}"))
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
      foreach(place IN ITEMS "${dir}" "${dir}/tuned")
        if(NOT file AND EXISTS "${place}/${value}.json")
          set(file "${place}/${value}.json")
        endif()
      endforeach()
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
  add_library(tessera_${kind} STATIC EXCLUDE_FROM_ALL "${Tessera_GPU_DIR}/${kind}.c" "${Tessera_GPU_DIR}/gpu.c")
  add_library(Tessera::${kind} ALIAS tessera_${kind})
  set_target_properties(tessera_${kind} PROPERTIES
    C_STANDARD 99 C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  target_include_directories(tessera_${kind} PRIVATE "${Tessera_GPU_DIR}/../..")
  target_link_libraries(tessera_${kind} PUBLIC Tessera::runtime ${driver})
endfunction()

# The parts that tessera_add_kernel and tessera_add_library share. They read arguments and variables of these; macros also set some.

# Whether the name and the arguments are such. `keywords` are those that there are, `remedy` is what to do where the name is taken.
macro(_tessera_check_arguments what keywords remedy)
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "${subject}: the name becomes ${what}; expected letters, digits and _, got '${name}'")
  elseif(TARGET ${name})
    message(FATAL_ERROR "${subject}: there is already a target '${name}'; ${remedy}")
  elseif(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${subject}: no argument '${arg_UNPARSED_ARGUMENTS}'; the keywords are ${keywords}")
  elseif(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${subject}: ${arg_KEYWORDS_MISSING_VALUES} has no value")
  endif()
endmacro()

# Sets `generator` and `program`.
macro(_tessera_find_generator)
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
endmacro()

# Sets `folders`, where schedules are looked for, and adds them to `options`.
macro(_tessera_find_folders)
  set(folders)
  foreach(dir IN LISTS arg_SCHEDULE_DIRS Tessera_SCHEDULES_DIR)
    cmake_path(ABSOLUTE_PATH dir BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT IS_DIRECTORY "${dir}")
      message(FATAL_ERROR "${subject}: SCHEDULE_DIRS '${dir}' is not a folder")
    endif()
    list(APPEND folders "${dir}")
    list(APPEND options --schedule-dir "${dir}")
  endforeach()
endmacro()

# Makes the target <name> of what `program` generates with `asked` and `options`, again where one of `inputs` changes. Where there is a
# `module_text`, it is written to the file `module`.
function(_tessera_add_generated)
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
    set(known x86-64 avx2 avx512 znver4 znver5 sapphirerapids amx arm64 wasm32 opencl cuda-sm80 cuda-sm86 cuda-sm90 host)
    # Names that targets used to have are accepted; schedules/knobs/former_names.cpp has the list.
    string(REGEX REPLACE "^avx512_bf16(\\+|$)" "znver4\\1" target "${target}")
    string(REGEX REPLACE "^avx512_fp16(\\+|$)" "sapphirerapids\\1" target "${target}")
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
  set(is_library FALSE)
  if(NOT gpu AND NOT arg_EMIT STREQUAL "c")
    set(is_library TRUE)
    list(APPEND options --sources)  # for tessera_add_bundle
  endif()
  file(MAKE_DIRECTORY "${out}")
  if(module_text)
    set(before)
    if(EXISTS "${module}")
      file(READ "${module}" before)
    endif()
    if(NOT before STREQUAL module_text)  # what is the same makes nothing again
      file(WRITE "${module}" "${module_text}")
    endif()
  endif()
  add_custom_command(
    OUTPUT "${library}" "${out}/${name}.h" "${out}/${name}.manifest.json"
    COMMAND "${CMAKE_COMMAND}" -E env "TESSERA_CACHE=${CMAKE_BINARY_DIR}/tessera-derived" "${program}" generate ${asked} ${options} --out "${out}" --depfile "${out}/${name}.d"
    DEPENDS ${generator} ${inputs}
    DEPFILE "${out}/${name}.d"
    COMMENT "Generating ${comment}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name}_kernel DEPENDS "${library}")
  if(is_library)
    set_target_properties(${name}_kernel PROPERTIES TESSERA_FOLDER "${out}")
  endif()
  if(NOT gpu AND NOT asked MATCHES "^--module")  # for tessera_add_benchmark
    set(again "${CMAKE_COMMAND}" -E env "TESSERA_CACHE=${CMAKE_BINARY_DIR}/tessera-derived" "${program}" generate ${asked} ${options})
    set_target_properties(${name}_kernel PROPERTIES TESSERA_BENCHMARK_COMMAND "${again}" TESSERA_INPUTS "${generator};${inputs}")
  endif()

  set(runtime runtime)
  if(gpu)
    _tessera_gpu_runtime("${subject}" ${gpu})
    set(runtime ${gpu})
  endif()
  if(gpu OR arg_EMIT STREQUAL "c")
    add_library(${name} STATIC "${library}")
    add_dependencies(${name} ${name}_kernel)
    target_compile_options(${name} PRIVATE -Wno-psabi ${machine})
    target_include_directories(${name} PUBLIC "${out}" $<$<BOOL:${gpu}>:${Tessera_GPU_DIR}/../..>)
    target_link_libraries(${name} PUBLIC Tessera::${runtime})
    return()
  endif()
  add_library(${name} STATIC IMPORTED GLOBAL)
  add_dependencies(${name} ${name}_kernel)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${library}")
  target_include_directories(${name} INTERFACE "${out}")
  target_link_libraries(${name} INTERFACE Tessera::runtime)
endfunction()

# The file of JSON that is made of a function of Python, while the project is built, for the kernel of that name.
function(_tessera_python_algorithm result kernel function)
  if(NOT function MATCHES "^(.+\\.py):([A-Za-z_][A-Za-z0-9_]*)$")
    message(FATAL_ERROR "${subject}: PYTHON '${function}'; expected <file.py>:<function>, for example kernels.py:linear_silu")
  elseif(arg_ALGORITHM)
    message(FATAL_ERROR "${subject}: expected ALGORITHM or PYTHON, got both; leave out one of them")
  endif()
  set(function "${CMAKE_MATCH_2}")
  _tessera_file(file "${subject}" PYTHON "${CMAKE_MATCH_1}")
  find_package(Python3 QUIET COMPONENTS Interpreter)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import tessera" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "${subject}: PYTHON needs the package tessera, and '${Python3_EXECUTABLE}' has none; set Python3_EXECUTABLE to a Python that has it")
  endif()
  set(json "${CMAKE_CURRENT_BINARY_DIR}/tessera/${name}/${kernel}.algorithm.json")
  add_custom_command(
    OUTPUT "${json}"
    COMMAND "${Python3_EXECUTABLE}" -m tessera algorithm "${file}:${function}" "${json}"
    DEPENDS "${file}"
    DEPFILE "${json}.d"
    COMMENT "Declaring the kernel ${kernel}"
    VERBATIM)
  set(${result} "${json}" PARENT_SCOPE)
endfunction()

# Appends to `options` what COMPILE_LIMIT says.
macro(_tessera_compile_limit)
  if(arg_COMPILE_LIMIT MATCHES "^[1-9][0-9]*$")
    list(APPEND options --compile-limit-s ${arg_COMPILE_LIMIT})
  elseif(DEFINED arg_COMPILE_LIMIT)
    message(FATAL_ERROR "${subject}: COMPILE_LIMIT '${arg_COMPILE_LIMIT}'; expected seconds, for example 300")
  endif()
endmacro()

# Appends to `options` what is made of the algorithm, in the order of the keywords, and to `inputs` the files that say it.
function(_tessera_transforms subject)
  set(name "[A-Za-z_][A-Za-z0-9_.]*")
  set(of_GRADIENT --grad "${name}" "names of inputs, states or parameters, for example x w")
  set(of_TANGENT --tangent "${name}" "names of inputs, states or parameters, for example x w")
  set(of_VMAP --vmap "[A-Za-z_][A-Za-z0-9_]*(=${name}(,${name})*)?" "<dim>[=<name>,...], for example B=x,w")
  set(of_CHECKPOINT --checkpoint "${name}=[1-9][0-9]*" "<call>=<rounds of a group>, for example layers=8")
  set(of_RESIDUALS --residuals "([A-Za-z0-9_.*]+=(save|recompute|[1-9][0-9]*)|.*\\.json)" "<stages>=save, <stages>=recompute or a file *.json, for example layers.*=save")
  set(of_TRANSFORM --transform "[a-z_]+( [A-Za-z0-9_.*=]+)*" "words in quotes, for example \"forward x w\"")
  set(order "${ARGN}")
  list(FILTER order INCLUDE REGEX "^(GRADIENT|TANGENT|VMAP|CHECKPOINT|RESIDUALS|TRANSFORM)$")
  list(REMOVE_DUPLICATES order)
  foreach(keyword IN LISTS order)
    list(GET of_${keyword} 0 option)
    list(GET of_${keyword} 1 value)
    list(GET of_${keyword} 2 expected)
    foreach(word IN LISTS arg_${keyword})
      if(NOT word MATCHES "^${value}$")
        message(FATAL_ERROR "${subject}: ${keyword} '${word}'; expected ${expected}")
      endif()
      if(keyword STREQUAL "RESIDUALS" AND word MATCHES "\\.json$")
        _tessera_file(word "${subject}" RESIDUALS "${word}")
        list(APPEND inputs "${word}")
      endif()
      list(APPEND options ${option} "${word}")
    endforeach()
  endforeach()
  if(arg_RESIDUALS AND NOT arg_GRADIENT)
    message(FATAL_ERROR "${subject}: RESIDUALS without GRADIENT; say what the gradients are by")
  endif()
  set(options ${options} PARENT_SCOPE)
  set(inputs ${inputs} PARENT_SCOPE)
endfunction()

function(tessera_add_kernel name)
  set(subject "error[cmake.add-kernel]: tessera_add_kernel(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GENERATOR;ALGORITHM;PYTHON;NUMERICS;SCHEDULE;COMPILE_LIMIT;EMIT" "OPTIONS;GRADIENT;RESIDUALS;TANGENT;VMAP;CHECKPOINT;TRANSFORM;SHAPE;DERIVE_FOR;SCHEDULE_FOR;SCHEDULE_DIRS;TARGETS")
  _tessera_check_arguments("a C function"
    "GENERATOR, ALGORITHM, PYTHON, NUMERICS, OPTIONS, GRADIENT, RESIDUALS, TANGENT, VMAP, CHECKPOINT, TRANSFORM, SHAPE, DERIVE_FOR, COMPILE_LIMIT, SCHEDULE, SCHEDULE_FOR, SCHEDULE_DIRS, EMIT, TARGETS"
    "give the kernel another name and say ALGORITHM")
  _tessera_find_generator()

  set(module_text)
  set(inputs)
  set(asked ${name})
  if(arg_ALGORITHM)
    set(asked "${arg_ALGORITHM}")
  endif()
  if(arg_PYTHON)
    _tessera_python_algorithm(asked "${name}" "${arg_PYTHON}")
    list(APPEND inputs "${asked}")
  elseif(asked MATCHES "\\.json$")
    _tessera_file(asked "${subject}" ALGORITHM "${asked}")
    list(APPEND inputs "${asked}")
  endif()
  set(options --name ${name})
  if(arg_NUMERICS)
    if(arg_NUMERICS MATCHES "\\.json$")
      _tessera_file(arg_NUMERICS "${subject}" NUMERICS "${arg_NUMERICS}")
      list(APPEND inputs "${arg_NUMERICS}")
    endif()
    list(APPEND options --numerics "${arg_NUMERICS}")
  endif()
  _tessera_pairs(pairs "${subject}" OPTIONS option "(-?[0-9]+|[A-Za-z_][A-Za-z0-9_]*)" "<name>=<value>, for example stride=2" ${arg_OPTIONS})
  list(APPEND options ${pairs})
  _tessera_transforms("${subject}" ${ARGN})
  _tessera_pairs(pairs "${subject}" SHAPE shape "[0-9]+" "<dim>=<extent>, for example N=768" ${arg_SHAPE})
  list(APPEND options ${pairs})
  _tessera_pairs(pairs "${subject}" DERIVE_FOR derive-for "[0-9]+" "<dim>=<extent>, for example M=512" ${arg_DERIVE_FOR})
  list(APPEND options ${pairs})
  _tessera_compile_limit()
  _tessera_find_folders()
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
  set(comment "the kernel ${name}")
  _tessera_add_generated()
endfunction()

# A text as JSON has it.
function(_tessera_json_text result text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  set(${result} "\"${text}\"" PARENT_SCOPE)
endfunction()

# The JSON of a kernel of a library, but for its end.
function(_tessera_kernel_json result function algorithm shape)
  _tessera_json_text(text "${algorithm}")
  set(json "{\"name\": \"${function}\", \"algorithm\": ${text}")
  if(arg_NUMERICS)
    if(arg_NUMERICS MATCHES "\\.json$")
      _tessera_file(arg_NUMERICS "${subject}" NUMERICS "${arg_NUMERICS}")
    endif()
    _tessera_json_text(text "${arg_NUMERICS}")
    string(APPEND json ", \"numerics\": ${text}")
  endif()
  list(TRANSFORM shape REPLACE "^(.*)=(.*)$" "\"\\1\": \\2")
  list(JOIN shape ", " shape)
  set(${result} "${json}, \"shape\": {${shape}}" PARENT_SCOPE)
endfunction()

# The JSON of one of PYTHON, its function's name, and the file that is made of it.
function(_tessera_python_kernel result_json result_function result_file kernel)
  if(NOT kernel MATCHES "^(([A-Za-z_][A-Za-z0-9_]*)=)?([^=:]+\\.py:([A-Za-z_][A-Za-z0-9_]*))(:(.+))?$")
    message(FATAL_ERROR "${subject}: PYTHON '${kernel}'; expected [<function>=]<file.py>:<function>[:<dim>=<extent>,...], for example kernels.py:linear_silu:N=1536,K=384")
  endif()
  set(function "${CMAKE_MATCH_2}")
  set(declared "${CMAKE_MATCH_3}")
  if(NOT function)
    set(function "${CMAKE_MATCH_4}")
  endif()
  string(REPLACE "," ";" shape "${CMAKE_MATCH_6}")
  _tessera_pairs(pairs "${subject}" "PYTHON '${kernel}':" shape "[0-9]+" "<dim>=<extent>, for example N=768" ${shape})
  _tessera_python_algorithm(file "${function}" "${declared}")
  _tessera_kernel_json(json "${function}" "${file}" "${shape}")
  set(${result_json} "${json}" PARENT_SCOPE)
  set(${result_function} "${function}" PARENT_SCOPE)
  set(${result_file} "${file}" PARENT_SCOPE)
endfunction()

# The JSON of one of KERNELS, and its function's name.
function(_tessera_kernel result_json result_function kernel)
  if(NOT kernel MATCHES "^(([A-Za-z_][A-Za-z0-9_]*)=)?([A-Za-z0-9_.]+|[^=:]+\\.json)(:(.+))?$")
    message(FATAL_ERROR "${subject}: KERNELS '${kernel}'; expected [<function>=]<algorithm>[:<dim>=<extent>,...], for example up=linear_gelu:N=1536,K=384")
  endif()
  set(function "${CMAKE_MATCH_2}")
  set(algorithm "${CMAKE_MATCH_3}")
  string(REPLACE "," ";" shape "${CMAKE_MATCH_5}")
  _tessera_pairs(pairs "${subject}" "KERNELS '${kernel}':" shape "[0-9]+" "<dim>=<extent>, for example N=768" ${shape})
  if(algorithm MATCHES "\\.json$")
    if(NOT function)
      message(FATAL_ERROR "${subject}: KERNELS '${kernel}'; expected the name of the function before the file, <function>=${kernel}")
    endif()
    _tessera_file(algorithm "${subject}" KERNELS "${algorithm}")
  elseif(NOT function)
    set(function "${algorithm}")
  endif()
  _tessera_kernel_json(json "${function}" "${algorithm}" "${shape}")
  set(${result_json} "${json}" PARENT_SCOPE)
  set(${result_function} "${function}" PARENT_SCOPE)
endfunction()

function(tessera_add_library name)
  set(subject "error[cmake.add-library]: tessera_add_library(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GENERATOR;NUMERICS;MODULE;COMPILE_LIMIT;EMIT" "KERNELS;PYTHON;SCHEDULES;SCHEDULE_DIRS;TARGETS")
  _tessera_check_arguments("a file and a target" "KERNELS, PYTHON, SCHEDULES, NUMERICS, MODULE, GENERATOR, COMPILE_LIMIT, SCHEDULE_DIRS, EMIT, TARGETS"
    "give the library another name")
  if(NOT arg_KERNELS AND NOT arg_PYTHON AND NOT arg_MODULE)
    message(FATAL_ERROR "${subject}: expected KERNELS, PYTHON or MODULE, got none; say what the library shall have")
  endif()
  foreach(other IN ITEMS KERNELS PYTHON SCHEDULES NUMERICS)
    if(arg_MODULE AND arg_${other})
      message(FATAL_ERROR "${subject}: expected MODULE or ${other}, got both; the module's file says what its kernels are")
    endif()
  endforeach()
  _tessera_find_generator()
  set(module_text)
  set(inputs)
  set(options --name ${name})
  _tessera_compile_limit()
  _tessera_find_folders()
  if(arg_MODULE)
    _tessera_file(module "${subject}" MODULE "${arg_MODULE}")
    list(APPEND inputs "${module}")
  else()
    set(functions)
    set(scheduled)
    list(LENGTH arg_KERNELS count)
    set(position 0)
    foreach(kernel IN LISTS arg_KERNELS arg_PYTHON)
      set(from KERNELS)
      if(position LESS count)
        _tessera_kernel(json function "${kernel}")
      else()
        set(from PYTHON)
        _tessera_python_kernel(json function file "${kernel}")
        list(APPEND inputs "${file}")
      endif()
      math(EXPR position "${position} + 1")
      if(function IN_LIST functions)
        message(FATAL_ERROR "${subject}: ${from} has '${function}' twice; give one of them another name, <function>=<algorithm>")
      endif()
      list(APPEND functions "${function}")
      set(json_${function} "${json}")
    endforeach()
    foreach(one IN LISTS arg_SCHEDULES)
      if(NOT one MATCHES "^([^=]+)=(.+)$")
        message(FATAL_ERROR "${subject}: SCHEDULES '${one}'; expected <function>=<schedule>, for example up=schedules/up.json")
      endif()
      set(function "${CMAKE_MATCH_1}")
      if(NOT function IN_LIST functions)
        list(JOIN functions ", " known)
        message(FATAL_ERROR "${subject}: SCHEDULES '${one}'; the library has no kernel '${function}', its kernels are ${known}")
      elseif(function IN_LIST scheduled)
        message(FATAL_ERROR "${subject}: SCHEDULES has '${function}' twice; give it one schedule")
      endif()
      _tessera_schedule(schedule file "${subject}" SCHEDULES "${CMAKE_MATCH_2}" "${generator}" ${folders})
      list(APPEND scheduled "${function}")
      list(APPEND inputs ${file})
      _tessera_json_text(text "${schedule}")
      string(APPEND json_${function} ", \"schedule\": ${text}")
    endforeach()
    set(kernels)
    set(separator)
    foreach(function IN LISTS functions)
      string(APPEND kernels "${separator}    ${json_${function}}}")
      set(separator ",\n")
    endforeach()
    set(module "${CMAKE_CURRENT_BINARY_DIR}/tessera/${name}/${name}.module.json")
    set(module_text "{\n  \"format\": \"tessera-module\",\n  \"version\": 1,\n  \"name\": \"${name}\",\n  \"kernels\": [\n${kernels}\n  ]\n}\n")
    list(APPEND inputs "${module}")
  endif()
  set(asked --module "${module}")
  set(comment "the library ${name}")
  _tessera_add_generated()
endfunction()
