// Idempotency keys and attempts at them.

#include "check.hpp"

using check::is_error;
using check::need;
using check::still_space;
using check::test;
using sprag::standing;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<sprag::attempt>);
static_assert(std::is_nothrow_move_constructible_v<sprag::attempt> &&
              std::is_nothrow_move_assignable_v<sprag::attempt>);

namespace {

void doing_once() {
    const still_space of;
    const auto invoice = need(of.space.once("invoice-42"));
    CHECK(need(invoice.name()) == "invoice-42");
    CHECK(need(invoice.status()).standing == standing::none);
    auto begun = need(invoice.begin(60s));
    CHECK(begun.standing == standing::started && begun.attempt && begun.attempt.token() != 0);
    CHECK(begun.attempt.is_valid() && begun.attempt.is_held() && !begun.attempt.is_after_unfinished());
    CHECK(begun.attempt.deadline_left() == 60s);

    const auto meanwhile = need(invoice.begin(60s));
    CHECK(meanwhile.standing == standing::in_progress && !meanwhile.attempt);
    CHECK(meanwhile.left > 0s && meanwhile.left <= 60s && meanwhile.holder_pid != 0);
    CHECK(need(invoice.status()).standing == standing::in_progress);

    const std::string_view receipt("receipt\0 4711", 13);
    CHECK(begun.attempt.finish(receipt, std::chrono::hours(24)));
    CHECK(!begun.attempt);
    const auto later = need(invoice.begin(60s));
    CHECK(later.standing == standing::done && later.result == receipt && !later.attempt);
    const auto seen = need(invoice.status());
    CHECK(seen.standing == standing::done && seen.result == receipt && seen.left > 0s);
}

void results() {
    const still_space of;
    const auto once = need(of.space.once("a"));
    auto begun = need(once.begin(60s));
    CHECK(!begun.attempt.finish(std::string(1'025, 'x'), 1h));
    CHECK(is_error(begun.attempt.finish("", -1s), SPRAG_ERROR_OUT_OF_RANGE, "keep_for"));
    CHECK(begun.attempt && begun.attempt.finish(std::string(1'024, 'x'), 1h));
    CHECK(need(once.status()).result == std::string(1'024, 'x'));
    auto empty = need(need(of.space.once("b")).begin(60s));
    CHECK(empty.attempt.finish({}, 1h));
    const auto done = need(need(of.space.once("b")).status());
    CHECK(done.standing == standing::done && done.result.empty());
    CHECK(!once.begin(0s));
    CHECK(is_error(once.begin(-1s), SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
}

void ending() {
    const still_space of;
    const auto once = need(of.space.once("a"));
    {
        const auto begun = need(once.begin(60s));
        CHECK(begun.attempt.is_held());
    }
    CHECK(need(once.status()).standing == standing::unfinished);
    auto begun = need(once.begin(60s));
    CHECK(begun.attempt.is_after_unfinished());
    CHECK(begun.attempt.extend(90s) && begun.attempt.deadline_left() == 90s);
    need(of.clock.advance(30s));
    CHECK(begun.attempt.renew() && begun.attempt.deadline_left() == 90s);
    CHECK(begun.attempt.abandon() && !begun.attempt);
    begun = need(once.begin(60s));
    CHECK(begun.attempt.finish("", 1h));

    const auto other = need(of.space.once("b"));
    auto late = need(other.begin(60s));
    need(of.clock.advance(61s));
    CHECK(!late.attempt.is_valid() && late.attempt.deadline_left() == 0s);
    CHECK(is_error(late.attempt.finish("", 1h), SPRAG_ERROR_LOST));
    CHECK(!late.attempt);
}

void by_token() {
    const still_space of;
    const auto once = need(of.space.once("a"));
    auto begun = need(once.begin(60s));
    auto token = need(begun.attempt.detach());
    CHECK(!begun.attempt && need(once.status()).standing == standing::in_progress);
    CHECK(once.extend_token(token, 90s));
    CHECK(once.abandon_token(token));
    CHECK(is_error(once.abandon_token(token), SPRAG_ERROR_LOST));
    token = need(need(once.begin(60s)).attempt.detach());
    CHECK(once.finish_token(token, "done", 1h));
    CHECK(need(once.status()).result == "done");
}

void moving() {
    const still_space of;
    const auto a = need(of.space.once("a"));
    const auto b = need(of.space.once("b"));
    auto first = need(a.begin(60s)).attempt;
    const auto token = first.token();
    auto second = std::move(first);
    CHECK(!first && first.token() == 0 && second.token() == token && second.is_held());
    auto &same = second;
    second = std::move(same);
    CHECK(second.token() == token && second.is_held());
    second = need(b.begin(60s)).attempt;
    CHECK(need(a.status()).standing == standing::unfinished);
    CHECK(need(b.status()).standing == standing::in_progress);

    const auto empty = SPRAG_ERROR_EMPTY;
    CHECK(!first.is_valid() && !first.is_held() && !first.is_after_unfinished() && first.deadline_left() == 0s);
    CHECK(is_error(first.finish("", 1h), empty, "attempt"));
    CHECK(is_error(first.abandon(), empty, "attempt"));
    CHECK(is_error(first.renew(), empty, "attempt"));
    CHECK(is_error(first.extend(1s), empty, "attempt"));
    CHECK(is_error(first.detach(), empty, "attempt"));

    auto once = need(of.space.once("c"));
    const auto once_2 = std::move(once);
    CHECK(is_error(once.begin(1s), SPRAG_ERROR_NULL, "once") && is_error(once.status(), SPRAG_ERROR_NULL, "once"));
}

} // namespace

int main() {
    test("the first to begin owns the key, and its result is everybody's", doing_once);
    test("a result is up to 1,024 bytes, and may be none", results);
    test("an attempt that ends unfinished is told of, one that is abandoned is not", ending);
    test("an attempt that is detached is ended by its token", by_token);
    test("an attempt that is moved goes on, and one that is assigned to ends", moving);
    return check::conclude();
}
