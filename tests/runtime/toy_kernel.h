/// Kernels for tests of the runtime: a spec written by hand; plan and body are plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernel.h"

namespace tessera::test {

struct ToyDim {
    int64_t fixed = -1, min = 0, max = -1, multiple_of = 1, equal_to = -1;
};

struct ToyTensor {
    int64_t role = TESS_ROLE_INPUT;
    std::vector<int64_t> dims;
    int64_t dtype = TESS_F32;
    int64_t flags = 0;
};

inline std::vector<int64_t> toy_spec(const std::vector<ToyDim> &dims, const std::vector<ToyTensor> &tensors, int64_t parameters = 0,
                                     uint64_t features = 0) {
    std::vector<int64_t> spec = {TESS_SPEC_ABI1, int64_t(features), int64_t(dims.size()), int64_t(tensors.size()), parameters};
    for (const ToyDim &d : dims) spec.insert(spec.end(), {d.fixed, d.min, d.max, d.multiple_of, d.equal_to});
    for (const ToyTensor &t : tensors) {
        spec.insert(spec.end(), {t.role, t.dtype, int64_t(t.dims.size()), t.flags});
        for (size_t axis = 0; axis < TESS_MAX_RANK; ++axis) spec.push_back(axis < t.dims.size() ? t.dims[axis] : -1);
    }
    return spec;
}

inline TessTensorDesc dense(const void *data, const std::vector<int64_t> &extents, TessDType dtype = TESS_F32) {
    return tess_dense(const_cast<void *>(data), dtype, int32_t(extents.size()), extents.data());
}

inline TessTensorDesc strided(const void *data, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
                              TessDType dtype = TESS_F32) {
    TessTensorDesc desc = dense(data, extents, dtype);
    for (size_t axis = 0; axis < strides.size(); ++axis) desc.strides[axis] = strides[axis];
    return desc;
}

inline std::vector<const TessTensorDesc *> pointers(const std::vector<TessTensorDesc> &args) {
    std::vector<const TessTensorDesc *> result;
    for (const TessTensorDesc &arg : args) result.push_back(&arg);
    return result;
}

inline int succeed(void *, int64_t *) { return 0; }

/// The status of a run whose body does nothing.
inline int check(const std::vector<int64_t> &spec, const std::vector<TessTensorDesc> &args, const TessContext *context = nullptr,
                 TessPlan plan = nullptr) {
    static const int64_t parameters[TESS_MAX_PARAMETERS] = {};
    return tess_abi1_run(spec.data(), pointers(args).data(), parameters, context, plan, succeed);
}

inline std::string words(int status, const std::vector<const char *> &names = {}) {
    char buffer[256];
    tess_status_message(status, names.empty() ? nullptr : names.data(), buffer, sizeof buffer);
    return buffer;
}

}  // namespace tessera::test
