/*
 * Runs the cases that every language shares, over the C ABI: api/tests/cases, whose README says what they mean. The argument
 * is their directory. How a step is read is in cases.h.
 */

#include "cases.h"

#include <cjson/cJSON.h>

static sprag_limiter *limiter;
static sprag_joint_limiter *joint_limiter;

/* HOLDS */

/* What a step acquires: one of the two handles. */
struct acquired {
    sprag_lock *lock;
    sprag_semaphore *semaphore;
};

static sprag_status open_acquired(const cJSON *step, struct acquired *to)
{
    uint64_t ttl_ns = number_or(step, "ttl_ms", 0) * SPRAG_MILLISECOND;
    const char *name;
    if (get(step, "semaphore") != NULL) {
        name = text(step, "semaphore");
        return sprag_semaphore_open(space, name, strlen(name), (uint32_t)number(step, "permits"), ttl_ns,
                                    &to->semaphore, NULL);
    }
    if (get(step, "concurrency") != NULL) {
        sprag_concurrency *concurrency = NULL;
        name = text(step, "concurrency");
        sprag_status status =
            sprag_concurrency_open(space, name, strlen(name), (uint32_t)number(step, "permits"),
                                   is_true(step, "update") ? SPRAG_UPDATE : 0, &concurrency, NULL);
        if (status != SPRAG_OK)
            return status;
        const char *key = text(step, "key");
        status = sprag_concurrency_key(concurrency, key, strlen(key), ttl_ns, &to->semaphore, NULL);
        sprag_concurrency_close(concurrency);
        return status;
    }
    if (get(step, "locks") != NULL) {
        sprag_bytes names[64];
        size_t count = 0;
        const cJSON *each;
        cJSON_ArrayForEach(each, get(step, "locks"))
            names[count++] = (sprag_bytes){each->valuestring, strlen(each->valuestring)};
        return sprag_lock_open_several(space, names, count, ttl_ns, &to->lock, NULL);
    }
    if (get(step, "partition_of") != NULL) {
        uint32_t partition = 0;
        name = text(step, "partition_of");
        EXPECT(SPRAG_OK, sprag_space_partition_of(space, name, strlen(name), &partition, NULL));
        return sprag_lock_open_partition(space, partition, ttl_ns, &to->lock, NULL);
    }
    if (get(step, "table") != NULL)
        return sprag_lock_open_table(space, ttl_ns, &to->lock, NULL);
    name = text(step, "lock");
    return sprag_lock_open(space, name, strlen(name), ttl_ns, &to->lock, NULL);
}

static void close_acquired(struct acquired *of)
{
    sprag_lock_close(of->lock);
    sprag_semaphore_close(of->semaphore);
}

static void try_step(const cJSON *step)
{
    struct acquired of = {NULL, NULL};
    sprag_hold hold = {0};
    sprag_status status = open_acquired(step, &of);

    if (status == SPRAG_OK && of.semaphore != NULL) {
        status = sprag_semaphore_acquire(of.semaphore, (uint32_t)number_or(step, "count", 1), 0, &hold, NULL);
    } else if (status == SPRAG_OK && (get(step, "owner") != NULL || get(step, "mode") != NULL)) {
        sprag_acquire_options options = {.size = sizeof options};
        if (get(step, "owner") != NULL) {
            struct named *owner = find(text(step, "owner"));
            if (owner->owner == NULL)
                EXPECT(SPRAG_OK, sprag_owner_open(space, &owner->owner, NULL));
            options.owner = owner->owner;
        }
        if (get(step, "mode") != NULL)
            options.mode = SPRAG_SHARED;
        status = sprag_lock_acquire_with(of.lock, &options, &hold, NULL);
    } else if (status == SPRAG_OK) {
        status = sprag_lock_acquire(of.lock, 0, &hold, NULL);
    }
    close_acquired(&of);

    is_word(status == SPRAG_OK ? "granted" : word_of(status), "expect", step);
    if (status == SPRAG_OK) {
        struct named *as = find(text(step, "as"));
        as->hold = hold;
        as->token = hold.token;
        as->is_held = true;
        compare_token(hold.token, step);
    }
}

