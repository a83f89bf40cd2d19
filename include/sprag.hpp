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
 * pointer, for what is only there.
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

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sprag {

/*
 * ERRORS
 */

// What an argument was, and what it must be. Durations are in nanoseconds.
struct bounds {
    std::uint64_t value;
    std::uint64_t min;
    std::uint64_t max;
};

// What was wrong in one call. Cheap to copy; all copies share what they tell.
class error {
  public:
    // Takes what a C call wrote; details may be NULL.
    error(sprag_status status, sprag_error *details)
        : status_(status), fault_(std::make_shared<const fault>(details)) {}

    // An error of a program's own, or of this header.
    error(sprag_status status, std::string message, const char *argument = nullptr)
        : status_(status), fault_(std::make_shared<const fault>(std::move(message), argument)) {}

    // SPRAG_ERROR_LOST and the like.
    [[nodiscard]] sprag_status status() const noexcept { return status_; }

    // What was wrong and what to do about it, in English, one line. Lives as long as the error or a copy.
    [[nodiscard]] const char *message() const noexcept {
        if (fault_ && fault_->details)
            return sprag_error_message(fault_->details.get());
        return fault_ && !fault_->message.empty() ? fault_->message.c_str() : sprag_status_text(status_);
    }

    // The argument that was wrong, as the message calls it; NULL if none was.
    [[nodiscard]] const char *argument() const noexcept {
        if (fault_ && fault_->details)
            return sprag_error_argument(fault_->details.get());
        return fault_ ? fault_->argument : nullptr;
    }

    // What was given for the argument, and its bounds, if it has any.
    [[nodiscard]] std::optional<sprag::bounds> bounds() const noexcept {
        sprag::bounds of{};
        if (sprag_error_bounds(details(), &of.value, &of.min, &of.max))
            return of;
        return std::nullopt;
    }

    // The system's own error number (errno) where the system refused something; else 0.
    [[nodiscard]] int os_code() const noexcept { return details() ? sprag_error_os_code(details()) : 0; }

    // The token of what was lost, or was stale; 0 if this is no such error.
    [[nodiscard]] std::uint64_t token() const noexcept { return details() ? sprag_error_token(details()) : 0; }

    // The highest token that the fence had admitted when it found one stale; 0 if this is no such error.
    [[nodiscard]] std::uint64_t highest_token() const noexcept {
        return details() ? sprag_error_highest_token(details()) : 0;
    }

  private:
    struct freed {
        void operator()(sprag_error *details) const noexcept { sprag_error_free(details); }
    };

    struct fault {
        explicit fault(sprag_error *of) : details(of) {}
        fault(std::string &&what, const char *name) : message(std::move(what)), argument(name) {}

        std::unique_ptr<sprag_error, freed> details;
        std::string message;
        const char *argument = nullptr;
    };

    [[nodiscard]] const sprag_error *details() const noexcept { return fault_ ? fault_->details.get() : nullptr; }

    sprag_status status_;
    std::shared_ptr<const fault> fault_;
};

#ifdef __cpp_exceptions

// What value() throws.
class exception : public std::exception {
  public:
    explicit exception(sprag::error of) noexcept : error_(std::move(of)) {}

    [[nodiscard]] const char *what() const noexcept override { return error_.message(); }

    [[nodiscard]] const sprag::error &error() const noexcept { return error_; }

  private:
    sprag::error error_;
};

#endif

/*
 * RESULTS
 */

namespace detail {
struct access;
}

// A T, or an error.
template <class T> class [[nodiscard]] result {
  public:
    using value_type = T;

    result(T value) : value_(std::move(value)) {}
    result(sprag::error of) noexcept : error_(std::move(of)) {}

    // Whether there is a value.
    [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return value_.has_value(); }

    // The value; to be asked only if there is one.
    [[nodiscard]] T &operator*() & noexcept { return *value_; }
    [[nodiscard]] const T &operator*() const & noexcept { return *value_; }
    [[nodiscard]] T &&operator*() && noexcept { return *std::move(value_); }
    [[nodiscard]] T *operator->() noexcept { return &*value_; }
    [[nodiscard]] const T *operator->() const noexcept { return &*value_; }

    // The error; to be asked only if there is no value.
    [[nodiscard]] const sprag::error &error() const noexcept { return *error_; }

#ifdef __cpp_exceptions
    // The value; throws sprag::exception if there is none.
    [[nodiscard]] T &value() & { return checked(), *value_; }
    [[nodiscard]] const T &value() const & { return checked(), *value_; }
    [[nodiscard]] T &&value() && { return checked(), *std::move(value_); }
#endif

  private:
    friend struct detail::access;

    // Not defaulted: result<T>() would set every byte to zero first, which is most of what a check costs.
    result() noexcept {}

#ifdef __cpp_exceptions
    void checked() const {
        if (!value_)
            throw exception(*error_);
    }
#endif

    std::optional<T> value_;
    std::optional<sprag::error> error_;
};

// Nothing, or an error.
template <> class [[nodiscard]] result<void> {
  public:
    using value_type = void;

    result() noexcept = default;
    result(sprag::error of) noexcept : error_(std::move(of)) {}

    // Whether it is done.
    [[nodiscard]] bool has_value() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return !error_; }

    // The error; to be asked only if there is one.
    [[nodiscard]] const sprag::error &error() const noexcept { return *error_; }

#ifdef __cpp_exceptions
    // Throws sprag::exception if there is an error.
    void value() const {
        if (error_)
            throw exception(*error_);
    }
#endif

  private:
    std::optional<sprag::error> error_;
};

/*
 * DURATIONS
 */

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

/*
 * What the nouns below are made with.
 */

