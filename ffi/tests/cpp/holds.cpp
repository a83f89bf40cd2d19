// Holds: what moving, releasing twice, destroying in any order and losing come to.

#include "check.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using check::is_error;
using check::need;
using check::still_space;
using check::test;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<sprag::hold> && !std::is_copy_assignable_v<sprag::hold>);
static_assert(std::is_nothrow_move_constructible_v<sprag::hold> && std::is_nothrow_move_assignable_v<sprag::hold>);
static_assert(std::is_nothrow_destructible_v<sprag::hold>);
static_assert(!std::is_copy_constructible_v<sprag::space> && std::is_nothrow_move_constructible_v<sprag::space>);
static_assert(!std::is_copy_constructible_v<sprag::lock> && std::is_nothrow_move_constructible_v<sprag::lock>);
static_assert(!std::is_copy_constructible_v<sprag::decision>);
static_assert(std::is_copy_constructible_v<sprag::error>);

namespace {

// Moves a value onto itself, unseen by the compiler's warning about just that.
template <class T> void move_onto(T &to, T &from) { to = std::move(from); }

bool is_free(const sprag::lock &lock) { return need(lock.try_acquire()).has_value(); }

void every_call_says_that_it_is_empty(sprag::hold &hold) {
    const auto empty = SPRAG_ERROR_EMPTY;
    CHECK(!hold);
    CHECK(hold.token() == 0);
    CHECK(!hold.is_valid() && !hold.is_held() && !hold.is_shared());
    CHECK(hold.lease_left() == 0ns);
    CHECK(is_error(hold.tokens(), empty, "hold"));
    CHECK(is_error(hold.renew(), empty, "hold"));
    CHECK(is_error(hold.extend(1s), empty, "hold"));
    CHECK(is_error(hold.keep_alive(), empty, "hold"));
    CHECK(is_error(hold.upgrade(), empty, "hold"));
    CHECK(is_error(hold.upgrade_for(1s), empty, "hold"));
    CHECK(is_error(hold.downgrade(), empty, "hold"));
    CHECK(is_error(hold.detach(), empty, "hold"));
    CHECK(is_error(hold.release(), empty, "hold"));
}

void moving() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    auto first = need(lock.acquire());
    const auto token = first.token();
    CHECK(token != 0 && first.is_valid());

    auto second = std::move(first);
    CHECK(second.token() == token && second.is_valid() && second.is_held());
    every_call_says_that_it_is_empty(first);
    CHECK(!is_free(lock));

    first = std::move(second);
    CHECK(first.token() == token && first.is_held());
    every_call_says_that_it_is_empty(second);

    move_onto(first, first);
    CHECK(first.token() == token && first.is_held());
    move_onto(second, second);
    every_call_says_that_it_is_empty(second);

    std::vector<sprag::hold> kept;
    kept.push_back(std::move(first));
    for (int at = 0; at < 20; ++at)
        kept.emplace_back(); // Grows, and so moves what it has.
    CHECK(kept.front().token() == token && kept.front().is_held());
    kept.clear();
    CHECK(is_free(lock));
}

void moving_onto_another() {
    const still_space of;
    const auto a = need(of.space.lock("a"));
    const auto b = need(of.space.lock("b"));
    auto hold = need(a.acquire());
    hold = need(b.acquire());
    CHECK(is_free(a) && !is_free(b));
    hold = sprag::hold();
    CHECK(is_free(a) && is_free(b));
    std::swap(hold, hold);
    auto other = need(a.acquire());
    const auto token = other.token();
    std::swap(hold, other);
    CHECK(hold.token() == token && !other);
}

void releasing() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    auto hold = need(lock.acquire());
    CHECK(hold.release());
    CHECK(is_free(lock));
    const auto other = need(lock.acquire());
    every_call_says_that_it_is_empty(hold);
    CHECK(other.is_held());
}

void default_constructed() {
    sprag::hold hold;
    every_call_says_that_it_is_empty(hold);
    sprag::decision decision;
    CHECK(!decision && decision.limit() == 0 && decision.remaining() == 0);
    CHECK(!decision.retry_after() && !decision.reset_after());
    const auto moved = std::move(decision);
    CHECK(!moved);
}

