// Semaphores: a number of permits.

#ifndef SPRAG_SEMAPHORE_HPP
#define SPRAG_SEMAPHORE_HPP

#include "../sprag.h"
#include "hold.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sprag {

// A number of permits, or what a key of a concurrency limiter can have at once: see space::semaphore() and
// concurrency::key().
class semaphore : public detail::handle<sprag_semaphore, sprag_semaphore_close> {
  public:
    using handle::handle;

    // Acquires so many permits at once, waiting its turn without an end.
    result<hold> acquire(std::uint32_t permits = 1) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return sprag_semaphore_acquire(get(), permits, SPRAG_FOREVER, into.get(), failure);
        });
    }

    // Acquires them if they can be had at once.
    result<std::optional<hold>> try_acquire(std::uint32_t permits = 1) const { return acquire_within(0, permits); }

    // Acquires them, waiting its turn for at most timeout; nothing is left behind if they are not had by then.
    result<std::optional<hold>> acquire_for(duration timeout, std::uint32_t permits = 1) const {
        if (timeout.fault())
            return detail::refused("timeout", timeout.fault());
        return acquire_within(timeout.ns(), permits);
    }

    // Ends the hold with this token, and all its permits, whoever took it: the other half of hold::detach().
    result<void> release_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_semaphore_release_token(get(), token, &failure), failure);
    }

    // Starts the lease of the hold with this token anew, with this handle's length.
    result<void> renew_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_semaphore_renew_token(get(), token, &failure), failure);
    }

    // Takes over the hold with this token, and all its permits, from whoever has it.
    result<hold> adopt_token(std::uint64_t token) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return sprag_semaphore_adopt_token(get(), token, into.get(), failure);
        });
    }

    // Who has permits and who waits for some, changing nothing: visit(const sprag_semaphore_info &), once.
    template <class Visit> result<void> peek(Visit &&visit) const {
        sprag_error *failure = nullptr;
        const sprag_status status = detail::visited<sprag_semaphore_info>(
            visit, [&](auto... by) { return sprag_semaphore_peek(get(), by...); }, failure);
        return detail::done(status, failure);
    }

    // How many permits there are in all.
    [[nodiscard]] std::uint32_t permits() const noexcept { return sprag_semaphore_permits(get()); }

    // Its name; of a limiter's key the key.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_semaphore_name(get(), text, max, size, failure);
        });
    }

  private:
    result<std::optional<hold>> acquire_within(std::uint64_t timeout_ns, std::uint32_t permits) const {
        return detail::given_if_any<hold>([&](hold &into, sprag_error **failure) {
            return sprag_semaphore_acquire(get(), permits, timeout_ns, into.get(), failure);
        });
    }
};

} // namespace sprag

#endif // SPRAG_SEMAPHORE_HPP
