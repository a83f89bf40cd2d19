/*
 * Sprag: locks with fencing tokens and leases, rate limiters, semaphores, fences, counters and idempotency keys, at
 * memory speed, for the threads of a process and the processes of a host.
 *
 * Written by `cargo xtask header`; change the source of the C ABI instead.
 *
 *     sprag_space *space = NULL;
 *     sprag_limiter *api = NULL;
 *     sprag_space_open("shm:orders", NULL, &space, NULL);
 *     sprag_limiter_open(space, "api", 3, "100/minute;burst=20", 0, &api, NULL);
 *     if (sprag_limiter_check(api, "user:42", 7, 1, NULL, NULL) == SPRAG_OK)
 *         serve();
 *
 * THREADS. Every call is safe from any thread at any time, with two exceptions: a handle is closed by one thread
 * once no other uses it, and a value in the caller's own memory (a hold, an attempt, a decision) is for one thread
 * at a time. No call starts a thread but sprag_hold_keep_alive(). Only sprag_hold_is_valid() and
 * sprag_status_text() may be called from a signal handler. A thread must not be cancelled (pthread_cancel) while it
 * is in a call, which aborts the process: end its waits by sprag_interruptible(). A process forked from one with an
 * open space gets SPRAG_ERROR_FORKED until it opens its own; closing what it inherited is allowed, and touches
 * nothing of its parent's.
 *
 * OWNERSHIP. What an open call writes belongs to the caller, who ends it with the close call of the same noun.
 * Handles may be closed in any order, since each keeps what it needs of the space. Names, keys, texts and options
 * are read during the call only. What a visitor is given lives until it returns. An error that is written belongs
 * to the caller, who ends it with sprag_error_free().
 *
 * POINTERS. NULL where something is needed is an error that names the argument; NULL is nothing to close. Where
 * nothing is wanted, NULL may be given if the text says so. What a call has to give is written on success, and on an
 * ordinary outcome where the text says so. Options may be NULL; else they begin with their size, and a field that is
 * zero has its default, so that a caller built for an earlier release runs with a later library.
 *
 * SECTIONS
 *     Version
 *     Statuses
 *     Errors
 *     Names, keys and values
 *     Durations
 *     A clock for tests
 *     Spaces
 *     Owners
 *     Holds
 *     Keeping holds alive
 *     Locks
 *     Fences
 *     Semaphores
 *     Stopping waits
 *     Decisions
 *     Limiters
 *     Overrides
 *     Several limiters in one call
 *     Joint limiters
 *     Concurrency limiters
 *     Counters
 *     Striped counters
 *     Attempts
 *     Idempotency keys
 *     What an inspection tells
 *     Inspections
 *     Regions
 *     Metrics
 */

#ifndef SPRAG_H
#define SPRAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * VERSION
 *
 * The version that a program is built with is in the macros; the one that it runs with, sprag_version() tells.
 * A program that was built with an earlier version of the same first number runs with a later one: the name by which
 * programs find the shared library changes with that number alone.
 */

// The version's first number.
#define SPRAG_VERSION_MAJOR 0

// The version's second number.
#define SPRAG_VERSION_MINOR 1

// The version's third number.
#define SPRAG_VERSION_PATCH 0

// The version of the library that runs, as "0.1.0"; lives as long as the library is loaded. Never NULL.
const char *sprag_version(void);

/*
 * STATUSES
 *
 * Every call that can fail returns a sprag_status. 0 is success; what is above 0 is an ordinary outcome and no
 * error; what is below 0 is an error, and has changed nothing unless its text says otherwise. The numbers never
 * change their meaning, and new ones may come: treat an unknown positive one as "not had", an unknown negative
 * one as an error.
 *
 * Any call may fail with SPRAG_ERROR_NULL and SPRAG_ERROR_OUT_OF_RANGE for what it was given, and with
 * SPRAG_ERROR_POISONED and SPRAG_ERROR_PANICKED for a fault of the library; one on a space or on what was opened
 * in it also with SPRAG_ERROR_FORKED, SPRAG_ERROR_REPLACED and SPRAG_ERROR_DAMAGED; one on a hold, an attempt or
 * a decision with SPRAG_ERROR_EMPTY; one that acquires or begins something with SPRAG_ERROR_NO_SESSION and
 * SPRAG_ERROR_TOKENS_EXHAUSTED; one that waits with SPRAG_ERROR_STOPPED; one that may need room in the region
 * with SPRAG_ERROR_NO_SPACE. A call's own text names the others.
 */

// What came of a call.
enum {
  // Done, granted, or allowed.
  SPRAG_OK = 0,
  // Not allowed: by a limit, or by the bounds of an addition. Nothing was taken.
  SPRAG_REFUSED = 1,
  // Not had, at once or within the timeout. Nothing is left behind.
  SPRAG_BUSY = 2,
  // There is none of this name.
  SPRAG_NONE = 3,
  // The value was not the expected one. Nothing was changed.
  SPRAG_DIFFERS = 4,
  // Another attempt at this key is under way.
  SPRAG_IN_PROGRESS = 5,
  // It was done before.
  SPRAG_DONE = 6,
  // The last attempt ended unfinished, so that its work may have been done in part.
  SPRAG_UNFINISHED = 7,
  // A pointer that must not be NULL is.
  SPRAG_ERROR_NULL = -1,
  // A number, a duration or the length of a name lies outside its bounds, or a value is none of its enumeration.
  SPRAG_ERROR_OUT_OF_RANGE = -2,
  // What was given as a limit is none: not its text, or outside its bounds.
  SPRAG_ERROR_LIMIT = -3,
  // The URL is not one of a space, or its place is not usable.
  SPRAG_ERROR_PLACE = -4,
  // This cannot be had of this thing, of this space, or on this platform.
  SPRAG_ERROR_UNSUPPORTED = -5,
  // A fault of the library was caught in an earlier call with this handle; close it.
  SPRAG_ERROR_POISONED = -6,
  // A fault of the library was caught in this call: what it did is not known, and its handle is poisoned.
  SPRAG_ERROR_PANICKED = -7,
  // This process was forked after the space was opened, and owns nothing in it: open the space again.
  SPRAG_ERROR_FORKED = -8,
  // The space was opened without a session, and this needs one.
  SPRAG_ERROR_NO_SESSION = -9,
  // The hold or the attempt is no longer the caller's: its lease ended, or it was taken away.
  SPRAG_ERROR_LOST = -10,
  // The fence has admitted a higher token: give up what you hold.
  SPRAG_ERROR_STALE = -11,
  // Owners wait for each other in a circle, and this wait is the one to give up.
  SPRAG_ERROR_DEADLOCK = -12,
  // Another holder waits to have the lock alone already: release, and acquire anew.
  SPRAG_ERROR_UPGRADE_CONFLICT = -13,
  // The owner shares the lock with others, and cannot acquire it alone: upgrade, or release first.
  SPRAG_ERROR_OWNER_SHARES = -14,
  // The owner has acquired the lock more often than can be counted.
  SPRAG_ERROR_TOO_DEEP = -15,
  // Things of two spaces do not go together.
  SPRAG_ERROR_OTHER_SPACE = -16,
  // The region has no room, and all in it is in use.
  SPRAG_ERROR_FULL = -17,
  // This process has its share of the region's room already.
  SPRAG_ERROR_SHARE_EXCEEDED = -18,
  // The file system, or for mem: memory, has no room for the region to grow.
  SPRAG_ERROR_NO_SPACE = -19,
  // It exists by another definition: another limit, or another number of permits.
  SPRAG_ERROR_DEFINITION_DIFFERS = -20,
  // More was asked for than there can be at once.
  SPRAG_ERROR_ABOVE_CAPACITY = -21,
  // The limiter was removed while in use: open it again.
  SPRAG_ERROR_GONE = -22,
  // The lock's token can rise no further: recreate the region.
  SPRAG_ERROR_TOKENS_EXHAUSTED = -23,
  // The counter would leave the range of its numbers.
  SPRAG_ERROR_COUNTER_OVERFLOW = -24,
  // The region's words contradict each other: stop its users, and remove it.
  SPRAG_ERROR_DAMAGED = -25,
  // The file is not a region, or not one that this release reads.
  SPRAG_ERROR_INCOMPATIBLE = -26,
  // There is no region there, and none was to be created.
  SPRAG_ERROR_NOT_FOUND = -27,
  // The region is in use, so that it cannot be removed or replaced.
  SPRAG_ERROR_IN_USE = -28,
  // Another process has been at work on the region's file for too long.
  SPRAG_ERROR_CONTENDED = -29,
  // The region's file was removed or replaced, or its descriptor closed: all holds are lost; open it again.
  SPRAG_ERROR_REPLACED = -30,
  // The region's owner or mode is not what it must be.
  SPRAG_ERROR_PERMISSION = -31,
  // The system refused something: its own error is in the details.
  SPRAG_ERROR_SYSTEM = -32,
  // The hold, the attempt or the decision is empty: used up by an earlier call, or never filled in.
  SPRAG_ERROR_EMPTY = -33,
  // An error that this release has no number for: its text is in the details.
  SPRAG_ERROR_OTHER = -34,
  // The wait was stopped by its caller: see sprag_interruptible(). Nothing is held.
  SPRAG_ERROR_STOPPED = -35,
};
typedef int32_t sprag_status;

// What a status means, as a sentence in English that lives as long as the library is loaded; for a number that is
// none, says so. Never NULL. What was wrong in one call, its sprag_error tells.
//
// Any thread; async-signal-safe.
const char *sprag_status_text(int32_t status);

/*
 * ERRORS
 *
 * A call that can fail takes a pointer to a sprag_error pointer as its last argument, which may be NULL. If the
 * call fails and it is not, an error object is written there, which belongs to the caller: free it with
 * sprag_error_free(). If the call succeeds, nothing is written; so begin with NULL. Nothing is kept per thread.
 *
 *     sprag_error *error = NULL;
 *     if (sprag_space_open("shm:orders", NULL, &space, &error) < 0) {
 *         fprintf(stderr, "%s\n", sprag_error_message(error));
 *         sprag_error_free(error);
 *     }
 */

// What was wrong in one call. It never changes; any thread may read it.
typedef struct sprag_error sprag_error;

// Frees an error; NULL is none.
void sprag_error_free(sprag_error *error);

// The status that the call returned; SPRAG_OK for NULL.
sprag_status sprag_error_status(const sprag_error *error);

// What was wrong and what to do about it, in English, one line. Lives as long as the error; "" for NULL.
const char *sprag_error_message(const sprag_error *error);

// The argument that was wrong, as the message calls it; NULL if none was. Lives as long as the error.
const char *sprag_error_argument(const sprag_error *error);

// Whether the argument has bounds: if so, what was given and the least and greatest that are accepted are written,
// each where its pointer is not NULL. Durations are in nanoseconds.
bool sprag_error_bounds(const sprag_error *error,
                        uint64_t *value,
                        uint64_t *min,
                        uint64_t *max);

// The system's own error number (errno) where the system refused something; else 0.
int sprag_error_os_code(const sprag_error *error);

// The token of what was lost, or was stale; 0 if this is no such error.
uint64_t sprag_error_token(const sprag_error *error);

// The highest token that the fence had admitted when it found one stale; 0 if this is no such error.
uint64_t sprag_error_highest_token(const sprag_error *error);

