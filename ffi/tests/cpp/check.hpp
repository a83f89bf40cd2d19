// What the C++ tests are written with: test(sentence, body), CHECK inside, and conclude() as what main returns,
// which prints the sums.

#ifndef SPRAG_TESTS_CHECK_HPP
#define SPRAG_TESTS_CHECK_HPP

#include "sprag.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

#define CHECK(...) ::check::that(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

namespace check {

inline int passed = 0;
inline int failed = 0;
inline bool is_good = true;

inline void that(bool is_so, const char *what, const char *file, int line) {
    if (is_so)
        return;
    is_good = false;
    std::printf("%s:%d: not so: %s\n", file, line, what);
}

template <class Body> void test(const char *sentence, Body &&body) {
    is_good = true;
    body();
    ++(is_good ? passed : failed);
    if (!is_good)
        std::printf("FAILED: %s\n", sentence);
}

// Whether no thread but this one is left, as far as the system tells.
inline bool is_alone() {
    std::error_code unknown;
    std::ptrdiff_t threads = 0;
    for (std::filesystem::directory_iterator at("/proc/self/task", unknown), end; at != end; at.increment(unknown))
        ++threads;
    return threads <= 1;
}

inline int conclude() {
    // The library's thread ends when it is no longer needed, somewhat later; what it has would pass for a leak.
    while (!is_alone())
        std::this_thread::yield();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}

// What a result has; ends the program if that is an error, since the test can't go on.
template <class T> T need(sprag::result<T> of) {
    if (!of) {
        std::printf("an error where there must be none: %s\n", of.error().message());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>)
        return *std::move(of);
}

// Whether a result is this error, of this argument (NULL: of none).
template <class T> bool is_error(const sprag::result<T> &of, sprag_status status, const char *argument = nullptr) {
    if (of)
        return false;
    const char *named = of.error().argument();
    const bool is_named =
        argument == nullptr ? named == nullptr : named != nullptr && std::string(named) == argument;
    if (of.error().status() != status || !is_named)
        std::printf("another error: %d of %s: %s\n", of.error().status(), named ? named : "nothing",
                    of.error().message());
    return of.error().status() == status && is_named;
}

// A directory of its own for regions, gone at the end.
class directory {
  public:
    directory() {
        auto path = (std::filesystem::temp_directory_path() / "sprag-tests-XXXXXX").string();
        if (mkdtemp(path.data()) == nullptr || setenv("SPRAG_DIR", path.c_str(), 1) != 0) {
            std::printf("cannot make a directory like %s\n", path.c_str());
            std::exit(1);
        }
        path_ = path;
    }
    directory(const directory &) = delete;
    directory &operator=(const directory &) = delete;
    ~directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

  private:
    std::filesystem::path path_;
};

// A space of its own on a clock of its own.
struct still_space {
    sprag::manual_clock clock = need(sprag::manual_clock::make());
    sprag::space space = open(clock);

    static sprag::space open(const sprag::manual_clock &on) {
        sprag::space_options options;
        options.clock = on.get();
        return need(sprag::space::open("mem:", options));
    }
};

} // namespace check

#endif
