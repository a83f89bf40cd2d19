// Counters, plain and striped.

#ifndef SPRAG_COUNTER_HPP
#define SPRAG_COUNTER_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sprag {

// What came of a change that may not be made.
struct change {
    // Whether it was made.
    bool is_made;
    // A number that the call says more of.
    std::int64_t number;

    explicit operator bool() const noexcept { return is_made; }
};

// A signed 64-bit number, 0 until somebody changes it: see space::counter().
class counter : public detail::handle<sprag_counter, sprag_counter_close> {
  public:
    using handle::handle;

    // Adds delta, which may be negative; the sum.
    result<std::int64_t> add(std::int64_t delta) const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_counter_add(handle::get(), delta, &into, failure);
        });
    }

    // Adds delta if the sum is at least min and at most max; change::number is the sum then, else what the counter
    // is at.
    result<change> add_within(std::int64_t delta, std::int64_t min, std::int64_t max) const {
        return detail::given<change>([&](change &into, sprag_error **failure) {
            const sprag_status status =
                sprag_counter_add_within(handle::get(), delta, min, max, &into.number, failure);
            into.is_made = status == SPRAG_OK;
            return status;
        });
    }

    // The number; nothing is created by looking. (The C library's pointer is handle::get().)
    result<std::int64_t> get() const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_counter_get(handle::get(), &into, failure);
        });
    }

    // Sets the number; what it was.
    result<std::int64_t> swap(std::int64_t number) const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_counter_swap(handle::get(), number, &into, failure);
        });
    }

    // Sets the number if it is the expected one; change::number is what it was.
    result<change> compare_exchange(std::int64_t expected, std::int64_t number) const {
        return detail::given<change>([&](change &into, sprag_error **failure) {
            const sprag_status status =
                sprag_counter_compare_exchange(handle::get(), expected, number, &into.number, failure);
            into.is_made = status == SPRAG_OK;
            return status;
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_counter_name(handle::get(), text, max, size, failure);
        });
    }
};

// The same counter in several parts, for many who add at once: see space::striped_counter().
class striped_counter : public detail::handle<sprag_striped_counter, sprag_striped_counter_close> {
  public:
    using handle::handle;

    // Adds delta, which may be negative. Nobody knows the sum without looking at all parts.
    result<void> add(std::int64_t delta) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_striped_counter_add(handle::get(), delta, &failure), failure);
    }

    // Adds delta if the sum is at least min and at most max; false if not, and what the counter is at is written
    // to number then, unless that is NULL.
    result<bool> add_within(std::int64_t delta, std::int64_t min, std::int64_t max,
                            std::int64_t *number = nullptr) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_striped_counter_add_within(handle::get(), delta, min, max, number, &failure),
                           failure);
    }

    // The number; nothing is created by looking. (The C library's pointer is handle::get().)
    result<std::int64_t> get() const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_striped_counter_get(handle::get(), &into, failure);
        });
    }

    // Sets the number; what it was.
    result<std::int64_t> swap(std::int64_t number) const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_striped_counter_swap(handle::get(), number, &into, failure);
        });
    }

    // Sets the number if it is the expected one; change::number is what it was.
    result<change> compare_exchange(std::int64_t expected, std::int64_t number) const {
        return detail::given<change>([&](change &into, sprag_error **failure) {
            const sprag_status status =
                sprag_striped_counter_compare_exchange(handle::get(), expected, number, &into.number, failure);
            into.is_made = status == SPRAG_OK;
            return status;
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_striped_counter_name(handle::get(), text, max, size, failure);
        });
    }
};

} // namespace sprag

#endif // SPRAG_COUNTER_HPP
