// Contents of pages, where each one is, and who counts on it. No lock: the cache has one.
#pragma once
#include <cstdint>

namespace tessera::state {

constexpr uint32_t none = UINT32_MAX;

// Where a content is: in a page of the caller's memory (it has a frame), outside (a slot), or on its way (both).
enum class At : uint8_t { unused, memory, leaving, outside, arriving };

// What one page of a sequence holds, wherever it is.
struct Block {
    uint64_t id;     // never used again; names its file
    uint64_t hash;   // of what is outside
    uint32_t refs;   // entries of tables that name it, and copies that read it
    uint32_t users;  // those of sequences that are in memory or on their way there
    uint32_t frame;  // the page of the caller's memory, or none
    uint32_t slot;   // the place outside, or none
    uint32_t next;   // of the unused, or of the strays
    uint32_t owner;  // the sequence that moves it, by its place; none: a stray
    At at;
    bool lost;  // what was outside is missing or damaged
};

// A fixed number of frames, slots and blocks. A frame that is given back while a step may read it is held until that step ends.
class Pages {
public:
    // Bytes that `place` needs for these numbers; the memory has to be aligned to 8 and zero.
    static uint64_t bytes(uint32_t frames, uint32_t slots);
    void place(void *memory, uint32_t frames, uint32_t slots);

    Block &operator[](uint32_t block) { return blocks_[block]; }
    const Block &operator[](uint32_t block) const { return blocks_[block]; }
    uint32_t block_of(uint32_t frame) const { return frames_[frame].block; }
    uint32_t frames() const { return frame_count_; }
    uint32_t slots() const { return slot_count_; }
    uint32_t blocks() const { return frame_count_ + slot_count_; }
    uint32_t free_frames() const { return frames_free_; }
    uint32_t free_slots() const { return slots_free_; }
    uint32_t held() const { return held_count_; }
    uint32_t moving() const { return moving_; }
    // Ids from here on are not used yet.
    uint64_t next_id() { return id_++; }
    void ids_from(uint64_t id) { id_ = id > id_ ? id : id_; }

    // A content without bytes yet, in memory, with one reference and one user. There has to be a free frame.
    uint32_t make();
    // One that is outside, as `recover` finds it, without references. There has to be a free slot.
    uint32_t make_outside(uint64_t id);

    // The steps up to `step` may read the frame of this content.
    void hold(uint32_t block, uint64_t step);
    // Whether a running step may read its frame for a sequence that does not name it any more.
    bool is_held(uint32_t block) const { return frames_[blocks_[block].frame].step >= oldest_; }
    // Steps before `oldest` have ended: what was held for them is free.
    void ended(uint64_t oldest);

    void share(uint32_t block) { blocks_[block].refs++, blocks_[block].users++; }
    // One reference less, and one user less where it was one. What nobody names any more gives back what it has, unless it moves; what only
    // sequences outside name becomes a stray. Gives the id whose file is to be removed, or 0.
    uint64_t drop(uint32_t block, bool user);

    // One user less, whose reference stays.
    void leave_user(uint32_t block);

    // On its way, and at the end of that. `leave` needs a free slot, `come` a free frame.
    void leave(uint32_t block, uint32_t owner);
    // `written`: its bytes are outside. Where it is needed in memory again, or was not written, it stays there. Gives the id whose file is
    // to be removed, or 0.
    uint64_t end_leaving(uint32_t block, bool written);
    void come(uint32_t block, uint32_t owner);
    void arrived(uint32_t block);
    void turned_back(uint32_t block);

    // Strays leave one by one. A stray gets its slot when it becomes one; where none was free, find_strays tries again: linear in blocks().
    uint32_t next_stray();  // none where there is no more
    void find_strays();
    bool has_strays() const { return stray_ != none; }

private:
    struct Frame {
        uint64_t step;  // the last one that may read it while no table names it
        uint32_t block, next;
    };
    Block *blocks_;
    Frame *frames_;
    uint32_t *slot_next_;
    uint32_t frame_count_, slot_count_, frames_free_, slots_free_, held_count_, moving_, unlisted_;
    uint32_t free_frame_, free_slot_, free_block_, held_, stray_, last_stray_;
    uint64_t oldest_, id_;

    uint32_t take_block();
    void take_frame(uint32_t block);
    void take_slot(uint32_t block);
    void give_frame(uint32_t block);  // back
    void give_slot(uint32_t block);
    void give_block(uint32_t block);
    void list_stray(uint32_t block);
    void stay(uint32_t block);
};

}  // namespace tessera::state