/*
 * NAMES, KEYS AND VALUES
 *
 * Names and keys are bytes, 1 to SPRAG_NAME_BYTES_MAX of them, given as pointer and length; they may hold
 * anything, also zero bytes, and are compared exactly. A number's own bytes are the cheapest key. What is given
 * is read during the call only.
 *
 * A call that tells a name or a text writes it to the caller's buffer as far as that reaches, and how long it is
 * in all, to a pointer that may be NULL; so ask with a buffer of 0 bytes first, or with one that is long enough
 * for all. A text ends with a zero byte even where it was cut, which its length does not count; a name does not.
 */

// The most bytes that a name or a key may have.
#define SPRAG_NAME_BYTES_MAX 1024

// Bytes that belong to the caller.
typedef struct sprag_bytes {
  // Where they begin; may be NULL if there are none.
  const void *data;
  // How many there are.
  size_t len;
} sprag_bytes;

/*
 * DURATIONS
 *
 * Durations and times are in nanoseconds, and their names end in _ns. A timeout is how long a call waits at most:
 * 0 to try, SPRAG_FOREVER without an end. A ttl is how long a lease lasts that nobody renews, or an attempt may
 * take: 1 ms to 366 days.
 */

// Nanoseconds in a millisecond, as in 5 * SPRAG_MILLISECOND.
#define SPRAG_MILLISECOND UINT64_C(1000000)

// Nanoseconds in a second.
#define SPRAG_SECOND UINT64_C(1000000000)

// A timeout that never ends.
#define SPRAG_FOREVER UINT64_MAX

// A wait that never ends, where a call tells how long to wait.
#define SPRAG_NEVER UINT64_MAX

// A time that is not known.
#define SPRAG_UNKNOWN UINT64_MAX

/*
 * A CLOCK FOR TESTS
 *
 * A mem: space may run on a clock that the caller moves by hand, so that tests of leases, limits and timeouts need
 * not wait. A call that waits with a timeout returns then only once another thread has moved the clock that far.
 */

// A clock that stands still until it is moved. Any thread may move it.
typedef struct sprag_manual_clock sprag_manual_clock;

// Makes a clock, which shows 2026-01-01T00:00:00Z. It may be closed while spaces run on it.
sprag_status sprag_manual_clock_open(sprag_manual_clock **clock, sprag_error **error);

// Moves the clock forward by so many nanoseconds. It never goes back.
sprag_status sprag_manual_clock_advance(const sprag_manual_clock *clock, uint64_t by_ns, sprag_error **error);

// What the clock shows, in nanoseconds since 1970-01-01 UTC; 0 for NULL.
uint64_t sprag_manual_clock_unix_ns(const sprag_manual_clock *clock);

// Closes the handle; NULL is none.
void sprag_manual_clock_close(sprag_manual_clock *clock);

/*
 * SPACES
 *
 * A space is a set of named objects, opened by URL; the URL decides how far it reaches:
 *
 *     mem:         the threads of this process; each opening is another space
 *     shm:NAME     the processes of this host: the file NAME.sprag in $SPRAG_DIR, else in /dev/shm/sprag-UID
 *     shm:/path    the processes of this host: that very file
 *
 * An open space has a session, by which others know that this process lives: when the process ends, however it
 * does, what it held passes on. A process forked from one with an open space owns nothing in it: its calls fail
 * with SPRAG_ERROR_FORKED until it opens the space itself. So servers that fork their workers fork first and open
 * after.
 */

// An open space. Every call on it is safe from any thread. What was opened in it has a share of it, as has
// each hold and each attempt: the session ends when the space and all of those are closed, or released.
typedef struct sprag_space sprag_space;

// Only a region that is there is opened; none is created.
#define SPRAG_EXISTING 1

// The group may use the region too: mode 0660 instead of 0600.
#define SPRAG_GROUP_SHARED 2

// No session is opened: enough to look, to break, and to release and renew by token.
#define SPRAG_WITHOUT_SESSION 4

// How a space is opened. Begins with its size; what is zero has its default.
typedef struct sprag_space_options {
  // sizeof(sprag_space_options).
  size_t size;
  // SPRAG_EXISTING, SPRAG_GROUP_SHARED and SPRAG_WITHOUT_SESSION, or'ed together.
  uint32_t flags;
  // How much of each cap of a shared region this session may fill, in percent: 1 to 100; 0 for 75.
  uint32_t share_percent;
  // A clock moved by hand, for mem: only; NULL for the system's. Need not stay open.
  const sprag_manual_clock *clock;
  // From here on caps of a region, if this call creates it; an existing one keeps its own. Locks, semaphores,
  // fences, counters, limiters, overrides and idempotency keys together: 1 to 2^26; 0 for 65,536.
  uint32_t objects;
  // Keys of all limiters together: 1 to 2^28; 0 for 262,144.
  uint32_t limiter_keys;
  // Keys of all joint limiters together: 1 to 2^26; 0 for 65,536.
  uint32_t joint_keys;
  // Open spaces at one time: 1 to 4,095; 0 for 1,024.
  uint32_t sessions;
  // Waits at one time: 1 to 65,536; 0 for 4,096.
  uint32_t waiters;
  // Shared holds and holds of semaphores at one time: 1 to 65,536; 0 for 8,192.
  uint32_t permits;
  // Chunks of 48 bytes for long names, long keys, and results: 1 to 2^28; 0 for 262,144.
  uint32_t key_chunks;
  // Zero.
  uint32_t reserved;
} sprag_space_options;

// Opens the space at url; options may be NULL. Waits up to 10 s for another process that is making the region.
// Some dozen system calls.
//
// SPRAG_ERROR_PLACE for a URL or a place that cannot be used; SPRAG_ERROR_NOT_FOUND with SPRAG_EXISTING if there
// is no region; SPRAG_ERROR_INCOMPATIBLE, SPRAG_ERROR_PERMISSION and SPRAG_ERROR_SYSTEM for one that cannot be
// opened.
sprag_status sprag_space_open(const char *url,
                              const sprag_space_options *options,
                              sprag_space **space,
                              sprag_error **error);

// Closes the handle; NULL is none. The session ends once all that was opened in the space is closed too, and its
// holds and attempts have ended.
void sprag_space_close(sprag_space *space);

// How many partitions the space has: a power of two, at most 64; 0 for NULL.
uint32_t sprag_space_partitions(const sprag_space *space);

// The partition that a lock's name falls into, from 0. Some nanoseconds.
sprag_status sprag_space_partition_of(const sprag_space *space,
                                      const void *name,
                                      size_t name_len,
                                      uint32_t *partition,
                                      sprag_error **error);

// Writes the URL that the space was opened by, as far as it fits, and its length.
sprag_status sprag_space_url(const sprag_space *space,
                             char *url,
                             size_t url_max,
                             size_t *url_len,
                             sprag_error **error);

// How many keys the space's limiters have now: those with something used, and full ones not reclaimed yet. A few
// loads; 0 for NULL.
uint64_t sprag_space_limiter_key_count(const sprag_space *space);

// Bytes that these keys take in the region: their cells, and the chunks of long ones. Reads the whole table; 0
// for NULL.
uint64_t sprag_space_limiter_key_bytes(const sprag_space *space);

/*
 * OWNERS
 *
 * An owner is who holds when locks are to be re-entrant and deadlocks to be found: a handle, never a thread. What
 * it acquires again, it has at once, under the same token, and must release as often. Where owners wait for each
 * other in a circle, the youngest wait fails with SPRAG_ERROR_DEADLOCK. Holds that are not an owner's are in no
 * circle.
 */

// An owner. It may be used by any thread; two threads that use one are one holder.
typedef struct sprag_owner sprag_owner;

// Makes an owner. Costs no shared memory.
sprag_status sprag_owner_open(const sprag_space *space, sprag_owner **owner, sprag_error **error);

// Closes the handle; NULL is none. Its holds go on.
void sprag_owner_close(sprag_owner *owner);

/*
 * HOLDS
 *
 * A sprag_hold is what was acquired, of a lock or of a semaphore (whose sections follow): a value in the caller's
 * own memory, filled in by an acquire. It may be moved, as by memcpy or realloc, but only one copy of it may go
 * on being used. It ends by sprag_hold_release() or sprag_hold_detach(), which leave it empty; one that is
 * forgotten, or written over by another acquire, ends with its lease, and keeps its space's session for as long as
 * the process runs. A hold of zero bytes is empty.
 *
 * A hold can end before it is released: when its lease ends, or somebody breaks the lock. Ask
 * sprag_hold_is_valid() before each step that needs the lock, and send the token along to a fence, which is the
 * only thing that stops a step already under way.
 *
 * A hold is for one thread at a time.
 */

// A hold. All of its fields but the token are the library's own.
typedef struct sprag_hold {
  // The fencing token: higher than that of every earlier hold of the lock, and below 2^53. 0 if the hold is
  // empty.
  uint64_t token;
  // The library's own.
  uint64_t private_state;
  // The library's own.
  uint64_t private_words[18];
} sprag_hold;

// Releases what is held, and leaves the hold empty, also where that fails: SPRAG_ERROR_LOST if somebody else has
// taken it since. One whose lease is over is released all the same while nobody has.
sprag_status sprag_hold_release(sprag_hold *hold,
                                sprag_error **error);

// Whether the lease still runs, by this process's own clock: a clock reading, no shared memory. Errs towards false
// near the end; false for an empty one.
//
// Async-signal-safe, as no other call on a hold is.
bool sprag_hold_is_valid(const sprag_hold *hold);

// Whether it is still held under its token, by the shared word: one load more, and also notices a broken lock.
bool sprag_hold_is_held(const sprag_hold *hold);

// Whether others may hold the lock beside this one.
bool sprag_hold_is_shared(const sprag_hold *hold);

// What is left of the lease in nanoseconds, by this process's own clock; 0 once it is over, and for an empty hold.
uint64_t sprag_hold_lease_left_ns(const sprag_hold *hold);

// Writes the tokens of a hold of several locks, in the order in which those were named, into the array of
// tokens_max elements, as far as they fit, and how many there are, to count. A hold of one lock has one.
sprag_status sprag_hold_tokens(const sprag_hold *hold,
                               uint64_t *tokens,
                               size_t tokens_max,
                               size_t *count,
                               sprag_error **error);

// Starts the lease anew, from now, with the length it had. SPRAG_ERROR_LOST once it is over.
sprag_status sprag_hold_renew(sprag_hold *hold, sprag_error **error);

// sprag_hold_renew() with another length: 1 ms to 366 days.
sprag_status sprag_hold_extend(sprag_hold *hold, uint64_t ttl_ns, sprag_error **error);

// Takes alone what this hold shares with others, waiting for them to release it for at most timeout_ns: SPRAG_OK,
// or SPRAG_BUSY if others share it still, as this hold does. It has a new, higher token then, and its lease
// starts anew.
//
// SPRAG_ERROR_UPGRADE_CONFLICT if another who shares it waits for the same: release this one, and acquire anew.
sprag_status sprag_hold_upgrade(sprag_hold *hold,
                                uint64_t timeout_ns,
                                sprag_error **error);

// Goes on sharing the lock with others instead of having it alone, with the same token and what is left of the
// lease.
sprag_status sprag_hold_downgrade(sprag_hold *hold,
                                  sprag_error **error);

