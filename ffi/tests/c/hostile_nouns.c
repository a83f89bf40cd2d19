/*
 * Callers that do everything wrong with semaphores, fences, counters, idempotency keys, inspections and regions.
 */

#define _POSIX_C_SOURCE 200809L

#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static sprag_space *space;
static sprag_semaphore *semaphore;
static sprag_concurrency *concurrency;
static sprag_fence *fence;
static sprag_counter *counter;
static sprag_striped_counter *striped;
static sprag_once *once;
static sprag_lock *lock;

static void open_all(void)
{
    EXPECT(SPRAG_OK, sprag_space_open("mem:", NULL, &space, NULL));
    EXPECT(SPRAG_OK, sprag_semaphore_open(space, "s", 1, 3, 0, &semaphore, NULL));
    EXPECT(SPRAG_OK, sprag_concurrency_open(space, "c", 1, 2, 0, &concurrency, NULL));
    EXPECT(SPRAG_OK, sprag_fence_open(space, "f", 1, &fence, NULL));
    EXPECT(SPRAG_OK, sprag_counter_open(space, "n", 1, &counter, NULL));
    EXPECT(SPRAG_OK, sprag_striped_counter_open(space, "m", 1, &striped, NULL));
    EXPECT(SPRAG_OK, sprag_once_open(space, "o", 1, &once, NULL));
    EXPECT(SPRAG_OK, sprag_lock_open(space, "a", 1, 0, &lock, NULL));
}

static void close_all(void)
{
    sprag_space_close(space);
    sprag_lock_close(lock);
    sprag_once_close(once);
    sprag_striped_counter_close(striped);
    sprag_counter_close(counter);
    sprag_fence_close(fence);
    sprag_concurrency_close(concurrency);
    sprag_semaphore_close(semaphore);
}

