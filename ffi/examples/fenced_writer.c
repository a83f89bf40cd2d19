/*
 * A lock can be lost without its holder knowing: the process is stopped, or its machine swaps, until the lease is over
 * and another has the lock. When it goes on, it is in the middle of a write, and only the storage can turn that down:
 * by a fence, which remembers the highest token and rejects lower ones.
 *
 * Two writers append to one ledger. The first is stopped, right before its second write, for longer than its lease.
 *
 *     cc -std=c11 fenced_writer.c -lsprag && ./a.out
 */

#define _XOPEN_SOURCE 700

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sprag.h>

/* What a writer has open. */
struct writer {
    const char *name;
    sprag_space *space;
    sprag_lock *lock;
    /* The storage's side. Where the storage is a server or a database, the fence is there. */
    sprag_fence *fence;
};

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

static struct writer open_writer(const char *url, const char *name)
{
    struct writer writer = {.name = name};
    sprag_error *error = NULL;

    must(sprag_space_open(url, NULL, &writer.space, &error), error);
    must(sprag_lock_open(writer.space, "ledger", strlen("ledger"), 300 * SPRAG_MILLISECOND, &writer.lock, &error),
         error);
    must(sprag_fence_open(writer.space, "ledger", strlen("ledger"), &writer.fence, &error), error);
    return writer;
}

static void close_writer(struct writer *writer)
{
    sprag_fence_close(writer->fence);
    sprag_lock_close(writer->lock);
    sprag_space_close(writer->space);
}

/* The storage: writes a line, unless whoever sends it has been followed by another. */
static void append(const struct writer *writer, const sprag_hold *hold, const char *line)
{
    sprag_error *error = NULL;
    sprag_status admitted = sprag_fence_admit(writer->fence, hold->token, &error);
    if (admitted == SPRAG_ERROR_STALE) {
        printf("rejected: %s, from the %s writer\n", line, writer->name);
        sprag_error_free(error);
    } else {
        must(admitted, error);
        printf("written: %s, by the %s writer\n", line, writer->name);
    }
    fflush(stdout);
}

static void first_writer(const char *url)
{
    struct writer writer = open_writer(url, "first");
    sprag_error *error = NULL;
    sprag_hold hold;

    must(sprag_lock_acquire(writer.lock, SPRAG_FOREVER, &hold, &error), error);
    append(&writer, &hold, "one");

    /* Whatever it asks before this point, the lease may end after it. */
    raise(SIGSTOP);
    append(&writer, &hold, "two");

    /* From here on it could know: */
    printf("the first writer's hold is %s\n", sprag_hold_is_valid(&hold) ? "valid" : "over");
    if (sprag_hold_release(&hold, NULL) == SPRAG_ERROR_LOST)
        printf("the first writer is told that it lost the lock\n");
    close_writer(&writer);
}

int main(void)
{
    /* "shm:my-ledger" would be a name for all programs of this user; the example uses a file of its own. */
    char directory[] = "/tmp/sprag-example-XXXXXX", url[64];
    must_system(mkdtemp(directory) != NULL, "mkdtemp");
    snprintf(url, sizeof url, "shm:%s/region", directory);

    pid_t first = fork();
    must_system(first >= 0, "fork");
    if (first == 0) {
        first_writer(url);
        exit(0);
    }
    int status;
    must_system(waitpid(first, &status, WUNTRACED) == first && WIFSTOPPED(status), "waitpid");

    /* Gets the lock when the lease of the first is over. */
    struct writer second = open_writer(url, "second");
    sprag_error *error = NULL;
    sprag_hold hold;
    must(sprag_lock_acquire(second.lock, SPRAG_FOREVER, &hold, &error), error);
    append(&second, &hold, "three");

    must_system(kill(first, SIGCONT) == 0, "kill");
    must_system(waitpid(first, &status, 0) == first && status == 0, "waitpid");

    /* Late as it may be: nobody else wanted the lock meanwhile. */
    must(sprag_hold_release(&hold, &error), error);
    close_writer(&second);
    unlink(url + strlen("shm:"));
    rmdir(directory);
    return 0;
}
