/* The worker in C; page.h has the rules. */

#define _POSIX_C_SOURCE 200809L

#include "page.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sprag.h>

static _Atomic uint64_t *page, *mine;
static uint64_t id, random_state;
static sprag_lock *locks[LOCKS], *pair;
static sprag_fence *fences[LOCKS];
static sprag_semaphore *semaphore;
static sprag_limiter *few, *rate;
static sprag_counter *counter;

static void broken(const char *rule, uint64_t seen, uint64_t against)
{
    fprintf(stderr, "C worker %" PRIu64 ": %s: %" PRIu64 " against %" PRIu64 "\n", id, rule, seen, against);
    exit(1);
}

static sprag_status must(sprag_status status, sprag_error *error)
{
    if (status < 0) {
        fprintf(stderr, "C worker %" PRIu64 ": %s\n", id, sprag_error_message(error));
        exit(1);
    }
    return status;
}

/* One of so many: a xorshift generator. */
static unsigned one_of(unsigned many)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % many;
}

/* Now and then lets others run, so that they meet what is held. */
static void let_others_run(void)
{
    if (one_of(4) == 0)
        sched_yield();
}

static void nobody_is_inside(unsigned lock)
{
    uint64_t inside = atomic_load(&page[INSIDE + lock]);
    if (inside != 0 && atomic_load(&page[KILLED + inside]) == 0)
        broken("somebody else is inside", inside, id);
}

static void be_inside(unsigned lock, uint64_t token)
{
    sprag_error *error = NULL;

    nobody_is_inside(lock);
    atomic_store(&page[INSIDE + lock], id);
    if (token <= atomic_load(&page[TOKEN + lock]))
        broken("a token did not rise", token, atomic_load(&page[TOKEN + lock]));
    atomic_store(&page[TOKEN + lock], token);
    must(sprag_fence_admit(fences[lock], token, &error), error);
    uint64_t count = atomic_load(&page[COUNT + lock]);
    let_others_run();
    atomic_store(&page[COUNT + lock], count + 1);
    if (atomic_load(&page[INSIDE + lock]) != id)
        broken("somebody else came inside", atomic_load(&page[INSIDE + lock]), id);
    atomic_store(&page[INSIDE + lock], 0);
    atomic_fetch_add(&mine[COUNTED + lock], 1);
}

static void alone(void)
{
    unsigned lock = one_of(LOCKS);
    sprag_error *error = NULL;
    sprag_hold hold;

    must(sprag_lock_acquire(locks[lock], SPRAG_FOREVER, &hold, &error), error);
    be_inside(lock, hold.token);
    must(sprag_hold_release(&hold, &error), error);
}

static void beside_others(void)
{
    unsigned lock = one_of(LOCKS);
    sprag_acquire_options options = {.size = sizeof options, .timeout_ns = SPRAG_FOREVER, .mode = SPRAG_SHARED};
    sprag_error *error = NULL;
    sprag_hold hold;

    must(sprag_lock_acquire_with(locks[lock], &options, &hold, &error), error);
    let_others_run();
    nobody_is_inside(lock);
    must(sprag_hold_release(&hold, &error), error);
    atomic_fetch_add(&mine[SHARED], 1);
}

/* The first two locks, at once. */
static void two_at_once(void)
{
    sprag_error *error = NULL;
    sprag_hold hold;
    uint64_t tokens[2];

    must(sprag_lock_acquire(pair, SPRAG_FOREVER, &hold, &error), error);
    must(sprag_hold_tokens(&hold, tokens, 2, NULL, &error), error);
    be_inside(0, tokens[0]);
    be_inside(1, tokens[1]);
    must(sprag_hold_release(&hold, &error), error);
}

/* All seats' permits, as they stood at one instant; false if they did not stand still. */
static bool snapshot(uint64_t *has)
{
    uint64_t seats = atomic_load(&page[SEATS]), again[2 * SEATS_MAX];
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t seat = 0; seat < seats; seat++) {
            uint64_t *to = (pass == 0 ? has : again) + 2 * seat;
            to[0] = atomic_load(&page[SEAT + seat * SEAT_WORDS + SEAT_ID]);
            to[1] = atomic_load(&page[SEAT + seat * SEAT_WORDS + HAS]);
        }
    for (uint64_t seat = 0; seat < seats; seat++)
        if (atomic_load(&page[KILLED + has[2 * seat]]) != 0)
            has[2 * seat + 1] = again[2 * seat + 1] = 0;
    return memcmp(has, again, 2 * seats * sizeof *has) == 0;
}

