#include <sprag.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
    auto space = sprag::space::open("mem:").value(); // or "shm:orders", shared by the processes of this host

    // A lock. The hold is released at the end of the block.
    auto order = space.lock("orders/42", 10s).value();
    if (auto hold = order.acquire_for(1s).value()) {
        if (hold->is_valid()) // a clock read: ask before each step that needs the lock
            // A fence beside the data: rejects whoever comes with an older token.
            space.fence("orders").value().admit(hold->token()).value();
    }

    // A limiter.
    auto api = space.limiter("api", "100/minute;burst=20").value();
    auto decision = api.check("user:42").value();
    if (auto wait = decision.retry_after(); !decision && wait)
        std::printf("retry after %lld ms\n", static_cast<long long>(*wait / 1ms));

    // At most four at once of each user.
    auto uploads = space.concurrency("uploads", 4).value();
    if (auto upload = uploads.key("user:42").value().try_acquire().value())
        std::puts("uploading");

    // Once, however often it is asked for.
    auto charge = space.once("invoice-42").value().begin(60s).value();
    if (charge.attempt)
        charge.attempt.finish("receipt 4711", 24h).value();

    // Without exceptions, ask each result.
    auto limit = space.limiter("downloads", "many");
    if (!limit)
        std::printf("%s\n", limit.error().message());
    return 0;
}