static void null_is_an_error_that_names_the_argument(void)
{
    void *outs[6];
    sprag_hold hold;
    sprag_attempt attempt;
    int64_t number;
    uint64_t token;
    size_t len;
    char text[8];

    memset(outs, UNTOUCHED, sizeof outs);
    memset(&hold, UNTOUCHED, sizeof hold);
    memset(&attempt, UNTOUCHED, sizeof attempt);
    memset(&number, UNTOUCHED, sizeof number);
    memset(&token, UNTOUCHED, sizeof token);
    memset(&len, UNTOUCHED, sizeof len);
    memset(text, UNTOUCHED, sizeof text);
    sprag_semaphore **semaphore_out = (sprag_semaphore **)&outs[0];
    sprag_concurrency **concurrency_out = (sprag_concurrency **)&outs[1];
    sprag_fence **fence_out = (sprag_fence **)&outs[2];
    sprag_counter **counter_out = (sprag_counter **)&outs[3];
    sprag_striped_counter **striped_out = (sprag_striped_counter **)&outs[4];
    sprag_once **once_out = (sprag_once **)&outs[5];

    NULL_FAILS("space", sprag_semaphore_open(NULL, "s", 1, 3, 0, semaphore_out, error));
    NULL_FAILS("name", sprag_semaphore_open(space, NULL, 1, 3, 0, semaphore_out, error));
    NULL_FAILS("semaphore", sprag_semaphore_open(space, "s", 1, 3, 0, NULL, error));
    NULL_FAILS("semaphore", sprag_semaphore_acquire(NULL, 1, 0, &hold, error));
    NULL_FAILS("hold", sprag_semaphore_acquire(semaphore, 1, 0, NULL, error));
    NULL_FAILS("semaphore", sprag_semaphore_release_token(NULL, 1, error));
    NULL_FAILS("semaphore", sprag_semaphore_renew_token(NULL, 1, error));
    NULL_FAILS("semaphore", sprag_semaphore_adopt_token(NULL, 1, &hold, error));
    NULL_FAILS("hold", sprag_semaphore_adopt_token(semaphore, 1, NULL, error));
    NULL_FAILS("semaphore", sprag_semaphore_name(NULL, text, 8, &len, error));
    NULL_FAILS("name", sprag_semaphore_name(semaphore, NULL, 8, &len, error));

    NULL_FAILS("space", sprag_concurrency_open(NULL, "c", 1, 2, 0, concurrency_out, error));
    NULL_FAILS("name", sprag_concurrency_open(space, NULL, 1, 2, 0, concurrency_out, error));
    NULL_FAILS("concurrency", sprag_concurrency_open(space, "c", 1, 2, 0, NULL, error));
    NULL_FAILS("concurrency", sprag_concurrency_key(NULL, "k", 1, 0, semaphore_out, error));
    NULL_FAILS("key", sprag_concurrency_key(concurrency, NULL, 1, 0, semaphore_out, error));
    NULL_FAILS("semaphore", sprag_concurrency_key(concurrency, "k", 1, 0, NULL, error));
    NULL_FAILS("concurrency", sprag_concurrency_name(NULL, text, 8, &len, error));
    NULL_FAILS("name", sprag_concurrency_name(concurrency, NULL, 8, &len, error));
    NULL_FAILS("concurrency", sprag_concurrency_permits(NULL, (uint32_t *)text, error));
    NULL_FAILS("permits", sprag_concurrency_permits(concurrency, NULL, error));

    NULL_FAILS("space", sprag_fence_open(NULL, "f", 1, fence_out, error));
    NULL_FAILS("name", sprag_fence_open(space, NULL, 1, fence_out, error));
    NULL_FAILS("fence", sprag_fence_open(space, "f", 1, NULL, error));
    NULL_FAILS("fence", sprag_fence_admit(NULL, 1, error));
    NULL_FAILS("fence", sprag_fence_admit_once(NULL, 1, error));

    NULL_FAILS("space", sprag_counter_open(NULL, "n", 1, counter_out, error));
    NULL_FAILS("name", sprag_counter_open(space, NULL, 1, counter_out, error));
    NULL_FAILS("counter", sprag_counter_open(space, "n", 1, NULL, error));
    NULL_FAILS("counter", sprag_counter_add(NULL, 1, &number, error));
    NULL_FAILS("counter", sprag_counter_add_within(NULL, 1, 0, 9, &number, error));
    NULL_FAILS("counter", sprag_counter_get(NULL, &number, error));
    NULL_FAILS("number", sprag_counter_get(counter, NULL, error));
    NULL_FAILS("counter", sprag_counter_swap(NULL, 1, &number, error));
    NULL_FAILS("counter", sprag_counter_compare_exchange(NULL, 0, 1, &number, error));
    NULL_FAILS("counter", sprag_counter_name(NULL, text, 8, &len, error));
    NULL_FAILS("name", sprag_counter_name(counter, NULL, 8, &len, error));

    NULL_FAILS("space", sprag_striped_counter_open(NULL, "m", 1, striped_out, error));
    NULL_FAILS("name", sprag_striped_counter_open(space, NULL, 1, striped_out, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_open(space, "m", 1, NULL, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_add(NULL, 1, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_add_within(NULL, 1, 0, 9, &number, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_get(NULL, &number, error));
    NULL_FAILS("number", sprag_striped_counter_get(striped, NULL, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_swap(NULL, 1, &number, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_compare_exchange(NULL, 0, 1, &number, error));
    NULL_FAILS("striped_counter", sprag_striped_counter_name(NULL, text, 8, &len, error));
    NULL_FAILS("name", sprag_striped_counter_name(striped, NULL, 8, &len, error));

    NULL_FAILS("space", sprag_once_open(NULL, "o", 1, once_out, error));
    NULL_FAILS("name", sprag_once_open(space, NULL, 1, once_out, error));
    NULL_FAILS("once", sprag_once_open(space, "o", 1, NULL, error));
    NULL_FAILS("once", sprag_once_begin(NULL, SPRAG_SECOND, &attempt, NULL, NULL, 0, NULL, error));
    NULL_FAILS("attempt", sprag_once_begin(once, SPRAG_SECOND, NULL, NULL, NULL, 0, NULL, error));
    NULL_FAILS("result", sprag_once_begin(once, SPRAG_SECOND, &attempt, NULL, NULL, 8, NULL, error));
    NULL_FAILS("once", sprag_once_status(NULL, NULL, NULL, 0, NULL, error));
    NULL_FAILS("result", sprag_once_status(once, NULL, NULL, 8, NULL, error));
    NULL_FAILS("once", sprag_once_finish_token(NULL, 1, "r", 1, SPRAG_SECOND, error));
    NULL_FAILS("result", sprag_once_finish_token(once, 1, NULL, 1, SPRAG_SECOND, error));
    NULL_FAILS("once", sprag_once_abandon_token(NULL, 1, error));
    NULL_FAILS("once", sprag_once_extend_token(NULL, 1, SPRAG_SECOND, error));
    NULL_FAILS("once", sprag_once_name(NULL, text, 8, &len, error));
    NULL_FAILS("name", sprag_once_name(once, NULL, 8, &len, error));
    NULL_FAILS("attempt", sprag_attempt_finish(NULL, "r", 1, SPRAG_SECOND, error));
    NULL_FAILS("attempt", sprag_attempt_abandon(NULL, error));
    NULL_FAILS("attempt", sprag_attempt_renew(NULL, error));
    NULL_FAILS("attempt", sprag_attempt_extend(NULL, SPRAG_SECOND, error));
    NULL_FAILS("attempt", sprag_attempt_detach(NULL, &token, error));

    CHECK(is_untouched(outs, sizeof outs));
    CHECK(is_untouched(&hold, sizeof hold));
    CHECK(is_untouched(&attempt, sizeof attempt));
    CHECK(is_untouched(&number, sizeof number));
    CHECK(is_untouched(&token, sizeof token));
    CHECK(is_untouched(&len, sizeof len));
    CHECK(is_untouched(text, sizeof text));

    EXPECT(SPRAG_OK, sprag_once_begin(once, SPRAG_SECOND, &attempt, NULL, NULL, 0, NULL, NULL));
    NULL_FAILS("token", sprag_attempt_detach(&attempt, NULL, error));
    NULL_FAILS("result", sprag_attempt_finish(&attempt, NULL, 1, SPRAG_SECOND, error));
    EXPECT(SPRAG_OK, sprag_attempt_abandon(&attempt, NULL));
}

static bool is_shown(const sprag_region_info *region, void *context)
{
    (void)region;
    (void)context;
    return true;
}

static void visitors_must_not_be_null(void)
{
    NULL_FAILS("space", sprag_space_each_lock(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_lock(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_coarse_lock(NULL, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_coarse_lock(space, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_semaphore(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_semaphore(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_concurrency(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_concurrency(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_limiter(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_limiter(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_override(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_override(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_joint_limiter(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_joint_limiter(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_counter(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_counter(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_once(NULL, "", 0, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_once(space, "", 0, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_each_break(NULL, NULL, NULL, error));
    NULL_FAILS("visit", sprag_space_each_break(space, NULL, NULL, error));
    NULL_FAILS("lock", sprag_lock_peek(NULL, NULL, NULL, error));
    NULL_FAILS("visit", sprag_lock_peek(lock, NULL, NULL, error));
    NULL_FAILS("semaphore", sprag_semaphore_peek(NULL, NULL, NULL, error));
    NULL_FAILS("visit", sprag_semaphore_peek(semaphore, NULL, NULL, error));
    NULL_FAILS("visit", sprag_region_each(NULL, NULL, error));
    NULL_FAILS("url", sprag_region_probe(NULL, 0, is_shown, NULL, error));
    NULL_FAILS("visit", sprag_region_probe("shm:none", 0, NULL, NULL, error));
    NULL_FAILS("url", sprag_region_remove(NULL, 0, error));
    NULL_FAILS("url", sprag_region_resize(NULL, NULL, error));
    NULL_FAILS("space", sprag_region_check(NULL, NULL, NULL, NULL, error));
    NULL_FAILS("space", sprag_space_url(NULL, NULL, 0, NULL, error));
    NULL_FAILS("space", sprag_space_metrics(NULL, &(sprag_metrics){.size = sizeof(sprag_metrics)}, error));
    NULL_FAILS("metrics", sprag_space_metrics(space, NULL, error));
    NULL_FAILS("space", sprag_space_key_chunk_usage(NULL, &(sprag_fill){0}, error));
    NULL_FAILS("chunks", sprag_space_key_chunk_usage(space, NULL, error));
    NULL_FAILS("stop", sprag_interruptible(NULL, NULL, NULL, NULL, error));

    EXPECT(SPRAG_ERROR_UNSUPPORTED, sprag_region_remove("mem:", 0, NULL));
    EXPECT(SPRAG_ERROR_PLACE, sprag_region_remove("", 0, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_region_remove("mem:", 1u << 31, NULL));
}

static void what_may_be_null_may_be_null(void)
{
    EXPECT(SPRAG_OK, sprag_counter_add(counter, 1, NULL, NULL));
    EXPECT(SPRAG_REFUSED, sprag_counter_add_within(counter, 9, 0, 5, NULL, NULL));
    EXPECT(SPRAG_DIFFERS, sprag_counter_compare_exchange(counter, 9, 5, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_counter_swap(counter, 0, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_counter_name(counter, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_striped_counter_swap(striped, 0, NULL, NULL));
    EXPECT(SPRAG_NONE, sprag_once_status(once, NULL, NULL, 0, NULL, NULL));
    sprag_semaphore_close(NULL);
    sprag_concurrency_close(NULL);
    sprag_fence_close(NULL);
    sprag_counter_close(NULL);
    sprag_striped_counter_close(NULL);
    sprag_once_close(NULL);
    sprag_attempt_close(NULL);
    CHECK(sprag_semaphore_permits(NULL) == 0);
    CHECK(sprag_fence_highest(NULL) == 0);
    CHECK(!sprag_attempt_is_valid(NULL) && !sprag_attempt_is_held(NULL));
    CHECK(!sprag_attempt_is_after_unfinished(NULL));
    CHECK(sprag_attempt_deadline_left_ns(NULL) == 0);
    CHECK(sprag_error_highest_token(NULL) == 0);
}

static void numbers_have_bounds(void)
{
    sprag_semaphore *semaphore_out = NULL;
    sprag_concurrency *concurrency_out = NULL;
    sprag_attempt attempt;
    sprag_hold hold;
    int64_t number = 77;
    static char result[SPRAG_RESULT_BYTES_MAX + 1];
    size_t len = 0;

    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "permits", "permits is 0; it must be 1 to 16777215",
          sprag_semaphore_open(space, "t", 1, 0, 0, &semaphore_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "permits", "permits is 16777216; it must be 1 to 16777215",
          sprag_semaphore_open(space, "t", 1, 1 << 24, 0, &semaphore_out, error));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_semaphore_open(space, "t", 1, 3, 1, &semaphore_out, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_semaphore_acquire(semaphore, 0, 0, &hold, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_semaphore_acquire(semaphore, UINT32_MAX, SPRAG_FOREVER, &hold, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_concurrency_open(space, "d", 1, 1 << 24, 0, &concurrency_out, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_concurrency_open(space, "d", 1, 2, 2, &concurrency_out, NULL));
    EXPECT(SPRAG_ERROR_DEFINITION_DIFFERS, sprag_concurrency_open(space, "c", 1, 3, 0, &concurrency_out, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_concurrency_key(concurrency, "", 0, 0, &semaphore_out, NULL));
    CHECK(semaphore_out == NULL && concurrency_out == NULL);

    EXPECT(SPRAG_ERROR_STALE, sprag_fence_admit(fence, 0, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_fence_admit(fence, UINT64_C(1) << 53, NULL));
    EXPECT(SPRAG_OK, sprag_fence_admit(fence, (UINT64_C(1) << 53) - 1, NULL));
    sprag_error *error = NULL;
    EXPECT(SPRAG_ERROR_STALE, sprag_fence_admit(fence, 5, &error));
    CHECK(sprag_error_token(error) == 5 && sprag_error_highest_token(error) == (UINT64_C(1) << 53) - 1);
    sprag_error_free(error);

    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_counter_add_within(counter, 1, 5, 4, &number, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_striped_counter_add_within(striped, 1, 5, 4, &number, NULL));
    EXPECT(SPRAG_OK, sprag_counter_swap(counter, INT64_MIN, NULL, NULL));
    FAILS(SPRAG_ERROR_COUNTER_OVERFLOW, NULL,
          "the counter n is at -9223372036854775808, and with -1 added it would not be -9223372036854775808 to "
          "9223372036854775807 any more; add less, or swap it for another value",
          sprag_counter_add(counter, -1, &number, error));
    CHECK(number == 77);
    EXPECT(SPRAG_OK, sprag_counter_swap(counter, 0, NULL, NULL));

    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_once_begin(once, 0, &attempt, NULL, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_once_begin(once, SPRAG_FOREVER, &attempt, NULL, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_once_begin(once, SPRAG_SECOND * 60, &attempt, NULL, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_attempt_finish(&attempt, result, sizeof result, SPRAG_SECOND, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_attempt_finish(&attempt, result, SIZE_MAX, SPRAG_SECOND, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_attempt_finish(&attempt, result, 1, 0, NULL));
    CHECK(sprag_attempt_is_held(&attempt));
    EXPECT(SPRAG_OK, sprag_attempt_finish(&attempt, result, SPRAG_RESULT_BYTES_MAX, 60 * SPRAG_SECOND, NULL));
    memset(result, UNTOUCHED, sizeof result);
    EXPECT(SPRAG_DONE, sprag_once_status(once, NULL, result, 3, &len, NULL));
    CHECK(len == SPRAG_RESULT_BYTES_MAX && result[2] == 0 && is_untouched(result + 3, sizeof result - 3));
}

static void what_is_empty_says_so(void)
{
    static const char message[] = "attempt is empty: used up by an earlier call, or never filled in";
    sprag_attempt attempt;
    sprag_once *key = NULL;
    uint64_t token;

    EXPECT(SPRAG_OK, sprag_once_open(space, "empty", 5, &key, NULL));
    memset(&attempt, 0, sizeof attempt);
    for (int round = 0; round < 3; round++) {
        FAILS(SPRAG_ERROR_EMPTY, "attempt", message, sprag_attempt_finish(&attempt, NULL, 0, SPRAG_SECOND, error));
        FAILS(SPRAG_ERROR_EMPTY, "attempt", message, sprag_attempt_abandon(&attempt, error));
        FAILS(SPRAG_ERROR_EMPTY, "attempt", message, sprag_attempt_renew(&attempt, error));
        FAILS(SPRAG_ERROR_EMPTY, "attempt", message, sprag_attempt_extend(&attempt, SPRAG_SECOND, error));
        FAILS(SPRAG_ERROR_EMPTY, "attempt", message, sprag_attempt_detach(&attempt, &token, error));
        CHECK(!sprag_attempt_is_valid(&attempt) && !sprag_attempt_is_held(&attempt) && attempt.token == 0);
        sprag_attempt_close(&attempt);
        EXPECT(SPRAG_OK, sprag_once_begin(key, SPRAG_SECOND * 60, &attempt, NULL, NULL, 0, NULL, NULL));
        CHECK(sprag_attempt_is_after_unfinished(&attempt) == (round == 2));
        if (round == 0) {
            EXPECT(SPRAG_OK, sprag_attempt_abandon(&attempt, NULL));
        } else {
            sprag_attempt_close(&attempt);
            sprag_attempt_close(&attempt);
        }
    }
    sprag_once_close(key);
}

/* A visitor that breaks what it is told of, closes what it holds, and looks at the rest. */
static bool visit_and_change(const sprag_lock_info *info, void *context)
{
    unsigned *visits = context;
    sprag_lock *own = NULL;
    ++*visits;
    CHECK(info->size == sizeof *info && info->is_held && info->hold_count == 1);
    EXPECT(SPRAG_OK, sprag_lock_open(space, info->name.data, info->name.len, 0, &own, NULL));
    EXPECT(SPRAG_OK, sprag_lock_break(own, NULL, NULL));
    sprag_lock_close(own);
    return *visits < 2;
}

static void a_visitor_may_call_the_library(void)
{
    sprag_lock *locks[3];
    sprag_hold holds[3];
    unsigned visits = 0;

    for (unsigned i = 0; i < 3; i++) {
        char name[2] = {'v', (char)('0' + i)};
        EXPECT(SPRAG_OK, sprag_lock_open(space, name, 2, 0, &locks[i], NULL));
        EXPECT(SPRAG_OK, sprag_lock_acquire(locks[i], 0, &holds[i], NULL));
    }
    EXPECT(SPRAG_OK, sprag_space_each_lock(space, "v", 1, visit_and_change, &visits, NULL));
    CHECK(visits == 2);
    EXPECT(SPRAG_ERROR_LOST, sprag_hold_release(&holds[0], NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_hold_release(&holds[1], NULL));
    EXPECT(SPRAG_OK, sprag_hold_release(&holds[2], NULL));
    for (unsigned i = 0; i < 3; i++)
        sprag_lock_close(locks[i]);
}

static volatile sig_atomic_t is_stopped;

static void on_signal(int signal)
{
    (void)signal;
    is_stopped = 1;
}

static bool stop(void *context)
{
    (void)context;
    return is_stopped;
}

static void wait_for_lock(void *context)
{
    sprag_hold hold = {0};
    *(sprag_status *)context = sprag_lock_acquire(lock, SPRAG_FOREVER, &hold, NULL);
    CHECK(hold.token == 0);
}

static void *wait_interruptibly(void *context)
{
    EXPECT(SPRAG_OK, sprag_interruptible(stop, NULL, wait_for_lock, context, NULL));
    return NULL;
}

static bool count_waiters(const sprag_lock_info *info, void *context)
{
    *(uint32_t *)context = info->waiters;
    return true;
}

static void a_signal_ends_a_wait_that_is_to_be_ended(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sprag_status status = SPRAG_OK;
    sprag_hold hold;
    uint32_t waiters = 0;
    pthread_t thread;

    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, wait_interruptibly, &status) == 0);
    while (waiters == 0)
        EXPECT(SPRAG_OK, sprag_lock_peek(lock, count_waiters, &waiters, NULL));
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    EXPECT(SPRAG_ERROR_STOPPED, status);
    EXPECT(SPRAG_OK, sprag_lock_peek(lock, count_waiters, &waiters, NULL));
    CHECK(waiters == 0);
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
}

int main(void)
{
    open_all();
    RUN(null_is_an_error_that_names_the_argument);
    RUN(visitors_must_not_be_null);
    RUN(what_may_be_null_may_be_null);
    RUN(numbers_have_bounds);
    RUN(what_is_empty_says_so);
    RUN(a_visitor_may_call_the_library);
    RUN(a_signal_ends_a_wait_that_is_to_be_ended);
    close_all();
    return tests_done();
}
