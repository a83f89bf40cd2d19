// Limiters: single checks, batches, several in one call, joint ones, and what is given back.

#include "check.hpp"

#include <array>

using check::is_error;
using check::need;
using check::still_space;
using check::test;
using namespace std::chrono_literals;

namespace {

void checking() {
    const still_space of;
    const auto api = need(of.space.limiter("api", "60/minute;burst=2"));
    const auto first = need(api.check("user"));
    CHECK(first && first.limit() == 2 && first.remaining() == 1);
    CHECK(first.retry_after() == 0ns && first.reset_after() == 1s && first.act_after() == 0ns);
    CHECK(!first.is_overflow());
    CHECK(need(api.allow("user")));
    const auto refused = need(api.check("user"));
    CHECK(!refused && refused.retry_after() == 1s && refused.retry_after_for(2) == 2s);
    CHECK(!refused.retry_after_for(3));
    CHECK(!need(api.allow("user")) && need(api.allow("other", 2)));
    need(of.clock.advance(1s));
    CHECK(need(api.peek("user")).remaining() == 1);
    CHECK(need(api.allow("user")) && !need(api.allow("user")));

    const auto never = need(api.check("user", 3));
    CHECK(!never && !never.retry_after());

    CHECK(need(api.name()) == "api");
    CHECK(need(api.limit()) == "60/minute;burst=2");
    CHECK(is_error(api.check(""), SPRAG_ERROR_OUT_OF_RANGE, "key"));
}

void definitions() {
    const still_space of;
    CHECK(!need(of.space.find_limiter("api")));
    const auto api = need(of.space.limiter("api", "1/second"));
    CHECK(of.space.limiter("api", "1/second"));
    CHECK(is_error(of.space.limiter("api", "2/second"), SPRAG_ERROR_DEFINITION_DIFFERS));
    const auto changed = need(of.space.limiter("api", "2/second", sprag::define::update));
    CHECK(need(need(of.space.find_limiter("api"))->limit()) == need(changed.limit()));
    CHECK(of.space.limiter("other", "1/nothing").error().status() == SPRAG_ERROR_LIMIT);
}

void batches() {
    const still_space of;
    const auto api = need(of.space.limiter("api", "1/second"));
    std::array<bool, 3> allowed{};
    CHECK(need(api.allow_batch({"a", "b", "a"}, allowed.data())) == 2);
    CHECK(allowed[0] && allowed[1] && !allowed[2]);
    const std::string c = "c";
    const std::vector<sprag::bytes> keys{"a", c, std::string_view("d")};
    const auto decisions = need(api.check_batch(keys));
    CHECK(decisions.size() == 3 && !decisions[0] && decisions[1] && decisions[2]);
    CHECK(decisions[0].retry_after() == 1s);
    CHECK(need(api.allow_batch(keys, nullptr)) == 0);
    CHECK(need(api.check_batch({})).empty());
    CHECK(!api.check_batch({"e", ""}));
    CHECK(need(api.allow("e")));
}

void several() {
    const still_space of;
    const auto users = need(of.space.limiter("users", "1/second"));
    const auto all = need(of.space.limiter("all", "3/second"));
    const auto both = need(of.space.check_all({{users, "ann"}, {all, "all", 2}}));
    CHECK(both && both.each.size() == 2 && both.each[0] && both.each[1] && both.each[1].remaining() == 1);
    const auto refused = need(of.space.check_all({{users, "bob"}, {all, "all", 2}}));
    CHECK(!refused && refused.each[0] && !refused.each[1]);
    CHECK(need(of.space.allow_all({{users, "bob"}, {all, "all"}})));
    CHECK(!need(of.space.allow_all({{users, "bob"}, {all, "all"}})));
    CHECK(!of.space.check_all({}) && !of.space.allow_all(std::vector<sprag::check>(9, {users, "carl"})));
    const still_space other;
    CHECK(!other.space.allow_all({{users, "carl"}}));
}

void refunds() {
    const still_space of;
    const auto api = need(of.space.limiter("api", "60/minute;burst=2"));
    auto taken = need(api.check("user", 2));
    CHECK(taken && !need(api.allow("user")));
    const auto back = need(api.refund(std::move(taken)));
    CHECK(back.kind == sprag::refund_kind::given && back.amount > 1.9 && back.amount < 2.1);
    CHECK(!taken);
    CHECK(is_error(api.refund(std::move(taken)), SPRAG_ERROR_EMPTY, "decision"));
    auto refused = need(api.check("user", 3));
    CHECK(need(api.refund(std::move(refused))).kind == sprag::refund_kind::over);
    const auto other = need(of.space.limiter("other", "1/minute"));
    CHECK(need(api.refund(need(other.check("user")))).kind == sprag::refund_kind::unknown);
}

void reservations() {
    const still_space of;
    const auto api = need(of.space.limiter("api", "60/minute;burst=1"));
    CHECK(need(api.reserve("user", 1, 0s)).act_after() == 0s);
    auto later = need(api.reserve("user", 1, 5s));
    CHECK(later && later.act_after() == 1s);
    CHECK(!need(api.reserve("user", 1, 1s)));
    CHECK(need(api.refund(std::move(later))).kind == sprag::refund_kind::given);
    CHECK(need(api.reserve("user", 1, 1s)).act_after() == 1s);
    CHECK(is_error(api.reserve("user", 1, -1s), SPRAG_ERROR_OUT_OF_RANGE, "wait_max"));
}

void overrides() {
    const still_space of;
    const auto api = need(of.space.limiter("api", "1/second"));
    CHECK(!need(api.override_of("big")) && !need(api.clear_override("big")));
    CHECK(api.set_override("big", "5/second"));
    CHECK(need(api.override_of("big")) == "5/second");
    CHECK(need(api.allow("big", 5)) && !need(api.allow("small", 5)));
    CHECK(need(api.clear_override("big")) && !need(api.override_of("big")));
    CHECK(!api.set_override("big", "nonsense"));
    CHECK(is_error(api.set_override("big", std::string_view("1/second\0", 9)), SPRAG_ERROR_OUT_OF_RANGE, "limit"));
}

void joint() {
    const still_space of;
    const auto login = need(of.space.joint_limiter("login", {"2/second", "3/hour"}));
    CHECK(need(login.name()) == "login" && login.limit_count() == 2);
    CHECK(need(login.limit(1)) == "3/hour" && !need(login.limit(2)));
    const auto first = need(login.check("user", 2));
    CHECK(first && first.limit() == 2 && first.remaining() == 0 && !first.refused_by() && !first.is_overflow());
    const auto refused = need(login.check("user", 2));
    CHECK(!refused && refused.refused_by() == std::size_t{1});
    CHECK(refused.retry_after() && refused.reset_after() && refused.retry_after_for(1) == 500ms);
    const auto of_second = refused.of(0);
    CHECK(of_second && of_second->limit() == 2 && !refused.of(2));
    need(of.clock.advance(1s));
    CHECK(need(login.allow("user")) && !need(login.allow("user")));
    CHECK(need(login.peek("user")).remaining() == 0);
    const sprag::joint_decision empty;
    CHECK(!empty && empty.limit() == 0 && !empty.retry_after() && !empty.refused_by() && !empty.of(0));
    CHECK(!of.space.joint_limiter("one", {"1/second"}));
    CHECK(is_error(of.space.joint_limiter("login", {"1/second", "1/hour"}), SPRAG_ERROR_DEFINITION_DIFFERS));
}

} // namespace

int main() {
    test("a check takes its cost if it is allowed, and tells when it would be", checking);
    test("a limiter keeps its definition unless it is to be updated", definitions);
    test("a batch decides each key by itself, in order", batches);
    test("several limiters in one call take all or nothing", several);
    test("what a check took is given back once", refunds);
    test("a reservation takes a place ahead", reservations);
    test("a key has a limit of its own until that is cleared", overrides);
    test("a joint limiter takes from all limits or none", joint);
    return check::conclude();
}
