# tessera_add_bundle(<name>
#   KERNELS <target>...              what tessera_add_kernel or tessera_add_library made, for processors
#   [WEIGHTS <file>...]              safetensors or GGUF files; a tensor <kernel>.<argument> or <argument> is that argument. Each may be <kernel>=<file>:
#                                    then its tensors are called <kernel>.<tensor>
#   [FLOATS <type>]                  f32, f64, f16 or bf16, to which floats of weights are converted, and what codes of GGUF files stand for
#   [WEIGHT <pair>...]               each [<kernel>.]<argument>=<tensor>, where their names differ
#   [LICENCES <file>...] [RECORDS <file>...]   to take along
#   [ASSETS <file>...]               the application's own, assets/<name> in the bundle
#   [REPLAY <folder>]                with expected.json and, where that names tensors, inputs.safetensors
#   [KEY <file>] [KEY_NAME <name>]   signs with this key, as openssl genpkey -algorithm ed25519 writes it
#   [GENERATOR <target or path>])    default: Tessera::generator
#
# Makes <name>.tess in the current binary folder, again whenever something in it changes, and the target <name>, whose property TESSERA_BUNDLE
# is its path. It has what its kernels were made from, so that `bundle check --rebuild` makes them again. Files are relative to the current
# source folder.
cmake_policy(VERSION 3.20)

function(tessera_add_bundle name)
  set(subject "error[cmake.add-bundle]: tessera_add_bundle(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GENERATOR;REPLAY;KEY;KEY_NAME;FLOATS" "KERNELS;WEIGHTS;WEIGHT;LICENCES;RECORDS;ASSETS")
  _tessera_check_arguments("a file and a target" "KERNELS, WEIGHTS, FLOATS, WEIGHT, LICENCES, RECORDS, ASSETS, REPLAY, KEY, KEY_NAME, GENERATOR" "give the bundle another name")
  if(NOT arg_KERNELS)
    message(FATAL_ERROR "${subject}: expected KERNELS, got none; name what tessera_add_kernel or tessera_add_library made")
  elseif(arg_KEY_NAME AND NOT arg_KEY)
    message(FATAL_ERROR "${subject}: KEY_NAME '${arg_KEY_NAME}' without KEY; say which key signs, or leave it out")
  elseif(arg_WEIGHT AND NOT arg_WEIGHTS)
    message(FATAL_ERROR "${subject}: WEIGHT '${arg_WEIGHT}' without WEIGHTS; say which file has the tensors")
  endif()
  set(options)
  set(inputs)
  set(targets)
  foreach(kernel IN LISTS arg_KERNELS)
    set(folder)
    if(TARGET ${kernel}_kernel)
      get_target_property(folder ${kernel}_kernel TESSERA_FOLDER)
    endif()
    if(NOT folder)
      message(FATAL_ERROR "${subject}: KERNELS '${kernel}' is not a target of tessera_add_kernel or tessera_add_library for processors, a library; "
        "make it before the bundle")
    endif()
    list(APPEND options --from "${folder}")
    list(APPEND inputs "${folder}/lib${kernel}.a")
    list(APPEND targets ${kernel}_kernel)
  endforeach()
  _tessera_find_generator()
  foreach(keyword IN ITEMS WEIGHTS LICENCES RECORDS ASSETS KEY)
    string(TOLOWER "${keyword}" option)
    string(REGEX REPLACE "^(licence|asset)s$" "\\1" option "${option}")
    foreach(file IN LISTS arg_${keyword})
      set(of)
      if(keyword STREQUAL "WEIGHTS" AND file MATCHES "^([A-Za-z_][A-Za-z0-9_]*=)(.+)$")
        set(of "${CMAKE_MATCH_1}")
        set(file "${CMAKE_MATCH_2}")
      endif()
      if(file MATCHES "^\\$<" OR keyword STREQUAL "WEIGHTS")  # what is made while the project is built
        cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
      else()
        _tessera_file(file "${subject}" ${keyword} "${file}")
      endif()
      list(APPEND options --${option} "${of}${file}")
      list(APPEND inputs "${file}")
    endforeach()
  endforeach()
  foreach(pair IN LISTS arg_WEIGHT)
    if(NOT pair MATCHES "^[^=]+=.+$")
      message(FATAL_ERROR "${subject}: WEIGHT '${pair}'; expected [<kernel>.]<argument>=<tensor>, for example up.w=encoder.0.weight")
    endif()
    list(APPEND options --weight "${pair}")
  endforeach()
  if(arg_FLOATS)
    list(APPEND options --floats "${arg_FLOATS}")
  endif()
  if(arg_REPLAY)
    cmake_path(ABSOLUTE_PATH arg_REPLAY BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    list(APPEND options --replay "${arg_REPLAY}")
    list(APPEND inputs "${arg_REPLAY}/expected.json")
  endif()
  if(arg_KEY_NAME)
    list(APPEND options --key-name "${arg_KEY_NAME}")
  endif()
  set(bundle "${CMAKE_CURRENT_BINARY_DIR}/${name}.tess")
  add_custom_command(
    OUTPUT "${bundle}"
    COMMAND "${program}" bundle make "${bundle}" ${options}
    DEPENDS ${generator} ${targets} ${inputs}
    COMMENT "Making the bundle ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${bundle}")
  set_target_properties(${name} PROPERTIES TESSERA_BUNDLE "${bundle}")
endfunction()