static void with_permits(void)
{
    uint32_t permits = 1 + one_of(2);
    uint64_t has[2 * SEATS_MAX], sum = 0, used = atomic_load(&mine[HAS]) / 256 + 1;
    sprag_error *error = NULL;
    sprag_hold hold;

    must(sprag_semaphore_acquire(semaphore, permits, SPRAG_FOREVER, &hold, &error), error);
    atomic_store(&mine[HAS], used * 256 + permits);
    let_others_run();
    if (snapshot(has)) {
        for (uint64_t seat = 0; seat < atomic_load(&page[SEATS]); seat++)
            sum += has[2 * seat + 1] % 256;
        if (sum > PERMITS)
            broken("more permits are out than there are", sum, PERMITS);
        atomic_fetch_add(&mine[SNAPSHOTS], 1);
    }
    atomic_store(&mine[HAS], used * 256);
    must(sprag_hold_release(&hold, &error), error);
}

static void check_limits(void)
{
    sprag_error *error = NULL;
    if (must(sprag_limiter_check(few, KEY, strlen(KEY), 1, NULL, &error), error) == SPRAG_OK)
        atomic_fetch_add(&mine[FEW_ADMITTED], 1);
    if (must(sprag_limiter_check(rate, KEY, strlen(KEY), 1, NULL, &error), error) == SPRAG_OK)
        atomic_fetch_add(&mine[RATE_ADMITTED], 1);
}

static void count(void)
{
    sprag_error *error = NULL;
    must(sprag_counter_add(counter, 1, NULL, &error), error);
    atomic_fetch_add(&mine[ADDED], 1);
}

int main(int argc, char **argv)
{
    static void (*const WORK[])(void) = {alone, beside_others, two_at_once, with_permits, check_limits, count};
    sprag_space *space = NULL;
    sprag_error *error = NULL;
    sprag_bytes names[2] = {{"lock 0", 6}, {"lock 1", 6}};

    if (argc != 5) {
        fprintf(stderr, "usage: %s URL PAGE SEAT ID\n", argv[0]);
        return 2;
    }
    int file = open(argv[2], O_RDWR | O_CLOEXEC);
    void *mapped = file < 0 ? MAP_FAILED
                            : mmap(NULL, PAGE_WORDS * sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        perror(argv[2]);
        return 1;
    }
    close(file);
    page = mapped;
    mine = page + SEAT + strtoull(argv[3], NULL, 10) * SEAT_WORDS;
    id = strtoull(argv[4], NULL, 10);
    random_state = (id + 1) * UINT64_C(0x9e3779b97f4a7c15);

    must(sprag_space_open(argv[1], NULL, &space, &error), error);
    for (unsigned i = 0; i < LOCKS; i++) {
        char name[16];
        size_t len = (size_t)snprintf(name, sizeof name, "lock %u", i);
        must(sprag_lock_open(space, name, len, 0, &locks[i], &error), error);
        must(sprag_fence_open(space, name, len, &fences[i], &error), error);
    }
    must(sprag_lock_open_several(space, names, 2, 0, &pair, &error), error);
    must(sprag_semaphore_open(space, SEMAPHORE_NAME, strlen(SEMAPHORE_NAME), PERMITS, 0, &semaphore, &error), error);
    must(sprag_limiter_open(space, FEW_NAME, strlen(FEW_NAME), FEW_LIMIT, 0, &few, &error), error);
    must(sprag_limiter_open(space, RATE_NAME, strlen(RATE_NAME), RATE_LIMIT, 0, &rate, &error), error);
    must(sprag_counter_open(space, COUNTER_NAME, strlen(COUNTER_NAME), &counter, &error), error);

    while (atomic_load(&page[STOP]) == 0)
        WORK[one_of(sizeof WORK / sizeof WORK[0])]();

    for (unsigned i = 0; i < LOCKS; i++) {
        sprag_lock_close(locks[i]);
        sprag_fence_close(fences[i]);
    }
    sprag_lock_close(pair);
    sprag_semaphore_close(semaphore);
    sprag_limiter_close(few);
    sprag_limiter_close(rate);
    sprag_counter_close(counter);
    sprag_space_close(space);
    return 0;
}