// Lets what is held live on without this process, until its lease ends or somebody releases it by its token,
// which is written to token; the lease starts anew. The hold is left empty, also where that fails:
// SPRAG_ERROR_LOST once it is over.
sprag_status sprag_hold_detach(sprag_hold *hold, uint64_t *token, sprag_error **error);

/*
 * KEEPING HOLDS ALIVE
 *
 * A lease that is renewed in time does not end. The library renews it in the background for holders that cannot,
 * and tells them if the hold is lost all the same.
 */

// How a hold is kept alive. Begins with its size; what is zero has its default.
typedef struct sprag_keep_alive_options {
  // sizeof(sprag_keep_alive_options).
  size_t size;
  // How long after the call renewing stops; the hold then ends with its lease, which counts as its loss. 0 for
  // 24 hours, SPRAG_FOREVER for no end.
  uint64_t at_most_ns;
  // Called once, with the token that the hold had when this was asked for, when the hold is lost; may be NULL.
  // Never for one that is released or detached. It runs in the library's thread, which renews all holds of the
  // space: it must not block, and must not unwind.
  void (*on_lost)(uint64_t token, void *context);
  // Given to the two functions.
  void *context;
  // Called once when neither of the two will be called any more with that context, to free it, in whichever
  // thread; may be NULL. Not if the call fails: the context stays the caller's then.
  void (*free_context)(void *context);
} sprag_keep_alive_options;

// Has the lease renewed in the background until the hold is released, lost, or at_most_ns is over; options may be
// NULL. A thread of the library's, one for the whole space, does so from the first such call on until none is
// left. A second call replaces what the first asked for.
//
// The lease is renewed each time a third of it is over, and the hold is looked at every 200 ms besides. So a lock
// that was broken is told of within 200 ms, as far as the system lets the thread run; sprag_hold_is_valid() is
// false from then on as well.
//
// SPRAG_ERROR_LOST if it was lost already, and nothing is called back then; SPRAG_ERROR_SYSTEM if the thread
// cannot be started.
sprag_status sprag_hold_keep_alive(sprag_hold *hold,
                                   const sprag_keep_alive_options *options,
                                   sprag_error **error);

/*
 * LOCKS
 *
 * A lock has one holder, or several that share it. Whoever waits is served in the order of coming. A hold has a
 * token, which rises with every grant, and a lease: not renewed in time, it is over, whatever its holder does.
 *
 * A sprag_lock is one of four, by the call that opened it: the lock of a name; several names, acquired all at
 * once or not at all; a partition, whose lock excludes the locks of all names in it; or the table, whose lock
 * excludes all.
 *
 * Not re-entrant: a second acquire waits for the first hold, unless both are for the same owner.
 */

// A handle on a lock. Every call on it is safe from any thread. Nothing is created before it is acquired.
typedef struct sprag_lock sprag_lock;

// Alone: nobody else has the lock meanwhile.
#define SPRAG_EXCLUSIVE 0

// Beside others who share it.
#define SPRAG_SHARED 1

// How a lock is acquired. Begins with its size; what is zero has its default.
typedef struct sprag_acquire_options {
  // sizeof(sprag_acquire_options).
  size_t size;
  // How long to wait at most; 0 to try, SPRAG_FOREVER without an end.
  uint64_t timeout_ns;
  // For whom; NULL for nobody but the hold itself. Of the lock's space, and need not stay open.
  const sprag_owner *owner;
  // SPRAG_EXCLUSIVE or SPRAG_SHARED; the latter only of the lock of a name.
  uint32_t mode;
  // Zero.
  uint32_t reserved;
} sprag_acquire_options;

// Opens a handle on the lock of a name. Its holds are leased for ttl_ns: 1 ms to 366 days; 0 for 30 s.
sprag_status sprag_lock_open(const sprag_space *space,
                             const void *name,
                             size_t name_len,
                             uint64_t ttl_ns,
                             sprag_lock **lock,
                             sprag_error **error);

// Opens a handle on the locks of 1 to 64 names, which are acquired all at once or not at all, in whatever order
// they are named; one named twice is one lock. ttl_ns as for sprag_lock_open().
sprag_status sprag_lock_open_several(const sprag_space *space,
                                     const sprag_bytes *names,
                                     size_t count,
                                     uint64_t ttl_ns,
                                     sprag_lock **lock,
                                     sprag_error **error);

// Opens a handle on the lock of a partition, from 0, of sprag_space_partitions(). ttl_ns as for
// sprag_lock_open(). To acquire it looks at every lock beneath, some 10 us: for what is done seldom.
sprag_status sprag_lock_open_partition(const sprag_space *space,
                                       uint32_t partition,
                                       uint64_t ttl_ns,
                                       sprag_lock **lock,
                                       sprag_error **error);

// Opens a handle on the lock of the table: it excludes all locks of names and of partitions. ttl_ns as for
// sprag_lock_open().
sprag_status sprag_lock_open_table(const sprag_space *space,
                                   uint64_t ttl_ns,
                                   sprag_lock **lock,
                                   sprag_error **error);

// Closes the handle; NULL is none. Its holds go on.
void sprag_lock_close(sprag_lock *lock);

// Acquires the lock alone, waiting its turn for at most timeout_ns: 0 to try, SPRAG_FOREVER without an end.
// SPRAG_OK, and the hold is written; or SPRAG_BUSY, and it is not, and nothing is left behind. Tens of
// nanoseconds where the lock is free; the table's and a partition's looks at all locks beneath.
//
// SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for another lock, or for another
// waiter.
sprag_status sprag_lock_acquire(const sprag_lock *lock,
                                uint64_t timeout_ns,
                                sprag_hold *hold,
                                sprag_error **error);

// sprag_lock_acquire() with options: shared, or for an owner.
//
// SPRAG_ERROR_DEADLOCK, SPRAG_ERROR_OWNER_SHARES and SPRAG_ERROR_TOO_DEEP for an owner; SPRAG_ERROR_OTHER_SPACE or
// SPRAG_ERROR_UNSUPPORTED for one of another space. A few hundred nanoseconds.
sprag_status sprag_lock_acquire_with(const sprag_lock *lock,
                                     const sprag_acquire_options *options,
                                     sprag_hold *hold,
                                     sprag_error **error);

// Ends the hold with this token, whoever took it: the other half of sprag_hold_detach(). SPRAG_ERROR_LOST if the
// lock is not held under it.
sprag_status sprag_lock_release_token(const sprag_lock *lock,
                                      uint64_t token,
                                      sprag_error **error);

// Sets the lease of the hold with this token to the handle's, from now. SPRAG_ERROR_LOST if the lock is not held
// under it, or its lease is over.
sprag_status sprag_lock_renew_token(const sprag_lock *lock,
                                    uint64_t token,
                                    sprag_error **error);

// Takes over the hold with this token from whoever has it, with the handle's lease: how a hold goes from one
// process to another. SPRAG_ERROR_LOST if the lock is not held under it, or its lease is over.
sprag_status sprag_lock_adopt_token(const sprag_lock *lock,
                                    uint64_t token,
                                    sprag_hold *hold,
                                    sprag_error **error);

// Takes the lock away from whoever holds it, and notes who did it. SPRAG_OK, and the token that was ended is
// written to token, if that is not NULL; SPRAG_NONE if it was not held. What the holder still writes, a fence
// rejects.
sprag_status sprag_lock_break(const sprag_lock *lock, uint64_t *token, sprag_error **error);

/*
 * FENCES
 *
 * A fence stands at the resource's side of a lock: it remembers the highest token that it admitted, and rejects
 * older ones, so that a holder that was stopped and comes late does no harm. Check each write by its token.
 */

// An open fence. Every call on it is safe from any thread.
typedef struct sprag_fence sprag_fence;

// The highest token that there can be: 2^53 - 1.
#define SPRAG_TOKEN_MAX UINT64_C(9007199254740991)

// Opens a handle on the fence of a name. It is created when it first admits a token, and stays for as long as the
// region does.
sprag_status sprag_fence_open(const sprag_space *space,
                              const void *name,
                              size_t name_len,
                              sprag_fence **fence,
                              sprag_error **error);

// Closes the handle; NULL is none. The fence stays in its space.
void sprag_fence_close(sprag_fence *fence);

// Admits a token not lower than the highest admitted, in one step. Tens of nanoseconds; writes nothing if it is
// the highest itself.
//
// SPRAG_ERROR_STALE for a lower token and for 0: sprag_error_highest_token() tells the highest then.
// SPRAG_ERROR_OUT_OF_RANGE for one above SPRAG_TOKEN_MAX, SPRAG_ERROR_FULL where the region has no room for the
// fence.
sprag_status sprag_fence_admit(const sprag_fence *fence,
                               uint64_t token,
                               sprag_error **error);

// sprag_fence_admit() for a token higher than the highest admitted: each token once.
sprag_status sprag_fence_admit_once(const sprag_fence *fence, uint64_t token, sprag_error **error);

// The highest token admitted; 0 if none was, and for NULL.
uint64_t sprag_fence_highest(const sprag_fence *fence);

/*
 * SEMAPHORES
 *
 * A semaphore is a number of permits. They are leased, as locks are: those of a holder that died, or did not renew
 * them, return. Each hold has a token, and as many permits as it asked for at once; all are released together.
 */

// A handle on a semaphore, or on what a key of a concurrency limiter can have at once. Every call on it is
// safe from any thread.
typedef struct sprag_semaphore sprag_semaphore;

// Opens a handle on the semaphore of a name, which has so many permits: 1 to 16,777,215. Nothing is created before
// some are acquired. Its holds are leased for ttl_ns: 1 ms to 366 days; 0 for 30 s.
//
// That it exists with another number of permits is found by acquiring: SPRAG_ERROR_DEFINITION_DIFFERS.
sprag_status sprag_semaphore_open(const sprag_space *space,
                                  const void *name,
                                  size_t name_len,
                                  uint32_t permits,
                                  uint64_t ttl_ns,
                                  sprag_semaphore **semaphore,
                                  sprag_error **error);

// Closes the handle; NULL is none. Its holds go on.
void sprag_semaphore_close(sprag_semaphore *semaphore);

// Acquires so many permits at once, 1 to all there are, waiting for at most timeout_ns: 0 to try, SPRAG_FOREVER
// without an end. SPRAG_OK, and the hold is written; or SPRAG_BUSY, and it is not, and nothing is left behind.
// Those who wait are served in the order of coming, also one who wants more than the one behind. A few hundred
// nanoseconds where there are so many.
//
// SPRAG_ERROR_DEFINITION_DIFFERS if the semaphore has another number of permits; SPRAG_ERROR_ABOVE_CAPACITY if a
// limiter allows fewer of its key, also to one who waits when that is changed; SPRAG_ERROR_FULL and
// SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for another hold, or for another waiter.
sprag_status sprag_semaphore_acquire(const sprag_semaphore *semaphore,
                                     uint32_t permits,
                                     uint64_t timeout_ns,
                                     sprag_hold *hold,
                                     sprag_error **error);

// Ends the hold with this token, and all its permits, whoever took it: the other half of sprag_hold_detach().
// SPRAG_ERROR_LOST if there is no such hold.
sprag_status sprag_semaphore_release_token(const sprag_semaphore *semaphore,
                                           uint64_t token,
                                           sprag_error **error);

