/*
 * Loads the library at run time, by the versions of its symbols, leaves a thread of its running, and closes it. That
 * thread goes on, and a child may be forked: the library stays.
 *
 *     unloading LIBRARY
 */

#define _GNU_SOURCE

#include <sprag.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed(const char *what)
{
    printf("failed: %s\n", what);
    return 1;
}

/* The function of this name, in the version that programs of this release are linked with. */
static int find(void *library, const char *name, void *function)
{
    void *found = dlvsym(library, name, "SPRAG_0");
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* A hold that is kept alive has its lease renewed by the library's thread, a third of the way through it. */
static int is_renewed(bool (*is_valid)(const sprag_hold *), uint64_t (*left)(const sprag_hold *), const sprag_hold *hold)
{
    const struct timespec pause = {0, 1000 * 1000};
    uint64_t least = left(hold);
    while (is_valid(hold)) {
        uint64_t now = left(hold);
        if (now > least)
            return 1;
        least = now;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int main(int count, char **arguments)
{
    sprag_status (*space_open)(const char *, const sprag_space_options *, sprag_space **, sprag_error **);
    sprag_status (*lock_open)(const sprag_space *, const void *, size_t, uint64_t, sprag_lock **, sprag_error **);
    sprag_status (*acquire)(const sprag_lock *, uint64_t, sprag_hold *, sprag_error **);
    sprag_status (*keep_alive)(sprag_hold *, const sprag_keep_alive_options *, sprag_error **);
    bool (*is_valid)(const sprag_hold *);
    uint64_t (*lease_left)(const sprag_hold *);
    sprag_space *space = NULL;
    sprag_lock *lock = NULL;
    sprag_hold hold;
    void *library;
    pid_t child;
    int status = 0;

    memset(&hold, 0, sizeof hold);
    library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL)
        return failed("to load the library");
    if (!find(library, "sprag_space_open", &space_open) || !find(library, "sprag_lock_open", &lock_open) ||
        !find(library, "sprag_lock_acquire", &acquire) || !find(library, "sprag_hold_keep_alive", &keep_alive) ||
        !find(library, "sprag_hold_is_valid", &is_valid) || !find(library, "sprag_hold_lease_left_ns", &lease_left))
        return failed("to find its functions");
    if (space_open("mem:", NULL, &space, NULL) != SPRAG_OK ||
        lock_open(space, "nightly", 7, 3 * SPRAG_SECOND, &lock, NULL) != SPRAG_OK ||
        acquire(lock, 0, &hold, NULL) != SPRAG_OK || keep_alive(&hold, NULL, NULL) != SPRAG_OK)
        return failed("to have a lock that is kept alive");
    if (dlclose(library) != 0 || dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == NULL)
        return failed("to keep the library loaded");
    if (!is_renewed(is_valid, lease_left, &hold))
        return failed("to have the lease renewed");
    child = fork();
    if (child == 0)
        _exit(is_valid(&hold) ? 1 : 0);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return failed("to fork a child that holds nothing");
    printf("all is well\n");
    return 0;
}
