// Semaphores, and concurrency limiters, whose keys are semaphores.

#include "check.hpp"

#include <thread>

using check::is_error;
using check::need;
using check::still_space;
using check::test;
using namespace std::chrono_literals;

namespace {

void permits() {
    const still_space of;
    const auto pool = need(of.space.semaphore("pool", 3, 10s));
    CHECK(pool.permits() == 3 && need(pool.name()) == "pool");
    auto two = need(pool.acquire(2));
    CHECK(two.lease_left() == 10s);
    CHECK(!need(pool.try_acquire(2)) && !need(pool.acquire_for(0s, 2)));
    {
        const auto one = need(pool.try_acquire());
        CHECK(one && !need(pool.try_acquire()));
    }
    CHECK(need(pool.try_acquire()).has_value());
    const auto token = need(two.detach());
    CHECK(pool.renew_token(token));
    auto adopted = need(pool.adopt_token(token));
    CHECK(adopted.is_held() && !need(pool.try_acquire(2)));
    CHECK(pool.release_token(need(adopted.detach())));
    CHECK(need(pool.try_acquire(3)).has_value());
    CHECK(is_error(pool.release_token(token), SPRAG_ERROR_LOST));

    CHECK(!of.space.semaphore("pool", 0));
    CHECK(is_error(of.space.semaphore("pool", 3, 0s), SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
    CHECK(is_error(pool.acquire_for(-1s), SPRAG_ERROR_OUT_OF_RANGE, "timeout"));
    CHECK(!pool.try_acquire(0) && !pool.try_acquire(4));
    const auto kept = need(pool.acquire());
    CHECK(is_error(need(of.space.semaphore("pool", 4)).try_acquire(), SPRAG_ERROR_DEFINITION_DIFFERS));
}

void waiting() {
    const auto space = need(sprag::space::open("mem:"));
    const auto pool = need(space.semaphore("pool", 1));
    auto hold = need(pool.acquire());
    std::thread waits([&] { CHECK(need(pool.acquire()).is_valid()); });
    std::uint32_t waiters = 0;
    while (waiters == 0) {
        need(pool.peek([&](const sprag_semaphore_info &of) { waiters = of.waiters; }));
        std::this_thread::yield();
    }
    need(hold.release());
    waits.join();
    CHECK(need(pool.acquire_for(sprag::forever)).has_value());
}

void keys() {
    const still_space of;
    CHECK(!need(of.space.find_concurrency("uploads")));
    const auto uploads = need(of.space.concurrency("uploads", 2));
    CHECK(need(uploads.permits()) == 2 && need(uploads.name()) == "uploads");
    const auto ann = need(uploads.key("ann", 10s));
    const auto bob = need(uploads.key("bob"));
    CHECK(ann.permits() == 2 && need(ann.name()) == "ann");
    const auto held = need(ann.acquire(2));
    CHECK(held.lease_left() == 10s && !need(ann.try_acquire()) && need(bob.try_acquire()));
    CHECK(is_error(of.space.concurrency("uploads", 3), SPRAG_ERROR_DEFINITION_DIFFERS));
    CHECK(of.space.concurrency("uploads", 3, sprag::define::update));
    CHECK(need(need(of.space.find_concurrency("uploads"))->permits()) == 3);
    CHECK(need(ann.try_acquire()).has_value());
    CHECK(is_error(of.space.concurrency("uploads", 0), SPRAG_ERROR_OUT_OF_RANGE, "permits"));
    CHECK(is_error(uploads.key("ann", -1s), SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
}

void moved_from() {
    still_space of;
    auto pool = need(of.space.semaphore("pool", 1));
    const auto pool_2 = std::move(pool);
    CHECK(is_error(pool.acquire(), SPRAG_ERROR_NULL, "semaphore") && pool.permits() == 0);
    auto uploads = need(of.space.concurrency("uploads", 1));
    const auto uploads_2 = std::move(uploads);
    CHECK(is_error(uploads.key("ann"), SPRAG_ERROR_NULL, "concurrency"));
    CHECK(is_error(uploads.permits(), SPRAG_ERROR_NULL, "concurrency"));
}

} // namespace

int main() {
    test("a semaphore's permits are had, released, detached and adopted", permits);
    test("a semaphore is waited for", waiting);
    test("a concurrency limiter has so many at once of each key", keys);
    test("a semaphore or a concurrency limiter that was moved from is an error to call", moved_from);
    return check::conclude();
}