// Sets the lease of the hold with this token to the handle's, from now. SPRAG_ERROR_LOST if there is no such hold,
// or its lease is over.
sprag_status sprag_semaphore_renew_token(const sprag_semaphore *semaphore,
                                         uint64_t token,
                                         sprag_error **error);

// Takes over the hold with this token, and all its permits, from whoever has it, with the handle's lease.
// SPRAG_ERROR_LOST if there is no such hold, or its lease is over.
sprag_status sprag_semaphore_adopt_token(const sprag_semaphore *semaphore,
                                         uint64_t token,
                                         sprag_hold *hold,
                                         sprag_error **error);

// How many permits there are in all; of a limiter's key as many as the limiter allows now. 0 for NULL, and if the
// region is damaged.
uint32_t sprag_semaphore_permits(const sprag_semaphore *semaphore);

// Writes the name, of a limiter's key the key, as far as it fits, and its length.
sprag_status sprag_semaphore_name(const sprag_semaphore *semaphore,
                                  void *name,
                                  size_t name_max,
                                  size_t *name_len,
                                  sprag_error **error);

/*
 * STOPPING WAITS
 *
 * A thread that waits, for a lock, for permits or for an upgrade, sleeps until it has what it waits for or its
 * time is over. What else is to end its waits, such as a signal, it is told here.
 */

// Calls call(context), and lets stop(stop_context) end the waits in it, on this thread: it is asked whenever a
// wait was woken from its sleep without having what it waits for, also by a signal that the thread handles, and
// several times a second in any case. Once it says true, the wait leaves the queue and fails with
// SPRAG_ERROR_STOPPED; until then it keeps its place. For programs that are to act on a signal while a thread
// waits: the handler sets a flag, and stop reads it.
//
// Neither function may unwind (throw). stop may call anything of this library; a wait in it has no stop of its
// own.
sprag_status sprag_interruptible(bool (*stop)(void *stop_context),
                                 void *stop_context,
                                 void (*call)(void *context),
                                 void *context,
                                 sprag_error **error);

/*
 * DECISIONS
 *
 * A sprag_decision is what a limiter answered: a value in the caller's own memory, filled in by a check. It needs
 * no freeing, and it may be moved; it stands for what was taken, so a copy must not be given back a second time.
 */

// The answer of a limiter, and the key's state right after it.
typedef struct sprag_decision {
  // The library's own.
  uint64_t private_state;
  // The library's own.
  uint64_t private_words[22];
} sprag_decision;

// Whether the cost was admitted; false for an empty one.
bool sprag_decision_is_allowed(const sprag_decision *decision);

// The most that can be admitted at once: the burst, or a window's count; 0 for an empty one.
uint64_t sprag_decision_limit(const sprag_decision *decision);

// The greatest cost that another check at the same instant would be allowed; 0 for an empty one.
uint64_t sprag_decision_remaining(const sprag_decision *decision);

// How long to wait until the same cost would be allowed, in nanoseconds, if nobody else takes any: 0 if it was,
// SPRAG_NEVER if it never can be, and for an empty one.
uint64_t sprag_decision_retry_after_ns(const sprag_decision *decision);

// How long until nothing is used any more, in nanoseconds, if nobody takes any; SPRAG_NEVER for never, and for an
// empty one.
uint64_t sprag_decision_reset_after_ns(const sprag_decision *decision);

// How long until a further check of another cost would be allowed, in nanoseconds, if nobody else takes any: 0 if
// it would be at once, SPRAG_NEVER if it never can be, and for an empty one.
uint64_t sprag_decision_retry_after_for_ns(const sprag_decision *decision,
                                           uint64_t cost);

// How long to wait, from the call on, before acting on it, in nanoseconds: 0, but for a reservation, and for an
// empty one.
uint64_t sprag_decision_act_after_ns(const sprag_decision *decision);

// Whether the region had no room for the key, so that a bucket shared by all such keys decided; false for an empty
// one.
bool sprag_decision_is_overflow(const sprag_decision *decision);

/*
 * LIMITERS
 *
 * A limiter is a rate over keys, shared by everyone who opens it in the same space, and exact to its formula. A
 * limit is written as text:
 *
 *     100/minute                    a token bucket: 100 at once, and 100 a minute from then on
 *     100/minute;burst=20           20 at once
 *     1000/day;window=fixed         at most 1,000 in each aligned day
 *     100/minute;window=sliding     two counters: an estimate, whose bound is twice
 *
 * A count is 0 to 10^12; a period is a unit (ns, us, ms; second, minute, hour, day, week, year, or
 * their first letters) or a number of them (5s).
 * Open a limiter once and keep it: a check through it costs tens of nanoseconds.
 */

// An open limiter. Every call on it is safe from any thread.
typedef struct sprag_limiter sprag_limiter;

// Bytes that are enough for any limit as text, its zero byte included.
#define SPRAG_LIMIT_BYTES_MAX 64

// What exists by another definition gets this one; what its keys have used is kept.
#define SPRAG_UPDATE 1

// Some was given back.
#define SPRAG_REFUND_GIVEN 0

// Nothing was: nothing was taken, or all of it has drained, or its window no longer counts.
#define SPRAG_REFUND_OVER 1

// Nothing was, since it is not known how much of it still counts: the limit was changed, the key made room for
// another, or something of the key was given back and something else taken since. Also for what another limiter
// admitted.
#define SPRAG_REFUND_VOID 2

// Opens the limiter of this name, and creates it with the limit if there is none. With limit NULL, opens the one
// that there is, whatever its limit: SPRAG_NONE if there is none. flags: 0 or SPRAG_UPDATE.
//
// SPRAG_ERROR_LIMIT for a text that is no limit; SPRAG_ERROR_DEFINITION_DIFFERS if it has another limit, without
// SPRAG_UPDATE. An update looks at every key of the region.
sprag_status sprag_limiter_open(const sprag_space *space,
                                const void *name,
                                size_t name_len,
                                const char *limit,
                                uint32_t flags,
                                sprag_limiter **limiter,
                                sprag_error **error);

// Closes the handle; NULL is none. The limiter stays in its space.
void sprag_limiter_close(sprag_limiter *limiter);

// Checks a cost of a key, and takes it if it is allowed: SPRAG_OK, else SPRAG_REFUSED. A cost of 0 takes nothing,
// one above the limit is never allowed. The decision is written in both cases, unless it is NULL, which is
// quickest.
//
// A region with no room for the key is no error: all such keys are decided by one bucket, see
// sprag_decision_is_overflow().
//
// Tens of nanoseconds; a refusal writes nothing to shared memory.
sprag_status sprag_limiter_check(const sprag_limiter *limiter,
                                 const void *key,
                                 size_t key_len,
                                 uint64_t cost,
                                 sprag_decision *decision,
                                 sprag_error **error);

// A key's state, changing nothing: the decision of a check of cost 0.
sprag_status sprag_limiter_peek(const sprag_limiter *limiter,
                                const void *key,
                                size_t key_len,
                                sprag_decision *decision,
                                sprag_error **error);

// Checks many keys, each by itself and in order, for the same cost. Whether each was allowed is written to the
// array allowed, each decision to the array decisions, both of count elements, and how many were allowed, to
// allowed_count; each may be NULL. SPRAG_OK, however many were refused.
//
// One clock reading, and the memory of the next keys fetched ahead: in a large table about half the time of as
// many single checks. Quickest without the decisions.
//
// A key out of its bounds is found before any is decided. SPRAG_ERROR_GONE and SPRAG_ERROR_DAMAGED can come in the
// middle: then the keys before were decided, and their elements were written.
sprag_status sprag_limiter_check_batch(const sprag_limiter *limiter,
                                       const sprag_bytes *keys,
                                       size_t count,
                                       uint64_t cost,
                                       bool *allowed,
                                       sprag_decision *decisions,
                                       size_t *allowed_count,
                                       sprag_error **error);

// Takes a cost of a key now, to be acted on later: after sprag_decision_act_after_ns(), which is at most
// wait_max_ns. That is when a check would be allowed if nobody else came; whoever comes later waits behind it.
// SPRAG_OK; or SPRAG_REFUSED, and nothing is taken, if the wait would be longer, or the cost can never be had. The
// decision is written in both cases. Who does not want the place any more gives it back: sprag_limiter_refund().
//
// Under a fixed window, a cost that the rest of a window has no room for closes that window.
// SPRAG_ERROR_UNSUPPORTED for a sliding window. Well below a microsecond.
sprag_status sprag_limiter_reserve(const sprag_limiter *limiter,
                                   const void *key,
                                   size_t key_len,
                                   uint64_t cost,
                                   uint64_t wait_max_ns,
                                   sprag_decision *decision,
                                   sprag_error **error);

// Gives back what a check or a reservation took, for what did not take place after all, as far as that raises no
// interval above the limit: SPRAG_OK, and SPRAG_REFUND_GIVEN, SPRAG_REFUND_OVER or SPRAG_REFUND_VOID is written
// to refund, and how much came back, in units of cost with their fraction, to amount; each may be NULL. Works
// once: the decision is left empty, also where that fails.
//
// A token bucket gives back what has not drained since, so the more the sooner; a window gives back the cost while
// it counts. Give back before the key's next check where that can be.
sprag_status sprag_limiter_refund(const sprag_limiter *limiter,
                                  sprag_decision *decision,
                                  uint32_t *refund,
                                  double *amount,
                                  sprag_error **error);

// Writes the name, as far as it fits, and its length.
sprag_status sprag_limiter_name(const sprag_limiter *limiter,
                                void *name,
                                size_t name_max,
                                size_t *name_len,
                                sprag_error **error);

// Writes the limit that it was opened with, as text, as far as it fits, and its length: SPRAG_LIMIT_BYTES_MAX are
// enough. Checks are by the limit of now, if that was changed since.
sprag_status sprag_limiter_limit(const sprag_limiter *limiter,
                                 char *limit,
                                 size_t limit_max,
                                 size_t *limit_len,
                                 sprag_error **error);

/*
 * OVERRIDES
 *
 * A key of a limiter may have a limit of its own in place of the limiter's. It holds for all who use the limiter,
 * until it is cleared; neither a change of the limiter's limit nor the key's being idle ends it, and what the key
 * has used stays used. A limit of 0/second shuts a key out. Once a change has returned, no check that begins after
 * is decided by what was before. Checks of keys without an override cost nothing more.
 */

// Gives a key a limit of its own, in place of any that it was given before. Some microseconds.
//
// SPRAG_ERROR_LIMIT for a text that is no limit. An override takes one of the region's objects, and a region has
// 1,024 limit definitions, of which all overrides of a limiter with the same limit share one: SPRAG_ERROR_FULL or
// SPRAG_ERROR_SHARE_EXCEEDED where there is no room.
sprag_status sprag_limiter_set_override(const sprag_limiter *limiter,
                                        const void *key,
                                        size_t key_len,
                                        const char *limit,
                                        sprag_error **error);

// Takes a key's override away, so that the limiter's limit holds for it again: SPRAG_OK, or SPRAG_NONE if it had
// none. Some microseconds.
sprag_status sprag_limiter_clear_override(const sprag_limiter *limiter,
                                          const void *key,
                                          size_t key_len,
                                          sprag_error **error);

