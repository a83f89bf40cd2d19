/*
 * The harness of the C tests: each test is a function whose name says what it proves. A check that fails is printed, and the
 * test goes on; the last line counts tests.
 */

#ifndef HARNESS_H
#define HARNESS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sprag.h>

static unsigned tests_passed, tests_failed;
static bool is_failing;

static inline bool check(bool holds, const char *what, const char *file, int line)
{
    if (!holds) {
        printf("    %s:%d: %s\n", file, line, what);
        is_failing = true;
    }
    return holds;
}

/* A condition that must hold. */
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

static inline bool check_status(sprag_status got, sprag_status expected, const char *what, const char *file, int line)
{
    bool is_same = check(got == expected, what, file, line);
    if (!is_same)
        printf("        status %" PRId32 " (%s), expected %" PRId32 " (%s)\n", got, sprag_status_text(got), expected,
               sprag_status_text(expected));
    return is_same;
}

/* A call that must return this status. */
#define EXPECT(expected, call) check_status((call), (expected), #call, __FILE__, __LINE__)

static inline bool check_text(const char *got, const char *expected, const char *what, const char *file, int line)
{
    bool is_same = check(got == expected || (got != NULL && expected != NULL && strcmp(got, expected) == 0), what, file,
                         line);
    if (!is_same)
        printf("        \"%s\", expected \"%s\"\n", got ? got : "NULL", expected ? expected : "NULL");
    return is_same;
}

/* A text that must be this one, or NULL. */
#define EXPECT_TEXT(expected, text) check_text((text), (expected), #text, __FILE__, __LINE__)

/* Runs a test. */
#define RUN(test) run_test(#test, test)

static inline void run_test(const char *name, void (*test)(void))
{
    is_failing = false;
    test();
    printf("test %s ... %s\n", name, is_failing ? "FAILED" : "ok");
    fflush(stdout);
    if (is_failing)
        tests_failed++;
    else
        tests_passed++;
}

/* Prints the count; what main returns. */
static inline int tests_done(void)
{
    printf("%u passed, %u failed\n", tests_passed, tests_failed);
    return tests_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
