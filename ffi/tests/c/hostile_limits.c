/*
 * Callers that do everything wrong with limiters: of one limit, of several, with overrides, in one call, and with
 * decisions.
 */

#include "harness.h"

static sprag_space *space, *other_space;
static sprag_limiter *limiter, *other_limiter;
static sprag_joint_limiter *joint;

static const char *const LIMITS[] = {"5/366d", "9/366d"};

static void open_all(void)
{
    EXPECT(SPRAG_OK, sprag_space_open("mem:", NULL, &space, NULL));
    EXPECT(SPRAG_OK, sprag_space_open("mem:", NULL, &other_space, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_open(space, "limiter", 7, "5/366d", 0, &limiter, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_open(other_space, "limiter", 7, "5/366d", 0, &other_limiter, NULL));
    EXPECT(SPRAG_OK, sprag_joint_limiter_open(space, "joint", 5, LIMITS, 2, &joint, NULL));
}

static void close_all(void)
{
    sprag_joint_limiter_close(joint);
    sprag_limiter_close(other_limiter);
    sprag_limiter_close(limiter);
    sprag_space_close(other_space);
    sprag_space_close(space);
}

static void null_is_an_error_that_names_the_argument(void)
{
    sprag_decision decision;
    sprag_joint_decision joint_decision;
    sprag_joint_limiter *joint_out = NULL;
    sprag_bytes keys[2] = {{"k", 1}, {NULL, 1}};
    sprag_check checks[2] = {{limiter, "k", 1, 1}, {NULL, "k", 1, 1}};
    const char *limits[2] = {"5/366d", NULL};
    char text[SPRAG_LIMIT_BYTES_MAX];
    size_t len;

    memset(&decision, UNTOUCHED, sizeof decision);
    memset(&joint_decision, UNTOUCHED, sizeof joint_decision);
    memset(text, UNTOUCHED, sizeof text);
    memset(&len, UNTOUCHED, sizeof len);

    NULL_FAILS("limiter", sprag_limiter_peek(NULL, "k", 1, &decision, error));
    NULL_FAILS("key", sprag_limiter_peek(limiter, NULL, 1, &decision, error));
    NULL_FAILS("decision", sprag_limiter_peek(limiter, "k", 1, NULL, error));
    NULL_FAILS("limiter", sprag_limiter_check_batch(NULL, keys, 1, 1, NULL, NULL, NULL, error));
    NULL_FAILS("keys", sprag_limiter_check_batch(limiter, NULL, 1, 1, NULL, NULL, NULL, error));
    NULL_FAILS("key", sprag_limiter_check_batch(limiter, keys, 2, 1, NULL, NULL, &len, error));
    NULL_FAILS("limiter", sprag_limiter_reserve(NULL, "k", 1, 1, 0, &decision, error));
    NULL_FAILS("key", sprag_limiter_reserve(limiter, NULL, 1, 1, 0, &decision, error));
    NULL_FAILS("decision", sprag_limiter_reserve(limiter, "k", 1, 1, 0, NULL, error));
    NULL_FAILS("limiter", sprag_limiter_refund(NULL, &decision, NULL, NULL, error));
    NULL_FAILS("decision", sprag_limiter_refund(limiter, NULL, NULL, NULL, error));
    NULL_FAILS("limiter", sprag_limiter_name(NULL, text, sizeof text, &len, error));
    NULL_FAILS("name", sprag_limiter_name(limiter, NULL, sizeof text, &len, error));
    NULL_FAILS("limiter", sprag_limiter_limit(NULL, text, sizeof text, &len, error));
    NULL_FAILS("limit", sprag_limiter_limit(limiter, NULL, sizeof text, &len, error));
    NULL_FAILS("limiter", sprag_limiter_set_override(NULL, "k", 1, "5/day", error));
    NULL_FAILS("key", sprag_limiter_set_override(limiter, NULL, 1, "5/day", error));
    NULL_FAILS("limit", sprag_limiter_set_override(limiter, "k", 1, NULL, error));
    NULL_FAILS("limiter", sprag_limiter_clear_override(NULL, "k", 1, error));
    NULL_FAILS("key", sprag_limiter_clear_override(limiter, NULL, 1, error));
    NULL_FAILS("limiter", sprag_limiter_override_of(NULL, "k", 1, text, sizeof text, &len, error));
    NULL_FAILS("key", sprag_limiter_override_of(limiter, NULL, 1, text, sizeof text, &len, error));
    NULL_FAILS("limit", sprag_limiter_override_of(limiter, "k", 1, NULL, sizeof text, &len, error));
    NULL_FAILS("space", sprag_space_check_all(NULL, checks, 1, &decision, error));
    NULL_FAILS("checks", sprag_space_check_all(space, NULL, 1, &decision, error));
    NULL_FAILS("limiter", sprag_space_check_all(space, checks, 2, NULL, error));
    NULL_FAILS("space", sprag_joint_limiter_open(NULL, "j", 1, LIMITS, 2, &joint_out, error));
    NULL_FAILS("name", sprag_joint_limiter_open(space, NULL, 1, LIMITS, 2, &joint_out, error));
    NULL_FAILS("limits", sprag_joint_limiter_open(space, "j", 1, NULL, 2, &joint_out, error));
    NULL_FAILS("limit", sprag_joint_limiter_open(space, "j", 1, limits, 2, &joint_out, error));
    NULL_FAILS("joint_limiter", sprag_joint_limiter_open(space, "j", 1, LIMITS, 2, NULL, error));
    NULL_FAILS("joint_limiter", sprag_joint_limiter_check(NULL, "k", 1, 1, &joint_decision, error));
    NULL_FAILS("key", sprag_joint_limiter_check(joint, NULL, 1, 1, &joint_decision, error));
    NULL_FAILS("joint_limiter", sprag_joint_limiter_peek(NULL, "k", 1, &joint_decision, error));
    NULL_FAILS("key", sprag_joint_limiter_peek(joint, NULL, 1, &joint_decision, error));
    NULL_FAILS("decision", sprag_joint_limiter_peek(joint, "k", 1, NULL, error));
    NULL_FAILS("joint_limiter", sprag_joint_limiter_name(NULL, text, sizeof text, &len, error));
    NULL_FAILS("name", sprag_joint_limiter_name(joint, NULL, sizeof text, &len, error));
    NULL_FAILS("joint_limiter", sprag_joint_limiter_limit(NULL, 0, text, sizeof text, &len, error));
    NULL_FAILS("limit", sprag_joint_limiter_limit(joint, 0, NULL, sizeof text, &len, error));

    CHECK(is_untouched(&decision, sizeof decision));
    CHECK(is_untouched(&joint_decision, sizeof joint_decision));
    CHECK(is_untouched(text, sizeof text));
    CHECK(is_untouched(&len, sizeof len));
    CHECK(joint_out == NULL);
}

static void what_may_be_null_may_be_null(void)
{
    bool allowed = false;
    sprag_bytes key = {"nulls", 5};
    sprag_check one = {limiter, "nulls", 5, 1};

    EXPECT(SPRAG_OK, sprag_limiter_check_batch(limiter, &key, 1, 1, NULL, NULL, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_check_batch(limiter, NULL, 0, 1, &allowed, NULL, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_space_check_all(space, &one, 1, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_joint_limiter_check(joint, "nulls", 5, 1, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_name(limiter, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_limit(limiter, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_NONE, sprag_limiter_clear_override(limiter, "nulls", 5, NULL));
    EXPECT(SPRAG_NONE, sprag_limiter_override_of(limiter, "nulls", 5, NULL, 0, NULL, NULL));
    sprag_joint_limiter_close(NULL);

    CHECK(sprag_joint_limiter_limit_count(NULL) == 0);
    CHECK(!sprag_joint_decision_is_allowed(NULL));
    CHECK(!sprag_joint_decision_is_overflow(NULL));
    CHECK(!sprag_joint_decision_refused_by(NULL, NULL));
    CHECK(!sprag_joint_decision_of(NULL, 0, NULL));
    CHECK(sprag_joint_decision_limit(NULL) == 0);
    CHECK(sprag_joint_decision_remaining(NULL) == 0);
    CHECK(sprag_joint_decision_retry_after_ns(NULL) == SPRAG_NEVER);
    CHECK(sprag_joint_decision_retry_after_for_ns(NULL, 1) == SPRAG_NEVER);
    CHECK(sprag_joint_decision_reset_after_ns(NULL) == SPRAG_NEVER);
    CHECK(sprag_decision_retry_after_for_ns(NULL, 1) == SPRAG_NEVER);
    CHECK(sprag_decision_act_after_ns(NULL) == 0);
    CHECK(!sprag_decision_is_overflow(NULL));
    CHECK(sprag_space_limiter_key_count(NULL) == 0);
    CHECK(sprag_space_limiter_key_bytes(NULL) == 0);
}

static void numbers_have_bounds(void)
{
    sprag_joint_limiter *joint_out = NULL;
    sprag_decision decisions[9];
    sprag_check checks[9];
    const char *many[7] = {"1/day", "2/day", "3/day", "4/day", "5/day", "6/day", "7/day"};
    sprag_bytes keys[3] = {{"a", 1}, {"", 0}, {"a", 1}};
    bool allowed[3] = {true, true, true};
    size_t count = 77;

    for (size_t i = 0; i < 9; i++)
        checks[i] = (sprag_check){limiter, "bounds", 6, 1};
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "count", "count is 0; it must be 1 to 8",
          sprag_space_check_all(space, checks, 0, decisions, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "count", "count is 9; it must be 1 to 8",
          sprag_space_check_all(space, checks, 9, decisions, error));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_space_check_all(space, checks, SIZE_MAX, NULL, NULL));
    checks[1].limiter = other_limiter;
    EXPECT(SPRAG_ERROR_OTHER_SPACE, sprag_space_check_all(space, checks, 2, NULL, NULL));
    EXPECT(SPRAG_ERROR_OTHER_SPACE, sprag_space_check_all(other_space, checks, 1, NULL, NULL));
    checks[1] = (sprag_check){limiter, "bounds", 0, 1};
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_space_check_all(space, checks, 2, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_peek(limiter, "bounds", 6, &decisions[0], NULL));
    CHECK(sprag_decision_remaining(&decisions[0]) == 5);

    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "number of limits declared together", "number of limits declared together is 1; it must be 2 to 6",
          sprag_joint_limiter_open(space, "j", 1, many, 1, &joint_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "number of limits declared together", "number of limits declared together is 7; it must be 2 to 6",
          sprag_joint_limiter_open(space, "j", 1, many, 7, &joint_out, error));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_joint_limiter_open(space, "j", 1, many, 0, &joint_out, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_joint_limiter_open(space, "j", 1, many, SIZE_MAX, &joint_out, NULL));
    EXPECT(SPRAG_ERROR_DEFINITION_DIFFERS, sprag_joint_limiter_open(space, "joint", 5, many, 2, &joint_out, NULL));
    CHECK(joint_out == NULL);
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_joint_limiter_check(joint, "k", 1, UINT64_C(1) << 26, NULL, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_joint_limiter_check(joint, "k", 1025, 1, NULL, NULL));
    EXPECT(SPRAG_NONE, sprag_joint_limiter_limit(joint, 2, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_NONE, sprag_joint_limiter_limit(joint, SIZE_MAX, NULL, 0, NULL, NULL));

    /* A bad key is found before any is decided. */
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_limiter_check_batch(limiter, keys, 3, 1, allowed, NULL, &count, NULL));
    CHECK(count == 77 && allowed[0] && allowed[1] && allowed[2]);
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_limiter_check_batch(limiter, keys, SIZE_MAX, 1, NULL, NULL, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_peek(limiter, "a", 1, &decisions[0], NULL));
    CHECK(sprag_decision_remaining(&decisions[0]) == 5);

    EXPECT(SPRAG_REFUSED, sprag_limiter_reserve(limiter, "k", 1, 6, SPRAG_FOREVER, &decisions[0], NULL));
    EXPECT(SPRAG_REFUSED, sprag_limiter_reserve(limiter, "k", 1, UINT64_MAX, SPRAG_FOREVER, &decisions[0], NULL));
    EXPECT(SPRAG_ERROR_LIMIT, sprag_limiter_set_override(limiter, "k", 1, "0", NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_limiter_set_override(limiter, "k", 0, "1/day", NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_limiter_clear_override(limiter, "k", 1025, NULL));
}

static void a_decision_is_given_back_once(void)
{
    static const char message[] = "decision is empty: used up by an earlier call, or never filled in";
    sprag_decision decision;
    uint32_t refund = 77;
    double amount = 77;

    memset(&decision, 0, sizeof decision);
    FAILS(SPRAG_ERROR_EMPTY, "decision", message, sprag_limiter_refund(limiter, &decision, &refund, &amount, error));
    CHECK(refund == 77 && amount == 77);
    EXPECT(SPRAG_OK, sprag_limiter_check(limiter, "back", 4, 3, &decision, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_refund(limiter, &decision, &refund, &amount, NULL));
    CHECK(refund == SPRAG_REFUND_GIVEN && amount > 2.9 && amount <= 3);
    FAILS(SPRAG_ERROR_EMPTY, "decision", message, sprag_limiter_refund(limiter, &decision, &refund, &amount, error));
    CHECK(!sprag_decision_is_allowed(&decision) && sprag_decision_limit(&decision) == 0);
    EXPECT(SPRAG_OK, sprag_limiter_peek(limiter, "back", 4, &decision, NULL));
    CHECK(sprag_decision_remaining(&decision) == 5);

    /* To another limiter, of another space: void, and used up. */
    EXPECT(SPRAG_OK, sprag_limiter_check(limiter, "back", 4, 3, &decision, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_refund(other_limiter, &decision, &refund, &amount, NULL));
    CHECK(refund == SPRAG_REFUND_VOID && amount == 0);
    EXPECT(SPRAG_ERROR_EMPTY, sprag_limiter_refund(limiter, &decision, NULL, NULL, NULL));
}

static void a_text_is_cut_to_its_buffer(void)
{
    char text[SPRAG_LIMIT_BYTES_MAX + 1], name[8];
    size_t len;

    for (size_t max = 0; max <= SPRAG_LIMIT_BYTES_MAX; max++) {
        memset(text, UNTOUCHED, sizeof text);
        EXPECT(SPRAG_OK, sprag_limiter_limit(limiter, text, max, &len, NULL));
        CHECK(len == strlen("5/366d"));
        CHECK(is_untouched(text + max, sizeof text - max));
        if (max > 0) {
            CHECK(strlen(text) == (max - 1 < len ? max - 1 : len));
            CHECK(strncmp(text, "5/366d", strlen(text)) == 0);
        }
    }
    for (size_t max = 0; max <= sizeof name; max++) {
        memset(name, UNTOUCHED, sizeof name);
        EXPECT(SPRAG_OK, sprag_limiter_name(limiter, name, max, &len, NULL));
        CHECK(len == 7 && memcmp(name, "limiter", max < 7 ? max : 7) == 0);
        CHECK(is_untouched(name + (max < 7 ? max : 7), sizeof name - (max < 7 ? max : 7)));
    }
    EXPECT(SPRAG_OK, sprag_limiter_set_override(limiter, "cut", 3, "1000000000000/day;burst=1000", NULL));
    EXPECT(SPRAG_OK, sprag_limiter_override_of(limiter, "cut", 3, text, sizeof text, NULL, NULL));
    EXPECT_TEXT("1000000000000/day;burst=1000", text);
    EXPECT(SPRAG_OK, sprag_joint_limiter_limit(joint, 1, text, sizeof text, NULL, NULL));
    EXPECT_TEXT("9/366d", text);
    EXPECT(SPRAG_OK, sprag_joint_limiter_name(joint, name, sizeof name, &len, NULL));
    CHECK(len == 5 && memcmp(name, "joint", 5) == 0);
}

static void empty_joint_decisions_allow_nothing(void)
{
    sprag_joint_decision decision;
    sprag_decision of;

    memset(&decision, 0, sizeof decision);
    CHECK(!sprag_joint_decision_is_allowed(&decision));
    CHECK(!sprag_joint_decision_of(&decision, 0, &of));
    EXPECT(SPRAG_OK, sprag_joint_limiter_check(joint, "k", 1, 5, &decision, NULL));
    CHECK(sprag_joint_decision_of(&decision, 1, &of) && sprag_decision_remaining(&of) == 4);
    CHECK(!sprag_joint_decision_of(&decision, 2, &of) && !sprag_joint_decision_of(&decision, SIZE_MAX, &of));
    /* What another limit said cannot be given back. */
    uint32_t refund = 77;
    EXPECT(SPRAG_OK, sprag_limiter_refund(limiter, &of, &refund, NULL, NULL));
    CHECK(refund != SPRAG_REFUND_GIVEN);
    EXPECT(SPRAG_REFUSED, sprag_joint_limiter_check(joint, "k", 1, 1, &decision, NULL));
    CHECK(sprag_joint_decision_refused_by(&decision, NULL));
}

int main(void)
{
    open_all();
    RUN(null_is_an_error_that_names_the_argument);
    RUN(what_may_be_null_may_be_null);
    RUN(numbers_have_bounds);
    RUN(a_decision_is_given_back_once);
    RUN(a_text_is_cut_to_its_buffer);
    RUN(empty_joint_decisions_allow_nothing);
    close_all();
    return tests_done();
}
