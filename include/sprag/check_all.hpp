// Several limiters in one call: what is asked and what is answered.

#ifndef SPRAG_CHECK_ALL_HPP
#define SPRAG_CHECK_ALL_HPP

#include "../sprag.h"
#include "decision.hpp"
#include "limiter.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace sprag {

// One check of several in one call: space::check_all({{users, "user:42"}, {everybody, "all", 2}}).
struct check : sprag_check {
    check(const sprag::limiter &by, std::string_view of, std::uint64_t units = 1) noexcept
        : sprag_check{by.get(), of.data(), of.size(), units} {}
};

// What several limiters answered in one call.
struct decisions {
    // Whether all admitted their costs. If not, nothing was taken anywhere.
    bool is_allowed;
    // What each says for itself, in the order in which they were named.
    std::vector<decision> each;

    explicit operator bool() const noexcept { return is_allowed; }
};

} // namespace sprag

#endif // SPRAG_CHECK_ALL_HPP