// Writes the limit that a key has instead of the limiter's, as text, as far as it fits, and its length:
// SPRAG_LIMIT_BYTES_MAX are enough. SPRAG_NONE, and nothing is written, if it has none.
sprag_status sprag_limiter_override_of(const sprag_limiter *limiter,
                                       const void *key,
                                       size_t key_len,
                                       char *limit,
                                       size_t limit_max,
                                       size_t *limit_len,
                                       sprag_error **error);

/*
 * SEVERAL LIMITERS IN ONE CALL
 *
 * A request is often under several limits at once: the user's, the tenant's, everybody's. One call checks them
 * all, and either all are allowed and all is taken, or nothing is taken anywhere.
 */

// The most checks in one call.
#define SPRAG_CHECKS_MAX 8

// One check of several.
typedef struct sprag_check {
  // The limiter, of the space that is asked.
  const sprag_limiter *limiter;
  // The key.
  const void *key;
  // The key's length.
  size_t key_len;
  // The cost, as for sprag_limiter_check().
  uint64_t cost;
} sprag_check;

// Checks 1 to SPRAG_CHECKS_MAX limiters in one call: SPRAG_OK, and all is taken, or SPRAG_REFUSED, and nothing is.
// The decisions are written to an array of count elements in both cases, unless it is NULL, which is quickest;
// each tells whether its own limiter refused, and can be given back by itself. A key that is named twice under one
// limiter is checked twice. All are decided at one moment.
//
// Some five times as long as as many single checks; no write to shared memory when refused.
//
// SPRAG_ERROR_OTHER_SPACE for a limiter of another space; SPRAG_ERROR_FULL or SPRAG_ERROR_SHARE_EXCEEDED while too
// many threads are stopped in the middle of such calls. Nothing was taken then.
sprag_status sprag_space_check_all(const sprag_space *space,
                                   const sprag_check *checks,
                                   size_t count,
                                   sprag_decision *decisions,
                                   sprag_error **error);

/*
 * JOINT LIMITERS
 *
 * A joint limiter has several limits on each key, declared together: all of them admit a cost, or nothing is
 * taken. It is far cheaper than a call of several limiters. What it admitted cannot be given back or reserved, and
 * its limits cannot be changed: for those, use limiters.
 *
 * A sprag_joint_decision is what it answered: a value in the caller's own memory, which may be moved and copied,
 * and needs no freeing. Its limiter must not be closed before it is last asked.
 */

// An open joint limiter. Every call on it is safe from any thread.
typedef struct sprag_joint_limiter sprag_joint_limiter;

// The answer of a joint limiter, and the key's state right after it.
typedef struct sprag_joint_decision {
  // The library's own.
  uint64_t private_state;
  // The library's own.
  uint64_t private_words[22];
} sprag_joint_decision;

// Opens the joint limiter of this name, and creates it with 2 to 6 limits, as texts, if there is none. Its name
// has nothing to do with those of other limiters. A region has room for 256 of them, which stay for as long as it
// does.
//
// SPRAG_ERROR_LIMIT for a text that is no limit; SPRAG_ERROR_DEFINITION_DIFFERS if it has others, or these in
// another order; SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where there is no room for it.
sprag_status sprag_joint_limiter_open(const sprag_space *space,
                                      const void *name,
                                      size_t name_len,
                                      const char *const *limits,
                                      size_t count,
                                      sprag_joint_limiter **joint_limiter,
                                      sprag_error **error);

// Closes the handle; NULL is none. The limiter stays in its space.
void sprag_joint_limiter_close(sprag_joint_limiter *joint_limiter);

// Checks a cost of a key, at most 2^26 - 1, against all limits, and takes it from all if all allow it: SPRAG_OK,
// else SPRAG_REFUSED. A cost of 0 takes nothing. The decision is written in both cases, unless it is NULL, which
// is quickest.
//
// A region with no room for the key is no error: all such keys are decided by one entry, see
// sprag_joint_decision_is_overflow(). Tens of nanoseconds; a refusal writes nothing to shared memory.
sprag_status sprag_joint_limiter_check(const sprag_joint_limiter *joint_limiter,
                                       const void *key,
                                       size_t key_len,
                                       uint64_t cost,
                                       sprag_joint_decision *decision,
                                       sprag_error **error);

// A key's state, changing nothing: the decision of a check of cost 0.
sprag_status sprag_joint_limiter_peek(const sprag_joint_limiter *joint_limiter,
                                      const void *key,
                                      size_t key_len,
                                      sprag_joint_decision *decision,
                                      sprag_error **error);

// Writes the name, as far as it fits, and its length.
sprag_status sprag_joint_limiter_name(const sprag_joint_limiter *joint_limiter,
                                      void *name,
                                      size_t name_max,
                                      size_t *name_len,
                                      sprag_error **error);

// How many limits it has; 0 for NULL.
size_t sprag_joint_limiter_limit_count(const sprag_joint_limiter *joint_limiter);

// Writes the limit at a place, from 0, as text, as far as it fits, and its length: SPRAG_LIMIT_BYTES_MAX are
// enough. SPRAG_NONE, and nothing is written, past the last.
sprag_status sprag_joint_limiter_limit(const sprag_joint_limiter *joint_limiter,
                                       size_t place,
                                       char *limit,
                                       size_t limit_max,
                                       size_t *limit_len,
                                       sprag_error **error);

// Whether the cost was admitted, by every limit; false for an empty one.
bool sprag_joint_decision_is_allowed(const sprag_joint_decision *decision);

// Whether a limit refused; if so, writes which one does longest, by its place from 0, to place, unless that is
// NULL: of two that are as long, the first. False for an empty one.
bool sprag_joint_decision_refused_by(const sprag_joint_decision *decision,
                                     size_t *place);

// Writes what the limit at a place, from 0, says for itself to of, and tells whether there is such a limit. Where
// another one refused and nothing was taken, it allows what it would have admitted. It cannot be given back.
bool sprag_joint_decision_of(const sprag_joint_decision *decision,
                             size_t place,
                             sprag_decision *of);

// The most that can be admitted at once: the least of the limits', and at most 2^26 - 1; 0 for an empty one.
uint64_t sprag_joint_decision_limit(const sprag_joint_decision *decision);

// The greatest cost that another check at the same instant would be allowed, at most 2^26 - 1; 0 for an empty one.
uint64_t sprag_joint_decision_remaining(const sprag_joint_decision *decision);

// How long to wait until the same cost would be allowed, in nanoseconds, if nobody else takes any: 0 if it was,
// else the longest of those that refuse; SPRAG_NEVER if it never can be, and for an empty one.
uint64_t sprag_joint_decision_retry_after_ns(const sprag_joint_decision *decision);

// How long until a further check of another cost would be allowed, in nanoseconds, if nobody else takes any: 0 if
// it would be at once, SPRAG_NEVER if it never can be, and for an empty one.
uint64_t sprag_joint_decision_retry_after_for_ns(const sprag_joint_decision *decision,
                                                 uint64_t cost);

// How long until nothing is used any more under any limit, in nanoseconds, if nobody takes any; SPRAG_NEVER for
// never, and for an empty one.
uint64_t sprag_joint_decision_reset_after_ns(const sprag_joint_decision *decision);

// Whether the region had no room for the key, so that an entry shared by all such keys decided; false for an empty
// one.
bool sprag_joint_decision_is_overflow(const sprag_joint_decision *decision);

/*
 * CONCURRENCY LIMITERS
 *
 * A concurrency limiter lets at most so many at once be held of each key, shared by everyone who opens it in the
 * same space. What a key can have is a semaphore: open a handle on it with sprag_concurrency_key(), and acquire as
 * many as are to be used at once.
 */

// An open concurrency limiter. Every call on it is safe from any thread.
typedef struct sprag_concurrency sprag_concurrency;

// Opens the concurrency limiter of this name, and creates it if there is none: of each key at most so many permits
// are held at once, 1 to 16,777,215. With permits 0, opens the one that there is, whatever it allows: SPRAG_NONE
// if there is none. flags: 0 or SPRAG_UPDATE. It stays for as long as the region does; a limiter of a rate, or a
// semaphore, of the same name is another thing.
//
// SPRAG_ERROR_DEFINITION_DIFFERS if it allows another number, without SPRAG_UPDATE; SPRAG_ERROR_FULL and
// SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for it. After an update nobody acquires by the old
// number. Who holds some keeps them, also if there are more then than permits; who waits for more than that fails
// with SPRAG_ERROR_ABOVE_CAPACITY.
sprag_status sprag_concurrency_open(const sprag_space *space,
                                    const void *name,
                                    size_t name_len,
                                    uint32_t permits,
                                    uint32_t flags,
                                    sprag_concurrency **concurrency,
                                    sprag_error **error);

// Closes the handle; NULL is none. The limiter stays in its space.
void sprag_concurrency_close(sprag_concurrency *concurrency);

// Opens a handle on what a key can have at once, to be acquired as a semaphore's permits are, and closed as one.
// Its holds are leased for ttl_ns: 1 ms to 366 days; 0 for 30 s. Nothing is created before some are acquired.
// Some hundred nanoseconds.
sprag_status sprag_concurrency_key(const sprag_concurrency *concurrency,
                                   const void *key,
                                   size_t key_len,
                                   uint64_t ttl_ns,
                                   sprag_semaphore **semaphore,
                                   sprag_error **error);

// Writes how many each key can have at once now, whatever this handle was opened with. A few loads.
sprag_status sprag_concurrency_permits(const sprag_concurrency *concurrency,
                                       uint32_t *permits,
                                       sprag_error **error);

// Writes the name, as far as it fits, and its length.
sprag_status sprag_concurrency_name(const sprag_concurrency *concurrency,
                                    void *name,
                                    size_t name_max,
                                    size_t *name_len,
                                    sprag_error **error);

/*
 * COUNTERS
 *
 * A counter is a signed 64-bit number, 0 until somebody changes it, shared by everyone who opens it in the same
 * space. Each call is one step: all of it happened or nothing did, also if its caller is killed. A counter at 0
 * takes no room that another name needs.
 *
 * Every change fails with SPRAG_ERROR_FULL or SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for another
 * counter, and with SPRAG_ERROR_COUNTER_OVERFLOW, and the counter stays what it is, where the sum would leave the
 * range of int64_t.
 */

// An open counter. Every call on it is safe from any thread.
typedef struct sprag_counter sprag_counter;

// Opens a handle on the counter of a name. Nothing is created before it is changed.
sprag_status sprag_counter_open(const sprag_space *space,
                                const void *name,
                                size_t name_len,
                                sprag_counter **counter,
                                sprag_error **error);

// Closes the handle; NULL is none. The counter stays in its space.
void sprag_counter_close(sprag_counter *counter);

// Adds delta, which may be negative, and writes the sum, unless sum is NULL. Some nanoseconds.
sprag_status sprag_counter_add(const sprag_counter *counter,
                               int64_t delta,
                               int64_t *sum,
                               sprag_error **error);

