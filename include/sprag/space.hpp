// Spaces: where everything is opened, and what they tell of themselves.

#ifndef SPRAG_SPACE_HPP
#define SPRAG_SPACE_HPP

#include "../sprag.h"
#include "check_all.hpp"
#include "concurrency.hpp"
#include "counter.hpp"
#include "define.hpp"
#include "fence.hpp"
#include "joint_limiter.hpp"
#include "limiter.hpp"
#include "lock.hpp"
#include "manual_clock.hpp"
#include "names.hpp"
#include "once.hpp"
#include "owner.hpp"
#include "semaphore.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace sprag {

// How a space is opened: the fields of sprag_space_options. What is zero has its default.
struct space_options : sprag_space_options {
    space_options() noexcept : sprag_space_options{} { size = sizeof(sprag_space_options); }
};

// A set of named objects, opened by URL. What was opened in it has a share of it, and may outlive this handle.
class space : public detail::handle<sprag_space, sprag_space_close> {
  public:
    using handle::handle;

    // Opens the space at url: "mem:", "shm:NAME" or "shm:/path". Each opening of "mem:" is another space.
    static result<space> open(std::string_view url, const space_options &options = {}) {
        const auto checked = detail::text(url, "url");
        if (!checked)
            return checked.error();
        return detail::opened<space>([&](sprag_space **raw, sprag_error **failure) {
            return sprag_space_open(checked->c_str(), &options, raw, failure);
        });
    }

    // How many partitions the space has: a power of two, at most 64.
    [[nodiscard]] std::uint32_t partitions() const noexcept { return sprag_space_partitions(get()); }

    // The partition that a lock's name falls into, from 0.
    result<std::uint32_t> partition_of(std::string_view name) const {
        return detail::given<std::uint32_t>([&](std::uint32_t &into, sprag_error **failure) {
            return sprag_space_partition_of(get(), name.data(), name.size(), &into, failure);
        });
    }

    // Makes an owner.
    result<sprag::owner> owner() const {
        return detail::opened<sprag::owner>(
            [&](sprag_owner **raw, sprag_error **failure) { return sprag_owner_open(get(), raw, failure); });
    }

