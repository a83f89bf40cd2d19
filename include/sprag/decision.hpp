// Decisions: what a limiter answered.

#ifndef SPRAG_DECISION_HPP
#define SPRAG_DECISION_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace sprag {

// What a limiter answered, and the key's state right after it. Default-constructed, it is empty: nothing was
// allowed.
class decision {
  public:
    decision() noexcept { raw_.private_state = 0; }

    // It stands for what was taken, so there is one of it.
    decision(decision &&other) noexcept { take(other); }
    decision &operator=(decision &&other) noexcept {
        if (this != &other)
            take(other);
        return *this;
    }
    decision(const decision &) = delete;
    decision &operator=(const decision &) = delete;
    ~decision() = default;

    // Whether the cost was admitted.
    [[nodiscard]] bool is_allowed() const noexcept { return sprag_decision_is_allowed(&raw_); }
    explicit operator bool() const noexcept { return is_allowed(); }

    // The most that can be admitted at once: the burst, or a window's count.
    [[nodiscard]] std::uint64_t limit() const noexcept { return sprag_decision_limit(&raw_); }

    // The greatest cost that another check at the same instant would be allowed.
    [[nodiscard]] std::uint64_t remaining() const noexcept { return sprag_decision_remaining(&raw_); }

    // How long to wait until the same cost would be allowed, if nobody else takes any: 0 if it was, none if it
    // never can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after() const noexcept {
        return detail::time_of(sprag_decision_retry_after_ns(&raw_));
    }

    // How long until a further check of another cost would be allowed, if nobody else takes any: 0 if it would be
    // at once, none if it never can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after_for(std::uint64_t cost) const noexcept {
        return detail::time_of(sprag_decision_retry_after_for_ns(&raw_, cost));
    }

    // How long until nothing is used any more, if nobody takes any; none for never.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> reset_after() const noexcept {
        return detail::time_of(sprag_decision_reset_after_ns(&raw_));
    }

    // How long to wait, from the call on, before acting on it: 0, but for a reservation.
    [[nodiscard]] std::chrono::nanoseconds act_after() const noexcept {
        return detail::time_of(sprag_decision_act_after_ns(&raw_)).value_or(std::chrono::nanoseconds::max());
    }

    // Whether the region had no room for the key, so that a bucket shared by all such keys decided.
    [[nodiscard]] bool is_overflow() const noexcept { return sprag_decision_is_overflow(&raw_); }

    // The C library's value, still owned by this.
    [[nodiscard]] sprag_decision *get() noexcept { return &raw_; }
    [[nodiscard]] const sprag_decision *get() const noexcept { return &raw_; }

  private:
    void take(decision &other) noexcept {
        if (other.raw_.private_state != 0)
            raw_ = other.raw_;
        else
            raw_.private_state = 0;
        other.raw_.private_state = 0;
    }

    sprag_decision raw_;
};

static_assert(sizeof(decision) == sizeof(sprag_decision), "an array of the one is an array of the other");

} // namespace sprag

#endif // SPRAG_DECISION_HPP
