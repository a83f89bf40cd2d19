/*
 * Callers that do everything wrong: what they give is an error that names the argument, its bounds and the way out, nothing
 * is written, and the next call works.
 */

#define _GNU_SOURCE

#include "harness.h"

static sprag_space *space;
static sprag_manual_clock *hand_clock;
static sprag_lock *lock;
static sprag_limiter *limiter;

static void open_all(void)
{
    sprag_space_options options = {.size = sizeof options};
    EXPECT(SPRAG_OK, sprag_manual_clock_open(&hand_clock, NULL));
    options.clock = hand_clock;
    EXPECT(SPRAG_OK, sprag_space_open("mem:", &options, &space, NULL));
    EXPECT(SPRAG_OK, sprag_lock_open(space, "a", 1, 0, &lock, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_open(space, "limiter", 7, "5/day", 0, &limiter, NULL));
}

static void close_all(void)
{
    sprag_limiter_close(limiter);
    sprag_lock_close(lock);
    sprag_space_close(space);
    sprag_manual_clock_close(hand_clock);
}

static void null_is_an_error_that_names_the_argument(void)
{
    sprag_manual_clock *clock_out;
    sprag_space *space_out;
    sprag_owner *owner_out;
    sprag_lock *lock_out;
    sprag_limiter *limiter_out;
    sprag_hold hold;
    sprag_bytes names[2] = {{"a", 1}, {NULL, 1}};
    uint32_t partition;
    uint64_t token;
    void *outs[] = {&clock_out, &space_out, &owner_out, &lock_out, &limiter_out};

    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        memset(outs[i], UNTOUCHED, sizeof(void *));
    memset(&hold, UNTOUCHED, sizeof hold);
    memset(&partition, UNTOUCHED, sizeof partition);
    memset(&token, UNTOUCHED, sizeof token);

    NULL_FAILS("clock", sprag_manual_clock_open(NULL, error));
    NULL_FAILS("clock", sprag_manual_clock_advance(NULL, 1, error));
    NULL_FAILS("url", sprag_space_open(NULL, NULL, &space_out, error));
    NULL_FAILS("space", sprag_space_open("mem:", NULL, NULL, error));
    NULL_FAILS("space", sprag_space_partition_of(NULL, "a", 1, &partition, error));
    NULL_FAILS("name", sprag_space_partition_of(space, NULL, 1, &partition, error));
    NULL_FAILS("partition", sprag_space_partition_of(space, "a", 1, NULL, error));
    NULL_FAILS("space", sprag_owner_open(NULL, &owner_out, error));
    NULL_FAILS("owner", sprag_owner_open(space, NULL, error));
    NULL_FAILS("space", sprag_lock_open(NULL, "a", 1, 0, &lock_out, error));
    NULL_FAILS("name", sprag_lock_open(space, NULL, 1, 0, &lock_out, error));
    NULL_FAILS("lock", sprag_lock_open(space, "a", 1, 0, NULL, error));
    NULL_FAILS("space", sprag_lock_open_several(NULL, names, 1, 0, &lock_out, error));
    NULL_FAILS("names", sprag_lock_open_several(space, NULL, 1, 0, &lock_out, error));
    NULL_FAILS("name", sprag_lock_open_several(space, names, 2, 0, &lock_out, error));
    NULL_FAILS("lock", sprag_lock_open_several(space, names, 1, 0, NULL, error));
    NULL_FAILS("space", sprag_lock_open_partition(NULL, 0, 0, &lock_out, error));
    NULL_FAILS("lock", sprag_lock_open_partition(space, 0, 0, NULL, error));
    NULL_FAILS("space", sprag_lock_open_table(NULL, 0, &lock_out, error));
    NULL_FAILS("lock", sprag_lock_open_table(space, 0, NULL, error));
    NULL_FAILS("lock", sprag_lock_acquire(NULL, 0, &hold, error));
    NULL_FAILS("hold", sprag_lock_acquire(lock, 0, NULL, error));
    NULL_FAILS("lock", sprag_lock_acquire_with(NULL, NULL, &hold, error));
    NULL_FAILS("hold", sprag_lock_acquire_with(lock, NULL, NULL, error));
    NULL_FAILS("lock", sprag_lock_release_token(NULL, 1, error));
    NULL_FAILS("lock", sprag_lock_renew_token(NULL, 1, error));
    NULL_FAILS("lock", sprag_lock_adopt_token(NULL, 1, &hold, error));
    NULL_FAILS("hold", sprag_lock_adopt_token(lock, 1, NULL, error));
    NULL_FAILS("lock", sprag_lock_break(NULL, &token, error));
    NULL_FAILS("hold", sprag_hold_release(NULL, error));
    NULL_FAILS("hold", sprag_hold_tokens(NULL, &token, 1, NULL, error));
    NULL_FAILS("hold", sprag_hold_renew(NULL, error));
    NULL_FAILS("hold", sprag_hold_extend(NULL, SPRAG_SECOND, error));
    NULL_FAILS("hold", sprag_hold_keep_alive(NULL, NULL, error));
    NULL_FAILS("hold", sprag_hold_upgrade(NULL, 0, error));
    NULL_FAILS("hold", sprag_hold_downgrade(NULL, error));
    NULL_FAILS("hold", sprag_hold_detach(NULL, &token, error));
    NULL_FAILS("space", sprag_limiter_open(NULL, "a", 1, "5/day", 0, &limiter_out, error));
    NULL_FAILS("name", sprag_limiter_open(space, NULL, 1, "5/day", 0, &limiter_out, error));
    NULL_FAILS("limiter", sprag_limiter_open(space, "a", 1, "5/day", 0, NULL, error));
    NULL_FAILS("limiter", sprag_limiter_check(NULL, "k", 1, 1, NULL, error));
    NULL_FAILS("key", sprag_limiter_check(limiter, NULL, 1, 1, NULL, error));

    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        CHECK(is_untouched(outs[i], sizeof(void *)));
    CHECK(is_untouched(&hold, sizeof hold));
    CHECK(is_untouched(&partition, sizeof partition));
    CHECK(is_untouched(&token, sizeof token));

    /* Of a hold there is. */
    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    NULL_FAILS("tokens", sprag_hold_tokens(&hold, NULL, 1, NULL, error));
    NULL_FAILS("token", sprag_hold_detach(&hold, NULL, error));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
}

static void what_may_be_null_may_be_null(void)
{
    sprag_hold hold;
    sprag_limiter *none = NULL;

    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    EXPECT(SPRAG_OK, sprag_hold_tokens(&hold, NULL, 0, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_lock_break(lock, NULL, NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_hold_release(&hold, NULL));
    EXPECT(SPRAG_NONE, sprag_limiter_open(space, "none", 4, NULL, 0, &none, NULL));
    CHECK(none == NULL);

    sprag_manual_clock_close(NULL);
    sprag_space_close(NULL);
    sprag_owner_close(NULL);
    sprag_lock_close(NULL);
    sprag_limiter_close(NULL);
    sprag_error_free(NULL);

    CHECK(sprag_manual_clock_unix_ns(NULL) == 0);
    CHECK(sprag_space_partitions(NULL) == 0);
    CHECK(!sprag_hold_is_valid(NULL));
    CHECK(!sprag_hold_is_held(NULL));
    CHECK(!sprag_hold_is_shared(NULL));
    CHECK(sprag_hold_lease_left_ns(NULL) == 0);
    CHECK(!sprag_decision_is_allowed(NULL));
    CHECK(sprag_decision_limit(NULL) == 0);
    CHECK(sprag_decision_remaining(NULL) == 0);
    CHECK(sprag_decision_retry_after_ns(NULL) == SPRAG_NEVER);
    CHECK(sprag_decision_reset_after_ns(NULL) == SPRAG_NEVER);
    EXPECT(SPRAG_OK, sprag_error_status(NULL));
    EXPECT_TEXT("", sprag_error_message(NULL));
    EXPECT_TEXT(NULL, sprag_error_argument(NULL));
    CHECK(!sprag_error_bounds(NULL, NULL, NULL, NULL));
    CHECK(sprag_error_os_code(NULL) == 0);
    CHECK(sprag_error_token(NULL) == 0);
}

static void lengths_have_bounds(void)
{
    static const size_t ok[] = {1, 2, 1023, 1024}, wrong[] = {0, 1025, 4096, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX};
    char name[SPRAG_NAME_BYTES_MAX + 1], message[128];
    sprag_limiter *limiter_out = NULL;
    sprag_hold hold;
    sprag_lock *lock_out = NULL;
    sprag_error *error = NULL;
    uint64_t value, min, max;
    uint32_t partition;

    memset(name, 0, sizeof name);
    for (size_t i = 0; i < sizeof ok / sizeof ok[0]; i++) {
        EXPECT(SPRAG_OK, sprag_lock_open(space, name, ok[i], 0, &lock_out, NULL));
        EXPECT(SPRAG_OK, sprag_lock_acquire(lock_out, 0, &hold, NULL));
        EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
        sprag_lock_close(lock_out);
        EXPECT(SPRAG_OK, sprag_limiter_check(limiter, name, ok[i], 1, NULL, NULL));
        EXPECT(SPRAG_OK, sprag_space_partition_of(space, name, ok[i], &partition, NULL));
    }
    lock_out = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_lock_open(space, name, wrong[i], 0, &lock_out, &error));
        CHECK(sprag_error_bounds(error, &value, &min, &max));
        CHECK(value == wrong[i] && min == 1 && max == SPRAG_NAME_BYTES_MAX);
        sprag_error_free(error);

        EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_limiter_check(limiter, name, wrong[i], 1, NULL, &error));
        CHECK(sprag_error_bounds(error, &value, &min, &max));
        CHECK(value == wrong[i] && min == 1 && max == SPRAG_NAME_BYTES_MAX);
        snprintf(message, sizeof message,
                 wrong[i] > PTRDIFF_MAX ? "key is %zu; it must be 1 to 1024"
                                        : "key is %zu bytes long; names are 1 to 1024 bytes",
                 wrong[i]);
        EXPECT_TEXT(message, sprag_error_message(error));
        sprag_error_free(error);

        EXPECT(SPRAG_ERROR_OUT_OF_RANGE,
               sprag_limiter_open(space, name, wrong[i], "5/day", 0, &limiter_out, NULL));
        EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_lock_open_several(space, &(sprag_bytes){name, wrong[i]}, 1, 0, &lock_out,
                                                                 NULL));
        EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_space_partition_of(space, name, wrong[i], &partition, NULL));
    }
    CHECK(lock_out == NULL && limiter_out == NULL);

    /* Numbers of names; that of bytes that they need overflows. */
    static sprag_bytes names[65];
    for (size_t i = 0; i < 65; i++)
        names[i] = (sprag_bytes){"a", 1};
    EXPECT(SPRAG_OK, sprag_lock_open_several(space, names, 64, 0, &lock_out, NULL));
    sprag_lock_close(lock_out);
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "number of locks", "number of locks is 0; it must be 1 to 64",
          sprag_lock_open_several(space, names, 0, 0, &lock_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "number of locks", "number of locks is 65; it must be 1 to 64",
          sprag_lock_open_several(space, names, 65, 0, &lock_out, error));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_lock_open_several(space, names, SIZE_MAX, 0, &lock_out, NULL));
    EXPECT(SPRAG_ERROR_OUT_OF_RANGE, sprag_lock_open_several(space, names, SIZE_MAX / 16 + 2, 0, &lock_out, NULL));
}

