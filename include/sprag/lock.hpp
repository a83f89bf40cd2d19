// Locks of a name, of several, of a partition or of the table.

#ifndef SPRAG_LOCK_HPP
#define SPRAG_LOCK_HPP

#include "../sprag.h"
#include "hold.hpp"
#include "owner.hpp"

#include <cstdint>
#include <optional>

namespace sprag {

// Whether others may have it too.
enum class mode : std::uint32_t {
    // Nobody else has the lock meanwhile.
    exclusive = SPRAG_EXCLUSIVE,
    // Beside others who share it; only the lock of a name.
    shared = SPRAG_SHARED,
};

// How a lock is acquired.
struct acquire_options {
    // For whom; NULL for nobody but the hold itself. Of the lock's space, and need not live on.
    const sprag::owner *owner = nullptr;
    sprag::mode mode = sprag::mode::exclusive;
};

// The lock of a name, of several, of a partition or of the table: see space::lock() and what follows it. Not
// re-entrant but for an owner.
class lock : public detail::handle<sprag_lock, sprag_lock_close> {
  public:
    using handle::handle;

    // Acquires it, waiting its turn without an end.
    result<hold> acquire() const { return acquire(nullptr); }
    result<hold> acquire(const acquire_options &options) const { return acquire(&options); }

    // Acquires it if it can be had at once.
    result<std::optional<hold>> try_acquire() const { return acquire_within(0, nullptr); }
    result<std::optional<hold>> try_acquire(const acquire_options &options) const {
        return acquire_within(0, &options);
    }

    // Acquires it, waiting its turn for at most timeout; nothing is left behind if it is not had by then.
    result<std::optional<hold>> acquire_for(duration timeout) const { return acquire_for(timeout, nullptr); }
    result<std::optional<hold>> acquire_for(duration timeout, const acquire_options &options) const {
        return acquire_for(timeout, &options);
    }

    // Ends the hold with this token, whoever took it: the other half of hold::detach().
    result<void> release_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_lock_release_token(get(), token, &failure), failure);
    }

    // Starts the lease of the hold with this token anew, with this handle's length.
    result<void> renew_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_lock_renew_token(get(), token, &failure), failure);
    }

    // Takes over the hold with this token from whoever has it.
    result<hold> adopt_token(std::uint64_t token) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return sprag_lock_adopt_token(get(), token, into.get(), failure);
        });
    }

    // Who holds it and who waits for it, changing nothing: visit(const sprag_lock_info &) for each of its locks
    // that has an entry. False if none has, so that nobody holds it.
    template <class Visit> result<bool> peek(Visit &&visit) const {
        sprag_error *failure = nullptr;
        const sprag_status status = detail::visited<sprag_lock_info>(
            visit, [&](auto... by) { return sprag_lock_peek(get(), by...); }, failure);
        return detail::had(status, failure);
    }

    // Takes the lock away from whoever holds it, and notes who did it; the token that was ended, none if it was
    // not held.
    // ("break" is a word of the language.)
    result<std::optional<std::uint64_t>> break_hold() const {
        return detail::given_if_any<std::uint64_t>(
            [&](std::uint64_t &into, sprag_error **failure) { return sprag_lock_break(get(), &into, failure); });
    }

  private:
    sprag_status acquire_into(sprag_hold *into, std::uint64_t timeout_ns, const acquire_options *options,
                              sprag_error **failure) const {
        if (options == nullptr)
            return sprag_lock_acquire(get(), timeout_ns, into, failure);
        sprag_acquire_options with{};
        with.size = sizeof with;
        with.timeout_ns = timeout_ns;
        with.owner = options->owner ? options->owner->get() : nullptr;
        with.mode = static_cast<std::uint32_t>(options->mode);
        return sprag_lock_acquire_with(get(), &with, into, failure);
    }

    result<hold> acquire(const acquire_options *options) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return acquire_into(into.get(), SPRAG_FOREVER, options, failure);
        });
    }

    result<std::optional<hold>> acquire_within(std::uint64_t timeout_ns, const acquire_options *options) const {
        return detail::given_if_any<hold>([&](hold &into, sprag_error **failure) {
            return acquire_into(into.get(), timeout_ns, options, failure);
        });
    }

    result<std::optional<hold>> acquire_for(duration timeout, const acquire_options *options) const {
        if (timeout.fault())
            return detail::refused("timeout", timeout.fault());
        return acquire_within(timeout.ns(), options);
    }
};

} // namespace sprag

#endif // SPRAG_LOCK_HPP
