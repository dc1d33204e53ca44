# Makes a bundle in a project of its own, with an installed Tessera, and rebuilds its code. Arguments: PREFIX (the installed tree), SOURCE (the
# project), WORK (a folder to make), GENERATOR (of CMake), PYTHON.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
# Tensors w[32, 48] and bias[48] in the format safetensors.
run("weights" "${PYTHON}" -c "
import json, struct, sys
header = {'w': {'dtype': 'F32', 'shape': [32, 48], 'data_offsets': [0, 6144]}, 'bias': {'dtype': 'F32', 'shape': [48], 'data_offsets': [6144, 6336]}}
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
open(sys.argv[1], 'wb').write(struct.pack('<Q', len(text)) + text + struct.pack('<f', 0.5) * 1584)
" "${WORK}/weights.safetensors")
run("configuring" "${CMAKE_COMMAND}" -S "${SOURCE}" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}" "-DWEIGHTS=${WORK}/weights.safetensors")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
run("checking" "${CMAKE_COMMAND}" --build "${WORK}/build" --target check_layer)
file(SHA256 "${WORK}/build/layer.tess" before)
# What did not change makes nothing again; what did makes the bundle again, with the same bytes here.
run("touching" "${CMAKE_COMMAND}" -E touch "${WORK}/weights.safetensors")
run("building again" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
file(SHA256 "${WORK}/build/layer.tess" after)
if(NOT before STREQUAL after)
  message(FATAL_ERROR "the bundle has other bytes when it is made again")
endif()
run("reading" "${PYTHON}" -c "
import json, sys, zipfile
bundle = zipfile.ZipFile(sys.argv[1])
assert bundle.testzip() is None
manifest = json.loads(bundle.read('manifest.json'))
assert sorted(k['name'] for k in manifest['kernels']) == ['layernorm', 'softmax', 'up']
up = next(k for k in manifest['kernels'] if k['name'] == 'up')
assert {w['argument']: manifest['tensors'][w['tensor']]['name'] for w in up['weights']} == {'w': 'w', 'b': 'bias'}, up['weights']
assert [c['target'] for c in up['code']] == ['avx2', 'x86-64']
" "${WORK}/build/layer.tess")
file(REMOVE_RECURSE "${WORK}")