namespace detail {

// Fills in results where they are, so that a hold is never moved on its way out.
struct access {
    template <class T> static result<T> unset() noexcept { return result<T>(); }
    template <class T, class... Args> static T &emplace(result<T> &in, Args &&...args) {
        return in.value_.emplace(std::forward<Args>(args)...);
    }
    template <class T> static void fail(result<T> &in, error of) {
        in.value_.reset();
        in.error_.emplace(std::move(of));
    }
};

// The error of a duration that the call cannot take.
inline error refused(const char *argument, const char *fault) {
    return {SPRAG_ERROR_OUT_OF_RANGE,
            std::string(argument) + ' ' + fault + "; it must be less than 2^64 - 1 nanoseconds, and not negative",
            argument};
}

// The error of a 0 that C would take for a default.
inline error zero(const char *argument) {
    return {SPRAG_ERROR_OUT_OF_RANGE, std::string(argument) + " is 0; it must be more", argument};
}

// A text with a zero byte at its end; an error if it has another one.
inline result<std::string> text(std::string_view of, const char *argument) {
    if (of.find('\0') != std::string_view::npos)
        return error(SPRAG_ERROR_OUT_OF_RANGE, std::string(argument) + " has a zero byte in it", argument);
    return std::string(of);
}

// What a call without anything to give came to. The failure is taken by reference, since the call that writes it
// is the other argument.
inline result<void> done(sprag_status status, sprag_error *const &failure) {
    if (status < 0)
        return error(status, failure);
    return {};
}

// Whether what a call asked for was had. As above.
inline result<bool> had(sprag_status status, sprag_error *const &failure) {
    if (status < 0)
        return error(status, failure);
    return status == SPRAG_OK;
}

// Time as C tells it; none if it never ends, or is longer than <chrono> counts.
inline std::optional<std::chrono::nanoseconds> time_of(std::uint64_t ns) noexcept {
    if (ns > static_cast<std::uint64_t>(INT64_MAX))
        return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
}

// What a call writes on success. It is filled in where it is, so that a hold is never moved on its way out.
template <class T, class Call> result<T> given(Call &&call) {
    auto of = access::unset<T>();
    T &into = access::emplace(of);
    sprag_error *failure = nullptr;
    const sprag_status status = call(into, &failure);
    if (status < 0)
        access::fail(of, error(status, failure));
    return of;
}

// The same; none if the call came to another ordinary outcome than SPRAG_OK.
template <class T, class Call> result<std::optional<T>> given_if_any(Call &&call) {
    auto of = access::unset<std::optional<T>>();
    std::optional<T> &into = access::emplace(of, std::in_place);
    sprag_error *failure = nullptr;
    const sprag_status status = call(*into, &failure);
    if (status < 0)
        access::fail(of, error(status, failure));
    else if (status != SPRAG_OK)
        into.reset();
    return of;
}

// Makes a call that tells a name or a text of at most Max bytes into one that gives a string.
template <std::size_t Max, class Tell> auto telling(Tell tell) {
    return [tell](std::string &into, sprag_error **failure) {
        char text[Max];
        std::size_t size = 0;
        const sprag_status status = tell(text, Max, &size, failure);
        if (status == SPRAG_OK)
            into.assign(text, size < Max ? size : Max);
        return status;
    };
}

template <class Tell> result<std::string> name(Tell tell) {
    return given<std::string>(telling<SPRAG_NAME_BYTES_MAX>(tell));
}
template <class Tell> result<std::string> limit(Tell tell) {
    return given<std::string>(telling<SPRAG_LIMIT_BYTES_MAX>(tell));
}
template <class Tell> result<std::optional<std::string>> limit_if_any(Tell tell) {
    return given_if_any<std::string>(telling<SPRAG_LIMIT_BYTES_MAX>(tell));
}

// A handle of the C library's, closed when it is destroyed.
template <class Raw, void (*Close)(Raw *)> class handle {
  public:
    handle() noexcept = default;

    // Takes over what a C call opened.
    explicit handle(Raw *raw) noexcept : raw_(raw) {}

    // The C library's pointer, still owned by this; NULL if this was moved from.
    [[nodiscard]] Raw *get() const noexcept { return raw_.get(); }

    // Whether there is anything behind it.
    explicit operator bool() const noexcept { return raw_ != nullptr; }

  private:
    struct closed {
        void operator()(Raw *raw) const noexcept { Close(raw); }
    };

    std::unique_ptr<Raw, closed> raw_;
};

// Makes an open call of the C library's into one that gives a handle.
template <class T, class Open> auto opening(Open opens) {
    return [opens](T &into, sprag_error **failure) {
        auto *raw = into.get();
        const sprag_status status = opens(&raw, failure);
        into = T(raw);
        return status;
    };
}

template <class T, class Open> result<T> opened(Open opens) { return given<T>(opening<T>(opens)); }
template <class T, class Open> result<std::optional<T>> found(Open opens) {
    return given_if_any<T>(opening<T>(opens));
}

// Opens what has a lease that was given: 0 is none, though C takes it for the default.
template <class Open> auto leased(duration ttl, Open &&opens) -> decltype(opens(std::uint64_t{})) {
    if (ttl.fault())
        return refused("ttl", ttl.fault());
    if (ttl.ns() == 0)
        return zero("ttl");
    return opens(ttl.ns());
}

// A callable that the library calls back. Nothing may unwind through the library, so what it throws is kept until
// the call has returned: see rethrow().
template <class Call> class called_back {
  public:
    explicit called_back(Call &call) noexcept : call_(call) {}

    // What the callable returns; otherwise if it throws. True if it returns nothing.
    template <class... Args> bool operator()(bool otherwise, Args &&...args) noexcept {
#ifdef __cpp_exceptions
        try {
            return called(std::forward<Args>(args)...);
        } catch (...) {
            thrown_ = std::current_exception();
            return otherwise;
        }
#else
        static_cast<void>(otherwise);
        return called(std::forward<Args>(args)...);
#endif
    }

    void rethrow() const {
#ifdef __cpp_exceptions
        if (thrown_)
            std::rethrow_exception(thrown_);
#endif
    }

  private:
    template <class... Args> bool called(Args &&...args) {
        if constexpr (std::is_void_v<std::invoke_result_t<Call &, Args...>>) {
            call_(std::forward<Args>(args)...);
            return true;
        } else {
            return static_cast<bool>(call_(std::forward<Args>(args)...));
        }
    }

    Call &call_;
#ifdef __cpp_exceptions
    std::exception_ptr thrown_;
#endif
};

// Makes a call of the C library's that visits one thing after another: each(function, context, failure). The
// visitor is given a const Info &, and says false to see no more; one that returns nothing sees all.
template <class Info, class Visit, class Each>
sprag_status visited(Visit &visit, Each &&each, sprag_error *&failure) {
    called_back<Visit> back(visit);
    const sprag_status status =
        each([](const Info *info,
                void *of) noexcept -> bool { return (*static_cast<called_back<Visit> *>(of))(false, *info); },
             static_cast<void *>(&back), &failure);
    if (status >= 0)
        back.rethrow();
    return status;
}

} // namespace detail

/*
 * NAMES AND KEYS
 *
 * A name or a key is a std::string_view: 1 to 1,024 bytes, which may hold anything. Several are a list<bytes>.
 */

// One of several names or keys. Those of another container: std::vector<sprag::bytes>(names.begin(), names.end()).
struct bytes : sprag_bytes {
    template <class Text, class = std::enable_if_t<std::is_convertible_v<const Text &, std::string_view>>>
    bytes(const Text &text) noexcept : bytes(std::string_view(text), 0) {}

  private:
    bytes(std::string_view text, int) noexcept : sprag_bytes{text.data(), text.size()} {}
};

// Several values that a call reads: braces around them, or a container that has them one after another
// (std::vector, std::array, std::span).
template <class T> class list {
  public:
    list(std::initializer_list<T> of) noexcept : list(of.begin(), of.size()) {}

    template <class Container, class = std::enable_if_t<std::is_convertible_v<
                                   decltype(std::declval<const Container &>().data()), const T *>>>
    list(const Container &of) noexcept : list(of.data(), of.size()) {}

    list(const T *first, std::size_t count) noexcept : data_(first), size_(count) {}

    [[nodiscard]] const T *data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    const T *data_;
    std::size_t size_;
};

// The bytes that the library tells, as in sprag_lock_info::name. They live as long as those.
[[nodiscard]] inline std::string_view view(const sprag_bytes &of) noexcept {
    return {static_cast<const char *>(of.data), of.len};
}

// The bytes of a number, as a name or a key: the cheapest there is.
template <class Number> [[nodiscard]] std::string_view bytes_of(const Number &number) noexcept {
    static_assert(std::has_unique_object_representations_v<Number>, "not every byte of it is part of its value");
    return {reinterpret_cast<const char *>(&number), sizeof number};
}

/*
 * A CLOCK FOR TESTS
 */

// A clock that stands still until it is moved, for space_options::clock.
class manual_clock : public detail::handle<sprag_clock, sprag_clock_close> {
  public:
    using handle::handle;

    // A clock that shows 2026-01-01T00:00:00Z.
    static result<manual_clock> make() { return detail::opened<manual_clock>(sprag_clock_open); }

    // Moves it forward.
    result<void> advance(duration by) const {
        if (by.fault())
            return detail::refused("by", by.fault());
        if (by.ns() == SPRAG_FOREVER)
            return detail::refused("by", "has no end");
        sprag_error *failure = nullptr;
        return detail::done(sprag_clock_advance(get(), by.ns(), &failure), failure);
    }

    // What it shows.
    [[nodiscard]] std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>
    now() const noexcept {
        const auto ns = static_cast<std::int64_t>(sprag_clock_unix_ns(get()));
        return std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>(
            std::chrono::nanoseconds(ns));
    }
};

/*
 * OWNERS
 */

// Who holds, when locks are to be re-entrant and deadlocks found: see space::owner().
class owner : public detail::handle<sprag_owner, sprag_owner_close> {
  public:
    using handle::handle;
};

/*
 * HOLDS
 */

// What was acquired, of a lock or of a semaphore. Released when it is destroyed, whatever comes of that: say
// release() to be told. One that is default-constructed, moved from, released or detached is empty.
class hold {
  public:
    hold() noexcept { clear(); }

    hold(hold &&other) noexcept { take(other); }

    // Releases what this held before.
    hold &operator=(hold &&other) noexcept {
        if (this != &other) {
            end();
            take(other);
        }
        return *this;
    }

    hold(const hold &) = delete;
    hold &operator=(const hold &) = delete;

    ~hold() { end(); }

    // Whether it is not empty; says nothing about its lease.
    explicit operator bool() const noexcept { return raw_.private_state != 0; }

    // The fencing token: higher than that of every earlier hold of the lock, and below 2^53. 0 if it is empty.
    [[nodiscard]] std::uint64_t token() const noexcept { return raw_.token; }