    // The lock of a name. Its holds are leased for ttl, 1 ms to 366 days; for 30 s if none is given.
    result<sprag::lock> lock(std::string_view name) const { return lock_for(name, 0); }
    result<sprag::lock> lock(std::string_view name, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return lock_for(name, ttl_ns); });
    }

    // The locks of 1 to 64 names, which are acquired all at once or not at all, in whatever order they are named.
    result<sprag::lock> locks(list<bytes> names) const { return locks_for(names, 0); }
    result<sprag::lock> locks(list<bytes> names, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return locks_for(names, ttl_ns); });
    }

    // The lock of a partition, from 0, which excludes the locks of all names in it.
    result<sprag::lock> partition(std::uint32_t partition) const { return partition_for(partition, 0); }
    result<sprag::lock> partition(std::uint32_t partition, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return partition_for(partition, ttl_ns); });
    }

    // The lock of the table, which excludes all others.
    result<sprag::lock> table() const { return table_for(0); }
    result<sprag::lock> table(duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return table_for(ttl_ns); });
    }

    // The fence of a name. It is created when it first admits a token.
    result<sprag::fence> fence(std::string_view name) const { return named<sprag::fence>(name, sprag_fence_open); }

    // The semaphore of a name, which has so many permits: 1 to 16,777,215. Its holds are leased for ttl, 1 ms to
    // 366 days; for 30 s if none is given.
    result<sprag::semaphore> semaphore(std::string_view name, std::uint32_t permits) const {
        return semaphore_for(name, permits, 0);
    }
    result<sprag::semaphore> semaphore(std::string_view name, std::uint32_t permits, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return semaphore_for(name, permits, ttl_ns); });
    }

    // The concurrency limiter of a name, created if there is none: of each key at most so many permits are held at
    // once, 1 to 16,777,215.
    result<sprag::concurrency> concurrency(std::string_view name, std::uint32_t permits,
                                           define as = define::same) const {
        // C takes 0 for whatever it allows.
        if (permits == 0)
            return detail::zero("permits");
        return detail::opened<sprag::concurrency>([&](sprag_concurrency **raw, sprag_error **failure) {
            return sprag_concurrency_open(get(), name.data(), name.size(), permits, static_cast<std::uint32_t>(as),
                                          raw, failure);
        });
    }

    // The concurrency limiter of a name, whatever it allows; none if there is none.
    result<std::optional<sprag::concurrency>> find_concurrency(std::string_view name) const {
        return detail::found<sprag::concurrency>([&](sprag_concurrency **raw, sprag_error **failure) {
            return sprag_concurrency_open(get(), name.data(), name.size(), 0, 0, raw, failure);
        });
    }

    // The idempotency key. Nothing is created before somebody begins.
    result<sprag::once> once(std::string_view name) const { return named<sprag::once>(name, sprag_once_open); }

    // The counter of a name. Nothing is created before it is changed.
    result<sprag::counter> counter(std::string_view name) const {
        return named<sprag::counter>(name, sprag_counter_open);
    }

    // The counter of a name as a striped one, which it is for everyone from then on.
    result<sprag::striped_counter> striped_counter(std::string_view name) const {
        return named<sprag::striped_counter>(name, sprag_striped_counter_open);
    }

    // The limiter of a name, created with the limit if there is none: "100/minute;burst=20".
    result<sprag::limiter> limiter(std::string_view name, std::string_view limit, define as = define::same) const {
        const auto checked = detail::text(limit, "limit");
        if (!checked)
            return checked.error();
        return detail::opened<sprag::limiter>([&](sprag_limiter **raw, sprag_error **failure) {
            return sprag_limiter_open(get(), name.data(), name.size(), checked->c_str(),
                                      static_cast<std::uint32_t>(as), raw, failure);
        });
    }

    // The limiter of a name, whatever its limit; none if there is none.
    result<std::optional<sprag::limiter>> find_limiter(std::string_view name) const {
        return detail::found<sprag::limiter>([&](sprag_limiter **raw, sprag_error **failure) {
            return sprag_limiter_open(get(), name.data(), name.size(), nullptr, 0, raw, failure);
        });
    }

    // Checks 1 to 8 limiters in one call: all are allowed and all is taken, or nothing is taken anywhere.
    result<decisions> check_all(list<check> checks) const {
        return detail::given<decisions>([&](decisions &into, sprag_error **failure) {
            into.each.resize(checks.size());
            const sprag_status status =
                sprag_space_check_all(get(), checks.data(), checks.size(),
                                      into.each.empty() ? nullptr : into.each.front().get(), failure);
            into.is_allowed = status == SPRAG_OK;
            return status;
        });
    }

    // The same, and only tells whether all were: the quickest.
    result<bool> allow_all(list<check> checks) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_space_check_all(get(), checks.data(), checks.size(), nullptr, &failure), failure);
    }

    // The joint limiter of a name, created with 2 to 6 limits if there is none: {"10/minute", "100/day"}.
    result<sprag::joint_limiter> joint_limiter(std::string_view name, list<const char *> limits) const {
        return detail::opened<sprag::joint_limiter>([&](sprag_joint_limiter **raw, sprag_error **failure) {
            return sprag_joint_limiter_open(get(), name.data(), name.size(), limits.data(), limits.size(), raw,
                                            failure);
        });
    }

    // What there is in the space, and who holds what. A visitor is called once for each thing whose name begins
    // with prefix, by name; one that returns false sees no more, one that returns nothing sees all. What it is
    // given, and all that this points at, lives until it returns. What it throws goes through. The locks:
    // visit(const sprag_lock_info &).
    template <class Visit> result<void> each_lock(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_lock_info>(
            visit, [&](auto... by) { return sprag_space_each_lock(get(), prefix.data(), prefix.size(), by...); });
    }

    // The locks of partitions and of the table that are held or waited for: visit(const sprag_lock_info &).
    template <class Visit> result<void> each_coarse_lock(Visit &&visit) const {
        return each<sprag_lock_info>(visit,
                                     [&](auto... by) { return sprag_space_each_coarse_lock(get(), by...); });
    }

    // The semaphores: visit(const sprag_semaphore_info &).
    template <class Visit> result<void> each_semaphore(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_semaphore_info>(visit, [&](auto... by) {
            return sprag_space_each_semaphore(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The concurrency limiters, and what is held of their keys: visit(const sprag_concurrency_info &).
    template <class Visit> result<void> each_concurrency(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_concurrency_info>(visit, [&](auto... by) {
            return sprag_space_each_concurrency(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The limiters: visit(const sprag_limiter_info &).
    template <class Visit> result<void> each_limiter(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_limiter_info>(visit, [&](auto... by) {
            return sprag_space_each_limiter(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The overrides, by limiter and key; prefix is of the limiter's name: visit(const sprag_override_info &).
    template <class Visit> result<void> each_override(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_override_info>(visit, [&](auto... by) {
            return sprag_space_each_override(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The joint limiters: visit(const sprag_joint_limiter_info &).
    template <class Visit> result<void> each_joint_limiter(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_joint_limiter_info>(visit, [&](auto... by) {
            return sprag_space_each_joint_limiter(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The counters that are not at 0: visit(const sprag_counter_info &).
    template <class Visit> result<void> each_counter(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_counter_info>(visit, [&](auto... by) {
            return sprag_space_each_counter(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The idempotency keys, but for new ones: visit(const sprag_once_info &).
    template <class Visit> result<void> each_once(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_once_info>(
            visit, [&](auto... by) { return sprag_space_each_once(get(), prefix.data(), prefix.size(), by...); });
    }

    // The last forced releases, oldest first, at most 64: visit(const sprag_break_info &).
    template <class Visit> result<void> each_break(Visit &&visit) const {
        return each<sprag_break_info>(visit, [&](auto... by) { return sprag_space_each_break(get(), by...); });
    }

    // Walks through all of the region, and calls visit(const char *) for each thing that contradicts itself; how
    // many such things there are.
    template <class Visit> result<std::size_t> check_region(Visit &&visit) const {
        detail::called_back<std::remove_reference_t<Visit>> back(visit);
        auto found = detail::given<std::size_t>([&](std::size_t &into, sprag_error **failure) {
            return sprag_region_check(
                get(),
                [](const char *finding, void *of) noexcept -> bool {
                    return (*static_cast<decltype(back) *>(of))(false, finding);
                },
                &back, &into, failure);
        });
        back.rethrow();
        return found;
    }

    // The URL that it was opened by.
    result<std::string> url() const {
        return detail::given<std::string>([&](std::string &into, sprag_error **failure) {
            std::size_t size = 0;
            const sprag_status status = sprag_space_url(get(), nullptr, 0, &size, failure);
            if (status < 0)
                return status;
            into.resize(size + 1);
            const sprag_status told = sprag_space_url(get(), into.data(), into.size(), &size, failure);
            into.resize(size);
            return told;
        });
    }

    // What was done through this handle since it was opened, and how full the region is.
    result<sprag_metrics> metrics() const {
        return detail::given<sprag_metrics>([&](sprag_metrics &into, sprag_error **failure) {
            into.size = sizeof into;
            return sprag_space_metrics(get(), &into, failure);
        });
    }

    // How many chunks long names, long keys and results take. Looks at each of them.
    result<sprag_fill> key_chunk_usage() const {
        return detail::given<sprag_fill>([&](sprag_fill &into, sprag_error **failure) {
            return sprag_space_key_chunk_usage(get(), &into, failure);
        });
    }

    // How many keys the space's limiters have now, and the bytes that they take in the region.
    [[nodiscard]] std::uint64_t limiter_key_count() const noexcept { return sprag_space_limiter_key_count(get()); }
    [[nodiscard]] std::uint64_t limiter_key_bytes() const noexcept { return sprag_space_limiter_key_bytes(get()); }

  private:
    template <class Info, class Visit, class Each> static result<void> each(Visit &visit, Each &&visits) {
        sprag_error *failure = nullptr;
        const sprag_status status = detail::visited<Info>(visit, visits, failure);
        return detail::done(status, failure);
    }

    // What an open call gives that needs a name only.
    template <class T, class Open> result<T> named(std::string_view name, Open opens) const {
        return detail::opened<T>([&](auto **raw, sprag_error **failure) {
            return opens(get(), name.data(), name.size(), raw, failure);
        });
    }

    result<sprag::semaphore> semaphore_for(std::string_view name, std::uint32_t permits,
                                           std::uint64_t ttl_ns) const {
        return detail::opened<sprag::semaphore>([&](sprag_semaphore **raw, sprag_error **failure) {
            return sprag_semaphore_open(get(), name.data(), name.size(), permits, ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> lock_for(std::string_view name, std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open(get(), name.data(), name.size(), ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> locks_for(list<bytes> names, std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open_several(get(), names.data(), names.size(), ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> partition_for(std::uint32_t partition, std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open_partition(get(), partition, ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> table_for(std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open_table(get(), ttl_ns, raw, failure);
        });
    }
};

} // namespace sprag

#endif // SPRAG_SPACE_HPP
