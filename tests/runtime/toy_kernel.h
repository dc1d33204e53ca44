/// Kernels for tests of the runtime: a spec written by hand; plan and body are plain functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/abi/kernel.h"

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

/// The layouts of packed tensors, one after the other.
struct ToyLayout {
    uint64_t features = 0, hash = 0;
    std::vector<int64_t> axes;  // pairs of the operand's axis and 0, f or -f
};

/// A parameter with the words of its range.
struct ToyParameter {
    int32_t dtype = TESS_I64;
    int64_t flags = 0, least = 0, most = 0;
};

/// A kernel of parameters with ranges alone, each at its own 8 bytes.
inline std::vector<int64_t> ranged_spec(const std::vector<ToyParameter> &parameters) {
    std::vector<int64_t> spec(TESS_SPEC_HEADER);
    spec[TESS_SPEC_VERSION] = TESS_SPEC_ABI2_RANGES;
    spec[TESS_SPEC_N_PARAMETERS] = int64_t(parameters.size());
    spec[TESS_SPEC_PARAMETER_BYTES] = 8 * int64_t(parameters.size());
    spec[TESS_SPEC_FRAME_WORDS] = int64_t(parameters.size()) + TESS_TAIL_WORDS;
    spec[TESS_SPEC_DEVICE] = TESS_HOST;
    for (size_t p = 0; p < parameters.size(); ++p)
        spec.insert(spec.end(), {parameters[p].dtype, 8 * int64_t(p), 0, parameters[p].flags, parameters[p].least, parameters[p].most});
    spec.push_back('p');
    return spec;
}

/// Parameters are i64; dims, tensors and parameters are called d0, t0, p0 and so on, the kernel "toy"; it has one code, "plain".
inline std::vector<int64_t> toy_spec(const std::vector<ToyDim> &dims, const std::vector<ToyTensor> &tensors, int64_t parameters = 0,
                                     uint64_t features = 0, const std::vector<ToyLayout> &layouts = {}) {
    std::string texts;
    const auto text = [&](const std::string &words) {
        const auto at = int64_t(texts.size());
        texts += words + '\0';
        return at;
    };
    std::vector<int64_t> spec(TESS_SPEC_HEADER);
    spec[TESS_SPEC_VERSION] = TESS_SPEC_ABI2;
    spec[TESS_SPEC_CPU_FEATURES] = int64_t(features);
    spec[TESS_SPEC_N_DIMS] = int64_t(dims.size());
    spec[TESS_SPEC_N_TENSORS] = int64_t(tensors.size());
    spec[TESS_SPEC_N_PARAMETERS] = parameters;
    spec[TESS_SPEC_N_CODE] = 1;
    spec[TESS_SPEC_PARAMETER_BYTES] = 8 * parameters;
    spec[TESS_SPEC_DEVICE] = TESS_HOST;
    spec[TESS_SPEC_NAME] = text("toy");
    for (size_t d = 0; d < dims.size(); ++d) {
        spec.insert(spec.end(), {dims[d].fixed, dims[d].min, dims[d].max, dims[d].multiple_of, dims[d].equal_to});
        spec.push_back(text("d" + std::to_string(d)));
    }
    auto slot = int64_t(dims.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
        const ToyTensor &t = tensors[i];
        spec.insert(spec.end(), {t.role, t.dtype, int64_t(t.dims.size()), t.flags, text("t" + std::to_string(i)), slot});
        for (size_t axis = 0; axis < TESS_MAX_RANK; ++axis) spec.push_back(axis < t.dims.size() ? t.dims[axis] : -1);
        slot += 1 + int64_t(t.dims.size());
        spec[TESS_SPEC_N_PACKED] += (t.flags & TESS_FLAG_PACKED) != 0;
    }
    for (int64_t p = 0; p < parameters; ++p) spec.insert(spec.end(), {TESS_I64, 8 * p, text("p" + std::to_string(p))});
    spec.insert(spec.end(), {int64_t(features), text("plain"), text(""), text("sha256:0")});
    if (spec[TESS_SPEC_N_PACKED] > 0) spec[TESS_SPEC_N_LAYOUTS] = int64_t(layouts.size()) / spec[TESS_SPEC_N_PACKED];
    for (const ToyLayout &l : layouts) {
        std::vector<int64_t> record = {int64_t(l.features), int64_t(l.hash), int64_t(l.axes.size() / 2)};
        record.insert(record.end(), l.axes.begin(), l.axes.end());
        record.resize(TESS_SPEC_LAYOUT_WORDS);
        spec.insert(spec.end(), record.begin(), record.end());
    }
    spec[TESS_SPEC_FRAME_WORDS] = slot + parameters + TESS_TAIL_WORDS;
    for (size_t at = 0; at < texts.size(); at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && at + i < texts.size(); ++i) word |= uint64_t(uint8_t(texts[at + i])) << 8 * i;
        spec.push_back(int64_t(word));
    }
    return spec;
}

