#include "generators/bundle/bundle.h"

#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

void Bundle::refuse(const char *id, const std::string &why) const { throw UserError(id, "bundle '" + subject_ + "': " + why); }

Bundle::Bundle(const std::filesystem::path &file) : zip_(file), subject_(file.string()) {
    const std::vector<ZipMember> &members = zip_.members();
    if (members.empty() || members[0].path != bundle_manifest_member)
        refuse("bundle.members",
               std::string("expected ") + bundle_manifest_member + " as its first member. It is no bundle; make it again.");
    constexpr uint64_t max_signature = 4096;
    if (members[0].bytes > bundle_max_manifest)
        refuse("bundle.too-large", std::string("expected at most 16 MiB of ") + bundle_manifest_member + ", got " +
                                       std::to_string(members[0].bytes) + " bytes.");
    text_ = zip_.read(members[0], bundle_max_manifest);
    manifest_ = parse_bundle_manifest(text_, subject_ + ": " + bundle_manifest_member);
    if (text_of(manifest_) != text_)
        refuse("bundle.manifest", std::string(bundle_manifest_member) +
                                      " says what it says in another form than bundles have: fields in another order, "
                                      "or other blanks. Another program has written it; make the bundle again.");
    size_t next = 1;
    for (const BundleMember &m : manifest_.members) {
        const ZipMember *z = next < members.size() ? &members[next++] : nullptr;
        if (!z || z->path != m.path || z->offset != m.offset || z->bytes != m.bytes)
            refuse("bundle.members",
                   "expected member '" + m.path + "' of " + std::to_string(m.bytes) + " bytes at byte " + std::to_string(m.offset) +
                       " as the manifest says, got " +
                       (z ? "'" + z->path + "' of " + std::to_string(z->bytes) + " at " + std::to_string(z->offset) : "none") + ".");
    }
    if (next < members.size() && members[next].path == bundle_signature_member) {
        if (members[next].bytes > max_signature) refuse("bundle.too-large", "expected at most 4096 bytes of signature.");
        signature_ = zip_.read(members[next++], max_signature);
    }
    if (next < members.size()) refuse("bundle.members", "member '" + members[next].path + "' is not in the manifest.");
}

std::string Bundle::read(const std::string &path, uint64_t most) const {
    const BundleMember *member = manifest_.find(path);
    const ZipMember *stored = zip_.find(path);
    require(member && stored, "members that are read are listed");
    if (member->bytes > most)
        refuse("bundle.too-large",
               "member '" + path + "': expected at most " + std::to_string(most) + " bytes, got " + std::to_string(member->bytes) + ".");
    std::string text = zip_.read(*stored, most);
    if (sha256(text) != member->sha256)
        refuse("bundle.hash",
               "member '" + path +
                   "' has other bytes than its hash in the manifest says. It is damaged, or was changed; make or get it again.");
    return text;
}

void Bundle::check_hash(const BundleMember &member) const {
    Sha256 hash;
    zip_.each(*zip_.find(member.path), [&](std::string_view part) { hash.add(part); });
    if (hash.text() != member.sha256)
        refuse("bundle.hash",
               "member '" + member.path +
                   "' has other bytes than its hash in the manifest says. It is damaged, or was changed; make or get it again.");
}

}  // namespace tessera
