// Attempts: what the first to begin at an idempotency key has.

#ifndef SPRAG_ATTEMPT_HPP
#define SPRAG_ATTEMPT_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace sprag {

// An attempt of one's own at an idempotency key. Destroyed unfinished, it frees the key at once, and the next one
// is told. One that is default-constructed, moved from, finished, abandoned or detached is empty.
class attempt : public detail::owned<sprag_attempt, sprag_attempt_close> {
  public:
    // Whether an attempt before this one ended unfinished, so that its work may have been done in part.
    [[nodiscard]] bool is_after_unfinished() const noexcept { return sprag_attempt_is_after_unfinished(&raw_); }

    // Whether the deadline is still to come, by this process's own clock.
    [[nodiscard]] bool is_valid() const noexcept { return sprag_attempt_is_valid(&raw_); }

    // Whether the key is still this attempt's, by the shared word.
    [[nodiscard]] bool is_held() const noexcept { return sprag_attempt_is_held(&raw_); }

    // What is left until the deadline; 0 once it has passed.
    [[nodiscard]] std::chrono::nanoseconds deadline_left() const noexcept {
        return detail::time_of(sprag_attempt_deadline_left_ns(&raw_)).value_or(std::chrono::nanoseconds::max());
    }

    // Stores the result, 0 to 1,024 bytes, for keep_for, 1 ms to 366 days: from then on everybody is given it. The
    // attempt is empty then, and after SPRAG_ERROR_LOST; with any other error it goes on.
    result<void> finish(std::string_view result_bytes, duration keep_for) {
        if (keep_for.fault())
            return detail::refused("keep_for", keep_for.fault());
        sprag_error *failure = nullptr;
        return detail::done(
            sprag_attempt_finish(&raw_, result_bytes.data(), result_bytes.size(), keep_for.ns(), &failure),
            failure);
    }

    // Frees the key at once, as if this attempt had not been. Leaves it empty.
    result<void> abandon() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_attempt_abandon(&raw_, &failure), failure);
    }

    // Starts the time until the deadline anew, from now, with the length it had.
    result<void> renew() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_attempt_renew(&raw_, &failure), failure);
    }

    // The same with another length: 1 ms to 366 days.
    result<void> extend(duration ttl) {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_attempt_extend(&raw_, ttl.ns(), &failure), failure);
    }

    // Lets it go on without this process, until its deadline, or until somebody ends it by the token that is
    // given. Leaves it empty.
    result<std::uint64_t> detach() {
        return detail::given<std::uint64_t>([&](std::uint64_t &into, sprag_error **failure) {
            return sprag_attempt_detach(&raw_, &into, failure);
        });
    }
};

} // namespace sprag

#endif // SPRAG_ATTEMPT_HPP
