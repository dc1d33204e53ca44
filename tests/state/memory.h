// Pages of two pieces with gaps between them, whose content is a value for each token; and folders for their files.
#pragma once
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/state/cache.h"

namespace tessera::test_state {

class Memory {
public:
    Memory(int32_t pages, int32_t page_tokens) : tokens_(page_tokens), stride_(static_cast<uint64_t>(page_tokens) * 8 + 24) {
        for (int p = 0; p < 2; p++) {
            bytes_[p].assign(static_cast<size_t>(pages) * stride_, '\xa5');
            pieces_[p] = {bytes_[p].data(), static_cast<uint64_t>(page_tokens) * (p == 0 ? 8 : 4), stride_};
        }
    }
    const TessCachePiece *pieces() const { return pieces_; }
    uint64_t page_bytes() const { return pieces_[0].bytes + pieces_[1].bytes; }
    void write(int32_t page, int32_t slot, uint64_t value) {
        const auto half = static_cast<uint32_t>(value * 2654435761u);
        std::memcpy(at(0, page) + slot * 8, &value, 8);
        std::memcpy(at(1, page) + slot * 4, &half, 4);
    }
    bool holds(int32_t page, int32_t slot, uint64_t value) const {
        const auto half = static_cast<uint32_t>(value * 2654435761u);
        return std::memcmp(at(0, page) + slot * 8, &value, 8) == 0 && std::memcmp(at(1, page) + slot * 4, &half, 4) == 0;
    }
    void copy(TessPageCopy pair) {
        for (int p = 0; p < 2; p++) std::memcpy(at(p, pair.to), at(p, pair.from), pieces_[p].bytes);
    }
    // Whether nothing was written between pages.
    bool gaps_are_whole() const {
        for (int p = 0; p < 2; p++)
            for (size_t page = 0; page < bytes_[p].size() / stride_; page++)
                for (uint64_t b = pieces_[p].bytes; b < stride_; b++)
                    if (bytes_[p][page * stride_ + b] != '\xa5') return false;
        return true;
    }
    char *at(int piece, int32_t page) { return bytes_[piece].data() + static_cast<uint64_t>(page) * stride_; }
    const char *at(int piece, int32_t page) const { return bytes_[piece].data() + static_cast<uint64_t>(page) * stride_; }
    int32_t page_tokens() const { return tokens_; }

private:
    int32_t tokens_;
    uint64_t stride_;
    std::vector<char> bytes_[2];
    TessCachePiece pieces_[2];
};

// A folder that is gone at the end.
class Folder {
public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "tessera_state_XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder &) = delete;
    const std::string &path() const { return path_; }
    std::vector<std::string> files(const std::string &prefix) const {
        std::vector<std::string> names;
        for (const auto &entry : std::filesystem::directory_iterator(path_))
            if (entry.path().filename().string().starts_with(prefix)) names.push_back(entry.path().string());
        return names;
    }

private:
    std::string path_;
};

inline TessCacheConfig small_config(const Memory &memory, int32_t pages, int32_t sequences, int32_t sequence_pages) {
    TessCacheConfig config = tess_cache_config();
    config.pages = pages, config.page_tokens = memory.page_tokens();
    config.sequences = sequences, config.sequence_pages = sequence_pages;
    config.piece = memory.pieces(), config.pieces = 2;
    return config;
}

}  // namespace tessera::test_state
