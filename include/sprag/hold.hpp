// Holds: what was acquired, of a lock or of a semaphore.

#ifndef SPRAG_HOLD_HPP
#define SPRAG_HOLD_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace sprag {

namespace detail {

// Ends a hold: what comes of that, nobody is there to be told.
inline void release(sprag_hold *of) noexcept { sprag_hold_release(of, nullptr); }

} // namespace detail

// What was acquired, of a lock or of a semaphore. Released when it is destroyed, whatever comes of that: say
// release() to be told. One that is default-constructed, moved from, released or detached is empty.
class hold : public detail::owned<sprag_hold, detail::release> {
  public:
    // The tokens of a hold of several locks, in the order in which those were named.
    [[nodiscard]] result<std::vector<std::uint64_t>> tokens() const {
        return detail::given<std::vector<std::uint64_t>>(
            [&](std::vector<std::uint64_t> &into, sprag_error **failure) {
                std::size_t count = 0;
                const sprag_status status = sprag_hold_tokens(&raw_, nullptr, 0, &count, failure);
                if (status < 0)
                    return status;
                into.resize(count);
                return sprag_hold_tokens(&raw_, into.data(), count, &count, failure);
            });
    }

    // Whether the lease still runs, by this process's own clock.
    [[nodiscard]] bool is_valid() const noexcept { return sprag_hold_is_valid(&raw_); }

    // Whether it is still held under its token, by the shared word: notices a broken lock too.
    [[nodiscard]] bool is_held() const noexcept { return sprag_hold_is_held(&raw_); }

    // Whether others may hold the lock beside this one.
    [[nodiscard]] bool is_shared() const noexcept { return sprag_hold_is_shared(&raw_); }

    // What is left of the lease; 0 once it is over.
    [[nodiscard]] std::chrono::nanoseconds lease_left() const noexcept {
        return detail::time_of(sprag_hold_lease_left_ns(&raw_)).value_or(std::chrono::nanoseconds::max());
    }

    // Releases it, and leaves it empty also where that fails: SPRAG_ERROR_LOST if somebody else has taken it
    // since.
    result<void> release() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_release(&raw_, &failure), failure);
    }

    // Starts the lease anew, from now, with the length it had.
    result<void> renew() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_renew(&raw_, &failure), failure);
    }

    // The same with another length: 1 ms to 366 days.
    result<void> extend(duration ttl) {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_extend(&raw_, ttl.ns(), &failure), failure);
    }

    // Has the lease renewed in the background, by a thread of the library's, until the hold is released or lost,
    // or at_most is over.
    result<void> keep_alive(duration at_most = std::chrono::hours(24)) {
        return keep_alive(at_most, nullptr, nullptr, nullptr);
    }

    // The same; on_lost(token) is called once if the hold is lost, in that thread, which renews all holds of the
    // space: it must neither block nor throw. It is destroyed once it can't be called any more, in whichever
    // thread.
    template <class OnLost, class = std::enable_if_t<std::is_invocable_v<OnLost &, std::uint64_t>>>
    result<void> keep_alive(OnLost on_lost, duration at_most = std::chrono::hours(24)) {
        auto context = std::make_unique<OnLost>(std::move(on_lost));
        auto kept = keep_alive(
            at_most, [](std::uint64_t token, void *of) noexcept { (*static_cast<OnLost *>(of))(token); },
            context.get(), [](void *of) noexcept { delete static_cast<OnLost *>(of); });
        if (kept)
            static_cast<void>(context.release()); // The library's now.
        return kept;
    }

    // Takes alone what this hold shares with others, waiting for them to release it; has a new, higher token then.
    result<void> upgrade() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_upgrade(&raw_, SPRAG_FOREVER, &failure), failure);
    }

    // The same for at most timeout; false if others share it still, as this hold does.
    result<bool> upgrade_for(duration timeout) {
        if (timeout.fault())
            return detail::refused("timeout", timeout.fault());
        sprag_error *failure = nullptr;
        return detail::had(sprag_hold_upgrade(&raw_, timeout.ns(), &failure), failure);
    }

    // Goes on sharing the lock with others instead of having it alone.
    result<void> downgrade() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_downgrade(&raw_, &failure), failure);
    }

    // Lets what is held live on without this process, until its lease ends or somebody releases it by the token
    // that is given. Leaves the hold empty.
    result<std::uint64_t> detach() {
        return detail::given<std::uint64_t>(
            [&](std::uint64_t &into, sprag_error **failure) { return sprag_hold_detach(&raw_, &into, failure); });
    }

  private:
    result<void> keep_alive(duration at_most, void (*on_lost)(std::uint64_t, void *), void *context,
                            void (*free_context)(void *)) {
        if (at_most.fault())
            return detail::refused("at_most", at_most.fault());
        if (at_most.ns() == 0)
            return detail::zero("at_most");
        const sprag_keep_alive_options options{sizeof options, at_most.ns(), on_lost, context, free_context};
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_keep_alive(&raw_, &options, &failure), failure);
    }
};

} // namespace sprag

#endif // SPRAG_HOLD_HPP
