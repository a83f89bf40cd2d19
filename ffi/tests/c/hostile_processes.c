/*
 * Callers that fork, are signalled, die or share everything between threads: what a process inherits is not its own, what it
 * held passes on, and a wait goes on.
 */

#define _GNU_SOURCE

#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char url[128];

static sprag_space *open_space(void)
{
    sprag_space *space = NULL;
    EXPECT(SPRAG_OK, sprag_space_open(url, NULL, &space, NULL));
    return space;
}

static sprag_lock *open_lock(sprag_space *space, const char *name)
{
    sprag_lock *lock = NULL;
    EXPECT(SPRAG_OK, sprag_lock_open(space, name, strlen(name), 0, &lock, NULL));
    return lock;
}

/* Whether a child exited, and with 0. */
static bool is_well(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void what_a_forked_child_inherits_is_not_its_own(void)
{
    static const char message[] =
        "this process was forked after the space was opened and owns nothing in it; open the space again";
    sprag_space *space = open_space();
    sprag_lock *lock = open_lock(space, "a"), *lock_out = NULL;
    sprag_owner *owner = NULL;
    sprag_limiter *limiter = NULL, *limiter_out = NULL;
    sprag_hold hold, hold_out;
    uint64_t token;

    EXPECT(SPRAG_OK, sprag_owner_open(space, &owner, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_open(space, "limiter", 7, "5/day", 0, &limiter, NULL));
    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        is_failing = false;
        sprag_acquire_options options = {.size = sizeof options, .owner = owner};
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_lock_acquire(lock, 0, &hold_out, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_lock_acquire(lock, SPRAG_FOREVER, &hold_out, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_lock_acquire_with(lock, &options, &hold_out, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_lock_break(lock, &token, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_lock_release_token(lock, hold.token, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_limiter_check(limiter, "k", 1, 1, NULL, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message,
              sprag_limiter_open(space, "other", 5, "5/day", 0, &limiter_out, error));
        FAILS(SPRAG_ERROR_FORKED, NULL, message, sprag_hold_renew(&hold, error));
        CHECK(!sprag_hold_is_valid(&hold) && !sprag_hold_is_held(&hold));
        EXPECT(SPRAG_ERROR_FORKED, sprag_hold_release(&hold, NULL));
        EXPECT(SPRAG_ERROR_EMPTY, sprag_hold_release(&hold, NULL));
        sprag_limiter_close(limiter);
        sprag_owner_close(owner);
        sprag_lock_close(lock);
        sprag_space_close(space);

        /* Its own. */
        sprag_space *own = open_space();
        lock_out = open_lock(own, "a");
        EXPECT(SPRAG_BUSY, sprag_lock_acquire(lock_out, 0, &hold_out, NULL));
        sprag_lock_close(lock_out);
        sprag_space_close(own);
        fflush(stdout);
        _exit(is_failing);
    }
    CHECK(is_well(child));

    CHECK(sprag_hold_is_held(&hold));
    EXPECT(SPRAG_OK, sprag_hold_renew(&hold, NULL));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_check(limiter, "k", 1, 5, NULL, NULL));
    sprag_limiter_close(limiter);
    sprag_owner_close(owner);
    sprag_lock_close(lock);
    sprag_space_close(space);
}

static void what_a_killed_process_held_passes_on(void)
{
    sprag_space *space = open_space();
    sprag_lock *lock = open_lock(space, "killed");
    sprag_hold hold;
    int ready[2];
    char byte;

    CHECK(pipe(ready) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        sprag_space *own = open_space();
        sprag_lock *held = open_lock(own, "killed");
        EXPECT(SPRAG_OK, sprag_lock_acquire(held, 0, &hold, NULL));
        CHECK(write(ready[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    EXPECT(SPRAG_BUSY, sprag_lock_acquire(lock, 0, &hold, NULL));
    kill(child, SIGKILL);
    CHECK(!is_well(child));
    /* Long before its lease of 30 s is over. */
    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 10 * SPRAG_SECOND, &hold, NULL));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    sprag_lock_close(lock);
    sprag_space_close(space);
}

static void a_forgotten_hold_keeps_its_lock_until_its_lease_is_over(void)
{
    sprag_space *space = open_space(), *other = open_space();
    sprag_lock *lock = NULL, *others = open_lock(other, "forgotten");
    sprag_hold hold, forgotten;

    EXPECT(SPRAG_OK, sprag_lock_open(space, "forgotten", 9, SPRAG_SECOND / 2, &lock, NULL));
    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    uint64_t token = hold.token;
    memcpy(&forgotten, &hold, sizeof hold);
    memset(&hold, 0, sizeof hold);
    sprag_lock_close(lock);
    sprag_space_close(space);
    CHECK(sprag_hold_is_held(&forgotten));
    EXPECT(SPRAG_OK, sprag_lock_acquire(others, SPRAG_FOREVER, &hold, NULL));
    CHECK(hold.token == token + 1 && !sprag_hold_is_valid(&forgotten));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_hold_release(&forgotten, NULL));
    sprag_lock_close(others);
    sprag_space_close(other);
}

static volatile sig_atomic_t signals;
static sprag_hold *looked_at;
static volatile sig_atomic_t are_right;

static void on_signal(int signal)
{
    (void)signal;
    /* The two calls that are allowed here. */
    are_right = sprag_hold_is_valid(looked_at) && strcmp(sprag_status_text(SPRAG_OK), "done") == 0;
    /* Last: it is waited for. */
    signals++;
}

struct waiting {
    sprag_lock *lock;
    sprag_status status;
    uint64_t token;
};

static void *wait_for_lock(void *context)
{
    struct waiting *waiting = context;
    sprag_hold hold;
    waiting->status = sprag_lock_acquire(waiting->lock, SPRAG_FOREVER, &hold, NULL);
    if (waiting->status == SPRAG_OK) {
        waiting->token = hold.token;
        EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    }
    return NULL;
}

static void a_wait_goes_on_after_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sprag_space *space = open_space();
    struct waiting waiting = {.lock = open_lock(space, "signalled")};
    sprag_hold hold;
    pthread_t thread;

    EXPECT(SPRAG_OK, sprag_lock_acquire(waiting.lock, 0, &hold, NULL));
    looked_at = &hold;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_lock, &waiting) == 0);
    for (int sent = 0; sent < 50; sent++) {
        sig_atomic_t before = signals;
        pthread_kill(thread, SIGUSR1);
        while (signals == before)
            usleep(100);
        CHECK(are_right);
    }
    CHECK(waiting.token == 0);
    uint64_t token = hold.token;
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    pthread_join(thread, NULL);
    EXPECT(SPRAG_OK, waiting.status);
    CHECK(waiting.token == token + 1);
    sprag_lock_close(waiting.lock);
    sprag_space_close(space);
}

enum { THREADS = 4, ROUNDS = 500 };

struct sharing {
    sprag_lock *lock;
    sprag_limiter *limiter;
    uint64_t number, token;
    unsigned admitted[THREADS], errors[THREADS];
};

struct one {
    struct sharing *all;
    int which;
};

static void *use_at_once(void *context)
{
    struct one *one = context;
    struct sharing *all = one->all;
    for (int round = 0; round < ROUNDS; round++) {
        sprag_hold hold;
        sprag_decision decision;
        sprag_error *error = NULL;
        bool is_well = sprag_lock_acquire(all->lock, SPRAG_FOREVER, &hold, NULL) == SPRAG_OK;
        /* Only the holder may touch these. */
        is_well = is_well && hold.token > all->token;
        all->token = hold.token;
        all->number++;
        is_well = sprag_hold_release(&hold, NULL) == SPRAG_OK && is_well;
        /* Errors are each their own thread's. */
        is_well = sprag_limiter_check(all->limiter, "k", 0, 1, NULL, &error) == SPRAG_ERROR_OUT_OF_RANGE && is_well;
        is_well = strcmp(sprag_error_message(error), "key is 0 bytes long; names are 1 to 1024 bytes") == 0 && is_well;
        sprag_error_free(error);
        one->all->admitted[one->which] += sprag_limiter_check(all->limiter, "k", 1, 1, &decision, NULL) == SPRAG_OK;
        one->all->errors[one->which] += !is_well;
    }
    return NULL;
}

static void threads_share_handles(void)
{
    sprag_space *space = open_space();
    struct sharing all = {.lock = open_lock(space, "shared")};
    struct one ones[THREADS];
    pthread_t threads[THREADS];
    unsigned admitted = 0;

    EXPECT(SPRAG_OK, sprag_limiter_open(space, "shared", 6, "1000/366d", 0, &all.limiter, NULL));
    for (int i = 0; i < THREADS; i++) {
        ones[i] = (struct one){&all, i};
        CHECK(pthread_create(&threads[i], NULL, use_at_once, &ones[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        admitted += all.admitted[i];
        CHECK(all.errors[i] == 0);
    }
    CHECK(all.number == (uint64_t)THREADS * ROUNDS);
    CHECK(admitted == 1000);
    sprag_limiter_close(all.limiter);
    sprag_lock_close(all.lock);
    sprag_space_close(space);
}

struct keeping {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t lost;
    bool is_freed;
};

static void on_lost(uint64_t token, void *context)
{
    struct keeping *keeping = context;
    pthread_mutex_lock(&keeping->mutex);
    keeping->lost = token;
    pthread_cond_signal(&keeping->changed);
    pthread_mutex_unlock(&keeping->mutex);
}

static void free_context(void *context)
{
    struct keeping *keeping = context;
    pthread_mutex_lock(&keeping->mutex);
    keeping->is_freed = true;
    pthread_cond_signal(&keeping->changed);
    pthread_mutex_unlock(&keeping->mutex);
}

static void a_lost_hold_that_was_kept_alive_calls_back_and_its_context_is_freed_once(void)
{
    struct keeping keeping = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    sprag_keep_alive_options options = {
        .size = sizeof options, .on_lost = on_lost, .context = &keeping, .free_context = free_context};
    sprag_space *space = open_space();
    sprag_lock *lock = open_lock(space, "kept");
    sprag_hold hold;

    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    uint64_t token = hold.token;
    EXPECT(SPRAG_OK, sprag_hold_keep_alive(&hold, &options, NULL));
    EXPECT(SPRAG_OK, sprag_lock_break(lock, NULL, NULL));
    pthread_mutex_lock(&keeping.mutex);
    while (keeping.lost == 0)
        pthread_cond_wait(&keeping.changed, &keeping.mutex);
    CHECK(keeping.lost == token);
    pthread_mutex_unlock(&keeping.mutex);
    CHECK(!sprag_hold_is_valid(&hold));

    /* Refused: the context stays the caller's. */
    struct keeping refused = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    options.context = &refused;
    EXPECT(SPRAG_ERROR_LOST, sprag_hold_keep_alive(&hold, &options, NULL));
    CHECK(!refused.is_freed && refused.lost == 0);

    EXPECT(SPRAG_ERROR_LOST, sprag_hold_release(&hold, NULL));
    pthread_mutex_lock(&keeping.mutex);
    while (!keeping.is_freed)
        pthread_cond_wait(&keeping.changed, &keeping.mutex);
    pthread_mutex_unlock(&keeping.mutex);
    sprag_lock_close(lock);
    sprag_space_close(space);
}

int main(void)
{
    char directory[] = "/tmp/sprag-test-XXXXXX";
    if (mkdtemp(directory) == NULL)
        return EXIT_FAILURE;
    snprintf(url, sizeof url, "shm:%s/region", directory);
    RUN(what_a_forked_child_inherits_is_not_its_own);
    RUN(what_a_killed_process_held_passes_on);
    RUN(a_forgotten_hold_keeps_its_lock_until_its_lease_is_over);
    RUN(a_wait_goes_on_after_signals);
    RUN(threads_share_handles);
    RUN(a_lost_hold_that_was_kept_alive_calls_back_and_its_context_is_freed_once);
    unlink(url + strlen("shm:"));
    rmdir(directory);
    return tests_done();
}