/* Of tokens: released, renewed or adopted. */
static void token_step(const char *verb, const cJSON *step)
{
    struct acquired of = {NULL, NULL};
    sprag_hold hold;
    uint64_t token = token_of(get(step, "token"));
    sprag_status status = open_acquired(step, &of);

    if (status == SPRAG_OK && strcmp(verb, "release_token") == 0)
        status = of.lock ? sprag_lock_release_token(of.lock, token, NULL)
                         : sprag_semaphore_release_token(of.semaphore, token, NULL);
    else if (status == SPRAG_OK && strcmp(verb, "renew_token") == 0)
        status = of.lock ? sprag_lock_renew_token(of.lock, token, NULL)
                         : sprag_semaphore_renew_token(of.semaphore, token, NULL);
    else if (status == SPRAG_OK)
        status = of.lock ? sprag_lock_adopt_token(of.lock, token, &hold, NULL)
                         : sprag_semaphore_adopt_token(of.semaphore, token, &hold, NULL);
    close_acquired(&of);

    is_status(status, step);
    if (status == SPRAG_OK && strcmp(verb, "adopt") == 0) {
        struct named *as = find(text(step, "as"));
        as->hold = hold;
        as->token = hold.token;
        as->is_held = true;
    }
}

static bool inspect_lock(const sprag_lock_info *info, void *context)
{
    const cJSON *step = context, *field;
    cJSON_ArrayForEach(field, get(step, "expect"))
    {
        bool is_same;
        if (strcmp(field->string, "held") == 0)
            is_same = info->is_held == (bool)cJSON_IsTrue(field);
        else if (strcmp(field->string, "token") == 0)
            is_same = info->token == token_of(field);
        else if (strcmp(field->string, "waiters") == 0)
            is_same = info->waiters == number_of(field);
        else if (strcmp(field->string, "lease_left_ms") == 0)
            is_same = info->lease_left_ns == number_of(field) * SPRAG_MILLISECOND;
        else
            is_same = false;
        holds(is_same, field->string, step);
    }
    return false;
}

static void break_step(const cJSON *step)
{
    struct acquired of = {NULL, NULL};
    uint64_t token = 0;
    bool is_none = cJSON_IsNull(get(step, "expect"));

    EXPECT(SPRAG_OK, open_acquired(step, &of));
    EXPECT(is_none ? SPRAG_NONE : SPRAG_OK, sprag_lock_break(of.lock, &token, NULL));
    holds(is_none || token == token_of(get(step, "expect")), "another token", step);
    close_acquired(&of);
}

static void fence_step(const char *verb, const cJSON *step)
{
    sprag_fence *fence = NULL;
    const char *name = text(step, "fence");
    const cJSON *given = get(step, "number") != NULL ? get(step, "number") : get(step, "token");

    EXPECT(SPRAG_OK, sprag_fence_open(space, name, strlen(name), &fence, NULL));
    if (strcmp(verb, "highest") == 0)
        holds(sprag_fence_highest(fence) == token_of(get(step, "expect")), "another token", step);
    else if (strcmp(verb, "admit") == 0)
        is_status(sprag_fence_admit(fence, token_of(given), NULL), step);
    else
        is_status(sprag_fence_admit_once(fence, token_of(given), NULL), step);
    sprag_fence_close(fence);
}

