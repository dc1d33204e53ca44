// A map whose keys are addresses, for the many short traversals of expressions. A small map allocates nothing. Keys cannot be
// removed, and the caller keeps alive what they point to.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

template <typename Value>
class AddressMap {
public:
    // The value of a key, or null. It stays where it is until another key is added.
    Value *find(const void *key) {
        Slot &slot = slot_of(key);
        return slot.key ? &slot.value : nullptr;
    }
    // The value of a key, with true where it is new and empty. It stays where it is until another key is added.
    std::pair<Value *, bool> add(const void *key) {
        Slot *slot = &slot_of(key);
        if (slot->key) return {&slot->value, false};
        if (++used_ * 4 > capacity_ * 3) {
            grow();
            slot = &slot_of(key);
        }
        slot->key = key;
        return {&slot->value, true};
    }
    size_t size() const { return used_; }

private:
    struct Slot {
        const void *key = nullptr;
        [[no_unique_address]] Value value{};
    };
    static constexpr size_t few = 16;  // capacities are powers of two

    Slot *slots() { return many_.empty() ? few_.data() : many_.data(); }

    Slot &slot_of(const void *key) {
        constexpr uint64_t golden = 0x9e3779b97f4a7c15;
        Slot *all = slots();
        size_t at = static_cast<size_t>((reinterpret_cast<uintptr_t>(key) * golden) >> 32);
        while (all[at & (capacity_ - 1)].key && all[at & (capacity_ - 1)].key != key) at++;
        return all[at & (capacity_ - 1)];
    }

    void grow() {
        std::vector<Slot> old = std::move(many_);
        Slot *from = old.empty() ? few_.data() : old.data();
        const size_t before = capacity_;
        capacity_ *= 4;
        many_ = std::vector<Slot>(capacity_);
        for (size_t i = 0; i < before; i++)
            if (from[i].key) {
                Slot &to = slot_of(from[i].key);
                to = std::move(from[i]);
            }
    }

    std::array<Slot, few> few_{};
    std::vector<Slot> many_;
    size_t capacity_ = few, used_ = 0;
};

// What a traversal has met.
class AddressSet {
public:
    bool insert(const void *key) { return met_.add(key).second; }

private:
    struct Nothing {};
    AddressMap<Nothing> met_;
};

}  // namespace tessera
