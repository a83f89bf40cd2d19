// What stops waits.

#ifndef SPRAG_STOP_HPP
#define SPRAG_STOP_HPP

#include "../sprag.h"
#include "detail.hpp"

#include <type_traits>

namespace sprag {

// Calls call(), and lets stop(), which says whether to, end the waits in it on this thread: they fail with
// SPRAG_ERROR_STOPPED. For programs that are to act on a signal while a thread waits: the handler sets a flag, and
// stop reads it. What either throws goes through; if stop throws, the wait ends.
template <class Stop, class Call> result<void> interruptible(Stop &&stop, Call &&call) {
    using stopping = detail::called_back<std::remove_reference_t<Stop>>;
    using calling = detail::called_back<std::remove_reference_t<Call>>;
    stopping stop_back(stop);
    calling call_back(call);
    sprag_error *failure = nullptr;
    const sprag_status status = sprag_interruptible(
        [](void *of) noexcept -> bool { return (*static_cast<stopping *>(of))(true); }, &stop_back,
        [](void *of) noexcept { (*static_cast<calling *>(of))(false); }, &call_back, &failure);
    stop_back.rethrow();
    call_back.rethrow();
    return detail::done(status, failure);
}

} // namespace sprag

#endif // SPRAG_STOP_HPP