static void hold_step(const cJSON *step)
{
    const char *verb = text(step, "do");
    struct named *of = get(step, "hold") != NULL ? find(text(step, "hold")) : NULL;
    sprag_hold *hold = of != NULL ? &of->hold : NULL;
    uint64_t token;

    if (strcmp(verb, "advance") == 0) {
        EXPECT(SPRAG_OK, sprag_manual_clock_advance(hand_clock, milliseconds(step, "ms"), NULL));
    } else if (strcmp(verb, "try") == 0) {
        try_step(step);
    } else if (strcmp(verb, "release") == 0) {
        is_status(sprag_hold_release(hold, NULL), step);
        of->is_held = false;
    } else if (strcmp(verb, "drop") == 0) {
        EXPECT(SPRAG_OK, sprag_hold_release(hold, NULL));
        of->is_held = false;
    } else if (strcmp(verb, "detach") == 0) {
        is_status(sprag_hold_detach(hold, &token, NULL), step);
        of->is_held = false;
    } else if (strcmp(verb, "renew") == 0) {
        is_status(sprag_hold_renew(hold, NULL), step);
    } else if (strcmp(verb, "extend") == 0) {
        is_status(sprag_hold_extend(hold, milliseconds(step, "ttl_ms"), NULL), step);
    } else if (strcmp(verb, "upgrade") == 0) {
        is_status(sprag_hold_upgrade(hold, 0, NULL), step);
        of->token = hold->token;
        compare_token(hold->token, step);
    } else if (strcmp(verb, "downgrade") == 0) {
        is_status(sprag_hold_downgrade(hold, NULL), step);
    } else if (strcmp(verb, "valid") == 0) {
        is_bool(sprag_hold_is_valid(hold), step);
    } else if (strcmp(verb, "held") == 0) {
        is_bool(sprag_hold_is_held(hold), step);
    } else if (strcmp(verb, "shared") == 0) {
        is_bool(sprag_hold_is_shared(hold), step);
    } else if (strcmp(verb, "break") == 0) {
        break_step(step);
    } else if (strcmp(verb, "inspect") == 0) {
        const char *name = text(step, "lock");
        EXPECT(SPRAG_OK, sprag_space_each_lock(space, name, strlen(name), inspect_lock, (void *)(uintptr_t)step, NULL));
    } else if (get(step, "fence") != NULL) {
        fence_step(verb, step);
    } else if (strcmp(verb, "release_token") == 0 || strcmp(verb, "renew_token") == 0 || strcmp(verb, "adopt") == 0) {
        token_step(verb, step);
    } else {
        unreadable("an unknown step", step);
    }
}

/* COUNTERS */

static void counter_step(const cJSON *step)
{
    const char *verb = text(step, "do");
    bool is_striped = get(step, "striped") != NULL;
    const char *name = text(step, is_striped ? "striped" : "counter");
    int64_t is = 0;
    sprag_counter *counter = NULL;
    sprag_striped_counter *striped = NULL;
    sprag_status status = SPRAG_OK;

    if (is_striped)
        EXPECT(SPRAG_OK, sprag_striped_counter_open(space, name, strlen(name), &striped, NULL));
    else
        EXPECT(SPRAG_OK, sprag_counter_open(space, name, strlen(name), &counter, NULL));
    if (strcmp(verb, "get") == 0)
        status = is_striped ? sprag_striped_counter_get(striped, &is, NULL) : sprag_counter_get(counter, &is, NULL);
    else if (strcmp(verb, "add") == 0 && is_striped)
        status = sprag_striped_counter_add(striped, (int64_t)number(step, "delta"), NULL);
    else if (strcmp(verb, "add") == 0)
        status = sprag_counter_add(counter, (int64_t)number(step, "delta"), &is, NULL);
    else if (strcmp(verb, "add_within") == 0)
        status = sprag_counter_add_within(counter, (int64_t)number(step, "delta"), (int64_t)number(step, "min"),
                                          (int64_t)number(step, "max"), &is, NULL);
    else if (strcmp(verb, "swap") == 0)
        status = sprag_counter_swap(counter, (int64_t)number(step, "to"), &is, NULL);
    else if (strcmp(verb, "compare_exchange") == 0)
        status = sprag_counter_compare_exchange(counter, (int64_t)number(step, "from"), (int64_t)number(step, "to"),
                                                &is, NULL);
    else
        unreadable("an unknown step", step);
    sprag_counter_close(counter);
    sprag_striped_counter_close(striped);
    is_status(status, step);
    if (get(step, "is") != NULL)
        holds(is == (int64_t)number(step, "is"), "another number", step);
}

