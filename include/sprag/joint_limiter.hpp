// Joint limiters: several limits on each key, declared together.

#ifndef SPRAG_JOINT_LIMITER_HPP
#define SPRAG_JOINT_LIMITER_HPP

#include "../sprag.h"
#include "decision.hpp"
#include "names.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sprag {

// What a joint limiter answered, and the key's state right after it. May be copied; must not be asked once its
// limiter is destroyed.
class joint_decision {
  public:
    // An empty one: nothing was allowed.
    joint_decision() noexcept : raw_{} {}

    // Whether the cost was admitted, by every limit.
    [[nodiscard]] bool is_allowed() const noexcept { return sprag_joint_decision_is_allowed(&raw_); }
    explicit operator bool() const noexcept { return is_allowed(); }

    // The place, from 0, of the limit that refused longest; none if none refused.
    [[nodiscard]] std::optional<std::size_t> refused_by() const noexcept {
        std::size_t place = 0;
        return sprag_joint_decision_refused_by(&raw_, &place) ? std::optional(place) : std::nullopt;
    }

    // What the limit at a place, from 0, says for itself; none past the last.
    [[nodiscard]] std::optional<decision> of(std::size_t place) const noexcept {
        std::optional<decision> of(std::in_place);
        if (!sprag_joint_decision_of(&raw_, place, of->get()))
            of.reset();
        return of;
    }

    // The most that can be admitted at once: the least of the limits'.
    [[nodiscard]] std::uint64_t limit() const noexcept { return sprag_joint_decision_limit(&raw_); }

    // The greatest cost that another check at the same instant would be allowed.
    [[nodiscard]] std::uint64_t remaining() const noexcept { return sprag_joint_decision_remaining(&raw_); }

    // How long to wait until the same cost would be allowed, if nobody else takes any: 0 if it was, none if it
    // never can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after() const noexcept {
        return detail::time_of(sprag_joint_decision_retry_after_ns(&raw_));
    }

    // How long until a further check of another cost would be allowed: 0 if it would be at once, none if it never
    // can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after_for(std::uint64_t cost) const noexcept {
        return detail::time_of(sprag_joint_decision_retry_after_for_ns(&raw_, cost));
    }

    // How long until nothing is used any more under any limit; none for never.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> reset_after() const noexcept {
        return detail::time_of(sprag_joint_decision_reset_after_ns(&raw_));
    }

    // Whether the region had no room for the key, so that an entry shared by all such keys decided.
    [[nodiscard]] bool is_overflow() const noexcept { return sprag_joint_decision_is_overflow(&raw_); }

    // The C library's value.
    [[nodiscard]] sprag_joint_decision *get() noexcept { return &raw_; }
    [[nodiscard]] const sprag_joint_decision *get() const noexcept { return &raw_; }

  private:
    sprag_joint_decision raw_;
};

// Several limits on each key, declared together: see space::joint_limiter().
class joint_limiter : public detail::handle<sprag_joint_limiter, sprag_joint_limiter_close> {
  public:
    using handle::handle;

    // Checks a cost of a key, at most 2^26 - 1, against all limits, and takes it from all if all allow it.
    result<joint_decision> check(std::string_view key, std::uint64_t cost = 1) const {
        return detail::given<joint_decision>([&](joint_decision &into, sprag_error **failure) {
            return sprag_joint_limiter_check(get(), key.data(), key.size(), cost, into.get(), failure);
        });
    }

    // The same, and only tells whether it was: the quickest.
    result<bool> allow(std::string_view key, std::uint64_t cost = 1) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_joint_limiter_check(get(), key.data(), key.size(), cost, nullptr, &failure),
                           failure);
    }

    // A key's state, changing nothing: the decision of a check of cost 0.
    result<joint_decision> peek(std::string_view key) const {
        return detail::given<joint_decision>([&](joint_decision &into, sprag_error **failure) {
            return sprag_joint_limiter_peek(get(), key.data(), key.size(), into.get(), failure);
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_joint_limiter_name(get(), text, max, size, failure);
        });
    }

    // How many limits it has.
    [[nodiscard]] std::size_t limit_count() const noexcept { return sprag_joint_limiter_limit_count(get()); }

    // The limit at a place, from 0, as text; none past the last.
    result<std::optional<std::string>> limit(std::size_t place) const {
        return detail::limit_if_any([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_joint_limiter_limit(get(), place, text, max, size, failure);
        });
    }
};

} // namespace sprag

#endif // SPRAG_JOINT_LIMITER_HPP
