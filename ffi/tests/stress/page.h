/*
 * The page that the driver and its workers share, and the rules by which they use it. Workers are in several languages and
 * use one region; what they do under its locks, permits and limits, they do to this page, where any two that are let in at
 * once are found out.
 *
 * It is a file of 64-bit words in the machine's order. A worker is started as
 *
 *     worker URL PAGE SEAT ID
 *
 * and works until STOP is not 0, then exits with 0; with 1, and a line on its standard error, if it found a rule broken. A
 * seat is one worker at a time; an id is never used again. The driver kills workers, and says so in KILLED right before.
 *
 * Under lock i, alone: INSIDE is 0, or the id of one that was killed; it becomes the worker's own. TOKEN is lower
 * than the hold's token, which it becomes; the fence of the lock admits that. COUNT is read, and written one higher. INSIDE,
 * still the worker's own, becomes 0. The worker's COUNTED goes up by one.
 *
 * Under lock i, beside others: INSIDE is 0, or the id of one that was killed.
 *
 * With p permits of the semaphore: the worker's HAS becomes a number never used by it before times 256, plus p;
 * before it releases them, the same plus 0. In a snapshot of all that stands still, those of workers that were
 * not killed come to at most PERMITS.
 *
 * While it holds anything, a worker now and then lets others run, so that they meet what is held.
 *
 * What the limiters and the counter grant is counted in the worker's words, after it was granted: so of one that is
 * killed, at most one is not counted.
 */

#ifndef PAGE_H
#define PAGE_H

enum {
    LOCKS = 4,
    SEATS_MAX = 16,
    IDS_MAX = 16384,
    PERMITS = 3,

    /* Words of the page. */
    STOP = 0,
    SEATS = 1,
    /* Of each lock. */
    INSIDE = 8,
    TOKEN = INSIDE + LOCKS,
    COUNT = TOKEN + LOCKS,
    /* Of each seat: a line each, of words by the names below. */
    SEAT = 32,
    SEAT_WORDS = 16,
    SEAT_ID = 0,
    HAS = 1,
    FEW_ADMITTED = 2,
    RATE_ADMITTED = 3,
    ADDED = 4,
    SHARED = 5,
    SNAPSHOTS = 6,
    COUNTED = 8,
    /* Of each id: whether it was killed. */
    KILLED = SEAT + SEATS_MAX * SEAT_WORDS,
    PAGE_WORDS = KILLED + IDS_MAX,
};

/* Names in the region: locks and their fences are "lock 0" to "lock 3". */
#define SEMAPHORE_NAME "permits"
#define COUNTER_NAME "counter"
/* Runs out: exactly so many are admitted in all. */
#define FEW_NAME "few"
#define FEW_LIMIT "1000/366d"
#define FEW_COUNT 1000
/* Goes on: in every interval at most the burst and what flows in. */
#define RATE_NAME "rate"
#define RATE_LIMIT "500/second;burst=50"
#define RATE_BURST 50
#define RATE_PER_SECOND 500
/* The key of both. */
#define KEY "key"

#endif