// Adds delta if the sum is at least min and at most max: SPRAG_OK, and the sum is written to number; else
// SPRAG_REFUSED, nothing is changed, and what the counter is at is written there, unless number is NULL. With a
// min of 0 nobody overdraws, however many try at once. Where the number lies outside already, only what brings it
// back is added.
//
// SPRAG_ERROR_OUT_OF_RANGE if min is above max.
sprag_status sprag_counter_add_within(const sprag_counter *counter,
                                      int64_t delta,
                                      int64_t min,
                                      int64_t max,
                                      int64_t *number,
                                      sprag_error **error);

// Writes the number. A load; nothing is created by looking.
sprag_status sprag_counter_get(const sprag_counter *counter, int64_t *number, sprag_error **error);

// Sets the number, and writes what it was to was, unless that is NULL. To set it to 0 gives its room back.
sprag_status sprag_counter_swap(const sprag_counter *counter,
                                int64_t number,
                                int64_t *was,
                                sprag_error **error);

// Sets the number if it is the expected one: SPRAG_OK; else SPRAG_DIFFERS, and nothing is changed. What it was is
// written to was in both cases, unless that is NULL.
sprag_status sprag_counter_compare_exchange(const sprag_counter *counter,
                                            int64_t expected,
                                            int64_t number,
                                            int64_t *was,
                                            sprag_error **error);

// Writes the name, as far as it fits, and its length.
sprag_status sprag_counter_name(const sprag_counter *counter,
                                void *name,
                                size_t name_max,
                                size_t *name_len,
                                sprag_error **error);

/*
 * STRIPED COUNTERS
 *
 * A striped counter is a counter in several parts, so that threads and processes that add to it at once do not
 * wait for one another's cache lines. It is the same counter for everyone: who has it open as a plain one adds to
 * the same number. What needs the whole number has to gather it, about a microsecond, and slows the next few
 * additions down: so sprag_counter_add(), which tells the sum, is the wrong call for a hot counter. A striped
 * counter is exact, stays for as long as the region does, also at 0, and takes the room of nine objects.
 */

// An open striped counter. Every call on it is safe from any thread.
typedef struct sprag_striped_counter sprag_striped_counter;

// Opens the counter of a name as a striped one, which it is for everyone from then on.
//
// SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region has no room.
sprag_status sprag_striped_counter_open(const sprag_space *space,
                                        const void *name,
                                        size_t name_len,
                                        sprag_striped_counter **striped_counter,
                                        sprag_error **error);

// Closes the handle; NULL is none. The counter stays in its space.
void sprag_striped_counter_close(sprag_striped_counter *striped_counter);

// Adds delta, which may be negative. The sum is not told: nobody knows it without looking at all parts. Some
// nanoseconds, by however many at once.
//
// SPRAG_ERROR_COUNTER_OVERFLOW as for sprag_counter_add().
sprag_status sprag_striped_counter_add(const sprag_striped_counter *striped_counter,
                                       int64_t delta,
                                       sprag_error **error);

// Adds delta if the sum over all parts is at least min and at most max: SPRAG_OK, and number is not written; else
// SPRAG_REFUSED, nothing is changed, and what the counter is at is written to number, unless that is NULL. Bounds
// that most calls share are the fastest; different ones take turns at gathering the whole.
//
// SPRAG_ERROR_OUT_OF_RANGE if min is above max.
sprag_status sprag_striped_counter_add_within(const sprag_striped_counter *striped_counter,
                                              int64_t delta,
                                              int64_t min,
                                              int64_t max,
                                              int64_t *number,
                                              sprag_error **error);

// Writes the number: one that the counter had at a moment during the call.
sprag_status sprag_striped_counter_get(const sprag_striped_counter *striped_counter,
                                       int64_t *number,
                                       sprag_error **error);

// Sets the number, and writes what it was to was, unless that is NULL.
sprag_status sprag_striped_counter_swap(const sprag_striped_counter *striped_counter,
                                        int64_t number,
                                        int64_t *was,
                                        sprag_error **error);

// Sets the number if it is the expected one: SPRAG_OK; else SPRAG_DIFFERS, and nothing is changed. What it was is
// written to was in both cases, unless that is NULL.
sprag_status sprag_striped_counter_compare_exchange(const sprag_striped_counter *striped_counter,
                                                    int64_t expected,
                                                    int64_t number,
                                                    int64_t *was,
                                                    sprag_error **error);

// Writes the name, as far as it fits, and its length.
sprag_status sprag_striped_counter_name(const sprag_striped_counter *striped_counter,
                                        void *name,
                                        size_t name_max,
                                        size_t *name_len,
                                        sprag_error **error);

/*
 * ATTEMPTS
 *
 * A sprag_attempt is an attempt of one's own at an idempotency key (whose section follows): a value in the
 * caller's own memory, filled in by sprag_once_begin(). It may be moved, but only one copy of it may go on being
 * used. It ends by sprag_attempt_finish() or sprag_attempt_abandon(), or by sprag_attempt_close(), which frees
 * the key at once and has the next one told that one ended unfinished; one that is forgotten ends with its
 * deadline, and keeps its space's session for as long as the process runs. An attempt of zero bytes is empty.
 *
 * An attempt is for one thread at a time.
 */

// An attempt. All of its fields but the token are the library's own.
typedef struct sprag_attempt {
  // Higher than that of every earlier attempt at the key, and below 2^53: a fence admits it as it does a lock's.
  // 0 if the attempt is empty.
  uint64_t token;
  // The library's own.
  uint64_t private_state;
  // The library's own.
  uint64_t private_words[18];
} sprag_attempt;

// Stores the result, 0 to SPRAG_RESULT_BYTES_MAX bytes, for keep_for_ns, 1 ms to 366 days: from then on it is
// given to everybody who begins. All of it or, on an error, nothing. A longer result belongs elsewhere, and where
// it is can be the result.
//
// SPRAG_ERROR_LOST once the deadline has passed, whether somebody else began since or not. The attempt is left
// empty then, as after success; with any other error it goes on: SPRAG_ERROR_OUT_OF_RANGE for a result that is too
// long, SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for it. An empty result
// always fits.
sprag_status sprag_attempt_finish(sprag_attempt *attempt,
                                  const void *result,
                                  size_t result_len,
                                  uint64_t keep_for_ns,
                                  sprag_error **error);

// Frees the key for the next caller at once, as if this attempt had not been: for one that did nothing, or undid
// it. What was known of attempts before, the next one is told. The attempt is left empty, also where that fails:
// SPRAG_ERROR_LOST if it was over already. One whose deadline has passed is abandoned all the same while nobody
// has noticed.
sprag_status sprag_attempt_abandon(sprag_attempt *attempt,
                                   sprag_error **error);

// Ends an attempt that is neither finished nor abandoned, and leaves it empty: the key is free at once, and the
// next one is told that one ended unfinished. Nothing for NULL and for an empty one.
void sprag_attempt_close(sprag_attempt *attempt);

// Whether an attempt before this one ended unfinished, so that its work may have been done in part: its deadline
// passed, its owner died, or it was closed. Stays so over attempts that are abandoned, until one is finished.
// False for an empty one.
bool sprag_attempt_is_after_unfinished(const sprag_attempt *attempt);

// Whether the deadline is still to come, by this process's own clock: a clock reading, no shared memory. Errs
// towards false near the end; false for an empty one. To finish may still fail.
bool sprag_attempt_is_valid(const sprag_attempt *attempt);

// Whether the key is still this attempt's, by the shared word: also notices that somebody ended it by its token,
// and that the region was removed.
bool sprag_attempt_is_held(const sprag_attempt *attempt);

// What is left until the deadline in nanoseconds, by this process's own clock; 0 once it has passed, and for an
// empty one.
uint64_t sprag_attempt_deadline_left_ns(const sprag_attempt *attempt);

// Starts the time until the deadline anew, from now, with the length it had. SPRAG_ERROR_LOST once it has passed.
sprag_status sprag_attempt_renew(sprag_attempt *attempt,
                                 sprag_error **error);

// sprag_attempt_renew() with another length: 1 ms to 366 days.
sprag_status sprag_attempt_extend(sprag_attempt *attempt, uint64_t ttl_ns, sprag_error **error);

// Lets the attempt go on without this process, until its deadline, which starts anew, or until somebody finishes
// or abandons it by its token, which is written to token. The attempt is left empty, also where that fails:
// SPRAG_ERROR_LOST once it is over.
sprag_status sprag_attempt_detach(sprag_attempt *attempt,
                                  uint64_t *token,
                                  sprag_error **error);

/*
 * IDEMPOTENCY KEYS
 *
 * The first to begin at a key owns it until a deadline, and may store a small result. Those who come meanwhile are
 * told that it is in progress; those who come later are given the result, for as long as it is kept.
 *
 *     switch (sprag_once_begin(once, 60 * SPRAG_SECOND, &attempt, NULL, result, sizeof result, &len, NULL)) {
 *     case SPRAG_OK:
 *         len = charge(sprag_attempt_is_after_unfinished(&attempt), result);
 *         sprag_attempt_finish(&attempt, result, len, 86400 * SPRAG_SECOND, NULL);
 *         break;
 *     case SPRAG_DONE:
 *         break;
 *     case SPRAG_IN_PROGRESS:
 *         return COME_BACK_LATER;
 *     }
 */

// A handle on an idempotency key. Every call on it is safe from any thread.
typedef struct sprag_once sprag_once;

// The most bytes that a result may have.
#define SPRAG_RESULT_BYTES_MAX 1024

// Who is at a key, and for how long.
typedef struct sprag_progress {
  // What is left until the attempt's deadline, in nanoseconds; of a key that is done, for how much longer its
  // result is kept at least.
  uint64_t left_ns;
  // The owner's process id in its own namespace; 0 if the attempt is detached, or the owner is not known any
  // more.
  uint32_t holder_pid;
  // Zero.
  uint32_t reserved;
} sprag_progress;

// Opens a handle on the idempotency key of this name. Nothing is created before somebody begins.
sprag_status sprag_once_open(const sprag_space *space,
                             const void *name,
                             size_t name_len,
                             sprag_once **once,
                             sprag_error **error);

// Closes the handle; NULL is none. Its attempts go on.
void sprag_once_close(sprag_once *once);

// Begins at the key, if it is new or its last attempt is over: the caller owns it for ttl_ns, 1 ms to 366 days. An
// attempt is over when it is finished, abandoned or closed, when its deadline has passed, and when its process
// ended.
//
// SPRAG_OK: the attempt is written. SPRAG_IN_PROGRESS: another is under way, and who and for how long is written
// to progress, unless that is NULL. SPRAG_DONE: it was done before; the result is written as far as it fits, and
// how long it is in all, to result_len, unless that is NULL. SPRAG_RESULT_BYTES_MAX are always enough; with fewer,
// nothing is lost: ask again, by sprag_once_status().
//
// A few dozen nanoseconds where the key is known. SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region
// has no room for another key.
sprag_status sprag_once_begin(const sprag_once *once,
                              uint64_t ttl_ns,
                              sprag_attempt *attempt,
                              sprag_progress *progress,
                              void *result,
                              size_t result_max,
                              size_t *result_len,
                              sprag_error **error);