    // The tokens of a hold of several locks, in the order in which those were named.
    [[nodiscard]] result<std::vector<std::uint64_t>> tokens() const {
        return detail::given<std::vector<std::uint64_t>>(
            [&](std::vector<std::uint64_t> &into, sprag_error **failure) {
                std::size_t count = 0;
                const sprag_status status = sprag_hold_tokens(&raw_, nullptr, 0, &count, failure);
                if (status < 0)
                    return status;
                into.resize(count);
                return sprag_hold_tokens(&raw_, into.data(), count, &count, failure);
            });
    }

    // Whether the lease still runs, by this process's own clock.
    [[nodiscard]] bool is_valid() const noexcept { return sprag_hold_is_valid(&raw_); }

    // Whether it is still held under its token, by the shared word: notices a broken lock too.
    [[nodiscard]] bool is_held() const noexcept { return sprag_hold_is_held(&raw_); }

    // Whether others may hold the lock beside this one.
    [[nodiscard]] bool is_shared() const noexcept { return sprag_hold_is_shared(&raw_); }

    // What is left of the lease; 0 once it is over.
    [[nodiscard]] std::chrono::nanoseconds lease_left() const noexcept {
        return detail::time_of(sprag_hold_lease_left_ns(&raw_)).value_or(std::chrono::nanoseconds::max());
    }

    // Releases it, and leaves it empty also where that fails: SPRAG_ERROR_LOST if somebody else has taken it
    // since.
    result<void> release() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_release(&raw_, &failure), failure);
    }

    // Starts the lease anew, from now, with the length it had.
    result<void> renew() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_renew(&raw_, &failure), failure);
    }

    // The same with another length: 1 ms to 366 days.
    result<void> extend(duration ttl) {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_extend(&raw_, ttl.ns(), &failure), failure);
    }

    // Has the lease renewed in the background, by a thread of the library's, until the hold is released or lost,
    // or at_most is over.
    result<void> keep_alive(duration at_most = std::chrono::hours(24)) {
        return keep_alive(at_most, nullptr, nullptr, nullptr);
    }

    // The same; on_lost(token) is called once if the hold is lost, in that thread, which renews all holds of the
    // space: it must neither block nor throw. It is destroyed once it can't be called any more, in whichever
    // thread.
    template <class OnLost, class = std::enable_if_t<std::is_invocable_v<OnLost &, std::uint64_t>>>
    result<void> keep_alive(OnLost on_lost, duration at_most = std::chrono::hours(24)) {
        auto context = std::make_unique<OnLost>(std::move(on_lost));
        auto kept = keep_alive(
            at_most, [](std::uint64_t token, void *of) noexcept { (*static_cast<OnLost *>(of))(token); },
            context.get(), [](void *of) noexcept { delete static_cast<OnLost *>(of); });
        if (kept)
            static_cast<void>(context.release()); // The library's now.
        return kept;
    }

    // Takes alone what this hold shares with others, waiting for them to release it; has a new, higher token then.
    result<void> upgrade() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_upgrade(&raw_, SPRAG_FOREVER, &failure), failure);
    }

    // The same for at most timeout; false if others share it still, as this hold does.
    result<bool> upgrade_for(duration timeout) {
        if (timeout.fault())
            return detail::refused("timeout", timeout.fault());
        sprag_error *failure = nullptr;
        return detail::had(sprag_hold_upgrade(&raw_, timeout.ns(), &failure), failure);
    }

    // Goes on sharing the lock with others instead of having it alone.
    result<void> downgrade() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_downgrade(&raw_, &failure), failure);
    }

    // Lets what is held live on without this process, until its lease ends or somebody releases it by the token
    // that is given. Leaves the hold empty.
    result<std::uint64_t> detach() {
        return detail::given<std::uint64_t>(
            [&](std::uint64_t &into, sprag_error **failure) { return sprag_hold_detach(&raw_, &into, failure); });
    }

    // The C library's value, still owned by this.
    [[nodiscard]] sprag_hold *get() noexcept { return &raw_; }
    [[nodiscard]] const sprag_hold *get() const noexcept { return &raw_; }

  private:
    // The words need not be set: the state says that they are not.
    void clear() noexcept {
        raw_.token = 0;
        raw_.private_state = 0;
    }

    void take(hold &other) noexcept {
        if (other) {
            raw_ = other.raw_;
            other.clear();
        } else {
            clear();
        }
    }

    void end() noexcept {
        if (*this)
            sprag_hold_release(&raw_, nullptr);
    }

    result<void> keep_alive(duration at_most, void (*on_lost)(std::uint64_t, void *), void *context,
                            void (*free_context)(void *)) {
        if (at_most.fault())
            return detail::refused("at_most", at_most.fault());
        if (at_most.ns() == 0)
            return detail::zero("at_most");
        const sprag_keep_alive_options options{sizeof options, at_most.ns(), on_lost, context, free_context};
        sprag_error *failure = nullptr;
        return detail::done(sprag_hold_keep_alive(&raw_, &options, &failure), failure);
    }

    sprag_hold raw_;
};

/*
 * LOCKS
 */

// Whether others may have it too.
enum class mode : std::uint32_t {
    // Nobody else has the lock meanwhile.
    exclusive = SPRAG_EXCLUSIVE,
    // Beside others who share it; only the lock of a name.
    shared = SPRAG_SHARED,
};

// How a lock is acquired.
struct acquire_options {
    // For whom; NULL for nobody but the hold itself. Of the lock's space, and need not live on.
    const sprag::owner *owner = nullptr;
    sprag::mode mode = sprag::mode::exclusive;
};

// The lock of a name, of several, of a partition or of the table: see space::lock() and what follows it. Not
// re-entrant but for an owner.
class lock : public detail::handle<sprag_lock, sprag_lock_close> {
  public:
    using handle::handle;

    // Acquires it, waiting its turn without an end.
    result<hold> acquire() const { return acquire(nullptr); }
    result<hold> acquire(const acquire_options &options) const { return acquire(&options); }

    // Acquires it if it can be had at once.
    result<std::optional<hold>> try_acquire() const { return acquire_within(0, nullptr); }
    result<std::optional<hold>> try_acquire(const acquire_options &options) const {
        return acquire_within(0, &options);
    }

    // Acquires it, waiting its turn for at most timeout; nothing is left behind if it is not had by then.
    result<std::optional<hold>> acquire_for(duration timeout) const { return acquire_for(timeout, nullptr); }
    result<std::optional<hold>> acquire_for(duration timeout, const acquire_options &options) const {
        return acquire_for(timeout, &options);
    }

    // Ends the hold with this token, whoever took it: the other half of hold::detach().
    result<void> release_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_lock_release_token(get(), token, &failure), failure);
    }

    // Starts the lease of the hold with this token anew, with this handle's length.
    result<void> renew_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_lock_renew_token(get(), token, &failure), failure);
    }

    // Takes over the hold with this token from whoever has it.
    result<hold> adopt_token(std::uint64_t token) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return sprag_lock_adopt_token(get(), token, into.get(), failure);
        });
    }

    // Who holds it and who waits for it, changing nothing: visit(const sprag_lock_info &) for each of its locks
    // that has an entry. False if none has, so that nobody holds it.
    template <class Visit> result<bool> peek(Visit &&visit) const {
        sprag_error *failure = nullptr;
        const sprag_status status = detail::visited<sprag_lock_info>(
            visit, [&](auto... by) { return sprag_lock_peek(get(), by...); }, failure);
        return detail::had(status, failure);
    }

    // Takes the lock away from whoever holds it, and notes who did it; the token that was ended, none if it was
    // not held.
    // ("break" is a word of the language.)
    result<std::optional<std::uint64_t>> break_hold() const {
        return detail::given_if_any<std::uint64_t>(
            [&](std::uint64_t &into, sprag_error **failure) { return sprag_lock_break(get(), &into, failure); });
    }

  private:
    sprag_status acquire_into(sprag_hold *into, std::uint64_t timeout_ns, const acquire_options *options,
                              sprag_error **failure) const {
        if (options == nullptr)
            return sprag_lock_acquire(get(), timeout_ns, into, failure);
        sprag_acquire_options with{};
        with.size = sizeof with;
        with.timeout_ns = timeout_ns;
        with.owner = options->owner ? options->owner->get() : nullptr;
        with.mode = static_cast<std::uint32_t>(options->mode);
        return sprag_lock_acquire_with(get(), &with, into, failure);
    }

    result<hold> acquire(const acquire_options *options) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return acquire_into(into.get(), SPRAG_FOREVER, options, failure);
        });
    }

    result<std::optional<hold>> acquire_within(std::uint64_t timeout_ns, const acquire_options *options) const {
        return detail::given_if_any<hold>([&](hold &into, sprag_error **failure) {
            return acquire_into(into.get(), timeout_ns, options, failure);
        });
    }

    result<std::optional<hold>> acquire_for(duration timeout, const acquire_options *options) const {
        if (timeout.fault())
            return detail::refused("timeout", timeout.fault());
        return acquire_within(timeout.ns(), options);
    }
};

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