/// A tensor with its own extents and strides.
struct Tensor : TessTensor {
    std::array<int64_t, 10> own_extents{}, own_strides{};
    Tensor() : TessTensor{} {}
    Tensor(const TessTensor &t, const std::vector<int64_t> &e, const std::vector<int64_t> &s = {}) : TessTensor(t) {
        std::copy(e.begin(), e.end(), own_extents.begin());
        std::copy(s.begin(), s.end(), own_strides.begin());
        extents = own_extents.data();
        strides = s.empty() ? nullptr : own_strides.data();
    }
    Tensor(const Tensor &o) : TessTensor(o), own_extents(o.own_extents), own_strides(o.own_strides) { point(o); }
    Tensor &operator=(const Tensor &o) {
        TessTensor::operator=(o);
        own_extents = o.own_extents, own_strides = o.own_strides;
        point(o);
        return *this;
    }

private:
    void point(const Tensor &o) {
        if (o.extents == o.own_extents.data()) extents = own_extents.data();
        if (o.strides == o.own_strides.data()) strides = own_strides.data();
    }
};

inline Tensor dense(const void *data, const std::vector<int64_t> &extents, TessDType dtype = TESS_F32) {
    return {tess_dense(const_cast<void *>(data), dtype, int32_t(extents.size()), nullptr), extents};
}

inline Tensor strided(const void *data, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
                      TessDType dtype = TESS_F32) {
    return {dense(data, extents, dtype), extents, strides};
}

inline Tensor packed_operand(void *data, uint64_t bytes) { return {tess_packed(data, &bytes), {int64_t(bytes)}}; }

inline std::vector<const TessTensor *> pointers(const std::vector<Tensor> &args) {
    std::vector<const TessTensor *> result;
    for (const Tensor &arg : args) result.push_back(&arg);
    return result;
}

inline std::vector<void *> data_of(const std::vector<Tensor> &args) {
    std::vector<void *> result;
    for (const Tensor &arg : args) result.push_back(arg.data);
    return result;
}

inline int32_t succeed(void *, int64_t *) { return 0; }

/// Arguments of the last call that a function here made.
inline TessFault last_fault = tess_fault();

inline TessContext telling(const TessContext *context = nullptr) {
    TessContext own = context ? *context : tess_context();
    if (own.size == sizeof own && !own.fault) own.fault = &last_fault;
    return own;
}

/// The status, of which the last fault has what came wherever it has what was expected. An instruction set's number is a name, and a
/// parameter may be any number.
inline int32_t told(int32_t status) {
    const bool is_of_this = status != TESS_OK && last_fault.kind == tess_status_code(status);
    if (is_of_this && last_fault.expected != TESS_NO_NUMBER && last_fault.kind != TESS_CPU && last_fault.kind < TESS_PARAMETER_MIN) {
        INFO(tess_status_kind(status));
        CHECK(last_fault.got != TESS_NO_NUMBER);
    }
    return status;
}

inline const int64_t no_parameters[16] = {};

/// The status of a run whose body does nothing.
inline int32_t check(const std::vector<int64_t> &spec, const std::vector<Tensor> &args, const TessContext *context = nullptr,
                     TessPlanFunction plan = nullptr) {
    const TessContext own = telling(context);
    return told(tess_abi2_call(spec.data(), plan, succeed, pointers(args).data(), no_parameters,
                               context && context->size != own.size ? context : &own));
}

/// What is said of a status with the last fault, and without one.
inline std::string words(int32_t status, const std::vector<const char *> &names = {}, const TessFault *fault = &last_fault) {
    char buffer[256];
    tess_status_message(status, fault, names.empty() ? nullptr : names.data(), buffer, sizeof buffer);
    return buffer;
}

/// A kernel as a value.
inline TessKernel kernel_of(const std::vector<int64_t> &spec, TessPlanFunction plan, TessBody body) {
    TessKernel kernel = tess_kernel();
    tess_abi2_describe(spec.data(), plan, body, &kernel);
    return kernel;
}

/// A plan in memory of its own.
struct Planned {
    std::vector<uint64_t> memory;
    int32_t status;
    Planned(const TessKernel &kernel, const std::vector<Tensor> &args, const void *parameters = no_parameters,
            const TessContext *context = nullptr) {
        const TessContext own = telling(context);
        uint64_t bytes = 0;
        tess_plan_bytes(&kernel, &bytes);
        memory.resize(bytes / 8);
        status = told(tess_plan_make(&kernel, pointers(args).data(), parameters, &own, memory.data(), bytes));
    }
    const TessPlan *plan() const { return reinterpret_cast<const TessPlan *>(memory.data()); }
    int32_t run(const std::vector<void *> &data, const void *parameters = nullptr, const TessContext *context = nullptr) const {
        const TessContext own = telling(context);
        return told(tess_plan_run(plan(), data.data(), parameters, &own));
    }
};

}  // namespace tessera::test
