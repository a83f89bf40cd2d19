/*
 * One limit for all the workers of a server that forks them, as web servers do. A process owns nothing in a space that
 * was opened before it was forked; so the parent forks first, and each worker opens the space for itself.
 *
 * The second half shows what a worker gets that does it the other way round.
 *
 *     cc -std=c11 prefork_workers.c -lsprag && ./a.out
 */

#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sprag.h>

enum { WORKERS = 4, REQUESTS = 50 };

/* All of them together: 100 of the 200 requests. The next one is let in after 14 minutes. */
static const char LIMIT[] = "100/day";

/* Ends the process if a call of the library failed. */
static void must(sprag_status status, sprag_error *error)
{
    if (status < 0) {
        fprintf(stderr, "%s\n", sprag_error_message(error));
        sprag_error_free(error);
        exit(1);
    }
}

static void must_system(bool is_done, const char *what)
{
    if (!is_done) {
        perror(what);
        exit(1);
    }
}

/* Waits for a child, which must have exited with 0. */
static void join(pid_t child)
{
    int status;
    must_system(waitpid(child, &status, 0) == child, "waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "a worker failed\n");
        exit(1);
    }
}

/* What a worker does, from its own opening of the space on; how many of its requests were admitted. */
static int work(const char *url)
{
    sprag_space *space = NULL;
    sprag_limiter *limiter = NULL;
    sprag_error *error = NULL;
    int admitted = 0;

    must(sprag_space_open(url, NULL, &space, &error), error);
    must(sprag_limiter_open(space, "requests", strlen("requests"), LIMIT, 0, &limiter, &error), error);
    for (int i = 0; i < REQUESTS; i++) {
        sprag_status checked = sprag_limiter_check(limiter, "all", strlen("all"), 1, NULL, &error);
        must(checked, error);
        admitted += checked == SPRAG_OK;
    }
    sprag_limiter_close(limiter);
    sprag_space_close(space);
    return admitted;
}

/* Forks first. */
static void right_way(const char *url)
{
    pid_t workers[WORKERS];
    int counts[2], sum = 0;

    must_system(pipe(counts) == 0, "pipe");
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        must_system(workers[i] >= 0, "fork");
        if (workers[i] == 0) {
            int admitted = work(url);
            must_system(write(counts[1], &admitted, sizeof admitted) == sizeof admitted, "write");
            exit(0);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        int admitted;
        join(workers[i]);
        must_system(read(counts[0], &admitted, sizeof admitted) == sizeof admitted, "read");
        sum += admitted;
    }
    close(counts[0]);
    close(counts[1]);
    printf("%d workers made %d requests, and %d were admitted\n", WORKERS, WORKERS * REQUESTS, sum);
}

/* Opens first. */
static void wrong_way(const char *url)
{
    sprag_space *space = NULL;
    sprag_lock *lock = NULL;
    sprag_error *error = NULL;
    sprag_hold hold;

    must(sprag_space_open(url, NULL, &space, &error), error);
    must(sprag_lock_open(space, "config", strlen("config"), 0, &lock, &error), error);
    must(sprag_lock_acquire(lock, 0, &hold, &error), error);
    fflush(stdout);

    pid_t child = fork();
    must_system(child >= 0, "fork");
    if (child == 0) {
        /* The hold is its parent's, as is the session. Were the child to act for that, two processes would hold one lock. */
        sprag_status status = sprag_hold_release(&hold, &error);
        printf("a worker that was forked after opening gets %s: %s\n",
               status == SPRAG_ERROR_FORKED ? "SPRAG_ERROR_FORKED" : "something else", sprag_error_message(error));
        sprag_error_free(error);

        /* The way out: close what it inherited, which its parent does not notice, and open again. */
        sprag_lock_close(lock);
        sprag_space_close(space);
        printf("once it has opened the space itself, %d of its %d requests were admitted\n", work(url), REQUESTS);
        exit(0);
    }
    join(child);
    printf("its parent %s the lock\n", sprag_hold_is_held(&hold) ? "still holds" : "has lost");

    must(sprag_hold_release(&hold, &error), error);
    sprag_lock_close(lock);
    sprag_space_close(space);
}

int main(void)
{
    /* "shm:my-server" would be a name for all programs of this user; the example uses a file of its own. */
    char directory[] = "/tmp/sprag-example-XXXXXX", url[64];
    must_system(mkdtemp(directory) != NULL, "mkdtemp");
    snprintf(url, sizeof url, "shm:%s/region", directory);

    right_way(url);
    wrong_way(url);

    unlink(url + strlen("shm:"));
    rmdir(directory);
    return 0;
}
