// Results and errors: what they tell, with exceptions and without.

#include "check.hpp"

#include <memory>

using check::is_error;
using check::need;
using check::test;

static_assert(!std::is_convertible_v<sprag::result<int>, bool>, "a result is asked, never taken for a number");
static_assert(std::is_same_v<decltype(*std::declval<sprag::result<int>>()), int>, "a loop over it would dangle");
#ifdef __cpp_exceptions
static_assert(std::is_same_v<decltype(std::declval<sprag::result<int>>().value()), int>, "so here");
#endif

namespace {

sprag::error wrong() { return {SPRAG_ERROR_LIMIT, "wrong", "this"}; }

struct moved_only {
    std::unique_ptr<int> inside;
    [[nodiscard]] int number() const { return *inside; }
};

sprag::result<moved_only> made(bool is_good) {
    if (!is_good)
        return wrong();
    return moved_only{std::make_unique<int>(7)};
}

void values() {
    auto good = made(true);
    CHECK(good && good.has_value() && good->number() == 7 && (*good).number() == 7);
    const auto taken = *std::move(good);
    CHECK(taken.number() == 7);
    const auto bad = made(false);
    CHECK(!bad && !bad.has_value());
    CHECK(is_error(bad, SPRAG_ERROR_LIMIT, "this"));
    CHECK(std::string(bad.error().message()) == "wrong");

    const sprag::result<void> done;
    CHECK(done && done.has_value());
    const sprag::result<void> not_done = wrong();
    CHECK(!not_done && !not_done.has_value());

    // A result of false is a result.
    const sprag::result<bool> no = false;
    CHECK(no && !*no);
}

void errors_of_the_library() {
    const auto space = need(sprag::space::open("mem:"));
    const auto none = sprag::space::open("nonsense:");
    CHECK(!none && none.error().status() == SPRAG_ERROR_PLACE);
    CHECK(std::string(none.error().message()) != sprag_status_text(SPRAG_ERROR_PLACE));

    const auto lock = space.lock("a", std::chrono::microseconds(1));
    CHECK(is_error(lock, SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
    const auto copy = lock.error();
    CHECK(copy.message() == lock.error().message());
    CHECK(copy.bounds() && copy.bounds()->value == 1'000);
    CHECK(copy.os_code() == 0 && copy.token() == 0);
    CHECK(!wrong().bounds() && wrong().os_code() == 0 && wrong().token() == 0);

    const auto elsewhere = sprag::space::open("shm:/nowhere/at/all");
    CHECK(!elsewhere && elsewhere.error().status() < 0);
}

void errors_without_details() {
    sprag::error error(SPRAG_ERROR_FULL, nullptr);
    CHECK(std::string(error.message()) == sprag_status_text(SPRAG_ERROR_FULL));
    CHECK(error.argument() == nullptr && !error.bounds());
    const auto moved = std::move(error);
    CHECK(error.status() == SPRAG_ERROR_FULL);
    CHECK(std::string(error.message()) == moved.message());
    CHECK(error.argument() == nullptr && !error.bounds() && error.os_code() == 0 && error.token() == 0);
}

void texts() {
    const auto space = need(sprag::space::open("mem:"));
    const std::string_view torn("mem:\0x", 6);
    CHECK(is_error(sprag::space::open(torn), SPRAG_ERROR_OUT_OF_RANGE, "url"));
    CHECK(is_error(space.limiter("api", std::string_view("1/second\0", 9)), SPRAG_ERROR_OUT_OF_RANGE, "limit"));
    // Names are bytes: anything goes, for its length.
    const auto a = need(space.lock(std::string_view("a\0b", 3)));
    const auto b = need(space.lock(std::string_view("a\0c", 3)));
    const auto hold = need(a.acquire());
    CHECK(need(b.try_acquire()).has_value());
    CHECK(is_error(space.lock(""), SPRAG_ERROR_OUT_OF_RANGE, "lock name"));
    CHECK(is_error(space.lock(std::string_view()), SPRAG_ERROR_OUT_OF_RANGE, "lock name"));
    CHECK(space.lock(std::string(1'024, 'x')));
    CHECK(is_error(space.lock(std::string(1'025, 'x')), SPRAG_ERROR_OUT_OF_RANGE, "lock name"));

    const std::uint64_t number = 0x0102030405060708;
    CHECK(sprag::bytes_of(number).size() == 8);
    CHECK(sprag::bytes_of(number) == std::string_view(reinterpret_cast<const char *>(&number), 8));
}

#ifdef __cpp_exceptions

template <class Call> std::optional<sprag::exception> thrown(Call &&call) {
    try {
        call();
    } catch (const sprag::exception &of) {
        return of;
    }
    return std::nullopt;
}

void exceptions() {
    CHECK(made(true).value().number() == 7);
    auto good = made(true);
    good.value().inside = std::make_unique<int>(8);
    const auto taken = std::move(good).value();
    CHECK(taken.number() == 8);
    const sprag::result<int> constant = 5;
    CHECK(constant.value() == 5);
    sprag::result<void>().value();

    const auto of_value = thrown([] { static_cast<void>(made(false).value()); });
    CHECK(of_value && of_value->error().status() == SPRAG_ERROR_LIMIT && std::string(of_value->what()) == "wrong");
    CHECK(thrown([] { sprag::result<void>(wrong()).value(); }));
    const auto bad = made(false);
    CHECK(thrown([&] { static_cast<void>(bad.value()); }));
    CHECK(std::string(bad.error().message()) == "wrong");

    bool is_standard = false;
    try {
        static_cast<void>(sprag::space::open("nonsense:").value());
    } catch (const std::exception &of) {
        is_standard = std::string(of.what()).find("nonsense") != std::string::npos;
    }
    CHECK(is_standard);
}

// A hold is released while an exception passes.
void unwinding() {
    const check::still_space of;
    const auto lock = need(of.space.lock("a"));
    try {
        const auto hold = lock.acquire().value();
        static_cast<void>(lock.try_acquire().value());
        throw 1;
    } catch (int) {
    }
    CHECK(need(lock.try_acquire()).has_value());
}

#endif

} // namespace

int main() {
    test("a result is a value or an error", values);
    test("an error tells what the library told, in each of its copies", errors_of_the_library);
    test("an error without details, or moved from, tells what its status means", errors_without_details);
    test("texts have no zero byte in them, and names may have any", texts);
#ifdef __cpp_exceptions
    test("value() throws the error of a result that has none", exceptions);
    test("a hold is released when an exception passes", unwinding);
#endif
    return check::conclude();
}
