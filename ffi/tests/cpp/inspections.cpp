// Visitors: what a space and its regions tell of themselves.

#include "check.hpp"

#include <string>
#include <vector>

using check::is_error;
using check::need;
using check::still_space;
using check::test;
using namespace std::chrono_literals;

namespace {

using names = std::vector<std::string>;

// A visitor that gathers names.
struct gathering {
    names &into;
    template <class Info> void operator()(const Info &info) const { into.emplace_back(sprag::view(info.name)); }
};

void locks() {
    const still_space of;
    const auto a = need(of.space.lock("job/a", 10s));
    const auto b = need(of.space.lock("job/b"));
    const auto c = need(of.space.lock("other"));
    const auto hold_a = need(a.acquire());
    const auto hold_b = need(b.acquire());
    const auto hold_c = need(c.acquire());
    names all;
    CHECK(of.space.each_lock(gathering{all}));
    CHECK((all == names{"job/a", "job/b", "other"}));
    names jobs;
    CHECK(of.space.each_lock(gathering{jobs}, "job/"));
    CHECK((jobs == names{"job/a", "job/b"}));
    int seen = 0;
    CHECK(of.space.each_lock([&](const sprag_lock_info &) { return ++seen < 2; }));
    CHECK(seen == 2);

    std::uint64_t token = 0;
    CHECK(need(a.peek([&](const sprag_lock_info &lock) {
        token = lock.hold_count == 1 ? lock.holds[0]->token : 0;
        CHECK(lock.is_held && lock.lease_left_ns == 10'000'000'000);
    })));
    CHECK(token == hold_a.token());
    CHECK(!need(need(of.space.lock("new")).peek([](const sprag_lock_info &) { CHECK(false); })));

    const auto table = need(of.space.partition(0));
    int coarse = 0;
    CHECK(of.space.each_coarse_lock([&](const sprag_lock_info &) { ++coarse; }) && coarse == 0);

    CHECK(need(b.break_hold()) == hold_b.token());
    names broken;
    CHECK(of.space.each_break(gathering{broken}) && (broken == names{"job/b"}));

    // A visitor may change what it is told of.
    CHECK(of.space.each_lock(
        [&](const sprag_lock_info &lock) { need(need(of.space.lock(sprag::view(lock.name))).break_hold()); }));
    CHECK(!hold_a.is_held() && !hold_c.is_held());
}

void others() {
    const still_space of;
    const auto pool = need(of.space.semaphore("pool", 3));
    const auto held = need(pool.acquire(2));
    const auto uploads = need(of.space.concurrency("uploads", 4));
    const auto upload = need(need(uploads.key("ann")).acquire());
    const auto api = need(of.space.limiter("api", "1/second"));
    need(api.set_override("big", "5/second"));
    CHECK(need(api.allow("small")));
    const auto login = need(of.space.joint_limiter("login", {"1/second", "9/hour"}));
    need(need(of.space.counter("stock")).add(-7));
    auto begun = need(need(of.space.once("invoice")).begin(60s));
    need(begun.attempt.finish("paid", 1h));

    CHECK(of.space.each_semaphore([](const sprag_semaphore_info &of_pool) {
        CHECK(sprag::view(of_pool.name) == "pool" && of_pool.taken == 2 && of_pool.remaining == 1);
    }));
    int peeked = 0;
    CHECK(pool.peek([&](const sprag_semaphore_info &of_pool) {
        ++peeked;
        CHECK(of_pool.hold_count == 1 && of_pool.holds[0]->permits == 2);
    }));
    CHECK(peeked == 1);
    int seen = 0;
    CHECK(of.space.each_concurrency([&](const sprag_concurrency_info &limiter) {
        ++seen;
        CHECK(limiter.key_count == 1 && sprag::view(limiter.keys[0]->name) == "ann" && limiter.permits == 4);
    }));
    CHECK(of.space.each_limiter([&](const sprag_limiter_info &limiter) {
        ++seen;
        CHECK(sprag::view(limiter.name) == "api" && std::string(limiter.limit) == "1/second");
    }));
    CHECK(of.space.each_override([&](const sprag_override_info &one) {
        ++seen;
        CHECK(sprag::view(one.limiter) == "api" && sprag::view(one.key) == "big" &&
              std::string(one.limit) == "5/second");
    }));
    CHECK(of.space.each_joint_limiter([&](const sprag_joint_limiter_info &limiter) {
        ++seen;
        CHECK(sprag::view(limiter.name) == "login" && limiter.limit_count == 2);
    }));
    CHECK(of.space.each_counter([&](const sprag_counter_info &counter) {
        ++seen;
        CHECK(sprag::view(counter.name) == "stock" && counter.number == -7);
    }));
    CHECK(of.space.each_once([&](const sprag_once_info &once) {
        ++seen;
        CHECK(sprag::view(once.name) == "invoice" && once.status == SPRAG_DONE &&
              sprag::view(once.result) == "paid");
    }));
    CHECK(seen == 6);
    CHECK(need(of.space.url()) == "mem:");
    CHECK(of.space.limiter_key_count() > 0 && of.space.limiter_key_bytes() > 0);
    CHECK(need(of.space.check_region([](const char *finding) { std::puts(finding); })) == 0);
}

void metrics() {
    const still_space of;
    const auto api = need(of.space.limiter("api", "1/second"));
    CHECK(need(api.allow("user")) && !need(api.allow("user")));
    const auto lock = need(of.space.lock("a"));
    const auto hold = need(lock.acquire());
    CHECK(!need(lock.try_acquire()));
    const auto told = need(of.space.metrics());
    CHECK(told.checks_allowed == 1 && told.checks_refused == 1);
    CHECK(told.acquires_at_once == 1 && told.acquires_busy == 1);
    CHECK(told.objects.used > 0 && told.objects.cap == 65'536);
    need(need(of.space.lock(std::string(1'000, 'x'))).acquire());
    const auto chunks = need(of.space.key_chunk_usage());
    CHECK(chunks.used > 0 && chunks.cap >= chunks.used);
}

void regions() {
    const check::directory of;
    names files;
    const auto gather = [&](const sprag_region_file &file) { files.emplace_back(file.name); };
    CHECK(sprag::region::each(gather) && files.empty());
    sprag::space_options options;
    options.objects = 128;
    {
        const auto space = need(sprag::space::open("shm:orders", options));
        CHECK(sprag::region::each(gather) && (files == names{"orders"}));
        CHECK(is_error(sprag::region::remove("shm:orders"), SPRAG_ERROR_IN_USE));
        CHECK(sprag::region::probe("shm:orders", [](const sprag_region_info &region) {
            CHECK(region.objects == 128 && region.live_sessions == 1);
        }));
        CHECK(need(space.url()) == "shm:orders");
    }
    options.objects = 256;
    CHECK(sprag::region::resize("shm:orders", options));
    CHECK(
        sprag::region::probe("shm:orders", [](const sprag_region_info &region) { CHECK(region.objects == 256); }));
    CHECK(sprag::region::remove("shm:orders"));
    CHECK(is_error(sprag::region::remove("shm:orders"), SPRAG_ERROR_NOT_FOUND));
    CHECK(!sprag::region::probe("shm:orders", [](const sprag_region_info &) { CHECK(false); }));
    CHECK(is_error(sprag::region::remove(std::string_view("shm:a\0", 6)), SPRAG_ERROR_OUT_OF_RANGE, "url"));
}

#ifdef __cpp_exceptions

void throwing() {
    const still_space of;
    const auto a = need(of.space.lock("a"));
    const auto hold = need(a.acquire());
    const auto other = need(need(of.space.lock("b")).acquire());
    int seen = 0;
    bool is_caught = false;
    try {
        need(of.space.each_lock([&](const sprag_lock_info &) {
            ++seen;
            throw std::string("enough");
        }));
    } catch (const std::string &what) {
        is_caught = what == "enough";
    }
    CHECK(is_caught && seen == 1);
    CHECK(hold.is_held());
}

#endif

void moved_from() {
    still_space of;
    const auto space = std::move(of.space);
    const auto all = [](const auto &) {};
    CHECK(is_error(of.space.each_lock(all), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.each_break(all), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.url(), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.metrics(), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.key_chunk_usage(), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.check_region(all), SPRAG_ERROR_NULL, "space"));
    CHECK(of.space.limiter_key_count() == 0 && of.space.limiter_key_bytes() == 0);
}

} // namespace

int main() {
    test("locks are visited by name, as far as the visitor wants", locks);
    test("everything in a space is visited", others);
    test("a space counts what is done with it, and how full it is", metrics);
    test("regions are listed, probed, resized and removed", regions);
#ifdef __cpp_exceptions
    test("what a visitor throws ends the visits and goes through", throwing);
#endif
    test("a space that was moved from tells nothing", moved_from);
    return check::conclude();
}
