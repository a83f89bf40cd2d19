// How the calls of the C library are made: what they write, open, tell and call back. Not for users.

#ifndef SPRAG_DETAIL_HPP
#define SPRAG_DETAIL_HPP

#include "../sprag.h"
#include "duration.hpp"
#include "error.hpp"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace sprag {

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

// A value of the C library's in this object's own memory, ended when it is destroyed. It is moved and not copied, since
// only one copy may go on being used. One that is default-constructed or moved from is empty.
template <class Raw, void (*End)(Raw *)> class owned {
  public:
    owned() noexcept { clear(); }

    owned(owned &&other) noexcept { take(other); }

    // Ends what this had before.
    owned &operator=(owned &&other) noexcept {
        if (this != &other) {
            end();
            take(other);
        }
        return *this;
    }

    owned(const owned &) = delete;
    owned &operator=(const owned &) = delete;

    // Whether it is not empty; says nothing about its lease or deadline.
    explicit operator bool() const noexcept { return raw_.private_state != 0; }

    // Higher than that of every earlier one of the same lock or key, and below 2^53, for a fence. 0 if it is empty.
    [[nodiscard]] std::uint64_t token() const noexcept { return raw_.token; }

    // The C library's value, still owned by this.
    [[nodiscard]] Raw *get() noexcept { return &raw_; }
    [[nodiscard]] const Raw *get() const noexcept { return &raw_; }

  protected:
    ~owned() { end(); }

    Raw raw_;

  private:
    // The words need not be set: the state says that they are not.
    void clear() noexcept {
        raw_.token = 0;
        raw_.private_state = 0;
    }

    void take(owned &other) noexcept {
        if (other) {
            raw_ = other.raw_;
            other.clear();
        } else {
            clear();
        }
    }

    void end() noexcept {
        if (*this)
            End(&raw_);
    }
};

// Makes an open call of the C library's into one that gives a handle.
template <class T, class Open> auto opening(Open opens) {
    return [opens](T &into, sprag_error **failure) {
        // Not into.get(), which is a counter's number.
        auto *raw = into.T::handle::get();
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

} // namespace sprag

#endif // SPRAG_DETAIL_HPP
