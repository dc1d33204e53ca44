// The part of XLA's foreign function interface (xla/ffi/api/c_api.h, version 0.3) that one handler needs. Declared here, since the header
// comes with jaxlib alone; a test compares the layout with it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::python::xla {

enum ExtensionType : int { metadata_extension = 1 };
enum ErrorCode : int { invalid_argument = 3, not_found = 5 };
enum Stage : int { execute = 3 };
enum ArgumentType : int { buffer = 1 };
enum AttributeType : int { array_attribute = 1, string_attribute = 4 };

struct Extension {
    size_t struct_size;
    ExtensionType type;
    Extension *next;
};

struct Version {
    size_t struct_size;
    Extension *extension;
    int major, minor;
};

struct Error;  // XLA's own

struct ErrorCreate {
    size_t struct_size;
    Extension *extension;
    const char *message;
    ErrorCode code;
};

struct Buffer {
    size_t struct_size;
    Extension *extension;
    int type;
    void *data;
    int64_t rank;
    int64_t *extents;
};

struct Span {
    const char *data;
    size_t size;
};

struct Array {
    int type;
    size_t size;
    void *data;
};

// The arguments, or the results.
struct Buffers {
    size_t struct_size;
    Extension *extension;
    int64_t size;
    ArgumentType *types;
    void **values;
};

struct Attributes {
    size_t struct_size;
    Extension *extension;
    int64_t size;
    AttributeType *types;
    Span **names;
    void **values;
};

struct Api {  // its head
    size_t struct_size;
    Extension *extension;
    Version version;
    const void *internal;
    Error *(*create_error)(ErrorCreate *);
};

struct Frame {
    size_t struct_size;
    Extension *extension;
    const Api *api;
    void *context;
    Stage stage;
    Buffers arguments, results;
    Attributes attributes;
    void *future;
};

struct Metadata {  // its head
    size_t struct_size;
    Version version;
};

struct MetadataExtension {
    Extension base;
    Metadata *metadata;
};

constexpr const char *capsule = "xla._CUSTOM_CALL_TARGET";

}  // namespace tessera::python::xla