/*
 * FENCES
 */

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

/*
 * SEMAPHORES
 */

// A number of permits, or what a key of a concurrency limiter can have at once: see space::semaphore() and
// concurrency::key().
class semaphore : public detail::handle<sprag_semaphore, sprag_semaphore_close> {
  public:
    using handle::handle;

    // Acquires so many permits at once, waiting its turn without an end.
    result<hold> acquire(std::uint32_t permits = 1) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return sprag_semaphore_acquire(get(), permits, SPRAG_FOREVER, into.get(), failure);
        });
    }

    // Acquires them if they can be had at once.
    result<std::optional<hold>> try_acquire(std::uint32_t permits = 1) const { return acquire_within(0, permits); }

    // Acquires them, waiting its turn for at most timeout; nothing is left behind if they are not had by then.
    result<std::optional<hold>> acquire_for(duration timeout, std::uint32_t permits = 1) const {
        if (timeout.fault())
            return detail::refused("timeout", timeout.fault());
        return acquire_within(timeout.ns(), permits);
    }

    // Ends the hold with this token, and all its permits, whoever took it: the other half of hold::detach().
    result<void> release_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_semaphore_release_token(get(), token, &failure), failure);
    }

    // Starts the lease of the hold with this token anew, with this handle's length.
    result<void> renew_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_semaphore_renew_token(get(), token, &failure), failure);
    }

    // Takes over the hold with this token, and all its permits, from whoever has it.
    result<hold> adopt_token(std::uint64_t token) const {
        return detail::given<hold>([&](hold &into, sprag_error **failure) {
            return sprag_semaphore_adopt_token(get(), token, into.get(), failure);
        });
    }

    // Who has permits and who waits for some, changing nothing: visit(const sprag_semaphore_info &), once.
    template <class Visit> result<void> peek(Visit &&visit) const {
        sprag_error *failure = nullptr;
        const sprag_status status = detail::visited<sprag_semaphore_info>(
            visit, [&](auto... by) { return sprag_semaphore_peek(get(), by...); }, failure);
        return detail::done(status, failure);
    }

    // How many permits there are in all.
    [[nodiscard]] std::uint32_t permits() const noexcept { return sprag_semaphore_permits(get()); }

    // Its name; of a limiter's key the key.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_semaphore_name(get(), text, max, size, failure);
        });
    }

  private:
    result<std::optional<hold>> acquire_within(std::uint64_t timeout_ns, std::uint32_t permits) const {
        return detail::given_if_any<hold>([&](hold &into, sprag_error **failure) {
            return sprag_semaphore_acquire(get(), permits, timeout_ns, into.get(), failure);
        });
    }
};

/*
 * LIMITERS
 */

// What a limiter answered, and the key's state right after it. Default-constructed, it is empty: nothing was
// allowed.
class decision {
  public:
    decision() noexcept { raw_.private_state = 0; }

    // It stands for what was taken, so there is one of it.
    decision(decision &&other) noexcept { take(other); }
    decision &operator=(decision &&other) noexcept {
        if (this != &other)
            take(other);
        return *this;
    }
    decision(const decision &) = delete;
    decision &operator=(const decision &) = delete;
    ~decision() = default;

    // Whether the cost was admitted.
    [[nodiscard]] bool is_allowed() const noexcept { return sprag_decision_is_allowed(&raw_); }
    explicit operator bool() const noexcept { return is_allowed(); }

    // The most that can be admitted at once: the burst, or a window's count.
    [[nodiscard]] std::uint64_t limit() const noexcept { return sprag_decision_limit(&raw_); }

    // The greatest cost that another check at the same instant would be allowed.
    [[nodiscard]] std::uint64_t remaining() const noexcept { return sprag_decision_remaining(&raw_); }

    // How long to wait until the same cost would be allowed, if nobody else takes any: 0 if it was, none if it
    // never can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after() const noexcept {
        return detail::time_of(sprag_decision_retry_after_ns(&raw_));
    }

    // How long until a further check of another cost would be allowed, if nobody else takes any: 0 if it would be
    // at once, none if it never can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after_for(std::uint64_t cost) const noexcept {
        return detail::time_of(sprag_decision_retry_after_for_ns(&raw_, cost));
    }

    // How long until nothing is used any more, if nobody takes any; none for never.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> reset_after() const noexcept {
        return detail::time_of(sprag_decision_reset_after_ns(&raw_));
    }

    // How long to wait, from the call on, before acting on it: 0, but for a reservation.
    [[nodiscard]] std::chrono::nanoseconds act_after() const noexcept {
        return detail::time_of(sprag_decision_act_after_ns(&raw_)).value_or(std::chrono::nanoseconds::max());
    }

    // Whether the region had no room for the key, so that a bucket shared by all such keys decided.
    [[nodiscard]] bool is_overflow() const noexcept { return sprag_decision_is_overflow(&raw_); }

    // The C library's value, still owned by this.
    [[nodiscard]] sprag_decision *get() noexcept { return &raw_; }
    [[nodiscard]] const sprag_decision *get() const noexcept { return &raw_; }

  private:
    void take(decision &other) noexcept {
        if (other.raw_.private_state != 0)
            raw_ = other.raw_;
        else
            raw_.private_state = 0;
        other.raw_.private_state = 0;
    }

    sprag_decision raw_;
};

static_assert(sizeof(decision) == sizeof(sprag_decision), "an array of the one is an array of the other");

// Why so much was given back.
enum class refund_kind : std::uint32_t {
    // Some was.
    given = SPRAG_REFUND_GIVEN,
    // Nothing was: nothing was taken, or none of it counts any more.
    over = SPRAG_REFUND_OVER,
    // Nothing was, since it is not known how much of it still counts.
    unknown = SPRAG_REFUND_VOID,
};

// What was given back, in units of cost with their fraction.
struct refund {
    refund_kind kind;
    double amount;
};

// A rate over keys: see space::limiter(). Open it once and keep it.
class limiter : public detail::handle<sprag_limiter, sprag_limiter_close> {
  public:
    using handle::handle;

    // Checks a cost of a key, and takes it if it is allowed.
    result<decision> check(std::string_view key, std::uint64_t cost = 1) const {
        return detail::given<decision>([&](decision &into, sprag_error **failure) {
            return sprag_limiter_check(get(), key.data(), key.size(), cost, into.get(), failure);
        });
    }

