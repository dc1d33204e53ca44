// What a registry keeps, as manifests of OCI: bundles, whose layers are their members, so that what two versions share is there once; and
// single files, such as schedules and records of tuning.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "generators/oci/layout.h"

namespace tessera {

inline constexpr const char *oci_bundle_type = "application/vnd.tessera.bundle.v1",
                            *oci_schedule_type = "application/vnd.tessera.schedule.v1",
                            *oci_program_type = "application/vnd.tessera.program.v1", *oci_file_type = "application/vnd.tessera.file.v1";
// Annotations of manifests, and of their entries in the index.
inline constexpr const char *oci_algorithm = "dev.tessera.algorithm", *oci_shape = "dev.tessera.shape", *oci_target = "dev.tessera.target",
                            *oci_policy = "dev.tessera.policy", *oci_version = "dev.tessera.version", *oci_sha256 = "dev.tessera.sha256";

// "<name>:<tag>", where a name without a tag has `latest`. UserError registry.name for one that cannot be.
std::string oci_reference(const std::string &name);

// Adds a bundle (*.tess), a schedule, a program, or any other file, under a reference. One that is there with other content is kept:
// UserError registry.taken, unless `replace`. Documents of ours are checked: UserErrors of Bundle, of a hash that is not right, of Schedule
// and read_algorithm, of read_examples for a table (*.tsv) of records; registry.document for JSON of a format that there is not; those of
// parse_json for what is called JSON (*.json) and is none. UserErrors of OciLayout.
OciDescriptor add_artifact(OciLayout &layout, const std::filesystem::path &file, const std::string &reference, bool replace);

// Writes what was added, with the same bytes. UserErrors registry.missing, registry.blob, registry.document for a manifest that is none of
// ours; output.write.
void get_artifact(const OciLayout &layout, const std::string &reference, const std::filesystem::path &file);

struct OciCheck {
    std::vector<std::string> notes, problems;
    size_t manifests = 0, blobs = 0;
};
// Hashes and sizes of all blobs that are named, names and kinds of all files there, and bundles against their own manifests.
OciCheck verify_layout(const OciLayout &layout);

struct OciPruned {
    size_t blobs = 0;
    uint64_t bytes = 0;
};
// Takes references out of the index, and removes all blobs that nothing in it names. UserError registry.missing.
OciPruned prune_layout(OciLayout &layout, const std::vector<std::string> &references);

}  // namespace tessera