/* IDEMPOTENCY KEYS */

static void once_step(const cJSON *step)
{
    const char *verb = text(step, "do"), *key, *given = cJSON_GetStringValue(get(step, "result"));
    struct named *of = get(step, "attempt") != NULL ? find(text(step, "attempt")) : NULL;
    char result[SPRAG_RESULT_BYTES_MAX];
    size_t result_len = 0;
    sprag_once *once = NULL;
    sprag_status status = SPRAG_OK;
    uint64_t token = 0;

    if (get(step, "once") != NULL) {
        key = text(step, "once");
        EXPECT(SPRAG_OK, sprag_once_open(space, key, strlen(key), &once, NULL));
    }
    if (get(step, "token") != NULL)
        token = token_of(get(step, "token"));

    if (strcmp(verb, "advance") == 0) {
        EXPECT(SPRAG_OK, sprag_manual_clock_advance(hand_clock, milliseconds(step, "ms"), NULL));
        return;
    }
    if (strcmp(verb, "valid") == 0) {
        is_bool(sprag_attempt_is_valid(&of->attempt), step);
        return;
    }
    if (strcmp(verb, "after_unfinished") == 0) {
        is_bool(sprag_attempt_is_after_unfinished(&of->attempt), step);
        return;
    }
    if (strcmp(verb, "begin") == 0) {
        struct named *as = find(text(step, "as"));
        status = sprag_once_begin(once, milliseconds(step, "ttl_ms"), &as->attempt, NULL, result, sizeof result,
                                  &result_len, NULL);
        as->is_begun = as->is_begun || status == SPRAG_OK;
        if (status == SPRAG_OK) {
            as->token = as->attempt.token;
            compare_token(as->token, step);
        }
        is_word(status == SPRAG_OK ? "started" : word_of(status), "expect", step);
    } else {
        if (strcmp(verb, "status") == 0)
            status = sprag_once_status(once, NULL, result, sizeof result, &result_len, NULL);
        else if (strcmp(verb, "finish") == 0)
            status = sprag_attempt_finish(&of->attempt, given, strlen(given), milliseconds(step, "keep_ms"), NULL);
        else if (strcmp(verb, "abandon") == 0)
            status = sprag_attempt_abandon(&of->attempt, NULL);
        else if (strcmp(verb, "extend") == 0)
            status = sprag_attempt_extend(&of->attempt, milliseconds(step, "ttl_ms"), NULL);
        else if (strcmp(verb, "detach") == 0)
            status = sprag_attempt_detach(&of->attempt, &token, NULL);
        else if (strcmp(verb, "finish_token") == 0)
            status = sprag_once_finish_token(once, token, given, strlen(given), milliseconds(step, "keep_ms"), NULL);
        else if (strcmp(verb, "abandon_token") == 0)
            status = sprag_once_abandon_token(once, token, NULL);
        else if (strcmp(verb, "extend_token") == 0)
            status = sprag_once_extend_token(once, token, milliseconds(step, "ttl_ms"), NULL);
        else
            unreadable("an unknown step", step);
        is_status(status, step);
    }
    if (status == SPRAG_DONE)
        holds(given != NULL && result_len == strlen(given) && memcmp(result, given, result_len) == 0,
              "another result", step);
    sprag_once_close(once);
}

/* LIMITERS */

/* Compares a number of a decision, in nanoseconds perhaps, where null is never. */
static void is_number(const cJSON *step, const char *field, uint64_t seen)
{
    const cJSON *expected = get(step, field);
    if (expected == NULL)
        return;
    bool is_same = cJSON_IsNull(expected) ? seen == SPRAG_NEVER : seen == number_of(expected);
    if (!is_same)
        printf("    %s is %" PRIu64 "\n", field, seen);
    holds(is_same, field, step);
}

