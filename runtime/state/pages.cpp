#include "runtime/state/pages.h"

namespace tessera::state {

uint64_t Pages::bytes(uint32_t frames, uint32_t slots) {
    const uint64_t blocks = uint64_t(frames) + slots;
    return blocks * sizeof(Block) + frames * sizeof(Frame) + (slots + uint64_t(1)) / 2 * 2 * sizeof(uint32_t);
}

void Pages::place(void *memory, uint32_t frames, uint32_t slots) {
    frame_count_ = frames_free_ = frames, slot_count_ = slots_free_ = slots;
    blocks_ = static_cast<Block *>(memory);
    frames_ = reinterpret_cast<Frame *>(blocks_ + blocks());
    slot_next_ = reinterpret_cast<uint32_t *>(frames_ + frames);
    held_count_ = moving_ = unlisted_ = 0;
    held_ = stray_ = last_stray_ = none;
    oldest_ = id_ = 1;
    // The lists begin with low numbers: fresh pages lie one behind another.
    for (uint32_t b = 0; b < blocks(); b++) blocks_[b].next = b + 1 < blocks() ? b + 1 : none;
    for (uint32_t f = 0; f < frames; f++) frames_[f] = {0, none, f + 1 < frames ? f + 1 : none};
    for (uint32_t s = 0; s < slots; s++) slot_next_[s] = s + 1 < slots ? s + 1 : none;
    free_block_ = free_frame_ = 0, free_slot_ = slots > 0 ? 0 : none;
}

uint32_t Pages::take_block() {
    const uint32_t block = free_block_;
    Block &b = blocks_[block];
    free_block_ = b.next;
    b = {0, 0, 0, 0, none, none, none, none, At::unused, false};
    return block;
}

void Pages::take_frame(uint32_t block) {
    const uint32_t frame = free_frame_;
    free_frame_ = frames_[frame].next;
    frames_free_--;
    frames_[frame].block = block;
    blocks_[block].frame = frame;
}

void Pages::take_slot(uint32_t block) {
    const uint32_t slot = free_slot_;
    free_slot_ = slot_next_[slot];
    slots_free_--;
    blocks_[block].slot = slot;
}

void Pages::give_frame(uint32_t block) {
    const uint32_t frame = blocks_[block].frame;
    Frame &f = frames_[frame];
    f.block = none;
    if (f.step >= oldest_) {
        f.next = held_, held_ = frame, held_count_++;
    } else {
        f.next = free_frame_, free_frame_ = frame, frames_free_++;
    }
    blocks_[block].frame = none;
}

void Pages::give_slot(uint32_t block) {
    const uint32_t slot = blocks_[block].slot;
    slot_next_[slot] = free_slot_, free_slot_ = slot, slots_free_++;
    blocks_[block].slot = none;
}

void Pages::give_block(uint32_t block) {
    blocks_[block].at = At::unused;
    blocks_[block].next = free_block_, free_block_ = block;
}

uint32_t Pages::make() {
    const uint32_t block = take_block();
    Block &b = blocks_[block];
    b.id = next_id(), b.refs = b.users = 1, b.at = At::memory;
    take_frame(block);
    return block;
}

uint32_t Pages::make_outside(uint64_t id) {
    const uint32_t block = take_block();
    blocks_[block].id = id, blocks_[block].at = At::outside;
    take_slot(block);
    return block;
}

void Pages::hold(uint32_t block, uint64_t step) {
    Frame &f = frames_[blocks_[block].frame];
    if (f.step < step) f.step = step;
}

void Pages::ended(uint64_t oldest) {
    oldest_ = oldest;
    uint32_t *from = &held_;
    while (*from != none) {
        const uint32_t frame = *from;
        Frame &f = frames_[frame];
        if (f.step >= oldest) {
            from = &f.next;
            continue;
        }
        *from = f.next, held_count_--;
        f.next = free_frame_, free_frame_ = frame, frames_free_++;
    }
}

uint64_t Pages::drop(uint32_t block, bool user) {
    Block &b = blocks_[block];
    b.refs--;
    if (user) b.users--;
    if (b.refs > 0) {
        if (user && b.users == 0 && b.at == At::memory) list_stray(block);
        return 0;
    }
    if (b.at == At::memory) {
        give_frame(block);
        give_block(block);
        return 0;
    }
    if (b.at != At::outside) return 0;  // a stray on its way: end_leaving forgets it
    const uint64_t id = b.id;
    give_slot(block);
    give_block(block);
    return id;
}

void Pages::leave_user(uint32_t block) {
    Block &b = blocks_[block];
    if (--b.users == 0 && b.at == At::memory) list_stray(block);
}

void Pages::leave(uint32_t block, uint32_t owner) {
    take_slot(block);
    blocks_[block].owner = owner;
    blocks_[block].at = At::leaving, moving_++;
}

void Pages::stay(uint32_t block) {
    give_slot(block);
    blocks_[block].at = At::memory, moving_--;
}

void Pages::come(uint32_t block, uint32_t owner) {
    take_frame(block);
    blocks_[block].owner = owner;
    blocks_[block].at = At::arriving, moving_++;
}

void Pages::arrived(uint32_t block) {
    give_slot(block);
    blocks_[block].at = At::memory, moving_--;
}

void Pages::turned_back(uint32_t block) {
    give_frame(block);
    blocks_[block].at = At::outside, moving_--;
}

void Pages::list_stray(uint32_t block) {
    if (slots_free_ == 0) {
        unlisted_++;
        return;
    }
    leave(block, none);
    blocks_[block].next = none;
    (stray_ == none ? stray_ : blocks_[last_stray_].next) = block;
    last_stray_ = block;
}

uint32_t Pages::next_stray() {
    const uint32_t block = stray_;
    if (block != none) stray_ = blocks_[block].next;
    return block;
}

void Pages::find_strays() {
    if (unlisted_ == 0 || slots_free_ == 0) return;
    unlisted_ = 0;
    for (uint32_t b = 0; b < blocks(); b++)
        if (blocks_[b].at == At::memory && blocks_[b].users == 0) list_stray(b);
}

uint64_t Pages::end_leaving(uint32_t block, bool written) {
    Block &b = blocks_[block];
    const uint64_t id = b.id;
    if (b.refs > 0 && b.users == 0 && written) {
        give_frame(block);
        b.at = At::outside, moving_--;
        return 0;
    }
    stay(block);
    if (b.refs > 0) {
        if (b.users == 0) unlisted_++;
        return id;
    }
    give_frame(block);
    give_block(block);
    return id;
}

}  // namespace tessera::state
