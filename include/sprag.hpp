/*
 * Sprag in C++: what sprag.h has, with values that release themselves, results that cannot be overlooked, and the
 * durations of <chrono>. C++17 or later, header only; needs neither exceptions nor RTTI.
 *
 *     auto space = sprag::space::open("shm:orders").value();
 *
 *     auto api = space.limiter("api", "100/minute;burst=20").value();
 *     if (!api.allow("user:42").value())
 *         return refuse();
 *
 *     auto orders = space.lock("orders", std::chrono::seconds(10)).value();
 *     if (auto hold = orders.try_acquire().value())
 *         serve(hold->token()); // released at the end of the block
 *
 * What a call means, its bounds and its cost are in sprag.h, by the same noun and verb; here is what C++ adds.
 *
 * RESULTS. A call that can fail gives a result<T>: a T, or an error. An ordinary outcome is none: not to get a
 * lock in time is an empty std::optional, not to be allowed is false. Either ask (if (result) use(*result); else
 * log(result.error());), or say result.value(), which throws sprag::exception, and is there where exceptions are
 * enabled.
 *
 * OWNERSHIP. All types but errors and results are moved and not copied. A hold is released when it is destroyed.
 * Handles may be destroyed in any order, before their holds too. A call on what was moved from, released or
 * default-constructed is an error (SPRAG_ERROR_NULL or SPRAG_ERROR_EMPTY), never a crash. get() is the C library's
 * pointer, for what is only there; of a counter it is the number.
 *
 * THREADS. Handles (spaces, locks, limiters and the like) may be used by any thread at any time, as const
 * references, but are moved and destroyed by one. Holds, attempts and decisions are for one thread at a time.
 *
 * DURATIONS. Any std::chrono::duration, rounded to the nearest nanosecond, to at least one if it is positive. What
 * is negative, not a number, or 2^64 - 1 nanoseconds and more, is an error that names the argument. sprag::forever
 * is for timeouts.
 */

#ifndef SPRAG_HPP
#define SPRAG_HPP

#include "sprag.h"
#include "sprag/attempt.hpp"
#include "sprag/check_all.hpp"
#include "sprag/concurrency.hpp"
#include "sprag/counter.hpp"
#include "sprag/decision.hpp"
#include "sprag/define.hpp"
#include "sprag/duration.hpp"
#include "sprag/error.hpp"
#include "sprag/fence.hpp"
#include "sprag/hold.hpp"
#include "sprag/joint_limiter.hpp"
#include "sprag/limiter.hpp"
#include "sprag/lock.hpp"
#include "sprag/manual_clock.hpp"
#include "sprag/names.hpp"
#include "sprag/once.hpp"
#include "sprag/owner.hpp"
#include "sprag/region.hpp"
#include "sprag/result.hpp"
#include "sprag/semaphore.hpp"
#include "sprag/space.hpp"
#include "sprag/stop.hpp"

#endif // SPRAG_HPP
