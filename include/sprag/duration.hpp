// Durations as the library takes them, made from those of <chrono>.

#ifndef SPRAG_DURATION_HPP
#define SPRAG_DURATION_HPP

#include "../sprag.h"

#include <chrono>
#include <cstdint>
#include <numeric>
#include <ratio>
#include <type_traits>

namespace sprag {

struct forever_t {
    explicit constexpr forever_t() = default;
};

// A timeout that never ends.
inline constexpr forever_t forever{};

// A duration as the library takes it. Made from any std::chrono::duration, or from sprag::forever; one that cannot
// be had is told by the call that it is given to.
class duration {
  public:
    template <class Rep, class Period> constexpr duration(std::chrono::duration<Rep, Period> of) noexcept
        : duration(of.count(), Period{}) {}

    constexpr duration(forever_t) noexcept : ns_(SPRAG_FOREVER) {}

    // Nanoseconds; SPRAG_FOREVER for sprag::forever; 0 for one that cannot be had.
    [[nodiscard]] constexpr std::uint64_t ns() const noexcept { return ns_; }

    // Why it cannot be had; NULL if it can.
    [[nodiscard]] constexpr const char *fault() const noexcept { return fault_; }

  private:
    template <class Rep, std::intmax_t Num, std::intmax_t Den>
    constexpr duration(Rep count, std::ratio<Num, Den>) noexcept {
        static_assert(std::is_arithmetic_v<Rep>, "convert the duration to one of an arithmetic type first");
        // A count is factor / divisor nanoseconds, in lowest terms.
        constexpr std::intmax_t common = std::gcd(std::nano::den, Den);
        static_assert(Num <= INTMAX_MAX / (std::nano::den / common),
                      "the period is too long to be told in nanoseconds");
        constexpr auto factor = static_cast<std::uint64_t>(Num * (std::nano::den / common));
        constexpr auto divisor = static_cast<std::uint64_t>(Den / common);
        if constexpr (std::is_floating_point_v<Rep>) {
            const long double exact = static_cast<long double>(count) * static_cast<long double>(factor) /
                                      static_cast<long double>(divisor);
            if (count != count)
                fault_ = "is not a number";
            else if (count < 0)
                fault_ = "is negative";
            else if (exact >= static_cast<long double>(SPRAG_FOREVER - 1))
                fault_ = "is too long";
            else
                ns_ = at_least_one(static_cast<std::uint64_t>(exact + 0.5L), count > 0);
        } else {
            static_assert(divisor <= UINT64_MAX / factor / 2, "the period is too odd to be told in nanoseconds");
            if constexpr (std::is_signed_v<Rep>) {
                if (count < 0) {
                    fault_ = "is negative";
                    return;
                }
            }
            if constexpr (sizeof(Rep) > sizeof(std::uint64_t)) {
                if (count > static_cast<Rep>(UINT64_MAX)) {
                    fault_ = "is too long";
                    return;
                }
            }
            const auto units = static_cast<std::uint64_t>(count);
            // In two parts, so that nothing overflows but what is too long.
            const std::uint64_t whole = units / divisor;
            const std::uint64_t rest = (units % divisor * factor + divisor / 2) / divisor;
            if (whole > (SPRAG_FOREVER - 1 - rest) / factor)
                fault_ = "is too long";
            else
                ns_ = at_least_one(whole * factor + rest, units > 0);
        }
    }

    static constexpr std::uint64_t at_least_one(std::uint64_t ns, bool is_positive) noexcept {
        return is_positive && ns == 0 ? 1 : ns;
    }

    std::uint64_t ns_ = 0;
    const char *fault_ = nullptr;
};

} // namespace sprag

#endif // SPRAG_DURATION_HPP
