// What the C++ header costs over the C calls beneath it: both sides in one run, alternating, medians of 15 rounds.
// Built with -O2; prints nanoseconds per operation and the ratio, C++ over C.

#include "sprag.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t rounds = 15;
constexpr int operations = 200'000;

template <class Operation> double ns_per_operation(const Operation &operation) {
    const auto begun = std::chrono::steady_clock::now();
    for (int at = 0; at < operations; ++at)
        operation();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    return took.count() / operations;
}

double median(std::array<double, rounds> of) {
    std::sort(of.begin(), of.end());
    return of[rounds / 2];
}

template <class InC, class InCpp> void compare(const char *name, const InC &in_c, const InCpp &in_cpp) {
    std::array<double, rounds> c{};
    std::array<double, rounds> cpp{};
    std::array<double, rounds> ratio{};
    ns_per_operation(in_c);
    ns_per_operation(in_cpp);
    for (std::size_t at = 0; at < rounds; ++at) {
        // Whoever comes first changes from round to round.
        if (at % 2 == 0)
            c[at] = ns_per_operation(in_c);
        cpp[at] = ns_per_operation(in_cpp);
        if (at % 2 != 0)
            c[at] = ns_per_operation(in_c);
        ratio[at] = cpp[at] / c[at];
    }
    std::printf("%-44s %7.1f %7.1f   %.2f\n", name, median(c), median(cpp), median(ratio));
}

void need(bool is_so) {
    if (!is_so)
        std::abort();
}

} // namespace

int main() {
    const auto space = sprag::space::open("mem:");
    need(space.has_value());
    const auto lock = space->lock("a");
    const auto limiter = space->limiter("api", "1000000000000/second");
    need(lock && limiter);
    const std::string_view key = "0123456789abcdef";

    std::printf("%-44s %7s %7s   ratio\n", "ns per operation", "C", "C++");
    compare(
        "lock and unlock",
        [&] {
            sprag_hold hold;
            sprag_error *error = nullptr;
            need(sprag_lock_acquire(lock->get(), 0, &hold, &error) == SPRAG_OK);
            need(sprag_hold_release(&hold, nullptr) == SPRAG_OK);
        },
        [&] {
            const auto hold = lock->try_acquire();
            need(hold && *hold);
        });
    compare(
        "lock and unlock, waiting without an end",
        [&] {
            sprag_hold hold;
            sprag_error *error = nullptr;
            need(sprag_lock_acquire(lock->get(), SPRAG_FOREVER, &hold, &error) == SPRAG_OK);
            need(sprag_hold_release(&hold, &error) == SPRAG_OK);
        },
        [&] {
            auto hold = lock->acquire();
            need(hold && hold->release());
        });
    compare(
        "limiter check, allowed or not",
        [&] {
            sprag_error *error = nullptr;
            need(sprag_limiter_check(limiter->get(), key.data(), key.size(), 1, nullptr, &error) == SPRAG_OK);
        },
        [&] {
            const auto is_allowed = limiter->allow(key);
            need(is_allowed && *is_allowed);
        });
    compare(
        "limiter check with its decision",
        [&] {
            sprag_decision decision;
            sprag_error *error = nullptr;
            need(sprag_limiter_check(limiter->get(), key.data(), key.size(), 1, &decision, &error) == SPRAG_OK);
            need(sprag_decision_is_allowed(&decision));
        },
        [&] {
            const auto decision = limiter->check(key);
            need(decision && decision->is_allowed());
        });
}
