// Names and keys: several of them, and what the library tells of them.

#ifndef SPRAG_NAMES_HPP
#define SPRAG_NAMES_HPP

#include "../sprag.h"

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sprag {

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

} // namespace sprag

#endif // SPRAG_NAMES_HPP