static void numbers_have_bounds(void)
{
    sprag_lock *lock_out = NULL;
    sprag_limiter *limiter_out = NULL;
    sprag_hold hold;

    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "ttl", "ttl is 999us999ns; it must be 1ms to 366d",
          sprag_lock_open(space, "a", 1, SPRAG_MILLISECOND - 1, &lock_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "ttl", "ttl is 366d1ns; it must be 1ms to 366d",
          sprag_lock_open(space, "a", 1, 366 * 86400 * SPRAG_SECOND + 1, &lock_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "partition", "partition is 4294967295; it must be 0 to 63",
          sprag_lock_open_partition(space, UINT32_MAX, 0, &lock_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "flags", "flags has a bit that is none of its flags; give those of the header",
          sprag_limiter_open(space, "limiter", 7, "5/day", SPRAG_UPDATE << 1, &limiter_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "flags", "flags has a bit that is none of its flags; give those of the header",
          sprag_limiter_open(space, "limiter", 7, NULL, 1u << 31, &limiter_out, error));
    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "ttl", "ttl is 0s; it must be 1ms to 366d",
          sprag_hold_extend(&hold, 0, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "ttl", "ttl is 213503d23h34m33s709ms551us615ns; it must be 1ms to 366d",
          sprag_hold_extend(&hold, UINT64_MAX, error));
    CHECK(sprag_hold_is_held(&hold));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_lock_release_token(lock, 0, NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_lock_renew_token(lock, UINT64_MAX, NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_lock_adopt_token(lock, UINT64_MAX, &hold, NULL));
    EXPECT(SPRAG_REFUSED, sprag_limiter_check(limiter, "k", 1, UINT64_MAX, NULL, NULL));
    CHECK(lock_out == NULL && limiter_out == NULL);
}

static void a_clock_at_the_end_of_time_stands_still(void)
{
    sprag_manual_clock *last = NULL;
    sprag_space *space_out = NULL;
    sprag_limiter *limiter_out = NULL;
    sprag_lock *lock_out = NULL;
    sprag_hold hold;
    sprag_space_options options = {.size = sizeof options};

    EXPECT(SPRAG_OK, sprag_manual_clock_open(&last, NULL));
    options.clock = last;
    EXPECT(SPRAG_OK, sprag_space_open("mem:", &options, &space_out, NULL));
    sprag_manual_clock_close(last);
    last = NULL;
    EXPECT(SPRAG_OK, sprag_manual_clock_open(&last, NULL));
    EXPECT(SPRAG_OK, sprag_manual_clock_advance(last, UINT64_MAX, NULL));
    EXPECT(SPRAG_OK, sprag_manual_clock_advance(last, UINT64_MAX, NULL));
    CHECK(sprag_manual_clock_unix_ns(last) == UINT64_MAX);
    sprag_space_close(space_out);
    options.clock = last;
    EXPECT(SPRAG_OK, sprag_space_open("mem:", &options, &space_out, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_open(space_out, "a", 1, "1/day", 0, &limiter_out, NULL));
    EXPECT(SPRAG_OK, sprag_limiter_check(limiter_out, "k", 1, 1, NULL, NULL));
    EXPECT(SPRAG_OK, sprag_lock_open(space_out, "a", 1, 0, &lock_out, NULL));
    /* A lease that would end later than time does is over at once. */
    EXPECT(SPRAG_OK, sprag_lock_acquire(lock_out, 0, &hold, NULL));
    (void)sprag_hold_release(&hold, NULL);
    sprag_lock_close(lock_out);
    sprag_limiter_close(limiter_out);
    sprag_space_close(space_out);
    sprag_manual_clock_close(last);
}

static void texts_that_are_none_are_told(void)
{
    sprag_space_options existing = {.size = sizeof existing, .flags = SPRAG_EXISTING};
    sprag_space *space_out = NULL;
    sprag_limiter *limiter_out = NULL;

    FAILS(SPRAG_ERROR_PLACE, NULL, "\"\" is not a space's URL; use mem:, shm:NAME or shm:/absolute/path", sprag_space_open("", NULL, &space_out, error));
    FAILS(SPRAG_ERROR_PLACE, NULL, "\"http://example.org\" is not a space's URL; use mem:, shm:NAME or shm:/absolute/path", sprag_space_open("http://example.org", NULL, &space_out, error));
    FAILS(SPRAG_ERROR_PLACE, NULL, "\"../etc\" cannot name a region: it starts with a dot; a name is 1 to 200 bytes of A-Z a-z 0-9 . _ - and does not start with a dot", sprag_space_open("shm:../etc", NULL, &space_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "url", "url must be UTF-8", sprag_space_open("mem:\xff", NULL, &space_out, error));
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "limit", "limit must be UTF-8",
          sprag_limiter_open(space, "x", 1, "\xff", 0, &limiter_out, error));
    FAILS(SPRAG_ERROR_LIMIT, NULL, "the limit \"\" has no period; write COUNT/PERIOD, as in \"100/minute\", \"5/10s\" or \"30/second;burst=5\"", sprag_limiter_open(space, "x", 1, "", 0, &limiter_out, error));
    FAILS(SPRAG_ERROR_LIMIT, NULL, "the unit \"fortnight\" in the limit \"5/fortnight\" is unknown; use second, minute, hour, day, week or year (s, m or min, h, d, w, y; also ms, us, ns), with a number before it if need be, as in \"5/10s\"", sprag_limiter_open(space, "x", 1, "5/fortnight", 0, &limiter_out, error));
    FAILS(SPRAG_ERROR_DEFINITION_DIFFERS, NULL,
          "the limiter limiter exists as 5/day and was asked for as 6/day; open it with the same limit, or change it "
          "(limiter_updated, SPRAG_UPDATE, update=True, sprag limit --update)",
          sprag_limiter_open(space, "limiter", 7, "6/day", 0, &limiter_out, error));
    FAILS(SPRAG_ERROR_NOT_FOUND, NULL, "there is no region at /tmp/no-region-is-here; name another, or use this one once, which creates it",
          sprag_space_open("shm:/tmp/no-region-is-here", &existing, &space_out, error));
    CHECK(space_out == NULL && limiter_out == NULL);
}

static void options_are_read_for_their_size(void)
{
    struct {
        sprag_space_options options;
        unsigned char more[8];
    } newer = {.options = {.size = sizeof newer}};
    unsigned char unaligned[1 + sizeof(sprag_space_options)];
    sprag_space_options options = {.size = sizeof options};
    sprag_acquire_options acquire = {.size = sizeof acquire};
    sprag_space *space_out = NULL;
    sprag_hold hold;

    static const size_t wrong[] = {0, 1, 7, 8, 55, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char message[128];
        options.size = wrong[i];
        snprintf(message, sizeof message, "options.size is %zu; it must be 56 to 4096", wrong[i]);
        FAILS(SPRAG_ERROR_OUT_OF_RANGE, "options.size", message, sprag_space_open("mem:", &options, &space_out, error));
    }
    options.size = sizeof options;

    /* From a newer release: what this one does not know must be zero. */
    EXPECT(SPRAG_OK, sprag_space_open("mem:", &newer.options, &space_out, NULL));
    sprag_space_close(space_out);
    space_out = NULL;
    newer.more[7] = 1;
    FAILS(SPRAG_ERROR_UNSUPPORTED, NULL,
          "the options have a field that this release of the library does not know; leave it zero, or use a newer one",
          sprag_space_open("mem:", &newer.options, &space_out, error));

    memcpy(unaligned + 1, &options, sizeof options);
    EXPECT(SPRAG_OK, sprag_space_open("mem:", (const void *)(unaligned + 1), &space_out, NULL));
    sprag_space_close(space_out);
    space_out = NULL;

    options.flags = 1u << 31;
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "flags", "flags has a bit that is none of its flags; give those of the header",
          sprag_space_open("mem:", &options, &space_out, error));
    options.flags = 0;
    options.share_percent = 101;
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "share (percent)", "share (percent) is 101; it must be 1 to 100",
          sprag_space_open("mem:", &options, &space_out, error));
    options.share_percent = 0;
    options.objects = UINT32_MAX;
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "objects cap", "objects cap is 4294967295; it must be 1 to 67108864",
          sprag_space_open("mem:", &options, &space_out, error));
    CHECK(space_out == NULL);

    acquire.mode = 2;
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "options.mode", "options.mode is 2; it must be 0 to 1",
          sprag_lock_acquire_with(lock, &acquire, &hold, error));
    acquire.mode = SPRAG_EXCLUSIVE;
    EXPECT(SPRAG_OK, sprag_lock_acquire_with(lock, &acquire, &hold, NULL));
    sprag_keep_alive_options keep = {.size = 1};
    FAILS(SPRAG_ERROR_OUT_OF_RANGE, "options.size", "options.size is 1; it must be 40 to 4096",
          sprag_hold_keep_alive(&hold, &keep, error));
    CHECK(sprag_hold_is_held(&hold));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));

    sprag_owner *owner = NULL;
    EXPECT(SPRAG_OK, sprag_owner_open(space, &owner, NULL));
    EXPECT(SPRAG_OK, sprag_space_open("mem:", NULL, &space_out, NULL));
    sprag_lock *elsewhere = NULL;
    EXPECT(SPRAG_OK, sprag_lock_open(space_out, "a", 1, 0, &elsewhere, NULL));
    acquire.owner = owner;
    FAILS(SPRAG_ERROR_UNSUPPORTED, NULL,
          "an owner of another space does not go with mem:; make one of this space",
          sprag_lock_acquire_with(elsewhere, &acquire, &hold, error));
    sprag_lock_close(elsewhere);
    sprag_space_close(space_out);
    sprag_owner_close(owner);
}

