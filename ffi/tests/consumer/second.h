/* The part of the consumer that is in a file of its own. */

#ifndef SECOND_H
#define SECOND_H

#include <sprag.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Holds the lock of this name for a moment, and returns the token of that; 0 if there was none to be had. */
uint64_t second_token(const sprag_space *space, const char *name);

#ifdef __cplusplus
}
#endif

#endif
