// Locks and owners: each kind of lock, and each way to acquire it.

#include "check.hpp"

#include <atomic>
#include <thread>

using check::is_error;
using check::need;
using check::still_space;
using check::test;
using sprag::mode;
using namespace std::chrono_literals;

namespace {

bool is_free(const sprag::lock &lock) { return need(lock.try_acquire()).has_value(); }

void waiting() {
    const auto space = need(sprag::space::open("mem:"));
    const auto lock = need(space.lock("a"));
    auto hold = need(lock.acquire());
    CHECK(!need(lock.try_acquire()));
    CHECK(!need(lock.acquire_for(0s)));
    CHECK(!need(lock.acquire_for(1ms)));
    std::atomic<std::uint64_t> next{0};
    std::thread waits([&] { next = need(lock.acquire()).token(); });
    std::thread waits_for([&] { CHECK(need(lock.acquire_for(sprag::forever)).has_value()); });
    const auto first = hold.token();
    std::uint32_t waiters = 0;
    while (waiters < 2) {
        need(lock.peek([&](const sprag_lock_info &of) { waiters = of.waiters; }));
        std::this_thread::yield();
    }
    need(hold.release());
    waits.join();
    waits_for.join();
    CHECK(next > first);
}

void sharing() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    auto one = need(lock.acquire({nullptr, mode::shared}));
    auto two = need(lock.try_acquire({nullptr, mode::shared}));
    CHECK(one.is_shared() && two && two->is_shared());
    CHECK(!is_free(lock));
    CHECK(!need(one.upgrade_for(0s)));
    CHECK(two->release());
    const auto before = one.token();
    CHECK(need(one.upgrade_for(0s)) && !one.is_shared() && one.token() > before);
    CHECK(one.downgrade() && one.is_shared());
    CHECK(one.upgrade() && !one.is_shared());
    CHECK(is_error(lock.try_acquire({nullptr, static_cast<mode>(7)}), SPRAG_ERROR_OUT_OF_RANGE, "options.mode"));
}

void owners() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    const auto ann = need(of.space.owner());
    const auto bob = need(of.space.owner());
    auto outer = need(lock.acquire({&ann}));
    auto inner = need(lock.acquire_for(1s, {&ann}));
    CHECK(inner && inner->token() == outer.token());
    CHECK(!need(lock.try_acquire({&bob})));
    CHECK(outer.release() && !is_free(lock));
    CHECK(inner->release() && is_free(lock));

    const still_space other;
    CHECK(!need(other.space.lock("a")).acquire({&ann}));
}

void several() {
    const still_space of;
    const auto a = need(of.space.lock("a"));
    const auto b = need(of.space.lock("b"));
    const auto both = need(of.space.locks({"b", "a"}, 10s));
    {
        auto hold = need(both.acquire());
        CHECK(!is_free(a) && !is_free(b));
        const auto tokens = need(hold.tokens());
        CHECK(tokens.size() == 2 && tokens[0] != 0 && tokens[1] != 0);
        CHECK(hold.lease_left() == 10s);
        CHECK(is_error(hold.detach(), SPRAG_ERROR_UNSUPPORTED));
        CHECK(hold.is_held());
    }
    CHECK(is_free(a) && is_free(b));
    const auto kept = need(a.acquire());
    CHECK(need(kept.tokens()) == std::vector<std::uint64_t>{kept.token()});
    CHECK(!need(both.try_acquire()) && is_free(b));

    std::vector<sprag::bytes> names;
    CHECK(!of.space.locks(names));
    names.assign(64, "c");
    CHECK(of.space.locks(names) && of.space.locks(names, 1s));
    names.push_back("c");
    CHECK(!of.space.locks(names));
}

void coarse() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    const auto place = need(of.space.partition_of("a"));
    CHECK(of.space.partitions() > place);
    const auto partition = need(of.space.partition(place, 10s));
    const auto table = need(of.space.table());
    {
        const auto hold = need(partition.acquire());
        CHECK(!is_free(lock) && !is_free(table));
    }
    {
        const auto hold = need(table.acquire());
        CHECK(!is_free(lock) && !is_free(partition));
    }
    const auto hold = need(lock.acquire());
    CHECK(!is_free(table) && !is_free(partition));
    CHECK(!of.space.partition(of.space.partitions()));
}

void breaking() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    CHECK(!need(lock.break_hold()));
    const auto hold = need(lock.acquire());
    CHECK(need(lock.break_hold()) == hold.token());
    CHECK(!hold.is_held() && is_free(lock));
}

void spaces() {
    sprag::space_options options;
    options.objects = 100;
    CHECK(sprag::space::open("mem:", options));
    options.share_percent = 101;
    CHECK(!sprag::space::open("mem:", options));
    const still_space one;
    const still_space other;
    const auto hold = need(need(one.space.lock("a")).acquire());
    CHECK(is_free(need(other.space.lock("a"))));
    const auto before = one.clock.now();
    need(one.clock.advance(1500ms));
    CHECK(one.clock.now() - before == 1500ms);
    // 2026-01-01T00:00:00Z.
    CHECK(before.time_since_epoch() == 1'767'225'600s);
}

void stopping() {
    const auto space = need(sprag::space::open("mem:"));
    const auto lock = need(space.lock("a"));
    auto hold = need(lock.acquire());
    std::optional<sprag::error> stopped;
    const auto called = sprag::interruptible([] { return true; },
                                             [&] {
                                                 const auto waited = lock.acquire();
                                                 if (!waited)
                                                     stopped = waited.error();
                                             });
    CHECK(called && stopped && stopped->status() == SPRAG_ERROR_STOPPED);
    CHECK(hold.release() && is_free(lock));

    // One that isn't stopped goes on waiting.
    int asked = 0;
    hold = need(lock.acquire());
    std::uint64_t token = 0;
    const auto stop = [&] {
        if (++asked == 2)
            need(hold.release());
        return false;
    };
    CHECK(sprag::interruptible(stop, [&] { token = need(lock.acquire()).token(); }));
    CHECK(asked >= 2 && token != 0);

#ifdef __cpp_exceptions
    bool is_caught = false;
    try {
        static_cast<void>(sprag::interruptible([] { return true; }, [] { throw 7; }));
    } catch (int number) {
        is_caught = number == 7;
    }
    CHECK(is_caught);

    const auto other = need(need(space.lock("b")).acquire());
    bool is_stop_caught = false;
    try {
        static_cast<void>(
            sprag::interruptible([]() -> bool { throw 'x'; }, [&] { CHECK(!need(space.lock("b")).acquire()); }));
    } catch (char) {
        is_stop_caught = true;
    }
    CHECK(is_stop_caught);
#endif
}

} // namespace

int main() {
    test("a lock is had at once, in time, or without an end, by one at a time", waiting);
    test("a lock is shared, upgraded and downgraded", sharing);
    test("an owner has its locks again at once, and others do not", owners);
    test("several locks are had all at once or not at all", several);
    test("the lock of a partition or the table excludes those beneath", coarse);
    test("a lock is broken, and its token told", breaking);
    test("a space has its options and its clock, and is another each time", spaces);
    test("a wait is stopped by its caller, and exceptions pass", stopping);
    return check::conclude();
}