static void what_is_empty_says_so(void)
{
    static const char message[] = "hold is empty: used up by an earlier call, or never filled in";
    sprag_hold hold;
    uint64_t token;

    memset(&hold, 0, sizeof hold);
    for (int round = 0; round < 2; round++) {
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_release(&hold, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_renew(&hold, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_extend(&hold, SPRAG_SECOND, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_keep_alive(&hold, NULL, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_upgrade(&hold, 0, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_downgrade(&hold, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_detach(&hold, &token, error));
        FAILS(SPRAG_ERROR_EMPTY, "hold", message, sprag_hold_tokens(&hold, &token, 1, NULL, error));
        CHECK(hold.token == 0 && !sprag_hold_is_valid(&hold) && !sprag_hold_is_held(&hold));

        /* Then one that was used up; the second release does not free what another holds. */
        EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
        CHECK(hold.token != 0);
        if (round == 0) {
            EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
            sprag_hold another;
            EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &another, NULL));
            EXPECT(SPRAG_ERROR_EMPTY, sprag_hold_release(&hold, NULL));
            CHECK(sprag_hold_is_held(&another));
            EXPECT(SPRAG_OK, sprag_hold_release(&another, NULL));
        }
    }
    EXPECT(SPRAG_OK, sprag_hold_detach(&hold, &token, NULL));
    EXPECT(SPRAG_ERROR_EMPTY, sprag_hold_release(&hold, NULL));
    EXPECT(SPRAG_OK, sprag_lock_release_token(lock, token, NULL));
    EXPECT(SPRAG_ERROR_LOST, sprag_lock_release_token(lock, token, NULL));

    sprag_decision decision;
    memset(&decision, 0, sizeof decision);
    CHECK(!sprag_decision_is_allowed(&decision));
    CHECK(sprag_decision_retry_after_ns(&decision) == SPRAG_NEVER);
}

static void a_hold_may_be_moved(void)
{
    sprag_hold hold, moved;
    unsigned char unaligned[1 + sizeof hold];

    EXPECT(SPRAG_OK, sprag_lock_acquire(lock, 0, &hold, NULL));
    memcpy(unaligned + 1, &hold, sizeof hold);
    memset(&hold, UNTOUCHED, sizeof hold);
    memcpy(&moved, unaligned + 1, sizeof moved);
    CHECK(sprag_hold_is_held(&moved));
    EXPECT(SPRAG_OK, sprag_hold_release(&moved, NULL));
}

static void what_only_one_kind_can_do_says_so(void)
{
    sprag_bytes names[] = {{"x", 1}, {"y", 1}};
    sprag_lock *several = NULL, *table = NULL;
    sprag_acquire_options shared = {.size = sizeof shared, .mode = SPRAG_SHARED};
    sprag_hold hold;
    uint64_t tokens[2], token;
    size_t count;

    EXPECT(SPRAG_OK, sprag_lock_open_several(space, names, 2, 0, &several, NULL));
    EXPECT(SPRAG_OK, sprag_lock_open_table(space, 0, &table, NULL));
    FAILS(SPRAG_ERROR_UNSUPPORTED, NULL,
          "several locks, a partition and the table can only be held alone; share the lock of a name",
          sprag_lock_acquire_with(several, &shared, &hold, error));
    FAILS(SPRAG_ERROR_UNSUPPORTED, NULL,
          "several locks, a partition and the table can only be held alone; share the lock of a name",
          sprag_lock_acquire_with(table, &shared, &hold, error));

    EXPECT(SPRAG_OK, sprag_lock_acquire(several, 0, &hold, NULL));
    FAILS(SPRAG_ERROR_UNSUPPORTED, NULL,
          "a hold of several locks cannot be upgraded, downgraded or detached; release it, and acquire each by itself",
          sprag_hold_detach(&hold, &token, error));
    FAILS(SPRAG_ERROR_UNSUPPORTED, NULL,
          "a hold of several locks cannot be upgraded, downgraded or detached; release it, and acquire each by itself",
          sprag_hold_downgrade(&hold, error));
    tokens[1] = 0;
    EXPECT(SPRAG_OK, sprag_hold_tokens(&hold, tokens, 1, &count, NULL));
    CHECK(count == 2 && tokens[0] != 0 && tokens[1] == 0);
    CHECK(sprag_hold_is_held(&hold));
    EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
    sprag_lock_close(several);
    sprag_lock_close(table);
}

static void handles_are_closed_in_any_order(void)
{
    for (int order = 0; order < 3; order++) {
        sprag_space *own = NULL;
        sprag_lock *name = NULL;
        sprag_owner *owner = NULL;
        sprag_hold hold, owners;
        sprag_acquire_options options = {.size = sizeof options};

        EXPECT(SPRAG_OK, sprag_space_open("mem:", NULL, &own, NULL));
        EXPECT(SPRAG_OK, sprag_lock_open(own, "a", 1, 0, &name, NULL));
        EXPECT(SPRAG_OK, sprag_owner_open(own, &owner, NULL));
        options.owner = owner;
        EXPECT(SPRAG_OK, sprag_lock_acquire_with(name, &options, &owners, NULL));
        EXPECT(SPRAG_OK, sprag_hold_release(&owners, NULL));
        EXPECT(SPRAG_OK, sprag_lock_acquire(name, 0, &hold, NULL));
        if (order == 0)
            sprag_space_close(own);
        sprag_owner_close(owner);
        if (order == 1)
            EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
        sprag_lock_close(name);
        if (order != 0)
            sprag_space_close(own);
        if (order != 1) {
            CHECK(sprag_hold_is_held(&hold));
            EXPECT(SPRAG_OK, sprag_hold_release(&hold, NULL));
        }
    }
}

static void every_status_has_a_text(void)
{
    for (int32_t status = -100; status < 100; status++) {
        const char *text = sprag_status_text(status);
        CHECK(text != NULL && text[0] != '\0');
    }
    EXPECT_TEXT("no status of this release", sprag_status_text(INT32_MIN));
}

/* What is in a file, as text; its name is as seen from this one. */
static const char *read_text(const char *name)
{
    static char texts[8][1 << 17];
    static size_t count;
    char path[1024];
    const char *here = strrchr(__FILE__, '/');
    char *text = texts[count++];

    snprintf(path, sizeof path, "%.*s%s", here == NULL ? 0 : (int)(here + 1 - __FILE__), __FILE__, name);
    FILE *file = fopen(path, "rb");
    if (CHECK(file != NULL)) {
        size_t len = fread(text, 1, sizeof texts[0] - 1, file);
        CHECK(len < sizeof texts[0] - 1);
        fclose(file);
    }
    return text;
}

/* So that a new one is not forgotten. */
static void every_function_is_tried_with_wrong_arguments(void)
{
    const char *header = read_text("../../../include/sprag.h");
    const char *const callers[] = {read_text("hostile.c"), read_text("hostile_limits.c"), read_text("hostile_nouns.c"),
                                   read_text("hostile_processes.c")};
    unsigned functions = 0;

    /* A declaration is the only line that begins with a letter and has a parenthesis. */
    for (const char *line = header; line != NULL; line = strchr(line, '\n')) {
        char name[64];
        line += *line == '\n';
        size_t len = strcspn(line, "\n");
        const char *at = strstr(line, "sprag_"), *end = memchr(line, '(', len);
        /* A type may come first. */
        for (const char *next = at; next != NULL && end != NULL && next < end; next = strstr(next + 1, "sprag_"))
            at = next;
        if (*line < 'a' || *line > 'z' || strncmp(line, "typedef", 7) == 0 || at == NULL || end == NULL || at > end)
            continue;
        functions++;
        snprintf(name, sizeof name, "%.*s(", (int)(end - at), at);
        bool is_called = false;
        for (size_t i = 0; i < sizeof callers / sizeof callers[0]; i++)
            is_called = is_called || strstr(callers[i], name) != NULL;
        if (!CHECK(is_called))
            printf("        not %s)\n", name);
    }
    CHECK(functions > 100);
}

static void the_version_is_the_headers(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", SPRAG_VERSION_MAJOR, SPRAG_VERSION_MINOR, SPRAG_VERSION_PATCH);
    EXPECT_TEXT(version, sprag_version());
}

/* A number alone would be an int. */
static void constants_have_their_width(void)
{
    CHECK(30 * SPRAG_SECOND == UINT64_C(30000000000));
    CHECK(5000000 * SPRAG_MILLISECOND == UINT64_C(5000000000000));
}

int main(void)
{
    open_all();
    RUN(null_is_an_error_that_names_the_argument);
    RUN(what_may_be_null_may_be_null);
    RUN(lengths_have_bounds);
    RUN(numbers_have_bounds);
    RUN(a_clock_at_the_end_of_time_stands_still);
    RUN(texts_that_are_none_are_told);
    RUN(options_are_read_for_their_size);
    RUN(what_is_empty_says_so);
    RUN(a_hold_may_be_moved);
    RUN(what_only_one_kind_can_do_says_so);
    RUN(handles_are_closed_in_any_order);
    RUN(every_status_has_a_text);
    RUN(the_version_is_the_headers);
    RUN(every_function_is_tried_with_wrong_arguments);
    RUN(constants_have_their_width);
    close_all();
    return tests_done();
}
