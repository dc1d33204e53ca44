// A vector that stores its first `few` elements inside itself. Expressions are made of many short lists, each of which would
// otherwise allocate.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera {

// Behaves like std::vector, but moving the vector invalidates references to its elements, as with std::string.
template <typename T, uint32_t few>
class SmallVector {
    static_assert(few > 0);

public:
    using value_type = T;
    using iterator = T *;
    using const_iterator = const T *;

    SmallVector() noexcept {}
    SmallVector(std::initializer_list<T> list) : SmallVector(list.begin(), list.end()) {}
    template <typename Iterator>
    requires std::sized_sentinel_for<Iterator, Iterator> SmallVector(Iterator first, Iterator last) : SmallVector() { append(first, last); }
    SmallVector(const std::vector<T> &list) : SmallVector(list.begin(), list.end()) {}
    SmallVector(std::vector<T> &&list) : SmallVector(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end())) {}
    SmallVector(const SmallVector &other) : SmallVector(other.begin(), other.end()) {}
    SmallVector(SmallVector &&other) noexcept { take(other); }
    SmallVector &operator=(const SmallVector &other) {
        if (this != &other) *this = SmallVector(other);
        return *this;
    }
    SmallVector &operator=(SmallVector &&other) noexcept {
        SmallVector taken(std::move(other));  // `other` may lie in an element of this vector
        release();
        take(taken);
        return *this;
    }
    ~SmallVector() { release(); }

    operator std::vector<T>() const { return std::vector<T>(begin(), end()); }

    T *begin() { return elements_; }
    T *end() { return elements_ + size_; }
    const T *begin() const { return elements_; }
    const T *end() const { return elements_ + size_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T &operator[](size_t i) { return elements_[i]; }
    const T &operator[](size_t i) const { return elements_[i]; }
    T &back() { return elements_[size_ - 1]; }
    const T &back() const { return elements_[size_ - 1]; }

    void reserve(size_t count) {
        if (count > capacity_) grow(count);
    }
    void push_back(T value) {
        reserve(size_ + size_t{1});
        std::construct_at(elements_ + size_, std::move(value));
        size_++;
    }
    // The range must not lie in this vector.
    template <typename Iterator>
    requires std::sized_sentinel_for<Iterator, Iterator>
    void append(Iterator first, Iterator last) {
        reserve(size_ + static_cast<size_t>(std::distance(first, last)));
        std::uninitialized_copy(first, last, elements_ + size_);
        size_ += static_cast<uint32_t>(std::distance(first, last));
    }
    void pop_back() { std::destroy_at(elements_ + --size_); }
    void clear() {
        std::destroy(begin(), end());
        size_ = 0;
    }

    template <typename Predicate>
    friend void erase_if(SmallVector &list, Predicate is_out) {
        for (const T *last = std::remove_if(list.begin(), list.end(), is_out); list.end() != last;) list.pop_back();
    }

private:
    T *own() { return reinterpret_cast<T *>(own_); }

    void grow(size_t count) {
        static_assert(std::is_nothrow_move_constructible_v<T>);
        const size_t capacity = std::max<size_t>(count, size_t{capacity_} * 2);
        T *elements = std::allocator<T>().allocate(capacity);
        std::uninitialized_move(begin(), end(), elements);
        const uint32_t size = size_;
        release();
        elements_ = elements, size_ = size, capacity_ = static_cast<uint32_t>(capacity);
    }
    void release() {
        std::destroy(begin(), end());
        if (elements_ != own()) std::allocator<T>().deallocate(elements_, capacity_);
        elements_ = own(), size_ = 0, capacity_ = few;
    }
    // This vector must be empty.
    void take(SmallVector &other) noexcept {
        if (other.elements_ != other.own()) {
            elements_ = std::exchange(other.elements_, other.own()), capacity_ = std::exchange(other.capacity_, few);
            size_ = std::exchange(other.size_, 0);
            return;
        }
        std::uninitialized_move(other.begin(), other.end(), elements_);
        size_ = other.size_;
        other.clear();
    }

    alignas(T) unsigned char own_[sizeof(T) * few];
    T *elements_ = own();
    uint32_t size_ = 0, capacity_ = few;
};

}  // namespace tessera
