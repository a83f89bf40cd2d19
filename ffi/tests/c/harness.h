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

/* Checks an error, and frees it. */
static inline void is_error(sprag_status got, sprag_error *error, sprag_status status, const char *argument,
                     const char *message, const char *file, int line)
{
    check_status(got, status, "the status", file, line);
    if (check(error != NULL, "an error is written", file, line)) {
        check_status(sprag_error_status(error), status, "the error's status", file, line);
        check_text(sprag_error_argument(error), argument, "the error's argument", file, line);
        check_text(sprag_error_message(error), message, "the error's message", file, line);
    }
    sprag_error_free(error);
}

/* A call with `error` as its last argument must fail in this way; without one it fails all the same. */
#define FAILS(status, argument, message, call)                                                                         \
    do {                                                                                                               \
        sprag_error *written = NULL, **error = &written;                                                               \
        sprag_status got = (call);                                                                                     \
        is_error(got, written, status, argument, message, __FILE__, __LINE__);                                         \
        error = NULL;                                                                                                  \
        check_status((call), status, #call, __FILE__, __LINE__);                                                       \
    } while (0)

/* A call whose `argument` is NULL. */
#define NULL_FAILS(argument, call) FAILS(SPRAG_ERROR_NULL, argument, argument " is NULL; it must not be", call)

/* Any bytes that nobody may have touched. */
enum { UNTOUCHED = 0xA5 };

static inline bool is_untouched(const void *at, size_t len)
{
    const unsigned char *bytes = at;
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != UNTOUCHED)
            return false;
    return true;
}

/* Counts a test that has run. */
static inline void end_test(const char *name)
{
    printf("test %s ... %s\n", name, is_failing ? "FAILED" : "ok");
    fflush(stdout);
    if (is_failing)
        tests_failed++;
    else
        tests_passed++;
}

static inline void run_test(const char *name, void (*test)(void))
{
    is_failing = false;
    test();
    end_test(name);
}

/* Runs a test. */
#define RUN(test) run_test(#test, test)

/* Prints the count; what main returns. */
static inline int tests_done(void)
{
    printf("%u passed, %u failed\n", tests_passed, tests_failed);
    return tests_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
