// Concurrency limiters: at most so many at once of each key.

#ifndef SPRAG_CONCURRENCY_HPP
#define SPRAG_CONCURRENCY_HPP

#include "../sprag.h"
#include "semaphore.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sprag {

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

} // namespace sprag

#endif // SPRAG_CONCURRENCY_HPP
