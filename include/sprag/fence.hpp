// Fences: the resource's side of a lock.

#ifndef SPRAG_FENCE_HPP
#define SPRAG_FENCE_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <cstdint>

namespace sprag {

// The resource's side of a lock: remembers the highest token that it admitted, and rejects older ones: see
// space::fence().
class fence : public detail::handle<sprag_fence, sprag_fence_close> {
  public:
    using handle::handle;

    // Admits a token not lower than the highest admitted; SPRAG_ERROR_STALE for a lower one.
    result<void> admit(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_fence_admit(get(), token, &failure), failure);
    }

    // Admits a token higher than the highest admitted: each token once.
    result<void> admit_once(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_fence_admit_once(get(), token, &failure), failure);
    }

    // The highest token admitted; 0 if none was.
    [[nodiscard]] std::uint64_t highest() const noexcept { return sprag_fence_highest(get()); }
};

} // namespace sprag

#endif // SPRAG_FENCE_HPP
