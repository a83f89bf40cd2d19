// Counters, plain and striped, and fences.

#include "check.hpp"

using check::is_error;
using check::need;
using check::still_space;
using check::test;

namespace {

void plain() {
    const still_space of;
    const auto stock = need(of.space.counter("stock"));
    CHECK(need(stock.get()) == 0 && need(stock.name()) == "stock");
    CHECK(need(stock.add(5)) == 5 && need(stock.add(-2)) == 3);
    const auto taken = need(stock.add_within(-3, 0, INT64_MAX));
    CHECK(taken && taken.number == 0);
    const auto refused = need(stock.add_within(-1, 0, INT64_MAX));
    CHECK(!refused && refused.number == 0);
    CHECK(!stock.add_within(1, 2, 1));
    CHECK(need(stock.swap(9)) == 0);
    const auto exchanged = need(stock.compare_exchange(9, 10));
    CHECK(exchanged && exchanged.number == 9);
    const auto differs = need(stock.compare_exchange(9, 11));
    CHECK(!differs && differs.number == 10 && need(stock.get()) == 10);
    CHECK(is_error(stock.add(INT64_MAX), SPRAG_ERROR_COUNTER_OVERFLOW));
}

void striped() {
    const still_space of;
    const auto stock = need(of.space.striped_counter("stock"));
    CHECK(stock.add(5) && stock.add(-2) && need(stock.get()) == 3);
    CHECK(need(need(of.space.counter("stock")).get()) == 3);
    CHECK(need(stock.add_within(-3, 0, 10)));
    std::int64_t at = -1;
    CHECK(!need(stock.add_within(-1, 0, 10, &at)) && at == 0);
    CHECK(!need(stock.add_within(-1, 0, 10)));
    CHECK(need(stock.swap(9)) == 0);
    CHECK(need(stock.compare_exchange(9, 10)) && !need(stock.compare_exchange(9, 11)));
    CHECK(need(stock.name()) == "stock");
}

void fencing() {
    const still_space of;
    const auto lock = need(of.space.lock("orders"));
    const auto fence = need(of.space.fence("orders"));
    CHECK(fence.highest() == 0);
    const auto late = need(lock.acquire());
    need(lock.break_hold());
    const auto next = need(lock.acquire());
    CHECK(fence.admit(next.token()) && fence.admit(next.token()) && fence.highest() == next.token());
    const auto stale = fence.admit(late.token());
    CHECK(is_error(stale, SPRAG_ERROR_STALE));
    CHECK(stale.error().token() == late.token() && stale.error().highest_token() == next.token());
    CHECK(is_error(fence.admit_once(next.token()), SPRAG_ERROR_STALE));
    CHECK(fence.admit_once(next.token() + 1));
}

void moved_from() {
    still_space of;
    auto counter = need(of.space.counter("a"));
    const auto counter_2 = std::move(counter);
    CHECK(is_error(counter.add(1), SPRAG_ERROR_NULL, "counter") &&
          is_error(counter.get(), SPRAG_ERROR_NULL, "counter"));
    auto fence = need(of.space.fence("a"));
    const auto fence_2 = std::move(fence);
    CHECK(is_error(fence.admit(1), SPRAG_ERROR_NULL, "fence") && fence.highest() == 0);
    const auto space = std::move(of.space);
    CHECK(is_error(of.space.counter("a"), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.striped_counter("a"), SPRAG_ERROR_NULL, "space"));
    CHECK(is_error(of.space.fence("a"), SPRAG_ERROR_NULL, "space"));
}

} // namespace

int main() {
    test("a counter adds, within bounds too, swaps and exchanges", plain);
    test("a striped counter is the same counter in parts", striped);
    test("a fence rejects what is older than what it admitted", fencing);
    test("a counter or a fence that was moved from is an error to call", moved_from);
    return check::conclude();
}
