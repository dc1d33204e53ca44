# The install tree: the stock generator and the Halide library that it finds relative to itself, the libraries and headers for
# a generator of one's own, the runtime that kernels link, the schedules, and a CMake package that can be moved.
#
# The component `python` is what the Python package has of it, at the package's own folder: all but the libraries and headers for
# generators, and Halide, which is a package beside it.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Tessera")
set(schedules_dir "${CMAKE_INSTALL_DATADIR}/tessera/schedules")
set(halide_dir "${TESSERA_HALIDE_INSTALL_DIR}")
set(gpu_dir "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/gpu")
set(benchmark_dir "${CMAKE_INSTALL_DATADIR}/tessera/benchmark")
set(runtime_dir "${CMAKE_INSTALL_DATADIR}/tessera/runtime")

set_target_properties(tessera_runtime PROPERTIES EXPORT_NAME runtime)
set(runtime_targets tessera_runtime tessera_load tessera_bundle tessera_state tessera_mesh)
set(library_targets tessera_support tessera_algorithms tessera_schedules tessera_compiler tessera_bench tessera_costmodel tessera_autotune
  tessera_generators)
install(TARGETS tessera-generator EXPORT TesseraTargets COMPONENT python)
install(TARGETS ${runtime_targets} EXPORT TesseraRuntime COMPONENT python)
install(TARGETS ${library_targets} EXPORT TesseraLibraries)
# All that has to be built before `cmake --install`.
add_custom_target(tessera_installed DEPENDS tessera-generator ${runtime_targets} ${library_targets})
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION "${package_dir}" COMPONENT python)
install(EXPORT TesseraRuntime NAMESPACE Tessera:: DESTINATION "${package_dir}" COMPONENT python)
install(EXPORT TesseraLibraries NAMESPACE Tessera:: DESTINATION "${package_dir}")

# An application includes "tessera.h"; below include/tessera the folders are as in the checkout.
install(FILES runtime/abi/tessera.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT python)
install(FILES runtime/abi/tessera.h runtime/abi/kernel.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/abi" COMPONENT python)
install(FILES runtime/load/load.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/load" COMPONENT python)
install(FILES runtime/bundle/bundle.h runtime/bundle/replay.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/bundle" COMPONENT python)
install(FILES runtime/state/cache.h runtime/state/checkpoint.h runtime/state/precision.h runtime/state/state.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/state" COMPONENT python)
install(FILES runtime/mesh/engine.h runtime/mesh/mesh.h runtime/mesh/program.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/mesh" COMPONENT python)
install(FILES runtime/crypto/ed25519.h runtime/crypto/sha256.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/runtime/crypto" COMPONENT python)
# For GPUs: sources, since the libraries that they need are the application's choice.
install(FILES runtime/gpu/gpu.h runtime/gpu/gpu.c runtime/gpu/opencl.c runtime/gpu/cuda.c DESTINATION "${gpu_dir}" COMPONENT python)
# For programs of Google Benchmark: what tessera_add_benchmark compiles.
install(FILES bench/google/kernel_benchmark.h DESTINATION "${benchmark_dir}/bench/google" COMPONENT python)
install(FILES bench/measure/random_elements.h bench/measure/random_elements.c DESTINATION "${benchmark_dir}/bench/measure" COMPONENT python)
install(DIRECTORY support algorithms schedules compiler bench costmodel autotune generators DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera"
  FILES_MATCHING PATTERN "*.h" PATTERN peers EXCLUDE PATTERN google EXCLUDE REGEX "compiler/emit/(halide|c|gpu)$" EXCLUDE)
install(DIRECTORY costmodel/models/ DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera/models" COMPONENT python FILES_MATCHING PATTERN "*.json")
install(FILES schedules/tessera-algorithm.schema.json schedules/tessera-bundle.schema.json schedules/tessera-campaign.schema.json schedules/tessera-module.schema.json
  schedules/tessera-mesh-program.schema.json schedules/tessera-numerics.schema.json schedules/tessera-schedule.schema.json schedules/tessera-target.schema.json
  DESTINATION "${schedules_dir}" COMPONENT python)
install(DIRECTORY schedules/library/ DESTINATION "${schedules_dir}" COMPONENT python FILES_MATCHING PATTERN "*.json")
# The runtime's sources: a project that cross-compiles builds them with its own compiler.
install(DIRECTORY runtime/abi runtime/cpu runtime/load runtime/crypto runtime/bundle runtime/state runtime/mesh DESTINATION "${runtime_dir}" COMPONENT python
  FILES_MATCHING PATTERN "*.h" PATTERN "*.c" PATTERN "*.cpp")
if(NOT SKBUILD)
  install(FILES "$<TARGET_FILE:Halide::Halide>" DESTINATION "${halide_dir}")
endif()
install(FILES "${HALIDE_ROOT}/share/doc/Halide/LICENSE.txt" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME LICENSE.Halide)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file(cmake/TesseraConfig.cmake.in TesseraConfig.cmake
  INSTALL_DESTINATION "${package_dir}" PATH_VARS schedules_dir halide_dir runtime_dir gpu_dir benchmark_dir)
# For any architecture: what runs while a project is built is the build machine's, and the rest can be built for another.
write_basic_package_version_file(TesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/TesseraConfig.cmake" "${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake"
  cmake/TesseraAddKernel.cmake cmake/TesseraAddBenchmark.cmake cmake/TesseraAddBundle.cmake DESTINATION "${package_dir}" COMPONENT python)

# For builds without CMake. Its prefix is relative to itself, so that the tree can be moved.
file(RELATIVE_PATH prefix_from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
configure_file(cmake/tessera.pc.in tessera.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tessera.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