static void is_decision(const sprag_decision *decision, sprag_status status, const cJSON *step)
{
    holds(status == SPRAG_OK || status == SPRAG_REFUSED, sprag_status_text(status), step);
    holds(sprag_decision_is_allowed(decision) == (status == SPRAG_OK), "the status and the decision differ", step);
    if (get(step, "allowed") != NULL)
        holds(sprag_decision_is_allowed(decision) == is_true(step, "allowed"), "allowed", step);
    is_number(step, "limit", sprag_decision_limit(decision));
    is_number(step, "remaining", sprag_decision_remaining(decision));
    is_number(step, "retry_after_ns", sprag_decision_retry_after_ns(decision));
    is_number(step, "reset_after_ns", sprag_decision_reset_after_ns(decision));
    is_number(step, "act_after_ns", sprag_decision_act_after_ns(decision));
    if (get(step, "as") != NULL)
        find(text(step, "as"))->decision = *decision;
}

static void refund_step(const cJSON *step)
{
    static const char *const WORDS[] = {
        [SPRAG_REFUND_GIVEN] = "given", [SPRAG_REFUND_OVER] = "over", [SPRAG_REFUND_VOID] = "void"};
    uint32_t refund = 0;
    double amount = 0;

    EXPECT(SPRAG_OK, sprag_limiter_refund(limiter, &find(text(step, "refund"))->decision, &refund, &amount, NULL));
    is_word(WORDS[refund], "expect", step);
    holds((uint64_t)amount == number_or(step, "amount", 0), "another amount", step);
}

static void limiter_step(const cJSON *step)
{
    sprag_decision decision;
    sprag_limiter *opened = NULL;
    char limit[SPRAG_LIMIT_BYTES_MAX];
    sprag_status status;
    const char *key;

    if (get(step, "check") != NULL) {
        key = text(step, "check");
        status = sprag_limiter_check(limiter, key, strlen(key), number_or(step, "cost", 1), &decision, NULL);
        is_decision(&decision, status, step);
    } else if (get(step, "peek") != NULL) {
        key = text(step, "peek");
        status = sprag_limiter_peek(limiter, key, strlen(key), &decision, NULL);
        is_decision(&decision, status, step);
    } else if (get(step, "reserve") != NULL) {
        key = text(step, "reserve");
        status = sprag_limiter_reserve(limiter, key, strlen(key), number_or(step, "cost", 1),
                                       milliseconds(step, "wait_max_ms"), &decision, NULL);
        is_decision(&decision, status, step);
    } else if (get(step, "refund") != NULL) {
        refund_step(step);
    } else if (get(step, "override") != NULL) {
        key = text(step, "override");
        EXPECT(SPRAG_OK, sprag_limiter_set_override(limiter, key, strlen(key), text(step, "is"), NULL));
    } else if (get(step, "clear_override") != NULL) {
        key = text(step, "clear_override");
        status = sprag_limiter_clear_override(limiter, key, strlen(key), NULL);
        holds(status == (is_true(step, "expect") ? SPRAG_OK : SPRAG_NONE), sprag_status_text(status), step);
    } else if (get(step, "override_of") != NULL) {
        key = text(step, "override_of");
        status = sprag_limiter_override_of(limiter, key, strlen(key), limit, sizeof limit, NULL, NULL);
        if (cJSON_IsNull(get(step, "expect")))
            EXPECT(SPRAG_NONE, status);
        else if (EXPECT(SPRAG_OK, status))
            is_word(limit, "expect", step);
    } else if (get(step, "update") != NULL) {
        EXPECT(SPRAG_OK, sprag_limiter_open(space, "limiter", 7, text(step, "update"), SPRAG_UPDATE, &opened, NULL));
        sprag_limiter_close(limiter);
        limiter = opened;
    } else if (get(step, "open") != NULL) {
        status = sprag_limiter_open(space, "limiter", 7, text(step, "open"), 0, &opened, NULL);
        holds((status < 0) == is_true(step, "error"), sprag_status_text(status), step);
        sprag_limiter_close(opened);
    } else if (!is_advance(step)) {
        unreadable("an unknown step", step);
    }
}