// What is known of the key; needs no session, and creates nothing. SPRAG_NONE: nobody began, or whoever did
// abandoned it, or the result is no longer kept. SPRAG_IN_PROGRESS, and progress is written. SPRAG_DONE, and
// progress and the result are written, as by sprag_once_begin(). SPRAG_UNFINISHED: the last attempt ended
// unfinished, since its deadline passed, its owner died, or it was closed; that is remembered for an hour at
// least, and then until its room is needed.
sprag_status sprag_once_status(const sprag_once *once,
                               sprag_progress *progress,
                               void *result,
                               size_t result_max,
                               size_t *result_len,
                               sprag_error **error);

// sprag_attempt_finish() by the attempt's token, whoever began it: the other half of sprag_attempt_detach().
sprag_status sprag_once_finish_token(const sprag_once *once,
                                     uint64_t token,
                                     const void *result,
                                     size_t result_len,
                                     uint64_t keep_for_ns,
                                     sprag_error **error);

// sprag_attempt_abandon() by the attempt's token, whoever began it.
sprag_status sprag_once_abandon_token(const sprag_once *once, uint64_t token, sprag_error **error);

// sprag_attempt_extend() by the attempt's token, whoever began it.
sprag_status sprag_once_extend_token(const sprag_once *once,
                                     uint64_t token,
                                     uint64_t ttl_ns,
                                     sprag_error **error);

// Writes the key, as far as it fits, and its length.
sprag_status sprag_once_name(const sprag_once *once,
                             void *name,
                             size_t name_max,
                             size_t *name_len,
                             sprag_error **error);

/*
 * WHAT AN INSPECTION TELLS
 *
 * A visitor is called with a pointer to one of the structs below, once for each thing that there is, and returns
 * whether it wants more. What it was given, and all that this points at, lives until it returns. It may call
 * anything of this library, but must not close the handle that is inspected, nor leave in another way than by
 * returning.
 *
 * Each struct begins with its size as the library knows it: a newer one may append fields, and a program that was
 * written for those must ask whether the size reaches them.
 */

// One hold of a lock or a semaphore.
typedef struct sprag_hold_info {
  // sizeof(sprag_hold_info).
  size_t size;
  // Its token.
  uint64_t token;
  // What is left of the lease in nanoseconds; 0 once it is over.
  uint64_t lease_left_ns;
  // How long it has been held, in nanoseconds; SPRAG_UNKNOWN if not known.
  uint64_t held_for_ns;
  // The holder's process id in its own namespace, also of one that died; 0 if detached, or not known any more.
  uint32_t pid;
  // How many of a semaphore's permits it has; 1 of a lock.
  uint32_t permits;
  // Whether it holds, and not merely by an expired lease or by a process that died.
  bool is_live;
  // Whether it belongs to no process: somebody holds it by its token.
  bool is_detached;
  // Zero.
  uint8_t reserved[6];
} sprag_hold_info;

// A lock of a name, a partition or the table.
typedef struct sprag_lock_info {
  // sizeof(sprag_lock_info).
  size_t size;
  // The lock's name; of coarse ones "partition 3" and "the table".
  sprag_bytes name;
  // The token of the holder, or of the last one; of a lock that nobody held yet, the one below its first.
  uint64_t token;
  // What is left of the lease in nanoseconds; 0 if not held, or once it is over.
  uint64_t lease_left_ns;
  // How long it has been held, in nanoseconds; SPRAG_UNKNOWN if not held or not known.
  uint64_t held_for_ns;
  // The holder's process id in its own namespace, also of one that died; 0 if not held, detached, or not known
  // any more. This and what is said above of the holder is said of the one whose lease lasts longest.
  uint32_t holder_pid;
  // How many hold it, and not merely by an expired lease or by a process that died: one at most, unless it is
  // shared.
  uint32_t holders;
  // How many wait for it.
  uint32_t waiters;
  // How many more died while they waited; whoever comes for the lock clears them away.
  uint32_t waiters_dead;
  // Whether it is held, and not merely by an expired lease or by a process that died.
  bool is_held;
  // Whether its holder died, or closed its space, without releasing it: the next one that comes for it gets it.
  bool is_holder_dead;
  // Whether those who hold it share it.
  bool is_shared;
  // Whether the hold belongs to no process: somebody holds it by its token.
  bool is_detached;
  // Zero.
  uint8_t reserved[4];
  // Each hold on it, by token, those included that are over or whose process died: so many pointers.
  const sprag_hold_info *const *holds;
  // How many there are.
  size_t hold_count;
} sprag_lock_info;

// A semaphore, or what is held of a key of a concurrency limiter.
typedef struct sprag_semaphore_info {
  // sizeof(sprag_semaphore_info).
  size_t size;
  // The semaphore's name, or the key.
  sprag_bytes name;
  // How many permits there are.
  uint32_t permits;
  // How many of them are taken, those of the dead and the late included until somebody needs them.
  uint32_t taken;
  // How many are held, and not merely by an expired lease or by a process that died.
  uint32_t used;
  // The most that could be had beside those, if nobody waits.
  uint32_t remaining;
  // How many hold some, and not merely by an expired lease or by a process that died.
  uint32_t holders;
  // How many wait for some.
  uint32_t waiters;
  // How many more died while they waited.
  uint32_t waiters_dead;
  // Zero.
  uint32_t reserved;
  // Each hold of some, by token, those included that are over or whose process died: so many pointers.
  const sprag_hold_info *const *holds;
  // How many there are.
  size_t hold_count;
} sprag_semaphore_info;

// A concurrency limiter.
typedef struct sprag_concurrency_info {
  // sizeof(sprag_concurrency_info).
  size_t size;
  // The limiter's name.
  sprag_bytes name;
  // How many each key can have at once.
  uint32_t permits;
  // Zero.
  uint32_t reserved;
  // The keys that have an entry, by name: those of which some are held or waited for, and idle ones not
  // reclaimed yet: so many pointers.
  const sprag_semaphore_info *const *keys;
  // How many there are.
  size_t key_count;
} sprag_concurrency_info;

// A limiter.
typedef struct sprag_limiter_info {
  // sizeof(sprag_limiter_info).
  size_t size;
  // The limiter's name.
  sprag_bytes name;
  // Its limit, as text.
  const char *limit;
  // How many keys have an entry: those with something used, and full ones not reclaimed yet.
  uint64_t keys;
} sprag_limiter_info;

// An override: a key's own limit.
typedef struct sprag_override_info {
  // sizeof(sprag_override_info).
  size_t size;
  // The limiter's name.
  sprag_bytes limiter;
  // The key.
  sprag_bytes key;
  // The limit that it has instead of the limiter's, as text.
  const char *limit;
} sprag_override_info;

// A joint limiter.
typedef struct sprag_joint_limiter_info {
  // sizeof(sprag_joint_limiter_info).
  size_t size;
  // The limiter's name.
  sprag_bytes name;
  // Its limits, in their order, as texts: so many pointers.
  const char *const *limits;
  // How many there are.
  size_t limit_count;
  // How many keys have an entry: those with something used, and full ones not reclaimed yet.
  uint64_t keys;
} sprag_joint_limiter_info;

// A counter.
typedef struct sprag_counter_info {
  // sizeof(sprag_counter_info).
  size_t size;
  // The counter's name.
  sprag_bytes name;
  // What it is at.
  int64_t number;
} sprag_counter_info;

// An idempotency key.
typedef struct sprag_once_info {
  // sizeof(sprag_once_info).
  size_t size;
  // The key.
  sprag_bytes name;
  // SPRAG_IN_PROGRESS, SPRAG_DONE or SPRAG_UNFINISHED, as sprag_once_status() returns.
  sprag_status status;
  // The owner's process id in its own namespace; 0 if the attempt is detached, not known any more, or over.
  uint32_t holder_pid;
  // What is left until the attempt's deadline, in nanoseconds; of one that is done, for how much longer its
  // result is kept at least.
  uint64_t left_ns;
  // The result, if it is done.
  sprag_bytes result;
} sprag_once_info;

// A forced release.
typedef struct sprag_break_info {
  // sizeof(sprag_break_info).
  size_t size;
  // The lock's name, its first 96 bytes.
  sprag_bytes name;
  // The token of the hold that was ended.
  uint64_t token;
  // When, in nanoseconds since 1970-01-01 UTC.
  uint64_t at_unix_ns;
  // The process id of whoever did it.
  uint32_t by_pid;
  // Zero.
  uint32_t reserved;
} sprag_break_info;

/*
 * INSPECTIONS
 *
 * What there is in a space, and who holds what. A prefix of 0 bytes is all names. All that is told is gathered
 * before the first visit, so that a visitor may change what it is told of; a visitor that returns false ends the
 * visits, which is no error.
 */

// Is shown a lock; returns whether it wants more.
typedef bool (*sprag_visit_lock)(const sprag_lock_info *lock, void *context);

// Is shown a semaphore; returns whether it wants more.
typedef bool (*sprag_visit_semaphore)(const sprag_semaphore_info *semaphore, void *context);

// Is shown a concurrency limiter; returns whether it wants more.
typedef bool (*sprag_visit_concurrency)(const sprag_concurrency_info *concurrency, void *context);

// Is shown a limiter; returns whether it wants more.
typedef bool (*sprag_visit_limiter)(const sprag_limiter_info *limiter, void *context);

// Is shown an override; returns whether it wants more.
typedef bool (*sprag_visit_override)(const sprag_override_info *overriding, void *context);

// Is shown a joint limiter; returns whether it wants more.
typedef bool (*sprag_visit_joint_limiter)(const sprag_joint_limiter_info *joint_limiter, void *context);

// Is shown a counter; returns whether it wants more.
typedef bool (*sprag_visit_counter)(const sprag_counter_info *counter, void *context);

// Is shown an idempotency key; returns whether it wants more.
typedef bool (*sprag_visit_once)(const sprag_once_info *once, void *context);

// Is shown a forced release; returns whether it wants more.
typedef bool (*sprag_visit_break)(const sprag_break_info *broken, void *context);

// The locks whose names begin with prefix, by name. Reads the whole table; stops no one.
sprag_status sprag_space_each_lock(const sprag_space *space,
                                   const void *prefix,
                                   size_t prefix_len,
                                   sprag_visit_lock visit,
                                   void *context,
                                   sprag_error **error);

// The locks of partitions and of the table that are held or waited for. While the table is held, so are all
// partitions, with a token of their own each.
sprag_status sprag_space_each_coarse_lock(const sprag_space *space,
                                          sprag_visit_lock visit,
                                          void *context,
                                          sprag_error **error);

// The semaphores whose names begin with prefix, by name. Reads the whole table; stops no one.
sprag_status sprag_space_each_semaphore(const sprag_space *space,
                                        const void *prefix,
                                        size_t prefix_len,
                                        sprag_visit_semaphore visit,
                                        void *context,
                                        sprag_error **error);

// The concurrency limiters whose names begin with prefix, by name, and what is held of their keys. Reads the whole
// table; stops no one.
sprag_status sprag_space_each_concurrency(const sprag_space *space,
                                          const void *prefix,
                                          size_t prefix_len,
                                          sprag_visit_concurrency visit,
                                          void *context,
                                          sprag_error **error);

// The limiters whose names begin with prefix, by name. Reads the whole region; stops no one.
sprag_status sprag_space_each_limiter(const sprag_space *space,
                                      const void *prefix,
                                      size_t prefix_len,
                                      sprag_visit_limiter visit,
                                      void *context,
                                      sprag_error **error);