void leaving_the_block() {
    const still_space of;
    const auto lock = need(of.space.lock("a"));
    {
        const auto hold = need(lock.try_acquire());
        CHECK(hold && !is_free(lock));
    }
    CHECK(is_free(lock));
}

void any_order() {
    auto clock = std::make_unique<sprag::manual_clock>(need(sprag::manual_clock::make()));
    auto space = std::make_unique<sprag::space>(still_space::open(*clock));
    clock.reset();
    auto owner = std::make_unique<sprag::owner>(need(space->owner()));
    auto lock = std::make_unique<sprag::lock>(need(space->lock("a")));
    const auto limiter = need(space->limiter("api", "1/second"));
    const auto watching = need(space->lock("a"));
    space.reset();
    auto hold = need(lock->acquire({owner.get()}));
    owner.reset();
    CHECK(need(limiter.allow("key")));
    lock.reset();
    CHECK(hold.is_held() && !is_free(watching));
    CHECK(hold.release());
    CHECK(is_free(watching));
}

void handles_moved_from() {
    still_space of;
    auto lock = need(of.space.lock("a"));
    auto limiter = need(of.space.limiter("api", "1/second"));
    const auto null = SPRAG_ERROR_NULL;

    auto lock_2 = std::move(lock);
    CHECK(!lock && lock_2 && lock.get() == nullptr);
    CHECK(is_error(lock.acquire(), null, "lock"));
    CHECK(is_error(lock.try_acquire(), null, "lock"));
    CHECK(is_error(lock.acquire_for(1s), null, "lock"));
    CHECK(is_error(lock.acquire({nullptr, sprag::mode::shared}), null, "lock"));
    CHECK(is_error(lock.release_token(1), null, "lock"));
    CHECK(is_error(lock.renew_token(1), null, "lock"));
    CHECK(is_error(lock.adopt_token(1), null, "lock"));
    CHECK(is_error(lock.break_hold(), null, "lock"));
    move_onto(lock_2, lock_2);
    CHECK(is_free(lock_2));
    move_onto(lock, lock_2);
    CHECK(lock && !lock_2 && is_free(lock));

    const auto limiter_2 = std::move(limiter);
    CHECK(is_error(limiter.check("key"), null, "limiter"));
    CHECK(is_error(limiter.allow("key"), null, "limiter"));

    const auto space = std::move(of.space);
    CHECK(!of.space && of.space.partitions() == 0);
    CHECK(is_error(of.space.lock("a"), null, "space"));
    CHECK(is_error(of.space.locks({"a", "b"}), null, "space"));
    CHECK(is_error(of.space.partition(0), null, "space"));
    CHECK(is_error(of.space.table(), null, "space"));
    CHECK(is_error(of.space.partition_of("a"), null, "space"));
    CHECK(is_error(of.space.owner(), null, "space"));
    CHECK(is_error(of.space.limiter("api", "1/second"), null, "space"));
    CHECK(is_error(of.space.find_limiter("api"), null, "space"));

    auto clock = std::move(of.clock);
    CHECK(is_error(of.clock.advance(1s), null, "clock"));
    CHECK(clock.advance(1s));
}

void leases() {
    const still_space of;
    const auto lock = need(of.space.lock("a", 10s));
    auto hold = need(lock.acquire());
    CHECK(hold.lease_left() == 10s);
    need(of.clock.advance(4s));
    CHECK(hold.lease_left() == 6s);
    CHECK(hold.renew() && hold.lease_left() == 10s);
    CHECK(hold.extend(1min) && hold.lease_left() == 1min);
    need(of.clock.advance(1min));
    CHECK(!hold.is_valid() && hold.lease_left() == 0s);
    const auto token = hold.token();
    const auto lost = hold.renew();
    CHECK(is_error(lost, SPRAG_ERROR_LOST) && lost.error().token() == token);

    const auto next = need(lock.try_acquire());
    CHECK(next && next->token() > token);
    CHECK(is_error(hold.release(), SPRAG_ERROR_LOST));
    CHECK(next->is_held());
}

// What a hold's thread tells.
struct told {
    std::mutex guard;
    std::condition_variable changed;
    std::vector<std::uint64_t> lost;

    void tell(std::uint64_t token) {
        const std::lock_guard<std::mutex> within(guard);
        lost.push_back(token);
        changed.notify_all();
    }

