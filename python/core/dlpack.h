// The part of DLPack that is younger than Debian's package (0.6): versions, and the exchange table by which a framework hands tensors over
// without a call of Python's. Declared from the specification (dlpack.h 1.3); a test compares the layout with PyTorch's header.
#pragma once
#include <cstdint>

#include "runtime/abi/tessera.h"

namespace tessera::python::dlpack {

struct Version {
    uint32_t major, minor;
};

// As DLDataType, DLDevice and DLTensor, which the runtime's ABI promises.
using Tensor = TessTensor;

struct Managed {
    Tensor tensor;
    void *context;
    void (*deleter)(Managed *self);
};

constexpr uint64_t read_only = 1, is_copied = 2;

struct ManagedVersioned {
    Version version;
    void *context;
    void (*deleter)(ManagedVersioned *self);
    uint64_t flags;
    Tensor tensor;
};

struct ExchangeHeader {
    Version version;
    ExchangeHeader *previous;
};

struct Exchange {
    ExchangeHeader header;
    int (*allocate)(Tensor *prototype, ManagedVersioned **out, void *error,
                    void (*set_error)(void *error, const char *kind, const char *message));
    int (*managed_of)(void *object, ManagedVersioned **out);
    int (*object_of)(ManagedVersioned *tensor, void **out);
    int (*tensor_of)(void *object, Tensor *out);  // borrows from the object; may be null
    int (*current_stream)(int32_t device_type, int32_t device, void **out);
};

constexpr const char *exchange_attribute = "__dlpack_c_exchange_api__";
constexpr const char *exchange_capsule = "dlpack_exchange_api";

}  // namespace tessera::python::dlpack
