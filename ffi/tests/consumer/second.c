/* Includes the header twice, and is linked with another file that includes it too. */

#include <sprag.h>
#include <sprag.h>

#include "second.h"

#include <string.h>

uint64_t second_token(const sprag_space *space, const char *name)
{
    sprag_lock *lock = NULL;
    sprag_hold hold;
    uint64_t token = 0;

    memset(&hold, 0, sizeof hold);
    if (sprag_lock_open(space, name, strlen(name), 0, &lock, NULL) != SPRAG_OK)
        return 0;
    if (sprag_lock_acquire(lock, 0, &hold, NULL) == SPRAG_OK) {
        token = hold.token;
        if (sprag_hold_release(&hold, NULL) != SPRAG_OK)
            token = 0;
    }
    sprag_lock_close(lock);
    return token;
}
