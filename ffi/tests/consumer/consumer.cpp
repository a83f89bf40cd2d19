// consumer.c in C++, linked with a file in C.

#include <sprag.h>

#include "second.h"

#include <cstdio>
#include <string>

namespace {

int failed(const char *what)
{
    std::printf("failed: %s\n", what);
    return 1;
}

} // namespace

int main()
{
    const std::string key = "ann";
    sprag_space *space = nullptr;
    sprag_limiter *limiter = nullptr;

    if (sprag_space_open("mem:", nullptr, &space, nullptr) != SPRAG_OK)
        return failed("to open a space");
    if (sprag_limiter_open(space, "api", 3, "1/day", 0, &limiter, nullptr) != SPRAG_OK)
        return failed("to open a limiter");
    if (sprag_limiter_check(limiter, key.data(), key.size(), 1, nullptr, nullptr) != SPRAG_OK)
        return failed("to be allowed once");
    if (sprag_limiter_check(limiter, key.data(), key.size(), 1, nullptr, nullptr) != SPRAG_REFUSED)
        return failed("to be refused then");
    if (second_token(space, "nightly") == 0)
        return failed("to have a lock");
    sprag_limiter_close(limiter);
    sprag_space_close(space);
    std::printf("all is well\n");
    return 0;
}
