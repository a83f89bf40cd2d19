/* A program that is built against an installed Sprag in each way that there is, and uses a little of it. */

#include <sprag.h>

#include "second.h"

#include <stdio.h>

static int failed(const char *what)
{
    printf("failed: %s\n", what);
    return 1;
}

int main(void)
{
    sprag_space *space = NULL;
    sprag_limiter *limiter = NULL;

    if (sprag_space_open("mem:", NULL, &space, NULL) != SPRAG_OK)
        return failed("to open a space");
    if (sprag_limiter_open(space, "api", 3, "1/day", 0, &limiter, NULL) != SPRAG_OK)
        return failed("to open a limiter");
    if (sprag_limiter_check(limiter, "ann", 3, 1, NULL, NULL) != SPRAG_OK)
        return failed("to be allowed once");
    if (sprag_limiter_check(limiter, "ann", 3, 1, NULL, NULL) != SPRAG_REFUSED)
        return failed("to be refused then");
    if (second_token(space, "nightly") == 0)
        return failed("to have a lock");
    sprag_limiter_close(limiter);
    sprag_space_close(space);
    printf("all is well\n");
    return 0;
}
