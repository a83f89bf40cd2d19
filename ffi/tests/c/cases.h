/*
 * How the steps of the shared cases are read: their fields, what their names stand for, and what their answers are
 * compared with.
 */

#ifndef CASES_H
#define CASES_H

#include "harness.h"

#include <cjson/cJSON.h>

/* What a case runs on, and what its names stand for. All is static: one case runs at a time. */
static sprag_manual_clock *hand_clock;
static sprag_space *space;

enum { NAMES_MAX = 32 };

static struct named {
    char name[16];
    bool is_held, is_begun;
    uint64_t token;
    sprag_hold hold;
    sprag_attempt attempt;
    sprag_decision decision;
    sprag_owner *owner;
    sprag_limiter *limiter;
} named[NAMES_MAX];

/* Ends the program: the case is not one that this reader can read. */
static inline void unreadable(const char *what, const cJSON *step)
{
    char *text = cJSON_PrintUnformatted(step);
    printf("%s: %s\n0 passed, 1 failed\n", what, text);
    exit(EXIT_FAILURE);
}

/* What a name of the case stands for; made if there is none. */
static inline struct named *find(const char *name)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (named[i].name[0] == '\0')
            snprintf(named[i].name, sizeof named[i].name, "%s", name);
        if (strcmp(named[i].name, name) == 0)
            return &named[i];
    }
    printf("too many names\n0 passed, 1 failed\n");
    exit(EXIT_FAILURE);
}

static inline const cJSON *get(const cJSON *step, const char *field)
{
    return cJSON_GetObjectItemCaseSensitive(step, field);
}

static inline const char *text(const cJSON *step, const char *field)
{
    const char *text = cJSON_GetStringValue(get(step, field));
    if (text == NULL)
        unreadable(field, step);
    return text;
}

/* A number, which is a text where a double could not hold it. */
static inline uint64_t number_of(const cJSON *value)
{
    if (cJSON_IsString(value))
        return value->valuestring[0] == '-' ? (uint64_t)strtoll(value->valuestring, NULL, 10)
                                            : strtoull(value->valuestring, NULL, 10);
    return value->valuedouble < 0 ? (uint64_t)(int64_t)value->valuedouble : (uint64_t)value->valuedouble;
}

static inline uint64_t number(const cJSON *step, const char *field)
{
    const cJSON *value = get(step, field);
    if (value == NULL)
        unreadable(field, step);
    return number_of(value);
}

static inline uint64_t number_or(const cJSON *step, const char *field, uint64_t otherwise)
{
    return get(step, field) == NULL ? otherwise : number(step, field);
}

static inline uint64_t milliseconds(const cJSON *step, const char *field)
{
    return number(step, field) * SPRAG_MILLISECOND;
}

static inline bool is_true(const cJSON *step, const char *field)
{
    return cJSON_IsTrue(get(step, field));
}

/* A check that shows the step if it fails. */
static inline void holds(bool condition, const char *what, const cJSON *step)
{
    if (condition)
        return;
    char *shown = cJSON_PrintUnformatted(step);
    printf("    %s: %s\n", what, shown);
    free(shown);
    is_failing = true;
}

/* The word for a status. */
static inline const char *word_of(sprag_status status)
{
    switch (status) {
    case SPRAG_OK: return "ok";
    case SPRAG_REFUSED: return "refused";
    case SPRAG_BUSY: return "busy";
    case SPRAG_DIFFERS:
    case SPRAG_ERROR_DEFINITION_DIFFERS: return "differs";
    case SPRAG_NONE: return "none";
    case SPRAG_IN_PROGRESS: return "in_progress";
    case SPRAG_DONE: return "done";
    case SPRAG_UNFINISHED: return "unfinished";
    case SPRAG_ERROR_LOST: return "lost";
    case SPRAG_ERROR_STALE: return "stale";
    case SPRAG_ERROR_OUT_OF_RANGE: return "out_of_range";
    case SPRAG_ERROR_OWNER_SHARES: return "owner_shares";
    case SPRAG_ERROR_ABOVE_CAPACITY: return "above_capacity";
    case SPRAG_ERROR_COUNTER_OVERFLOW: return "overflow";
    default: return sprag_status_text(status);
    }
}

static inline void is_word(const char *word, const char *field, const cJSON *step)
{
    const cJSON *expected = get(step, field);
    const char *expect = expected == NULL ? "ok" : cJSON_GetStringValue(expected);
    if (expect == NULL || strcmp(word, expect) != 0)
        holds(false, word, step);
}

static inline void is_status(sprag_status status, const cJSON *step)
{
    is_word(word_of(status), "expect", step);
}

static inline void is_bool(bool seen, const cJSON *step)
{
    holds(seen == is_true(step, "expect"), seen ? "true" : "false", step);
}

static inline bool is_advance(const cJSON *step)
{
    uint64_t by_ns = number_or(step, "advance_ms", 0) * SPRAG_MILLISECOND + number_or(step, "advance_ns", 0);
    if (by_ns != 0)
        EXPECT(SPRAG_OK, sprag_manual_clock_advance(hand_clock, by_ns, NULL));
    return by_ns != 0;
}

/* The token that a field's name stands for, or the number itself. */
static inline uint64_t token_of(const cJSON *value)
{
    return cJSON_IsString(value) ? find(value->valuestring)->token : number_of(value);
}

static inline void compare_token(uint64_t token, const cJSON *step)
{
    if (get(step, "after") != NULL)
        holds(token == token_of(get(step, "after")) + 1, "another token", step);
    if (get(step, "same") != NULL)
        holds(token == token_of(get(step, "same")), "another token", step);
}

#endif
