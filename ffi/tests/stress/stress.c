/*
 * Drives one region from many processes at once, in as many languages as there are workers, kills some of them at random,
 * and finds out whether the rules of page.h held.
 *
 *     stress SECONDS SEED WORKER ...
 *
 * Each WORKER is a command, such as "./worker" or "python3 worker.py", and gets two seats. The same seed kills the same
 * seats in the same order.
 */

#define _GNU_SOURCE

#include "../c/harness.h"
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t *page;
static char url[128], page_path[128];
static char **workers;
static uint64_t seats, next_id = 1, kills, random_state;
static pid_t processes[SEATS_MAX];
static uint64_t began_ns, ended_ns;

static _Atomic uint64_t *seat_word(uint64_t seat, unsigned word)
{
    return &page[SEAT + seat * SEAT_WORDS + word];
}

static uint64_t random_below(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 20) % bound;
}

/* The clock that the engine's limits run on. */
static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * SPRAG_SECOND + (uint64_t)now.tv_nsec;
}

static void start(uint64_t seat)
{
    char command[1024];
    uint64_t id = next_id++;

    atomic_store(seat_word(seat, HAS), 0);
    atomic_store(seat_word(seat, SEAT_ID), id);
    snprintf(command, sizeof command, "exec %s '%s' '%s' %" PRIu64 " %" PRIu64, workers[seat / 2], url, page_path, seat,
             id);
    processes[seat] = fork();
    if (processes[seat] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
}

/* Whether all workers are at work. One that ended by itself has said why. */
static bool are_at_work(void)
{
    bool are_well = true;
    for (uint64_t seat = 0; seat < seats; seat++) {
        int status;
        if (processes[seat] > 0 && waitpid(processes[seat], &status, WNOHANG) == processes[seat]) {
            printf("    a worker of %s ended with %d\n", workers[seat / 2], status);
            processes[seat] = 0;
            are_well = false;
        }
    }
    return are_well;
}

static void kill_one(void)
{
    uint64_t seat = random_below(seats);
    int status;

    atomic_store(&page[KILLED + *seat_word(seat, SEAT_ID)], 1);
    kill(processes[seat], SIGKILL);
    waitpid(processes[seat], &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    kills++;
    start(seat);
}

/* Whether each worker has done something of everything. */
static bool have_all_worked(void)
{
    for (uint64_t seat = 0; seat < seats; seat++)
        for (unsigned word = RATE_ADMITTED; word < COUNTED + LOCKS; word++)
            if (word != 7 && atomic_load(seat_word(seat, word)) == 0)
                return false;
    return true;
}

static uint64_t sum(unsigned word)
{
    uint64_t sum = 0;
    for (uint64_t seat = 0; seat < seats; seat++)
        sum += atomic_load(seat_word(seat, word));
    return sum;
}

/* What a rate lets through from the beginning until then, beside its burst. */
static int64_t flows_until(uint64_t then_ns)
{
    return (int64_t)((then_ns - began_ns) / 1000 * RATE_PER_SECOND / 1000000);
}

/*
 * Whether at most a burst, and what flows in, was admitted from each of the looks before until now. From the beginning
 * alone would say little: while all wait for what one held that was killed, more flows in than the bucket holds. At each
 * look, each worker may have one admission that it has not counted.
 */
static void look_at_the_rate(void)
{
    static int64_t least_ahead = 0;
    uint64_t before_ns = now_ns();
    int64_t admitted = (int64_t)sum(RATE_ADMITTED);
    uint64_t after_ns = now_ns();

    CHECK(admitted - flows_until(after_ns) - least_ahead <= RATE_BURST + (int64_t)seats + 2);
    if (admitted - flows_until(before_ns) < least_ahead)
        least_ahead = admitted - flows_until(before_ns);
}

static uint64_t seconds;

static void workers_follow_the_rules_while_some_are_killed(void)
{
    began_ns = now_ns();
    for (uint64_t seat = 0; seat < seats; seat++)
        start(seat);
    /* Long enough for everyone to have done everything, however slow the machine; and then as long as was asked for. */
    while (!is_failing && (now_ns() - began_ns < seconds * SPRAG_SECOND || !have_all_worked())) {
        struct timespec pause = {.tv_nsec = (long)(20 + random_below(100)) * 1000000};
        nanosleep(&pause, NULL);
        look_at_the_rate();
        if (CHECK(are_at_work()) && have_all_worked() && next_id < IDS_MAX)
            kill_one();
    }
    atomic_store(&page[STOP], 1);
    for (uint64_t seat = 0; seat < seats; seat++) {
        int status;
        if (processes[seat] > 0) {
            CHECK(waitpid(processes[seat], &status, 0) == processes[seat]);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
    }
    ended_ns = now_ns();
}

/* What was granted in all, given what was counted: each that was killed may have been before it counted. */
static void is_counted(const char *what, uint64_t granted, uint64_t counted)
{
    printf("    %s: %" PRIu64 ", of which %" PRIu64 " were counted\n", what, granted, counted);
    CHECK(counted <= granted && granted - counted <= kills);
}

static void nothing_was_lost_under_the_locks(void)
{
    for (unsigned lock = 0; lock < LOCKS; lock++)
        is_counted("times inside", atomic_load(&page[COUNT + lock]), sum(COUNTED + lock));
    printf("    beside others: %" PRIu64 ", permits looked at: %" PRIu64 "\n", sum(SHARED), sum(SNAPSHOTS));
}

static sprag_space *space;

static void limits_were_exact(void)
{
    sprag_limiter *few = NULL;
    sprag_decision decision;
    uint64_t rate = sum(RATE_ADMITTED), counted = sum(FEW_ADMITTED);
    uint64_t at_most = RATE_BURST + (ended_ns - began_ns) / 1000 * RATE_PER_SECOND / 1000000 + 1;

    EXPECT(SPRAG_OK, sprag_limiter_open(space, FEW_NAME, strlen(FEW_NAME), FEW_LIMIT, 0, &few, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_peek(few, KEY, strlen(KEY), &decision, NULL));
    is_counted("admitted of a few", FEW_COUNT - sprag_decision_remaining(&decision), counted);
    sprag_limiter_close(few);
    printf("    admitted at a rate: %" PRIu64 ", at most %" PRIu64 "\n", rate, at_most);
    CHECK(rate <= at_most);
}

static void the_counter_missed_nothing(void)
{
    sprag_counter *counter = NULL;
    int64_t number = 0;
    EXPECT(SPRAG_OK, sprag_counter_open(space, COUNTER_NAME, strlen(COUNTER_NAME), &counter, NULL));
    EXPECT(SPRAG_OK, sprag_counter_get(counter, &number, NULL));
    is_counted("additions", (uint64_t)number, sum(ADDED));
    sprag_counter_close(counter);
}

/* A counter that is off is counted anew once room is short; all else contradicts itself. */
static bool is_in_passing(const char *finding, void *context)
{
    (void)context;
    if (strstr(finding, "counted ") == NULL)
        CHECK(!finding);
    return true;
}

static void nothing_is_left_of_the_dead(void)
{
    sprag_lock *table = NULL;
    sprag_semaphore *semaphore = NULL;
    sprag_hold hold, all;

    EXPECT(SPRAG_OK, sprag_lock_open_table(space, 0, &table, NULL));
    EXPECT(SPRAG_OK, sprag_lock_acquire(table, 0, &hold, NULL));
    EXPECT(SPRAG_OK, sprag_semaphore_open(space, SEMAPHORE_NAME, strlen(SEMAPHORE_NAME), PERMITS, 0, &semaphore, NULL));
    EXPECT(SPRAG_OK, sprag_semaphore_acquire(semaphore, PERMITS, 0, &all, NULL));
    EXPECT(SPRAG_OK, sprag_hold_release(&all, NULL));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    sprag_semaphore_close(semaphore);
    sprag_lock_close(table);
    EXPECT(SPRAG_OK, sprag_region_check(space, is_in_passing, NULL, NULL, NULL));
}

int main(int argc, char **argv)
{
    char directory[] = "/dev/shm/sprag-stress-XXXXXX";

    if (argc < 4 || (argc - 3) * 2 > SEATS_MAX) {
        fprintf(stderr, "usage: %s SECONDS SEED WORKER ...\n", argv[0]);
        return EXIT_FAILURE;
    }
    seconds = strtoull(argv[1], NULL, 10);
    random_state = strtoull(argv[2], NULL, 10) * 2 + 1;
    workers = argv + 3;
    seats = (uint64_t)(argc - 3) * 2;
    if (mkdtemp(directory) == NULL) {
        perror(directory);
        return EXIT_FAILURE;
    }
    snprintf(url, sizeof url, "shm:%s/region", directory);
    snprintf(page_path, sizeof page_path, "%s/page", directory);
    int file = open(page_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, PAGE_WORDS * sizeof *page) != 0) {
        perror(page_path);
        return EXIT_FAILURE;
    }
    page = mmap(NULL, PAGE_WORDS * sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    atomic_store(&page[SEATS], seats);

    RUN(workers_follow_the_rules_while_some_are_killed);
    printf("    %" PRIu64 " kills, %" PRIu64 " workers\n", kills, next_id - 1);
    EXPECT(SPRAG_OK, sprag_space_open(url, NULL, &space, NULL));
    RUN(nothing_was_lost_under_the_locks);
    RUN(limits_were_exact);
    RUN(the_counter_missed_nothing);
    RUN(nothing_is_left_of_the_dead);
    sprag_space_close(space);

    unlink(page_path);
    unlink(url + strlen("shm:"));
    rmdir(directory);
    return tests_done();
}
