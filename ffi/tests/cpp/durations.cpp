// Durations: what each becomes in nanoseconds, and which are errors.

#include "check.hpp"

#include <cmath>
#include <ratio>

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using namespace std::chrono_literals;
using given_as = sprag::duration;

namespace {

template <class Rep, class Period = std::ratio<1>> given_as of(Rep count) {
    return given_as(std::chrono::duration<Rep, Period>(count));
}

bool is(const given_as &given, std::uint64_t ns) { return !given.fault() && given.ns() == ns; }

bool is_refused(const given_as &given, const char *because) {
    return given.fault() && std::string(given.fault()) == because && given.ns() == 0;
}

constexpr std::uint64_t max = UINT64_MAX;

void whole_numbers() {
    CHECK(is(0s, 0));
    CHECK(is(1ns, 1));
    CHECK(is(3us, 3'000));
    CHECK(is(250ms, 250'000'000));
    CHECK(is(30s, 30'000'000'000));
    CHECK(is(90min, 5'400'000'000'000));
    CHECK(is(hours(24) * 366, 31'622'400'000'000'000));
    CHECK(is(of<unsigned char, std::milli>(255), 255'000'000));
    CHECK(is(of<bool>(true), 1'000'000'000));
    CHECK(is(of<short, std::ratio<1, 3>>(3), 1'000'000'000));
    CHECK(is(of<short, std::ratio<1001, 30000>>(1), 33'366'667));
    CHECK(is(of<long, std::ratio<31556952>>(1), 31'556'952'000'000'000));
}

void finer_than_nanoseconds() {
    CHECK(is(of<long, std::pico>(1'000), 1));
    CHECK(is(of<long, std::pico>(1'499), 1));
    CHECK(is(of<long, std::pico>(1'500), 2));
    CHECK(is(of<long, std::pico>(1), 1));
    CHECK(is(of<long, std::pico>(0), 0));
    CHECK(is(of<long, std::atto>(1), 1));
    CHECK(is(of<long, std::pico>(INT64_MAX), 9'223'372'036'854'776));
}

void fractions() {
    CHECK(is(of(0.1), 100'000'000));
    CHECK(is(of(0.1F), 100'000'001)); // 0.1F is 0.100000001490...
    CHECK(is(of(1e-9), 1));
    CHECK(is(of(1e-30), 1));
    CHECK(is(of(0.0), 0));
    CHECK(is(of(-0.0), 0));
    CHECK(is(of<double, std::milli>(1.5), 1'500'000));
    CHECK(is(of<long double, std::ratio<3600>>(0.5L), 1'800'000'000'000));
    CHECK(is(of<double, std::pico>(2'500.0), 3));
}

void negative() {
    CHECK(is_refused(-1ns, "is negative"));
    CHECK(is_refused(of<signed char>(-128), "is negative"));
    CHECK(is_refused(nanoseconds::min(), "is negative"));
    CHECK(is_refused(hours::min(), "is negative"));
    CHECK(is_refused(of(-1e-300), "is negative"));
    CHECK(is_refused(of(-HUGE_VAL), "is negative"));
}

void not_a_number() {
    CHECK(is_refused(of(std::nan("")), "is not a number"));
    CHECK(is_refused(of(-std::nanf("")), "is not a number"));
    CHECK(is_refused(of(std::nanl("")), "is not a number"));
}

void too_long() {
    CHECK(is(nanoseconds::max(), INT64_MAX));
    CHECK(is(of<std::uint64_t, std::nano>(max - 1), max - 1));
    CHECK(is_refused(of<std::uint64_t, std::nano>(max), "is too long"));
    CHECK(is(of<std::uint64_t, std::micro>(max / 1'000), max / 1'000 * 1'000));
    CHECK(is_refused(of<std::uint64_t, std::micro>(max / 1'000 + 1), "is too long"));
    CHECK(is(of<std::uint64_t>(max / 1'000'000'000), max / 1'000'000'000 * 1'000'000'000));
    CHECK(is_refused(of<std::uint64_t>(max / 1'000'000'000 + 1), "is too long"));
    CHECK(is_refused(microseconds::max(), "is too long"));
    CHECK(is_refused(seconds::max(), "is too long"));
    CHECK(is_refused(hours::max(), "is too long"));
    CHECK(is_refused(of<std::uint64_t, std::ratio<31556952>>(max), "is too long"));
    CHECK(is(of<std::uint64_t, std::ratio<1, 3>>(max / 1'000'000'000 * 3), max / 1'000'000'000 * 1'000'000'000));
    CHECK(is_refused(of<std::uint64_t, std::ratio<1, 3>>(max), "is too long"));
    CHECK(is(of(1.8e10), 18'000'000'000'000'000'000U));
    CHECK(is_refused(of(1.9e10), "is too long"));
    CHECK(is_refused(of<double, std::nano>(18446744073709551616.0), "is too long"));
    CHECK(is_refused(of(1e308), "is too long"));
    CHECK(is_refused(of(HUGE_VAL), "is too long"));
    CHECK(is_refused(of(HUGE_VALF), "is too long"));
    CHECK(is_refused(std::chrono::duration<double>::max(), "is too long"));
#ifdef __SIZEOF_INT128__
    __extension__ using wide = __int128;
    if constexpr (std::is_arithmetic_v<wide>) {
        CHECK(is(of<wide, std::nano>(static_cast<wide>(max - 1)), max - 1));
        CHECK(is_refused(of<wide, std::nano>(static_cast<wide>(max) + 1), "is too long"));
        CHECK(is_refused(of<wide>(-1), "is negative"));
    }
#endif
}

static_assert(given_as(5ms).ns() == 5'000'000, "a duration is known when compiled");
static_assert(given_as(sprag::forever).ns() == SPRAG_FOREVER);

} // namespace

int main() {
    check::test("a whole number of any unit is so many nanoseconds", whole_numbers);
    check::test("what is finer than nanoseconds is rounded to the nearest, and to at least one",
                finer_than_nanoseconds);
    check::test("a fraction is rounded to the nearest nanosecond, and to at least one", fractions);
    check::test("a negative duration is none", negative);
    check::test("what is not a number is no duration", not_a_number);
    check::test("a duration that does not fit is an error, and the longest that fits is not", too_long);
    check::test("each call says by name which duration it cannot take", [] {
        const check::still_space of;
        const auto lock = check::need(of.space.lock("a"));
        auto hold = check::need(lock.acquire());
        const auto low = SPRAG_ERROR_OUT_OF_RANGE;
        CHECK(check::is_error(of.space.lock("a", -1s), low, "ttl"));
        CHECK(check::is_error(of.space.lock("a", 0s), low, "ttl"));
        CHECK(check::is_error(of.space.lock("a", 1us), low, "ttl"));
        CHECK(check::is_error(of.space.lock("a", hours(24 * 367)), low, "ttl"));
        CHECK(check::is_error(of.space.lock("a", sprag::forever), low, "ttl"));
        CHECK(check::is_error(of.space.locks({"a", "b"}, hours::max()), low, "ttl"));
        CHECK(check::is_error(of.space.partition(0, -1s), low, "ttl"));
        CHECK(check::is_error(of.space.table(-1s), low, "ttl"));
        CHECK(check::is_error(lock.acquire_for(-1ms), low, "timeout"));
        CHECK(check::is_error(lock.acquire_for(seconds::max()), low, "timeout"));
        CHECK(check::is_error(hold.extend(-1s), low, "ttl"));
        CHECK(check::is_error(hold.extend(0s), low, "ttl"));
        CHECK(check::is_error(hold.upgrade_for(-1s), low, "timeout"));
        CHECK(check::is_error(hold.keep_alive(-1s), low, "at_most"));
        CHECK(check::is_error(hold.keep_alive(0s), low, "at_most"));
        CHECK(check::is_error(of.clock.advance(-1s), low, "by"));
        CHECK(check::is_error(of.clock.advance(sprag::forever), low, "by"));
        CHECK(hold.is_valid());

        const auto refused = lock.acquire_for(-1ms);
        CHECK(std::string(refused.error().message()) ==
              "timeout is negative; it must be less than 2^64 - 1 nanoseconds, and not negative");
        const auto short_one = of.space.lock("a", 1us);
        const auto bounds = short_one.error().bounds();
        CHECK(bounds && bounds->value == 1'000 && bounds->min == 1'000'000 &&
              bounds->max == 31'622'400'000'000'000);
    });
    return check::conclude();
}
