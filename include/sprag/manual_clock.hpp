// A clock for tests.

#ifndef SPRAG_MANUAL_CLOCK_HPP
#define SPRAG_MANUAL_CLOCK_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <chrono>
#include <cstdint>

namespace sprag {

// A clock that stands still until it is moved, for space_options::clock.
class manual_clock : public detail::handle<sprag_manual_clock, sprag_manual_clock_close> {
  public:
    using handle::handle;

    // A clock that shows 2026-01-01T00:00:00Z.
    static result<manual_clock> make() { return detail::opened<manual_clock>(sprag_manual_clock_open); }

    // Moves it forward.
    result<void> advance(duration by) const {
        if (by.fault())
            return detail::refused("by", by.fault());
        if (by.ns() == SPRAG_FOREVER)
            return detail::refused("by", "has no end");
        sprag_error *failure = nullptr;
        return detail::done(sprag_manual_clock_advance(get(), by.ns(), &failure), failure);
    }

    // What it shows.
    [[nodiscard]] std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>
    now() const noexcept {
        const auto ns = static_cast<std::int64_t>(sprag_manual_clock_unix_ns(get()));
        return std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>(
            std::chrono::nanoseconds(ns));
    }
};

} // namespace sprag

#endif // SPRAG_MANUAL_CLOCK_HPP
