// Errors: what was wrong in one call, and the exception that carries it.

#ifndef SPRAG_ERROR_HPP
#define SPRAG_ERROR_HPP

#include "../sprag.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace sprag {

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

} // namespace sprag

#endif // SPRAG_ERROR_HPP