    // The same, and only tells whether it was: the quickest.
    result<bool> allow(std::string_view key, std::uint64_t cost = 1) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_limiter_check(get(), key.data(), key.size(), cost, nullptr, &failure), failure);
    }

    // A key's state, changing nothing: the decision of a check of cost 0.
    result<decision> peek(std::string_view key) const {
        return detail::given<decision>([&](decision &into, sprag_error **failure) {
            return sprag_limiter_peek(get(), key.data(), key.size(), into.get(), failure);
        });
    }

    // Checks many keys, each by itself and in order: quicker than one by one where keys are many. The decisions
    // are in the order of the keys.
    result<std::vector<decision>> check_batch(list<bytes> keys, std::uint64_t cost = 1) const {
        return detail::given<std::vector<decision>>([&](std::vector<decision> &into, sprag_error **failure) {
            into.resize(keys.size());
            return sprag_limiter_check_batch(get(), keys.data(), keys.size(), cost, nullptr,
                                             into.empty() ? nullptr : into.front().get(), nullptr, failure);
        });
    }

    // The same, the quickest way: how many were allowed. Whether each was is written to the array allowed, which
    // has an element for each key, or may be NULL.
    result<std::size_t> allow_batch(list<bytes> keys, bool *allowed, std::uint64_t cost = 1) const {
        return detail::given<std::size_t>([&](std::size_t &into, sprag_error **failure) {
            return sprag_limiter_check_batch(get(), keys.data(), keys.size(), cost, allowed, nullptr, &into,
                                             failure);
        });
    }

    // Takes a cost of a key now, to be acted on after decision::act_after(), which is at most wait_max; else it is
    // not allowed, and nothing is taken.
    result<decision> reserve(std::string_view key, std::uint64_t cost, duration wait_max) const {
        if (wait_max.fault())
            return detail::refused("wait_max", wait_max.fault());
        return detail::given<decision>([&](decision &into, sprag_error **failure) {
            return sprag_limiter_reserve(get(), key.data(), key.size(), cost, wait_max.ns(), into.get(), failure);
        });
    }

    // Gives back what a check or a reservation took, for what did not take place after all:
    // refund(std::move(decision)).
    result<sprag::refund> refund(decision of) const {
        return detail::given<sprag::refund>([&](sprag::refund &into, sprag_error **failure) {
            std::uint32_t kind = 0;
            const sprag_status status = sprag_limiter_refund(get(), of.get(), &kind, &into.amount, failure);
            into.kind = static_cast<refund_kind>(kind);
            return status;
        });
    }

    // Gives a key a limit of its own, in place of any that it was given before.
    result<void> set_override(std::string_view key, std::string_view limit) const {
        const auto checked = detail::text(limit, "limit");
        if (!checked)
            return checked.error();
        sprag_error *failure = nullptr;
        return detail::done(sprag_limiter_set_override(get(), key.data(), key.size(), checked->c_str(), &failure),
                            failure);
    }

    // Takes a key's override away; false if it had none.
    result<bool> clear_override(std::string_view key) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_limiter_clear_override(get(), key.data(), key.size(), &failure), failure);
    }

    // The limit that a key has instead of the limiter's, as text; none if it has none.
    result<std::optional<std::string>> override_of(std::string_view key) const {
        return detail::limit_if_any([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_limiter_override_of(get(), key.data(), key.size(), text, max, size, failure);
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_limiter_name(get(), text, max, size, failure);
        });
    }

    // The limit that it was opened with, as text.
    result<std::string> limit() const {
        return detail::limit([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_limiter_limit(get(), text, max, size, failure);
        });
    }
};

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

/*
 * JOINT LIMITERS
 */

// What a joint limiter answered, and the key's state right after it. May be copied; must not be asked once its
// limiter is destroyed.
class joint_decision {
  public:
    // An empty one: nothing was allowed.
    joint_decision() noexcept : raw_{} {}

    // Whether the cost was admitted, by every limit.
    [[nodiscard]] bool is_allowed() const noexcept { return sprag_joint_decision_is_allowed(&raw_); }
    explicit operator bool() const noexcept { return is_allowed(); }

    // The place, from 0, of the limit that refused longest; none if none refused.
    [[nodiscard]] std::optional<std::size_t> refused_by() const noexcept {
        std::size_t place = 0;
        return sprag_joint_decision_refused_by(&raw_, &place) ? std::optional(place) : std::nullopt;
    }

    // What the limit at a place, from 0, says for itself; none past the last.
    [[nodiscard]] std::optional<decision> of(std::size_t place) const noexcept {
        std::optional<decision> of(std::in_place);
        if (!sprag_joint_decision_of(&raw_, place, of->get()))
            of.reset();
        return of;
    }

    // The most that can be admitted at once: the least of the limits'.
    [[nodiscard]] std::uint64_t limit() const noexcept { return sprag_joint_decision_limit(&raw_); }

    // The greatest cost that another check at the same instant would be allowed.
    [[nodiscard]] std::uint64_t remaining() const noexcept { return sprag_joint_decision_remaining(&raw_); }

    // How long to wait until the same cost would be allowed, if nobody else takes any: 0 if it was, none if it
    // never can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after() const noexcept {
        return detail::time_of(sprag_joint_decision_retry_after_ns(&raw_));
    }

    // How long until a further check of another cost would be allowed: 0 if it would be at once, none if it never
    // can be.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after_for(std::uint64_t cost) const noexcept {
        return detail::time_of(sprag_joint_decision_retry_after_for_ns(&raw_, cost));
    }

    // How long until nothing is used any more under any limit; none for never.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> reset_after() const noexcept {
        return detail::time_of(sprag_joint_decision_reset_after_ns(&raw_));
    }

    // Whether the region had no room for the key, so that an entry shared by all such keys decided.
    [[nodiscard]] bool is_overflow() const noexcept { return sprag_joint_decision_is_overflow(&raw_); }

    // The C library's value.
    [[nodiscard]] sprag_joint_decision *get() noexcept { return &raw_; }
    [[nodiscard]] const sprag_joint_decision *get() const noexcept { return &raw_; }

  private:
    sprag_joint_decision raw_;
};

// Several limits on each key, declared together: see space::joint_limiter().
class joint_limiter : public detail::handle<sprag_joint_limiter, sprag_joint_limiter_close> {
  public:
    using handle::handle;

    // Checks a cost of a key, at most 2^26 - 1, against all limits, and takes it from all if all allow it.
    result<joint_decision> check(std::string_view key, std::uint64_t cost = 1) const {
        return detail::given<joint_decision>([&](joint_decision &into, sprag_error **failure) {
            return sprag_joint_limiter_check(get(), key.data(), key.size(), cost, into.get(), failure);
        });
    }

    // The same, and only tells whether it was: the quickest.
    result<bool> allow(std::string_view key, std::uint64_t cost = 1) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_joint_limiter_check(get(), key.data(), key.size(), cost, nullptr, &failure),
                           failure);
    }

    // A key's state, changing nothing: the decision of a check of cost 0.
    result<joint_decision> peek(std::string_view key) const {
        return detail::given<joint_decision>([&](joint_decision &into, sprag_error **failure) {
            return sprag_joint_limiter_peek(get(), key.data(), key.size(), into.get(), failure);
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_joint_limiter_name(get(), text, max, size, failure);
        });
    }

    // How many limits it has.
    [[nodiscard]] std::size_t limit_count() const noexcept { return sprag_joint_limiter_limit_count(get()); }

    // The limit at a place, from 0, as text; none past the last.
    result<std::optional<std::string>> limit(std::size_t place) const {
        return detail::limit_if_any([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_joint_limiter_limit(get(), place, text, max, size, failure);
        });
    }
};

/*
 * CONCURRENCY LIMITERS
 */

// At most so many at once of each key: see space::concurrency().
class concurrency : public detail::handle<sprag_concurrency, sprag_concurrency_close> {
  public:
    using handle::handle;

    // What a key can have at once, as a semaphore. Its holds are leased for ttl, 1 ms to 366 days; for 30 s if
    // none is given.
    result<semaphore> key(std::string_view key) const { return key_for(key, 0); }
    result<semaphore> key(std::string_view key, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return key_for(key, ttl_ns); });
    }

    // How many each key can have at once now.
    result<std::uint32_t> permits() const {
        return detail::given<std::uint32_t>([&](std::uint32_t &into, sprag_error **failure) {
            return sprag_concurrency_permits(get(), &into, failure);
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_concurrency_name(get(), text, max, size, failure);
        });
    }

  private:
    result<semaphore> key_for(std::string_view key, std::uint64_t ttl_ns) const {
        return detail::opened<semaphore>([&](sprag_semaphore **raw, sprag_error **failure) {
            return sprag_concurrency_key(get(), key.data(), key.size(), ttl_ns, raw, failure);
        });
    }
};

/*
 * COUNTERS
 */

// What came of a change that may not be made.
struct change {
    // Whether it was made.
    bool is_made;
    // A number that the call says more of.
    std::int64_t number;

    explicit operator bool() const noexcept { return is_made; }
};

// A signed 64-bit number, 0 until somebody changes it: see space::counter().
class counter : public detail::handle<sprag_counter, sprag_counter_close> {
  public:
    using handle::handle;

    // Adds delta, which may be negative; the sum.
    result<std::int64_t> add(std::int64_t delta) const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_counter_add(get(), delta, &into, failure);
        });
    }

    // Adds delta if the sum is at least min and at most max; change::number is the sum then, else what the counter
    // is at.
    result<change> add_within(std::int64_t delta, std::int64_t min, std::int64_t max) const {
        return detail::given<change>([&](change &into, sprag_error **failure) {
            const sprag_status status = sprag_counter_add_within(get(), delta, min, max, &into.number, failure);
            into.is_made = status == SPRAG_OK;
            return status;
        });
    }

    // The number; nothing is created by looking.
    result<std::int64_t> number() const {
        return detail::given<std::int64_t>(
            [&](std::int64_t &into, sprag_error **failure) { return sprag_counter_get(get(), &into, failure); });
    }

    // Sets the number; what it was.
    result<std::int64_t> swap(std::int64_t number) const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_counter_swap(get(), number, &into, failure);
        });
    }

    // Sets the number if it is the expected one; change::number is what it was.
    result<change> compare_exchange(std::int64_t expected, std::int64_t number) const {
        return detail::given<change>([&](change &into, sprag_error **failure) {
            const sprag_status status =
                sprag_counter_compare_exchange(get(), expected, number, &into.number, failure);
            into.is_made = status == SPRAG_OK;
            return status;
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_counter_name(get(), text, max, size, failure);
        });
    }
};