/* SEVERAL LIMITS */

static sprag_status open_joint(const cJSON *limits, sprag_joint_limiter **to)
{
    const char *texts[16];
    size_t count = 0;
    const cJSON *each;
    cJSON_ArrayForEach(each, limits)
        texts[count++] = each->valuestring;
    return sprag_joint_limiter_open(space, "limiter", 7, texts, count, to, NULL);
}

static void joint_step(const cJSON *step)
{
    sprag_joint_decision decision;
    sprag_decision of;
    sprag_status status;
    size_t place = 0;
    const char *key;

    if (get(step, "open") != NULL) {
        sprag_joint_limiter *opened = NULL;
        status = open_joint(get(step, "open"), &opened);
        holds((status < 0) == is_true(step, "error"), sprag_status_text(status), step);
        sprag_joint_limiter_close(opened);
        return;
    }
    if (get(step, "check") != NULL) {
        key = text(step, "check");
        status = sprag_joint_limiter_check(joint_limiter, key, strlen(key), number_or(step, "cost", 1), &decision, NULL);
    } else if (get(step, "peek") != NULL) {
        key = text(step, "peek");
        status = sprag_joint_limiter_peek(joint_limiter, key, strlen(key), &decision, NULL);
    } else {
        if (!is_advance(step))
            unreadable("an unknown step", step);
        return;
    }
    holds(status == SPRAG_OK || status == SPRAG_REFUSED, sprag_status_text(status), step);
    if (get(step, "allowed") != NULL)
        holds(sprag_joint_decision_is_allowed(&decision) == is_true(step, "allowed"), "allowed", step);
    is_number(step, "limit", sprag_joint_decision_limit(&decision));
    is_number(step, "remaining", sprag_joint_decision_remaining(&decision));
    is_number(step, "retry_after_ns", sprag_joint_decision_retry_after_ns(&decision));
    is_number(step, "reset_after_ns", sprag_joint_decision_reset_after_ns(&decision));
    const cJSON *refused_by = get(step, "refused_by"), *each;
    if (refused_by != NULL) {
        bool is_refused = sprag_joint_decision_refused_by(&decision, &place);
        holds(is_refused == !cJSON_IsNull(refused_by), "refused_by", step);
        holds(!is_refused || place == number_of(refused_by), "refused_by", step);
    }
    place = 0;
    cJSON_ArrayForEach(each, get(step, "of"))
    {
        holds(sprag_joint_decision_of(&decision, place, &of), "of", step);
        holds(sprag_decision_remaining(&of) == number_of(each), "of", step);
        place++;
    }
}

static void check_all_step(const cJSON *step)
{
    sprag_check checks[16];
    sprag_decision decisions[16];
    size_t count = 0, at = 0;
    const cJSON *each;

    cJSON_ArrayForEach(each, get(step, "check_all"))
    {
        const char *key = cJSON_GetArrayItem(each, 1)->valuestring;
        checks[count++] = (sprag_check){find(cJSON_GetArrayItem(each, 0)->valuestring)->limiter, key, strlen(key),
                                        number_of(cJSON_GetArrayItem(each, 2))};
    }
    sprag_status status = sprag_space_check_all(space, checks, count, decisions, NULL);
    if (get(step, "error") != NULL) {
        is_word(word_of(status), "error", step);
        return;
    }
    holds(status == (is_true(step, "allowed") ? SPRAG_OK : SPRAG_REFUSED), sprag_status_text(status), step);
    cJSON_ArrayForEach(each, get(step, "each"))
        holds(sprag_decision_is_allowed(&decisions[at++]) == (bool)cJSON_IsTrue(each), "each", step);
    at = 0;
    cJSON_ArrayForEach(each, get(step, "remaining"))
        holds(sprag_decision_remaining(&decisions[at++]) == number_of(each), "remaining", step);
}

/* CASES */

