// Limiters: a rate over keys.

#ifndef SPRAG_LIMITER_HPP
#define SPRAG_LIMITER_HPP

#include "../sprag.h"
#include "decision.hpp"
#include "names.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sprag {

// Why so much was given back.
enum class refund_kind : std::uint32_t {
    // Some was.
    given = SPRAG_REFUND_GIVEN,
    // Nothing was: nothing was taken, or none of it counts any more.
    over = SPRAG_REFUND_OVER,
    // Nothing was, since it is not known how much of it still counts.
    unknown = SPRAG_REFUND_VOID,
};

// What was given back, in units of cost with their fraction.
struct refund {
    refund_kind kind;
    double amount;
};

// A rate over keys: see space::limiter(). Open it once and keep it.
class limiter : public detail::handle<sprag_limiter, sprag_limiter_close> {
  public:
    using handle::handle;

    // Checks a cost of a key, and takes it if it is allowed.
    result<decision> check(std::string_view key, std::uint64_t cost = 1) const {
        return detail::given<decision>([&](decision &into, sprag_error **failure) {
            return sprag_limiter_check(get(), key.data(), key.size(), cost, into.get(), failure);
        });
    }

    // The same, and only tells whether it was: the quickest.
    result<bool> allow(std::string_view key, std::uint64_t cost = 1) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_limiter_check(get(), key.data(), key.size(), cost, nullptr, &failure), failure);
    }

    // A key's state, changing nothing: the decision of a check of cost 0.
    result<decision> peek(std::string_view key) const {
        return detail::given<decision>([&](decision &into, sprag_error **failure) {
            return sprag_limiter_peek(get(), key.data(), key.size(), into.get(), failure);
        });
    }

    // Checks many keys, each by itself and in order: quicker than one by one where keys are many. The decisions
    // are in the order of the keys.
    result<std::vector<decision>> check_batch(list<bytes> keys, std::uint64_t cost = 1) const {
        return detail::given<std::vector<decision>>([&](std::vector<decision> &into, sprag_error **failure) {
            into.resize(keys.size());
            return sprag_limiter_check_batch(get(), keys.data(), keys.size(), cost, nullptr,
                                             into.empty() ? nullptr : into.front().get(), nullptr, failure);
        });
    }

    // The same, the quickest way: how many were allowed. Whether each was is written to the array allowed, which
    // has an element for each key, or may be NULL.
    result<std::size_t> allow_batch(list<bytes> keys, bool *allowed, std::uint64_t cost = 1) const {
        return detail::given<std::size_t>([&](std::size_t &into, sprag_error **failure) {
            return sprag_limiter_check_batch(get(), keys.data(), keys.size(), cost, allowed, nullptr, &into,
                                             failure);
        });
    }

    // Takes a cost of a key now, to be acted on after decision::act_after(), which is at most wait_max; else it is
    // not allowed, and nothing is taken.
    result<decision> reserve(std::string_view key, std::uint64_t cost, duration wait_max) const {
        if (wait_max.fault())
            return detail::refused("wait_max", wait_max.fault());
        return detail::given<decision>([&](decision &into, sprag_error **failure) {
            return sprag_limiter_reserve(get(), key.data(), key.size(), cost, wait_max.ns(), into.get(), failure);
        });
    }

    // Gives back what a check or a reservation took, for what did not take place after all:
    // refund(std::move(decision)).
    result<sprag::refund> refund(decision of) const {
        return detail::given<sprag::refund>([&](sprag::refund &into, sprag_error **failure) {
            std::uint32_t kind = 0;
            const sprag_status status = sprag_limiter_refund(get(), of.get(), &kind, &into.amount, failure);
            into.kind = static_cast<refund_kind>(kind);
            return status;
        });
    }

    // Gives a key a limit of its own, in place of any that it was given before.
    result<void> set_override(std::string_view key, std::string_view limit) const {
        const auto checked = detail::text(limit, "limit");
        if (!checked)
            return checked.error();
        sprag_error *failure = nullptr;
        return detail::done(sprag_limiter_set_override(get(), key.data(), key.size(), checked->c_str(), &failure),
                            failure);
    }

    // Takes a key's override away; false if it had none.
    result<bool> clear_override(std::string_view key) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_limiter_clear_override(get(), key.data(), key.size(), &failure), failure);
    }

    // The limit that a key has instead of the limiter's, as text; none if it has none.
    result<std::optional<std::string>> override_of(std::string_view key) const {
        return detail::limit_if_any([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_limiter_override_of(get(), key.data(), key.size(), text, max, size, failure);
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_limiter_name(get(), text, max, size, failure);
        });
    }

    // The limit that it was opened with, as text.
    result<std::string> limit() const {
        return detail::limit([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_limiter_limit(get(), text, max, size, failure);
        });
    }
};

} // namespace sprag

#endif // SPRAG_LIMITER_HPP
