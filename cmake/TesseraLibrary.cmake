# tessera_library(<folder> SOURCES <file>... [LIBS <target>...]): the static library tessera_<folder>, alias
# Tessera::<folder>, whose headers are included from the root of the checkout or of the installed include/tessera.
function(tessera_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  set(target tessera_${folder})
  if(NOT arg_SOURCES)
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  else()
    add_library(${target} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
  endif()
  add_library(Tessera::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tessera>")
  target_link_libraries(${target} ${scope} ${arg_LIBS})
endfunction()