static void open_case(const cJSON *given)
{
    sprag_space_options options = {.size = sizeof options};
    const cJSON *each;

    memset(named, 0, sizeof named);
    EXPECT(SPRAG_OK, sprag_manual_clock_open(&hand_clock, NULL));
    options.clock = hand_clock;
    EXPECT(SPRAG_OK, sprag_space_open("mem:", &options, &space, NULL));
    if (get(given, "limit") != NULL)
        EXPECT(SPRAG_OK, sprag_limiter_open(space, "limiter", 7, text(given, "limit"), 0, &limiter, NULL));
    if (get(given, "limits") != NULL)
        EXPECT(SPRAG_OK, open_joint(get(given, "limits"), &joint_limiter));
    cJSON_ArrayForEach(each, get(given, "limiters"))
        EXPECT(SPRAG_OK, sprag_limiter_open(space, each->string, strlen(each->string), each->valuestring, 0,
                                            &find(each->string)->limiter, NULL));
}

static void close_case(void)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (named[i].is_held)
            (void)sprag_hold_release(&named[i].hold, NULL);
        if (named[i].is_begun)
            sprag_attempt_close(&named[i].attempt);
        sprag_owner_close(named[i].owner);
        sprag_limiter_close(named[i].limiter);
    }
    sprag_limiter_close(limiter);
    sprag_joint_limiter_close(joint_limiter);
    sprag_space_close(space);
    sprag_manual_clock_close(hand_clock);
    limiter = NULL;
    joint_limiter = NULL;
}

static void run_cases(const cJSON *cases, void (*run)(const cJSON *step))
{
    const cJSON *given, *step;
    cJSON_ArrayForEach(given, cases)
    {
        is_failing = false;
        open_case(given);
        cJSON_ArrayForEach(step, get(given, "steps"))
            run(step);
        close_case();
        end_test(text(given, "name"));
    }
    if (cJSON_GetArraySize(cases) == 0)
        unreadable("no cases", cases);
}

/* Whether the texts of limits read as they are shown, or are none. */
static void run_limits(const cJSON *limits)
{
    const cJSON *each;
    is_failing = false;
    open_case(NULL);
    cJSON_ArrayForEach(each, limits)
    {
        sprag_limiter *opened = NULL;
        char shown[SPRAG_LIMIT_BYTES_MAX];
        sprag_status status = sprag_limiter_open(space, "text", 4, text(each, "text"), SPRAG_UPDATE, &opened, NULL);
        if (is_true(each, "error")) {
            holds(status == SPRAG_ERROR_LIMIT, sprag_status_text(status), each);
        } else if (EXPECT(SPRAG_OK, status)) {
            EXPECT(SPRAG_OK, sprag_limiter_limit(opened, shown, sizeof shown, NULL, NULL));
            is_word(shown, "is", each);
        }
        sprag_limiter_close(opened);
    }
    close_case();
    end_test("limits are read from text and refused with a reason");
}

static cJSON *read_file(const char *directory, const char *name)
{
    char path[1024];
    static char contents[1 << 20];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    contents[fread(contents, 1, sizeof contents - 1, file)] = '\0';
    fclose(file);
    cJSON *value = cJSON_Parse(contents);
    if (value == NULL) {
        fprintf(stderr, "%s is no JSON\n", path);
        exit(EXIT_FAILURE);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *file, *cases;
        void (*run)(const cJSON *step);
    } FILES[] = {
        {"locks.json", "cases", hold_step},         {"semaphores.json", "cases", hold_step},
        {"counters.json", "cases", counter_step},   {"onces.json", "cases", once_step},
        {"limiters.json", "cases", limiter_step},   {"several_limits.json", "joint", joint_step},
        {"several_limits.json", "check_all", check_all_step},
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        cJSON *file = read_file(argv[1], FILES[i].file);
        if (get(file, "limits") != NULL)
            run_limits(get(file, "limits"));
        run_cases(get(file, FILES[i].cases), FILES[i].run);
        cJSON_Delete(file);
    }
    return tests_done();
}