// The same counter in several parts, for many who add at once: see space::striped_counter().
class striped_counter : public detail::handle<sprag_striped_counter, sprag_striped_counter_close> {
  public:
    using handle::handle;

    // Adds delta, which may be negative. Nobody knows the sum without looking at all parts.
    result<void> add(std::int64_t delta) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_striped_counter_add(get(), delta, &failure), failure);
    }

    // Adds delta if the sum is at least min and at most max; false if not, and what the counter is at is written
    // to number then, unless that is NULL.
    result<bool> add_within(std::int64_t delta, std::int64_t min, std::int64_t max,
                            std::int64_t *number = nullptr) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_striped_counter_add_within(get(), delta, min, max, number, &failure), failure);
    }

    // The number; nothing is created by looking.
    result<std::int64_t> number() const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_striped_counter_get(get(), &into, failure);
        });
    }

    // Sets the number; what it was.
    result<std::int64_t> swap(std::int64_t number) const {
        return detail::given<std::int64_t>([&](std::int64_t &into, sprag_error **failure) {
            return sprag_striped_counter_swap(get(), number, &into, failure);
        });
    }

    // Sets the number if it is the expected one; change::number is what it was.
    result<change> compare_exchange(std::int64_t expected, std::int64_t number) const {
        return detail::given<change>([&](change &into, sprag_error **failure) {
            const sprag_status status =
                sprag_striped_counter_compare_exchange(get(), expected, number, &into.number, failure);
            into.is_made = status == SPRAG_OK;
            return status;
        });
    }

    // Its name.
    result<std::string> name() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_striped_counter_name(get(), text, max, size, failure);
        });
    }
};

/*
 * IDEMPOTENCY KEYS
 */

// An attempt of one's own at an idempotency key. Destroyed unfinished, it frees the key at once, and the next one
// is told. One that is default-constructed, moved from, finished, abandoned or detached is empty.
class attempt {
  public:
    attempt() noexcept { clear(); }

    attempt(attempt &&other) noexcept { take(other); }

    // Ends unfinished what this had before.
    attempt &operator=(attempt &&other) noexcept {
        if (this != &other) {
            end();
            take(other);
        }
        return *this;
    }

    attempt(const attempt &) = delete;
    attempt &operator=(const attempt &) = delete;

    ~attempt() { end(); }

    // Whether it is not empty; says nothing about its deadline.
    explicit operator bool() const noexcept { return raw_.private_state != 0; }

    // Higher than that of every earlier attempt at the key, and below 2^53, for a fence. 0 if it is empty.
    [[nodiscard]] std::uint64_t token() const noexcept { return raw_.token; }

    // Whether an attempt before this one ended unfinished, so that its work may have been done in part.
    [[nodiscard]] bool is_after_unfinished() const noexcept { return sprag_attempt_is_after_unfinished(&raw_); }

    // Whether the deadline is still to come, by this process's own clock.
    [[nodiscard]] bool is_valid() const noexcept { return sprag_attempt_is_valid(&raw_); }

    // Whether the key is still this attempt's, by the shared word.
    [[nodiscard]] bool is_held() const noexcept { return sprag_attempt_is_held(&raw_); }

    // What is left until the deadline; 0 once it has passed.
    [[nodiscard]] std::chrono::nanoseconds deadline_left() const noexcept {
        return detail::time_of(sprag_attempt_deadline_left_ns(&raw_)).value_or(std::chrono::nanoseconds::max());
    }

    // Stores the result, 0 to 1,024 bytes, for keep_for, 1 ms to 366 days: from then on everybody is given it. The
    // attempt is empty then, and after SPRAG_ERROR_LOST; with any other error it goes on.
    result<void> finish(std::string_view result_bytes, duration keep_for) {
        if (keep_for.fault())
            return detail::refused("keep_for", keep_for.fault());
        sprag_error *failure = nullptr;
        return detail::done(
            sprag_attempt_finish(&raw_, result_bytes.data(), result_bytes.size(), keep_for.ns(), &failure),
            failure);
    }

    // Frees the key at once, as if this attempt had not been. Leaves it empty.
    result<void> abandon() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_attempt_abandon(&raw_, &failure), failure);
    }

    // Starts the time until the deadline anew, from now, with the length it had.
    result<void> renew() {
        sprag_error *failure = nullptr;
        return detail::done(sprag_attempt_renew(&raw_, &failure), failure);
    }

    // The same with another length: 1 ms to 366 days.
    result<void> extend(duration ttl) {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_attempt_extend(&raw_, ttl.ns(), &failure), failure);
    }

    // Lets it go on without this process, until its deadline, or until somebody ends it by the token that is
    // given. Leaves it empty.
    result<std::uint64_t> detach() {
        return detail::given<std::uint64_t>([&](std::uint64_t &into, sprag_error **failure) {
            return sprag_attempt_detach(&raw_, &into, failure);
        });
    }

    // The C library's value, still owned by this.
    [[nodiscard]] sprag_attempt *get() noexcept { return &raw_; }
    [[nodiscard]] const sprag_attempt *get() const noexcept { return &raw_; }

  private:
    void clear() noexcept {
        raw_.token = 0;
        raw_.private_state = 0;
    }

    void take(attempt &other) noexcept {
        if (other) {
            raw_ = other.raw_;
            other.clear();
        } else {
            clear();
        }
    }

    void end() noexcept {
        if (*this)
            sprag_attempt_close(&raw_);
    }

    sprag_attempt raw_;
};

// How it stands with an idempotency key.
enum class standing {
    // Nobody began, or whoever did abandoned it, or the result is no longer kept.
    none,
    // The caller's own attempt is under way: only once::begin() says so.
    started,
    // Another attempt is under way.
    in_progress,
    // It was done before.
    done,
    // The last attempt ended unfinished.
    unfinished,
};

// What is known of an idempotency key.
struct once_status {
    sprag::standing standing = sprag::standing::none;
    // The caller's own attempt if it was started; else empty.
    sprag::attempt attempt;
    // The result if it is done.
    std::string result;
    // In progress: what is left until the attempt's deadline. Done: for how much longer the result is kept at
    // least.
    std::chrono::nanoseconds left{0};
    // In progress: the owner's process id in its own namespace; 0 if it is not known.
    std::uint32_t holder_pid = 0;
};

// An idempotency key: see space::once().
class once : public detail::handle<sprag_once, sprag_once_close> {
  public:
    using handle::handle;

    // Begins at the key, if it is new or its last attempt is over: it is started, and the caller's for ttl, 1 ms
    // to 366 days. Else it is in progress or done.
    result<once_status> begin(duration ttl) const {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        return standing_by([&](sprag_attempt *attempt, sprag_progress *progress, char *text, std::size_t *size,
                               sprag_error **failure) {
            return sprag_once_begin(get(), ttl.ns(), attempt, progress, text, SPRAG_RESULT_BYTES_MAX, size,
                                    failure);
        });
    }

    // How it stands with the key; creates nothing.
    result<once_status> status() const {
        return standing_by(
            [&](sprag_attempt *, sprag_progress *progress, char *text, std::size_t *size, sprag_error **failure) {
                return sprag_once_status(get(), progress, text, SPRAG_RESULT_BYTES_MAX, size, failure);
            });
    }

    // attempt::finish() by the attempt's token, whoever began it: the other half of attempt::detach().
    result<void> finish_token(std::uint64_t token, std::string_view result_bytes, duration keep_for) const {
        if (keep_for.fault())
            return detail::refused("keep_for", keep_for.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_once_finish_token(get(), token, result_bytes.data(), result_bytes.size(),
                                                    keep_for.ns(), &failure),
                            failure);
    }

    // attempt::abandon() by the attempt's token, whoever began it.
    result<void> abandon_token(std::uint64_t token) const {
        sprag_error *failure = nullptr;
        return detail::done(sprag_once_abandon_token(get(), token, &failure), failure);
    }