// The overrides of limiters whose names begin with prefix, by limiter and key. Reads all objects of the region;
// stops no one: an override that is just being set or cleared may be among them.
sprag_status sprag_space_each_override(const sprag_space *space,
                                       const void *prefix,
                                       size_t prefix_len,
                                       sprag_visit_override visit,
                                       void *context,
                                       sprag_error **error);

// The joint limiters whose names begin with prefix, by name. Reads the whole region; stops no one.
sprag_status sprag_space_each_joint_limiter(const sprag_space *space,
                                            const void *prefix,
                                            size_t prefix_len,
                                            sprag_visit_joint_limiter visit,
                                            void *context,
                                            sprag_error **error);

// The counters that are not at 0 and whose names begin with prefix, by name. Reads the whole table; stops no one.
sprag_status sprag_space_each_counter(const sprag_space *space,
                                      const void *prefix,
                                      size_t prefix_len,
                                      sprag_visit_counter visit,
                                      void *context,
                                      sprag_error **error);

// The idempotency keys that begin with prefix, by name, but for new ones. Reads the whole table; stops no one,
// also not an owner that is late: what is told of it here, sprag_once_status() makes sure of.
sprag_status sprag_space_each_once(const sprag_space *space,
                                   const void *prefix,
                                   size_t prefix_len,
                                   sprag_visit_once visit,
                                   void *context,
                                   sprag_error **error);

// The last forced releases, oldest first, at most 64.
sprag_status sprag_space_each_break(const sprag_space *space,
                                    sprag_visit_break visit,
                                    void *context,
                                    sprag_error **error);

// Who holds a lock and who waits for it, changing nothing; of several locks each that has an entry in the region,
// in the order in which they were named. SPRAG_NONE, and there is no visit, if none has one, so that nobody holds
// it. Needs no session.
sprag_status sprag_lock_peek(const sprag_lock *lock,
                             sprag_visit_lock visit,
                             void *context,
                             sprag_error **error);

// Who has permits and who waits for some, changing nothing: one visit, also if nobody does. Reads all holds of the
// space that are by permits.
sprag_status sprag_semaphore_peek(const sprag_semaphore *semaphore,
                                  sprag_visit_semaphore visit,
                                  void *context,
                                  sprag_error **error);

/*
 * REGIONS
 *
 * The files of shm: spaces: what there are, what is in them, and how one is removed, resized and looked over. On
 * Linux; elsewhere these calls fail with SPRAG_ERROR_UNSUPPORTED, as shm: does.
 */

// Also a region that is in use: its holds are lost, and its sessions find out at their next slow step.
#define SPRAG_EVEN_IF_IN_USE 8

// A region's file, as its directory lists it.
typedef struct sprag_region_file {
  // sizeof(sprag_region_file).
  size_t size;
  // What follows shm: to open it.
  const char *name;
  // The file.
  const char *path;
  // The file's length in bytes.
  uint64_t bytes;
  // When it was last written by a call, in nanoseconds since 1970-01-01 UTC; writing through a mapping may not
  // show. SPRAG_UNKNOWN if not known.
  uint64_t modified_unix_ns;
} sprag_region_file;

// Is shown a region's file; returns whether it wants more.
typedef bool (*sprag_visit_region_file)(const sprag_region_file *file, void *context);

// What can be said of a region from outside.
typedef struct sprag_region_info {
  // sizeof(sprag_region_info).
  size_t size;
  // The file.
  const char *path;
  // Bytes of the file that the file system holds.
  uint64_t allocated_bytes;
  // Bytes that it may grow to.
  uint64_t len_bytes;
  // When it was created, in nanoseconds since 1970-01-01 UTC.
  uint64_t created_unix_ns;
  // Its layout.
  uint32_t layout_version;
  // Sessions whose process is alive.
  uint32_t live_sessions;
  // The user id of its owner.
  uint32_t owner_uid;
  // Whether its group may use it.
  bool is_group_shared;
  // Zero.
  uint8_t reserved[3];
  // From here on its caps, as in sprag_space_options.
  uint32_t objects;
  // Keys of all limiters together.
  uint32_t limiter_keys;
  // Keys of all joint limiters together.
  uint32_t joint_keys;
  // Open spaces at one time.
  uint32_t sessions;
  // Waits at one time.
  uint32_t waiters;
  // Shared holds and holds of semaphores at one time.
  uint32_t permits;
  // Chunks of 48 bytes for long names, long keys, and results.
  uint32_t key_chunks;
  // Zero.
  uint32_t reserved_word;
} sprag_region_info;

// Is shown a region; what it returns is not looked at.
typedef bool (*sprag_visit_region)(const sprag_region_info *region, void *context);

// Is told one thing that contradicts itself, as text; returns whether it wants more.
typedef bool (*sprag_visit_finding)(const char *finding, void *context);

// Visits the regions in this user's directory, by name: $SPRAG_DIR, else /dev/shm/sprag-UID. None if there is no
// such directory.
//
// SPRAG_ERROR_PLACE for a directory that cannot be read, or a $SPRAG_DIR that is not absolute.
sprag_status sprag_region_each(sprag_visit_region_file visit,
                               void *context,
                               sprag_error **error);

// Visits the region at url, without opening a session in it. flags: 0 or SPRAG_GROUP_SHARED, whether its directory
// may be the group's. A few system calls, and some for each session that is alive.
//
// SPRAG_ERROR_PLACE for a URL or a directory that cannot be used, SPRAG_ERROR_UNSUPPORTED for mem:,
// SPRAG_ERROR_NOT_FOUND and SPRAG_ERROR_INCOMPATIBLE for a file that is not there or is no region of this release.
sprag_status sprag_region_probe(const char *url,
                                uint32_t flags,
                                sprag_visit_region visit,
                                void *context,
                                sprag_error **error);

// Removes the region at url. flags: SPRAG_GROUP_SHARED and SPRAG_EVEN_IF_IN_USE, or'ed together. One that is
// damaged or incompatible is removed too.
//
// SPRAG_ERROR_IN_USE while sessions are alive in it, or a hold that was detached runs, without
// SPRAG_EVEN_IF_IN_USE; else those of sprag_region_probe().
sprag_status sprag_region_remove(const char *url, uint32_t flags, sprag_error **error);

// Replaces the region at url by one with the caps of options, while nobody uses it; a cap of 0 stays what it is.
// Of the flags only SPRAG_GROUP_SHARED has a meaning; neither a share nor a clock may be given. Fences, counters,
// limiters, what their keys have used, and results that are kept are carried over, and no token goes back. Reads
// the whole region; waits for up to 10 s for another process that is at it.
//
// SPRAG_ERROR_IN_USE; SPRAG_ERROR_OUT_OF_RANGE for a cap out of its bounds, SPRAG_ERROR_FULL for one too low for
// what is carried over; SPRAG_ERROR_CONTENDED when the time is over; else those of sprag_region_probe(). Nothing
// is changed then.
sprag_status sprag_region_resize(const char *url,
                                 const sprag_space_options *options,
                                 sprag_error **error);

// Walks through all of an open space's region, and tells what contradicts itself, and how many such things there
// are, unless count is NULL. Changes nothing and stops nobody; in a region in use a finding can be a step that
// somebody is in the middle of, and is gone when looked for again. SPRAG_OK whatever was found. Reads the whole
// region.
sprag_status sprag_region_check(const sprag_space *space,
                                sprag_visit_finding visit,
                                void *context,
                                size_t *count,
                                sprag_error **error);

/*
 * METRICS
 *
 * What was done with a space through a handle, since that was opened, by this process; and how full its region
 * is, whoever filled it. Each count is exact, and only rises. They are read one after the other, so what other
 * threads do meanwhile may be in one and not yet in another. Calls by token are not counted.
 */

// How many buckets the waits are told by.
#define SPRAG_WAIT_BUCKETS 32

// How much of something in a region is taken. What is idle, expired or left by the dead stays taken until somebody
// needs its room, so what is full need not refuse anybody; what is far from full never does.
typedef struct sprag_fill {
  // How many are taken.
  uint64_t used;
  // How many there can be.
  uint64_t cap;
} sprag_fill;

// The metrics of a space. Begins with its size, which the caller sets: that of the header that it was built with.
// What a newer caller has room for and this library does not know is zero.
typedef struct sprag_metrics {
  // sizeof(sprag_metrics).
  size_t size;
  // Checks of limits that were allowed. A reservation is a check, each key of a batch is one, and a call of
  // several limits is one as a whole; a peek is none. Refunds take nothing off.
  uint64_t checks_allowed;
  // Those that were refused.
  uint64_t checks_refused;
  // How many of both were decided by a bucket that keys without room share.
  uint64_t checks_overflow;
  // Acquires of locks, of permits and of several locks, and upgrades, that were granted without waiting.
  uint64_t acquires_at_once;
  // Those that were granted after waiting.
  uint64_t acquires_after_wait;
  // Tries that were not granted, and did not wait.
  uint64_t acquires_busy;
  // Waits whose time was over.
  uint64_t acquires_timed_out;
  // Waits that were stopped: see sprag_interruptible().
  uint64_t acquires_cancelled;
  // Waits that ended with SPRAG_ERROR_DEADLOCK.
  uint64_t acquires_deadlocks;
  // How long those waited that were granted after waiting, all together, in nanoseconds.
  uint64_t wait_sum_ns;
  // How many of them waited how long: up to 1 us, then up to 2 us, up to 4 us and so on, the last all that
  // waited longer. Those of a shorter one are not in a longer one's.
  uint64_t wait_buckets[SPRAG_WAIT_BUCKETS];
  // Leases that were renewed, by a call or in the background.
  uint64_t renewals;
  // Holds that were found lost, each once.
  uint64_t holds_lost;
  // Attempts at idempotency keys that began.
  uint64_t onces_started;
  // Beginnings that found another attempt under way.
  uint64_t onces_in_progress;
  // Beginnings that were given the result.
  uint64_t onces_done;
  // Attempts that were finished, the result stored.
  uint64_t onces_finished;
  // Attempts that were closed without an end, or found lost when they were to be ended.
  uint64_t onces_unfinished;
  // From here on how full the region is. Locks, semaphores, fences, counters, names of limiters, overrides,
  // keys of concurrency limiters and idempotency keys.
  sprag_fill objects;
  // Keys of limiters.
  sprag_fill limiter_keys;
  // Keys of joint limiters.
  sprag_fill joint_keys;
  // Sessions that are alive.
  sprag_fill sessions;
  // Places in queues.
  sprag_fill waiters;
  // Shared holds, and holds of semaphores and of concurrency limiters.
  sprag_fill permits;
  // Limits of limiters and of overrides.
  sprag_fill limits;
  // Joint limiters.
  sprag_fill joint_limiters;
} sprag_metrics;

// Writes the metrics, for as many bytes as their size says, which the caller has set. Stops nobody. Some
// microseconds, and in shm: a system call for each session.
sprag_status sprag_space_metrics(const sprag_space *space,
                                 sprag_metrics *metrics,
                                 sprag_error **error);

// Writes how many chunks long names, long keys and results take. Apart from the metrics, since it looks at each of
// them: some milliseconds with the default caps where nearly all are taken. Stops nobody.
sprag_status sprag_space_key_chunk_usage(const sprag_space *space,
                                         sprag_fill *chunks,
                                         sprag_error **error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SPRAG_H */
