/*
 * Sprag: locks with fencing tokens and leases, rate limiters, semaphores, fences, counters and idempotency keys, at
 * memory speed, for the threads of a process and the processes of a host.
 *
 * Written by `cargo xtask header`; change the source of the C ABI instead.
 *
 *     sprag_space *space = NULL;
 *     sprag_limiter *api = NULL;
 *     sprag_space_open("shm:orders", NULL, &space, NULL);
 *     sprag_limiter_open(space, "api", 3, "100/minute;burst=20", 0, &api, NULL);
 *     if (sprag_limiter_check(api, "user:42", 7, 1, NULL, NULL) == SPRAG_OK)
 *         serve();
 *
 * THREADS. Every call is safe from any thread at any time, with two exceptions: a handle is closed by one thread
 * once no other uses it, and a value in the caller's own memory (a hold, an attempt, a decision) is for one thread
 * at a time. No call starts a thread but sprag_hold_keep_alive(). Only sprag_hold_is_valid() and
 * sprag_status_text() may be called from a signal handler. A thread must not be cancelled (pthread_cancel) while it
 * is in a call, which aborts the process: end its waits by sprag_interruptible(). A process forked from one with an
 * open space gets SPRAG_ERROR_FORKED until it opens its own; closing what it inherited is allowed, and touches
 * nothing of its parent's.
 *
 * OWNERSHIP. What an open call writes belongs to the caller, who ends it with the close call of the same noun.
 * Handles may be closed in any order, since each keeps what it needs of the space. Names, keys, texts and options
 * are read during the call only. What a visitor is given lives until it returns. An error that is written belongs
 * to the caller, who ends it with sprag_error_free().
 *
 * POINTERS. NULL where something is needed is an error that names the argument; NULL is nothing to close. Where
 * nothing is wanted, NULL may be given if the text says so. What a call has to give is written on success, and on an
 * ordinary outcome where the text says so. Options may be NULL; else they begin with their size, and a field that is
 * zero has its default, so that a caller built for an earlier release runs with a later library.
 *
 * SECTIONS
 */

#ifndef SPRAG_H
#define SPRAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
