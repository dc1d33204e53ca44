# tessera_add_kernel(<name>
#   [GENERATOR <target or path>]     the program that knows the algorithm; default: Tessera::generator
#   [ALGORITHM <name>]               default: <name>
#   [NUMERICS <policy>]              for example f32
#   [SHAPE <dim>=<extent>...]        dims fixed at build time; the others stay dynamic
#   [SCHEDULE <file.json>]           relative to the current source folder
#   [SCHEDULE_DIRS <folder>...]      where the schedule's ancestors are, before Tessera's own
#   [TARGET avx512|avx2|x86-64|host|<file.json>])  a target file, relative to the current source folder
#
# Generates lib<name>.a, <name>.h and <name>.manifest.json at build time, again whenever the generator, the schedule,
# one of its ancestors or the target file changes, and makes the library target <name>: link it, include "<name>.h", call <name>().
cmake_policy(VERSION 3.20)

function(tessera_add_kernel name)
  set(subject "error[cmake.add-kernel]: tessera_add_kernel(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GENERATOR;ALGORITHM;NUMERICS;SCHEDULE;TARGET" "SHAPE;SCHEDULE_DIRS")

  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "${subject}: the name becomes a C function; expected letters, digits and _, got '${name}'")
  elseif(TARGET ${name})
    message(FATAL_ERROR "${subject}: there is already a target '${name}'; give the kernel another name and say ALGORITHM")
  elseif(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${subject}: no argument '${arg_UNPARSED_ARGUMENTS}'; the keywords are GENERATOR, ALGORITHM, "
      "NUMERICS, SHAPE, SCHEDULE, SCHEDULE_DIRS, TARGET")
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
  foreach(extent IN LISTS arg_SHAPE)
    if(NOT extent MATCHES "^[A-Za-z_][A-Za-z0-9_]*=[0-9]+$")
      message(FATAL_ERROR "${subject}: SHAPE '${extent}'; expected <dim>=<extent>, for example N=768")
    endif()
  endforeach()
  if(arg_SHAPE)
    list(APPEND options --shape ${arg_SHAPE})
  endif()
  set(inputs)
  if(arg_SCHEDULE)
    cmake_path(ABSOLUTE_PATH arg_SCHEDULE BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT EXISTS "${arg_SCHEDULE}" OR IS_DIRECTORY "${arg_SCHEDULE}")
      message(FATAL_ERROR "${subject}: SCHEDULE '${arg_SCHEDULE}' is not a file")
    endif()
    list(APPEND options --schedule "${arg_SCHEDULE}")
    list(APPEND inputs "${arg_SCHEDULE}")
  endif()
  foreach(dir IN LISTS arg_SCHEDULE_DIRS Tessera_SCHEDULES_DIR)
    cmake_path(ABSOLUTE_PATH dir BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT IS_DIRECTORY "${dir}")
      message(FATAL_ERROR "${subject}: SCHEDULE_DIRS '${dir}' is not a folder")
    endif()
    list(APPEND options --schedule-dir "${dir}")
  endforeach()
  if(arg_TARGET)
    set(targets avx512 avx2 x86-64 host)
    if(arg_TARGET MATCHES "\\.json$")
      cmake_path(ABSOLUTE_PATH arg_TARGET BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
      if(NOT EXISTS "${arg_TARGET}" OR IS_DIRECTORY "${arg_TARGET}")
        message(FATAL_ERROR "${subject}: TARGET '${arg_TARGET}' is not a file")
      endif()
      list(APPEND inputs "${arg_TARGET}")
    elseif(NOT arg_TARGET IN_LIST targets)
      list(JOIN targets ", " targets)
      message(FATAL_ERROR "${subject}: no TARGET '${arg_TARGET}'; the targets are ${targets}")
    endif()
    list(APPEND options --target "${arg_TARGET}")
  endif()

  set(out "${CMAKE_CURRENT_BINARY_DIR}/tessera/${name}")
  set(library "${out}/lib${name}.a")
  file(MAKE_DIRECTORY "${out}")
  add_custom_command(
    OUTPUT "${library}" "${out}/${name}.h" "${out}/${name}.manifest.json"
    COMMAND "${program}" generate "${algorithm}" ${options} --out "${out}" --depfile "${out}/${name}.d"
    DEPENDS ${generator} ${inputs}
    DEPFILE "${out}/${name}.d"
    COMMENT "Generating the kernel ${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name}_kernel DEPENDS "${library}")

  add_library(${name} STATIC IMPORTED GLOBAL)
  add_dependencies(${name} ${name}_kernel)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${library}")
  target_include_directories(${name} INTERFACE "${out}")
  target_link_libraries(${name} INTERFACE Tessera::runtime)
endfunction()