    std::vector<std::uint64_t> wait_for_one() {
        std::unique_lock<std::mutex> within(guard);
        changed.wait(within, [this] { return !lost.empty(); });
        return lost;
    }
};

void loss() {
    const auto space = need(sprag::space::open("mem:"));
    const auto lock = need(space.lock("a"));
    const auto told = std::make_shared<::told>();
    {
        auto hold = need(lock.acquire());
        CHECK(hold.keep_alive([told](std::uint64_t token) { told->tell(token); }));
        const auto token = hold.token();
        auto moved = std::move(hold);
        const auto ended = need(lock.break_hold());
        CHECK(ended == token);
        CHECK(told->wait_for_one() == std::vector<std::uint64_t>{token});
        CHECK(!moved.is_valid() && !moved.is_held());
        CHECK(is_error(moved.release(), SPRAG_ERROR_LOST));
    }
    CHECK(!need(lock.break_hold()));
    // The callback goes once it can't be called any more, which may be later, in the library's thread.
    while (told.use_count() > 1)
        std::this_thread::yield();
}

void callbacks_that_are_not_called() {
    const auto space = need(sprag::space::open("mem:"));
    const auto lock = need(space.lock("a"));
    const auto counted = std::make_shared<std::atomic<int>>(0);
    const auto call = [counted](std::uint64_t) { ++*counted; };

    auto hold = need(lock.acquire());
    CHECK(hold.keep_alive(call));
    CHECK(hold.keep_alive(call, sprag::forever));
    CHECK(hold.keep_alive());
    CHECK(hold.keep_alive(call));
    CHECK(hold.release());
    CHECK(is_error(hold.keep_alive(call), SPRAG_ERROR_EMPTY, "hold"));
    hold = need(lock.acquire());
    CHECK(is_error(hold.keep_alive(call, -1s), SPRAG_ERROR_OUT_OF_RANGE, "at_most"));
    // One is the test's own, one is in call.
    while (counted.use_count() > 2)
        std::this_thread::yield();
    CHECK(*counted == 0);
}

void callables_that_are_moved_only() {
    const auto space = need(sprag::space::open("mem:"));
    const auto lock = need(space.lock("a"));
    const auto told = std::make_shared<::told>();
    auto hold = need(lock.acquire());
    CHECK(hold.keep_alive([told, only = std::make_unique<int>(1)](std::uint64_t token) {
        told->tell(token + static_cast<std::uint64_t>(*only));
    }));
    CHECK(need(lock.break_hold()).has_value());
    CHECK(told->wait_for_one().front() == hold.token() + 1);
}

void detaching() {
    const still_space of;
    const auto lock = need(of.space.lock("a", 10s));
    auto hold = need(lock.acquire());
    const auto held = hold.token();
    const auto token = need(hold.detach());
    CHECK(token == held);
    every_call_says_that_it_is_empty(hold);
    CHECK(!is_free(lock));
    CHECK(lock.renew_token(token));
    auto adopted = need(lock.adopt_token(token));
    CHECK(adopted.token() == token && adopted.is_held());
    CHECK(need(adopted.detach()) == token);
    CHECK(lock.release_token(token));
    CHECK(is_free(lock));
    CHECK(is_error(lock.release_token(token), SPRAG_ERROR_LOST));
    CHECK(is_error(lock.renew_token(token), SPRAG_ERROR_LOST));
    CHECK(is_error(lock.adopt_token(token), SPRAG_ERROR_LOST));
}

} // namespace

int main() {
    test("a hold that is moved goes on under its token, and leaves an empty one", moving);
    test("a hold that is assigned to is released first", moving_onto_another);
    test("a hold is released once: a second release is an error, and frees nobody else's", releasing);
    test("a hold or a decision that was never filled in is empty", default_constructed);
    test("a hold is released at the end of its block", leaving_the_block);
    test("handles may be destroyed in any order, before their holds too", any_order);
    test("a call on a handle that was moved from is an error", handles_moved_from);
    test("a lease is renewed, extended, and over", leases);
    test("the loss of a hold is told once, with its token, and the callback is destroyed", loss);
    test("a callback is destroyed uncalled when its hold ends, another takes its place, or it is refused",
         callbacks_that_are_not_called);
    test("a callback need not be copyable", callables_that_are_moved_only);
    test("a hold that is detached lives on by its token", detaching);
    return check::conclude();
}