    // attempt::extend() by the attempt's token, whoever began it.
    result<void> extend_token(std::uint64_t token, duration ttl) const {
        if (ttl.fault())
            return detail::refused("ttl", ttl.fault());
        sprag_error *failure = nullptr;
        return detail::done(sprag_once_extend_token(get(), token, ttl.ns(), &failure), failure);
    }

    // The key.
    result<std::string> key() const {
        return detail::name([&](auto *text, std::size_t max, std::size_t *size, sprag_error **failure) {
            return sprag_once_key(get(), text, max, size, failure);
        });
    }

  private:
    template <class Ask> static result<once_status> standing_by(Ask &&ask) {
        return detail::given<once_status>([&](once_status &into, sprag_error **failure) {
            char text[SPRAG_RESULT_BYTES_MAX];
            std::size_t size = 0;
            sprag_progress progress{};
            const sprag_status status = ask(into.attempt.get(), &progress, text, &size, failure);
            if (status == SPRAG_OK)
                into.standing = standing::started;
            else if (status == SPRAG_IN_PROGRESS)
                into.standing = standing::in_progress;
            else if (status == SPRAG_DONE)
                into.standing = standing::done;
            else if (status == SPRAG_UNFINISHED)
                into.standing = standing::unfinished;
            if (status == SPRAG_DONE)
                into.result.assign(text, size);
            into.left = detail::time_of(progress.left_ns).value_or(std::chrono::nanoseconds::max());
            into.holder_pid = progress.holder_pid;
            return status;
        });
    }
};

/*
 * SPACES
 */

// Whether what exists by another definition keeps it.
enum class define : std::uint32_t {
    // An error: SPRAG_ERROR_DEFINITION_DIFFERS.
    same = 0,
    // It gets this one; what its keys have used is kept.
    update = SPRAG_UPDATE,
};

// How a space is opened: the fields of sprag_space_options. What is zero has its default.
struct space_options : sprag_space_options {
    space_options() noexcept : sprag_space_options{} { size = sizeof(sprag_space_options); }
};

// A set of named objects, opened by URL. What was opened in it has a share of it, and may outlive this handle.
class space : public detail::handle<sprag_space, sprag_space_close> {
  public:
    using handle::handle;

    // Opens the space at url: "mem:", "shm:NAME" or "shm:/path". Each opening of "mem:" is another space.
    static result<space> open(std::string_view url, const space_options &options = {}) {
        const auto checked = detail::text(url, "url");
        if (!checked)
            return checked.error();
        return detail::opened<space>([&](sprag_space **raw, sprag_error **failure) {
            return sprag_space_open(checked->c_str(), &options, raw, failure);
        });
    }

    // How many partitions the space has: a power of two, at most 64.
    [[nodiscard]] std::uint32_t partitions() const noexcept { return sprag_space_partitions(get()); }

    // The partition that a lock's name falls into, from 0.
    result<std::uint32_t> partition_of(std::string_view name) const {
        return detail::given<std::uint32_t>([&](std::uint32_t &into, sprag_error **failure) {
            return sprag_space_partition_of(get(), name.data(), name.size(), &into, failure);
        });
    }

    // Makes an owner.
    result<sprag::owner> owner() const {
        return detail::opened<sprag::owner>(
            [&](sprag_owner **raw, sprag_error **failure) { return sprag_owner_open(get(), raw, failure); });
    }

