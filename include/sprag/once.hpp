// Idempotency keys.

#ifndef SPRAG_ONCE_HPP
#define SPRAG_ONCE_HPP

#include "../sprag.h"
#include "attempt.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sprag {

// How it stands with an idempotency key.
enum class standing {
    // Nobody began, or whoever did abandoned it, or the result is no longer kept.
    none,
    // The caller's own attempt is under way: only once::begin() says so.
    started,
    // Another attempt is under way.
    in_progress,
    // It was done before.
    done,
    // The last attempt ended unfinished.
    unfinished,
};

// What is known of an idempotency key.
struct once_status {
    sprag::standing standing = sprag::standing::none;
    // The caller's own attempt if it was started; else empty.
    sprag::attempt attempt;
    // The result if it is done.
    std::string result;
    // In progress: what is left until the attempt's deadline. Done: for how much longer the result is kept at
    // least.
    std::chrono::nanoseconds left{0};
    // In progress: the owner's process id in its own namespace; 0 if it is not known.
    std::uint32_t holder_pid = 0;
};

// An idempotency key: see space::once().
class once : public detail::handle<sprag_once, sprag_once_close> {
  public:
    using handle::handle;

    // Begins at the key, if it is new or its last attempt is over: it is started, and the caller's for ttl, 1 ms
    // to 366 days. Else it is in progress or done.
    result<once_status> begin(duration ttl) const {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        return standing_by([&](sprag_attempt *attempt, sprag_progress *progress, char *text, std::size_t *size,
                               sprag_error **failure) {
            return sprag_once_begin(get(), ttl.ns(), attempt, progress, text, SPRAG_RESULT_BYTES_MAX, size,
                                    failure);
        });
    }

    // How it stands with the key; creates nothing.
    result<once_status> status() const {
        return standing_by(
            [&](sprag_attempt *, sprag_progress *progress, char *text, std::size_t *size, sprag_error **failure) {
                return sprag_once_status(get(), progress, text, SPRAG_RESULT_BYTES_MAX, size, failure);
            });
    }

    // attempt::finish() by the attempt's token, whoever began it: the other half of attempt::detach().
    result<void> finish_token(std::uint64_t token, std::string_view result_bytes, duration keep_for) const {
        if (keep_for.fault())
            return detail::refused("keep_for", keep_for.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_once_finish_token(get(), token, result_bytes.data(), result_bytes.size(),
                                                    keep_for.ns(), &failure),
                            failure);
    }

    // attempt::abandon() by the attempt's token, whoever began it.
    result<void> abandon_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_once_abandon_token(get(), token, &failure), failure);
    }

    // attempt::extend() by the attempt's token, whoever began it.
    result<void> extend_token(std::uint64_t token, duration ttl) const {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_once_extend_token(get(), token, ttl.ns(), &failure), failure);
    }

    // The key.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_once_name(get(), text, max, size, failure);
        });
    }

  private:
    template <class Ask> static result<once_status> standing_by(Ask &&ask) {
        return detail::given<once_status>([&](once_status &into, sprag_error **failure) {
            char text[SPRAG_RESULT_BYTES_MAX];
            std::size_t size = 0;
            sprag_progress progress{};
            const sprag_status status = ask(into.attempt.get(), &progress, text, &size, failure);
            if (status == SPRAG_OK)
                into.standing = standing::started;
            else if (status == SPRAG_IN_PROGRESS)
                into.standing = standing::in_progress;
            else if (status == SPRAG_DONE)
                into.standing = standing::done;
            else if (status == SPRAG_UNFINISHED)
                into.standing = standing::unfinished;
            if (status == SPRAG_DONE)
                into.result.assign(text, size);
            into.left = detail::time_of(progress.left_ns).value_or(std::chrono::nanoseconds::max());
            into.holder_pid = progress.holder_pid;
            return status;
        });
    }
};

} // namespace sprag

#endif // SPRAG_ONCE_HPP
