// Results: a value, or an error.

#ifndef SPRAG_RESULT_HPP
#define SPRAG_RESULT_HPP

#include "error.hpp"

#include <optional>
#include <utility>

namespace sprag {

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
    [[nodiscard]] T operator*() && { return *std::move(value_); }
    [[nodiscard]] T *operator->() noexcept { return &*value_; }
    [[nodiscard]] const T *operator->() const noexcept { return &*value_; }

    // The error; to be asked only if there is no value.
    [[nodiscard]] const sprag::error &error() const noexcept { return *error_; }

#ifdef __cpp_exceptions
    // The value; throws sprag::exception if there is none.
    [[nodiscard]] T &value() & { return checked(), *value_; }
    [[nodiscard]] const T &value() const & { return checked(), *value_; }
    // By value, so that what a loop or a reference takes of a temporary result outlives it.
    [[nodiscard]] T value() && { return checked(), *std::move(value_); }
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

} // namespace sprag

#endif // SPRAG_RESULT_HPP