    // The lock of a name. Its holds are leased for ttl, 1 ms to 366 days; for 30 s if none is given.
    result<sprag::lock> lock(std::string_view name) const { return lock_for(name, 0); }
    result<sprag::lock> lock(std::string_view name, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return lock_for(name, ttl_ns); });
    }

    // The locks of 1 to 64 names, which are acquired all at once or not at all, in whatever order they are named.
    result<sprag::lock> locks(list<bytes> names) const { return locks_for(names, 0); }
    result<sprag::lock> locks(list<bytes> names, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return locks_for(names, ttl_ns); });
    }

    // The lock of a partition, from 0, which excludes the locks of all names in it.
    result<sprag::lock> partition(std::uint32_t partition) const { return partition_for(partition, 0); }
    result<sprag::lock> partition(std::uint32_t partition, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return partition_for(partition, ttl_ns); });
    }

    // The lock of the table, which excludes all others.
    result<sprag::lock> table() const { return table_for(0); }
    result<sprag::lock> table(duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return table_for(ttl_ns); });
    }

    // The fence of a name. It is created when it first admits a token.
    result<sprag::fence> fence(std::string_view name) const { return named<sprag::fence>(name, sprag_fence_open); }

    // The semaphore of a name, which has so many permits: 1 to 16,777,215. Its holds are leased for ttl, 1 ms to
    // 366 days; for 30 s if none is given.
    result<sprag::semaphore> semaphore(std::string_view name, std::uint32_t permits) const {
        return semaphore_for(name, permits, 0);
    }
    result<sprag::semaphore> semaphore(std::string_view name, std::uint32_t permits, duration ttl) const {
        return detail::leased(ttl, [&](std::uint64_t ttl_ns) { return semaphore_for(name, permits, ttl_ns); });
    }

    // The concurrency limiter of a name, created if there is none: of each key at most so many permits are held at
    // once, 1 to 16,777,215.
    result<sprag::concurrency> concurrency(std::string_view name, std::uint32_t permits,
                                           define as = define::same) const {
        // C takes 0 for whatever it allows.
        if (permits == 0)
            return detail::zero("permits");
        return detail::opened<sprag::concurrency>([&](sprag_concurrency **raw, sprag_error **failure) {
            return sprag_concurrency_open(get(), name.data(), name.size(), permits, static_cast<std::uint32_t>(as),
                                          raw, failure);
        });
    }

    // The concurrency limiter of a name, whatever it allows; none if there is none.
    result<std::optional<sprag::concurrency>> find_concurrency(std::string_view name) const {
        return detail::found<sprag::concurrency>([&](sprag_concurrency **raw, sprag_error **failure) {
            return sprag_concurrency_open(get(), name.data(), name.size(), 0, 0, raw, failure);
        });
    }

    // The idempotency key. Nothing is created before somebody begins.
    result<sprag::once> once(std::string_view key) const { return named<sprag::once>(key, sprag_once_open); }

    // The counter of a name. Nothing is created before it is changed.
    result<sprag::counter> counter(std::string_view name) const {
        return named<sprag::counter>(name, sprag_counter_open);
    }

    // The counter of a name as a striped one, which it is for everyone from then on.
    result<sprag::striped_counter> striped_counter(std::string_view name) const {
        return named<sprag::striped_counter>(name, sprag_striped_counter_open);
    }

    // The limiter of a name, created with the limit if there is none: "100/minute;burst=20".
    result<sprag::limiter> limiter(std::string_view name, std::string_view limit, define as = define::same) const {
        const auto checked = detail::text(limit, "limit");
        if (!checked)
            return checked.error();
        return detail::opened<sprag::limiter>([&](sprag_limiter **raw, sprag_error **failure) {
            return sprag_limiter_open(get(), name.data(), name.size(), checked->c_str(),
                                      static_cast<std::uint32_t>(as), raw, failure);
        });
    }

    // The limiter of a name, whatever its limit; none if there is none.
    result<std::optional<sprag::limiter>> find_limiter(std::string_view name) const {
        return detail::found<sprag::limiter>([&](sprag_limiter **raw, sprag_error **failure) {
            return sprag_limiter_open(get(), name.data(), name.size(), nullptr, 0, raw, failure);
        });
    }

    // Checks 1 to 8 limiters in one call: all are allowed and all is taken, or nothing is taken anywhere.
    result<decisions> check_all(list<check> checks) const {
        return detail::given<decisions>([&](decisions &into, sprag_error **failure) {
            into.each.resize(checks.size());
            const sprag_status status =
                sprag_space_check_all(get(), checks.data(), checks.size(),
                                      into.each.empty() ? nullptr : into.each.front().get(), failure);
            into.is_allowed = status == SPRAG_OK;
            return status;
        });
    }

    // The same, and only tells whether all were: the quickest.
    result<bool> allow_all(list<check> checks) const {
        sprag_error *failure = nullptr;
        return detail::had(sprag_space_check_all(get(), checks.data(), checks.size(), nullptr, &failure), failure);
    }

    // The joint limiter of a name, created with 2 to 6 limits if there is none: {"10/minute", "100/day"}.
    result<sprag::joint_limiter> joint_limiter(std::string_view name, list<const char *> limits) const {
        return detail::opened<sprag::joint_limiter>([&](sprag_joint_limiter **raw, sprag_error **failure) {
            return sprag_joint_limiter_open(get(), name.data(), name.size(), limits.data(), limits.size(), raw,
                                            failure);
        });
    }

    // What there is in the space, and who holds what. A visitor is called once for each thing whose name begins
    // with prefix, by name; one that returns false sees no more, one that returns nothing sees all. What it is
    // given, and all that this points at, lives until it returns. What it throws goes through. The locks:
    // visit(const sprag_lock_info &).
    template <class Visit> result<void> each_lock(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_lock_info>(
            visit, [&](auto... by) { return sprag_space_each_lock(get(), prefix.data(), prefix.size(), by...); });
    }

    // The locks of partitions and of the table that are held or waited for: visit(const sprag_lock_info &).
    template <class Visit> result<void> each_coarse_lock(Visit &&visit) const {
        return each<sprag_lock_info>(visit,
                                     [&](auto... by) { return sprag_space_each_coarse_lock(get(), by...); });
    }

    // The semaphores: visit(const sprag_semaphore_info &).
    template <class Visit> result<void> each_semaphore(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_semaphore_info>(visit, [&](auto... by) {
            return sprag_space_each_semaphore(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The concurrency limiters, and what is held of their keys: visit(const sprag_concurrency_info &).
    template <class Visit> result<void> each_concurrency(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_concurrency_info>(visit, [&](auto... by) {
            return sprag_space_each_concurrency(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The limiters: visit(const sprag_limiter_info &).
    template <class Visit> result<void> each_limiter(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_limiter_info>(visit, [&](auto... by) {
            return sprag_space_each_limiter(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The overrides, by limiter and key; prefix is of the limiter's name: visit(const sprag_override_info &).
    template <class Visit> result<void> each_override(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_override_info>(visit, [&](auto... by) {
            return sprag_space_each_override(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The joint limiters: visit(const sprag_joint_limiter_info &).
    template <class Visit> result<void> each_joint_limiter(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_joint_limiter_info>(visit, [&](auto... by) {
            return sprag_space_each_joint_limiter(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The counters that are not at 0: visit(const sprag_counter_info &).
    template <class Visit> result<void> each_counter(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_counter_info>(visit, [&](auto... by) {
            return sprag_space_each_counter(get(), prefix.data(), prefix.size(), by...);
        });
    }

    // The idempotency keys, but for new ones: visit(const sprag_once_info &).
    template <class Visit> result<void> each_once(Visit &&visit, std::string_view prefix = {}) const {
        return each<sprag_once_info>(
            visit, [&](auto... by) { return sprag_space_each_once(get(), prefix.data(), prefix.size(), by...); });
    }

    // The last forced releases, oldest first, at most 64: visit(const sprag_break_info &).
    template <class Visit> result<void> each_break(Visit &&visit) const {
        return each<sprag_break_info>(visit, [&](auto... by) { return sprag_space_each_break(get(), by...); });
    }

    // Walks through all of the region, and calls visit(const char *) for each thing that contradicts itself; how
    // many such things there are.
    template <class Visit> result<std::size_t> check_region(Visit &&visit) const {
        detail::called_back<std::remove_reference_t<Visit>> back(visit);
        auto found = detail::given<std::size_t>([&](std::size_t &into, sprag_error **failure) {
            return sprag_region_check(
                get(),
                [](const char *finding, void *of) noexcept -> bool {
                    return (*static_cast<decltype(back) *>(of))(false, finding);
                },
                &back, &into, failure);
        });
        back.rethrow();
        return found;
    }

    // The URL that it was opened by.
    result<std::string> url() const {
        return detail::given<std::string>([&](std::string &into, sprag_error **failure) {
            std::size_t size = 0;
            const sprag_status status = sprag_space_url(get(), nullptr, 0, &size, failure);
            if (status < 0)
                return status;
            into.resize(size + 1);
            const sprag_status told = sprag_space_url(get(), into.data(), into.size(), &size, failure);
            into.resize(size);
            return told;
        });
    }

    // What was done through this handle since it was opened, and how full the region is.
    result<sprag_metrics> metrics() const {
        return detail::given<sprag_metrics>([&](sprag_metrics &into, sprag_error **failure) {
            into.size = sizeof into;
            return sprag_space_metrics(get(), &into, failure);
        });
    }

    // How many chunks long names, long keys and results take. Looks at each of them.
    result<sprag_fill> key_chunk_usage() const {
        return detail::given<sprag_fill>([&](sprag_fill &into, sprag_error **failure) {
            return sprag_space_key_chunk_usage(get(), &into, failure);
        });
    }

    // How many keys the space's limiters have now, and the bytes that they take in the region.
    [[nodiscard]] std::uint64_t limiter_key_count() const noexcept { return sprag_space_limiter_key_count(get()); }
    [[nodiscard]] std::uint64_t limiter_key_bytes() const noexcept { return sprag_space_limiter_key_bytes(get()); }

  private:
    template <class Info, class Visit, class Each> static result<void> each(Visit &visit, Each &&visits) {
        sprag_error *failure = nullptr;
        const sprag_status status = detail::visited<Info>(visit, visits, failure);
        return detail::done(status, failure);
    }

    // What an open call gives that needs a name only.
    template <class T, class Open> result<T> named(std::string_view name, Open opens) const {
        return detail::opened<T>([&](auto **raw, sprag_error **failure) {
            return opens(get(), name.data(), name.size(), raw, failure);
        });
    }

    result<sprag::semaphore> semaphore_for(std::string_view name, std::uint32_t permits,
                                           std::uint64_t ttl_ns) const {
        return detail::opened<sprag::semaphore>([&](sprag_semaphore **raw, sprag_error **failure) {
            return sprag_semaphore_open(get(), name.data(), name.size(), permits, ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> lock_for(std::string_view name, std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open(get(), name.data(), name.size(), ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> locks_for(list<bytes> names, std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open_several(get(), names.data(), names.size(), ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> partition_for(std::uint32_t partition, std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open_partition(get(), partition, ttl_ns, raw, failure);
        });
    }

    result<sprag::lock> table_for(std::uint64_t ttl_ns) const {
        return detail::opened<sprag::lock>([&](sprag_lock **raw, sprag_error **failure) {
            return sprag_lock_open_table(get(), ttl_ns, raw, failure);
        });
    }
};

/*
 * REGIONS
 */

// The files of shm: spaces. flags: SPRAG_GROUP_SHARED and SPRAG_EVEN_IF_IN_USE, or'ed together.
namespace region {

// The regions in this user's directory, by name: visit(const sprag_region_file &), as for the visitors of a space.
template <class Visit> result<void> each(Visit &&visit) {
    sprag_error *failure = nullptr;
    const sprag_status status = detail::visited<sprag_region_file>(
        visit, [](auto... by) { return sprag_region_each(by...); }, failure);
    return detail::done(status, failure);
}

// The region at url, without opening a session in it: visit(const sprag_region_info &), once.
template <class Visit> result<void> probe(std::string_view url, Visit &&visit, std::uint32_t flags = 0) {
    const auto checked = detail::text(url, "url");
    if (!checked)
        return checked.error();
    sprag_error *failure = nullptr;
    const sprag_status status = detail::visited<sprag_region_info>(
        visit, [&](auto... by) { return sprag_region_probe(checked->c_str(), flags, by...); }, failure);
    return detail::done(status, failure);
}

// Removes the region at url.
inline result<void> remove(std::string_view url, std::uint32_t flags = 0) {
    const auto checked = detail::text(url, "url");
    if (!checked)
        return checked.error();
    sprag_error *failure = nullptr;
    return detail::done(sprag_region_remove(checked->c_str(), flags, &failure), failure);
}

// Replaces the region at url by one with the caps of options, while nobody uses it; a cap of 0 stays what it is.
inline result<void> resize(std::string_view url, const space_options &options) {
    const auto checked = detail::text(url, "url");
    if (!checked)
        return checked.error();
    sprag_error *failure = nullptr;
    return detail::done(sprag_region_resize(checked->c_str(), &options, &failure), failure);
}

} // namespace region

} // namespace sprag

#endif // SPRAG_HPP
