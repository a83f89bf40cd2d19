use super::*;
use crate::attempt::{sprag_attempt, sprag_attempt_close, sprag_attempt_finish};
use crate::bytes::sprag_bytes;
use crate::concurrency::{sprag_concurrency_close, sprag_concurrency_key, sprag_concurrency_open};
use crate::counter::{sprag_counter_add, sprag_counter_close, sprag_counter_open};
use crate::duration::SPRAG_SECOND;
use crate::duration::SPRAG_UNKNOWN;
use crate::hold::{sprag_hold, sprag_hold_detach, sprag_hold_release};
use crate::info::sprag_hold_info;
use crate::lock::{
    SPRAG_SHARED, sprag_acquire_options, sprag_lock_acquire, sprag_lock_acquire_with,
    sprag_lock_break, sprag_lock_close, sprag_lock_open, sprag_lock_open_several,
    sprag_lock_open_table,
};
use crate::once::{sprag_once_begin, sprag_once_close, sprag_once_open};
use crate::semaphore::{sprag_semaphore_acquire, sprag_semaphore_close, sprag_semaphore_open};
use crate::status::sprag_status::{SPRAG_DONE, SPRAG_ERROR_NULL, SPRAG_UNFINISHED};
use crate::testing::{Scene, at, fails, outcome, works};
use std::mem::zeroed;
use std::ptr::{from_mut, null, null_mut};

mod limiters;

/// Notes what a visitor sees, as text.
type Notes = Vec<String>;

/// Bytes that the library shows.
///
/// # Safety
///
/// They may be read.
unsafe fn text(name: sprag_bytes) -> String {
    // SAFETY: bytes of the library's own.
    let bytes = unsafe { bytes(name.data, name.len, "name") }.unwrap();
    String::from_utf8_lossy(bytes).into_owned()
}

/// Notes what a visitor saw.
///
/// # Safety
///
/// The context is a test's notes.
unsafe fn note(context: *mut c_void, note: String) -> bool {
    // SAFETY: the notes of the test that asked.
    unsafe { &mut *context.cast::<Notes>() }.push(note);
    true
}

/// What visits note.
fn seen(visit: impl FnOnce(*mut c_void)) -> Notes {
    let mut notes = Notes::new();
    visit(from_mut(&mut notes).cast());
    notes
}

fn lock(scene: &Scene, name: &str) -> *mut sprag_lock {
    let (mut lock, len, name) = (null_mut(), name.len(), name.as_ptr().cast());
    // SAFETY: the space is open; the rest are variables of this function's.
    works(|error| unsafe { sprag_lock_open(scene.space, name, len, 0, &raw mut lock, error) });
    lock
}

/// A hold of the lock.
///
/// # Safety
///
/// The handle is open.
unsafe fn acquired(lock: *const sprag_lock) -> sprag_hold {
    // SAFETY: a hold of zero bytes is empty.
    let mut hold: sprag_hold = unsafe { zeroed() };
    // SAFETY: as this function's caller says.
    works(|error| unsafe { sprag_lock_acquire(lock, 0, &raw mut hold, error) });
    hold
}

extern "C" fn on_lock(lock: *const sprag_lock_info, context: *mut c_void) -> bool {
    // SAFETY: what the library shows, and the notes of the test that asked.
    unsafe {
        let lock = &*lock;
        assert_eq!(lock.size, size_of::<sprag_lock_info>());
        assert!(!lock.is_holder_dead && lock.waiters == 0 && lock.waiters_dead == 0);
        let holds = std::slice::from_raw_parts(lock.holds, lock.hold_count);
        let holds = holds.iter().map(|hold| (**hold).permits);
        let line = format!(
            "{} {} by {} {:?}",
            text(lock.name),
            match (lock.is_held, lock.is_shared) {
                (false, _) => "free",
                (true, false) => "held",
                (true, true) => "shared",
            },
            if lock.holder_pid == std::process::id() {
                "us"
            } else {
                "nobody"
            },
            holds.collect::<Vec<_>>()
        );
        note(context, line)
    }
}

extern "C" fn one_is_enough(_: *const sprag_lock_info, context: *mut c_void) -> bool {
    // SAFETY: the notes of the test that asked.
    unsafe { !note(context, "seen".to_owned()) }
}

#[test]
fn locks_are_shown_by_name_with_their_holds() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let (b, a, c) = (
            lock(&scene, "job/b"),
            lock(&scene, "job/a"),
            lock(&scene, "other"),
        );
        let (mut of_b, mut of_a, mut of_c) = (acquired(b), acquired(a), acquired(c));
        works(|error| sprag_hold_release(&raw mut of_b, error));
        let jobs = |visit, context| {
            let prefix = b"job/".as_ptr().cast();
            outcome(|error| sprag_space_each_lock(scene.space, prefix, 4, visit, context, error))
        };
        let notes = seen(|context| assert_eq!(jobs(Some(on_lock), context), Ok(SPRAG_OK)));
        assert_eq!(notes, ["job/a held by us [1]", "job/b free by nobody []"]);
        let all = seen(|context| {
            works(|error| {
                sprag_space_each_lock(scene.space, null(), 0, Some(on_lock), context, error)
            });
        });
        assert_eq!(all.len(), 3);
        let notes = seen(|context| assert_eq!(jobs(Some(one_is_enough), context), Ok(SPRAG_OK)));
        assert_eq!(notes, ["seen"], "one is enough");

        works(|error| sprag_hold_release(&raw mut of_a, error));
        works(|error| sprag_hold_release(&raw mut of_c, error));
        for lock in [a, b, c] {
            sprag_lock_close(lock);
        }
    }
}

extern "C" fn on_break(broken: *const sprag_break_info, context: *mut c_void) -> bool {
    // SAFETY: what the library shows, and the notes of the test that asked.
    unsafe {
        let broken = &*broken;
        // 2026-01-01, where the clock stands.
        assert_eq!(broken.at_unix_ns, 1_767_225_600 * SPRAG_SECOND);
        let is_ours = broken.by_pid == std::process::id() && broken.token > 0;
        note(context, format!("{} {is_ours}", text(broken.name)))
    }
}

#[test]
fn a_visitor_may_change_what_it_is_shown() {
    extern "C" fn break_it(shown: *const sprag_lock_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the space of the test that asked.
        unsafe {
            let (space, name) = (context.cast::<sprag_space>(), (*shown).name);
            let mut lock = null_mut();
            let to = &raw mut lock;
            works(|error| sprag_lock_open(space, name.data, name.len, 0, to, error));
            works(|error| sprag_lock_break(lock, null_mut(), error));
            sprag_lock_close(lock);
        }
        true
    }
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let locks = ["a", "b", "c"].map(|name| lock(&scene, name));
        let mut holds = locks.map(|lock| acquired(lock));
        works(|error| {
            let context = scene.space.cast();
            sprag_space_each_lock(scene.space, null(), 0, Some(break_it), context, error)
        });
        for hold in &mut holds {
            fails(|error| sprag_hold_release(hold, error));
        }
        let notes = seen(|context| {
            works(|error| sprag_space_each_break(scene.space, Some(on_break), context, error));
        });
        assert_eq!(notes, ["a true", "b true", "c true"]);
        for lock in locks {
            sprag_lock_close(lock);
        }
    }
}

#[test]
fn coarse_locks_are_shown_while_they_are_held() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let coarse = || {
            seen(|context| {
                works(|error| {
                    sprag_space_each_coarse_lock(scene.space, Some(on_lock), context, error)
                });
            })
        };
        assert_eq!(coarse(), Notes::new());
        let mut table = null_mut();
        works(|error| sprag_lock_open_table(scene.space, 0, &raw mut table, error));
        let mut hold = acquired(table);
        assert_eq!(
            coarse().last().map(String::as_str),
            Some("the table held by us [1]")
        );
        works(|error| sprag_hold_release(&raw mut hold, error));
        sprag_lock_close(table);
    }
}

#[test]
fn those_who_share_a_lock_and_those_who_left_it_by_its_token_are_shown() {
    extern "C" fn on_detached(lock: *const sprag_lock_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the notes of the test that asked.
        unsafe {
            let lock = &*lock;
            let hold = &**lock.holds;
            assert!(lock.is_held && lock.is_detached && hold.is_detached && hold.is_live);
            assert_eq!((lock.holder_pid, hold.pid), (0, 0));
            assert_eq!(
                (lock.token, lock.lease_left_ns),
                (hold.token, hold.lease_left_ns)
            );
            note(context, text(lock.name))
        }
    }
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let (shared, left) = (lock(&scene, "shared"), lock(&scene, "left"));
        let mut options: sprag_acquire_options = zeroed();
        options.size = size_of::<sprag_acquire_options>();
        options.mode = SPRAG_SHARED;
        let mut holds: [sprag_hold; 2] = zeroed();
        for hold in &mut holds {
            works(|error| sprag_lock_acquire_with(shared, &raw const options, hold, error));
        }
        let (mut hold, mut token) = (acquired(left), 0);
        works(|error| sprag_hold_detach(&raw mut hold, &raw mut token, error));
        let notes = seen(|context| {
            works(|error| sprag_lock_peek(shared, Some(on_lock), context, error));
            works(|error| sprag_lock_peek(left, Some(on_detached), context, error));
        });
        assert_eq!(notes, ["shared shared by us [1, 1]", "left"]);
        for hold in &mut holds {
            works(|error| sprag_hold_release(hold, error));
        }
        sprag_lock_close(shared);
        sprag_lock_close(left);
    }
}

#[test]
fn a_look_at_a_lock_tells_of_it_alone() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let peek = |lock| {
            let mut status = Ok(SPRAG_OK);
            let notes = seen(|context| {
                status = outcome(|error| sprag_lock_peek(lock, Some(on_lock), context, error));
            });
            (status.unwrap(), notes)
        };
        let single = lock(&scene, "b");
        assert_eq!(peek(single), (SPRAG_NONE, Notes::new()));
        let mut hold = acquired(single);
        assert_eq!(
            peek(single),
            (SPRAG_OK, vec!["b held by us [1]".to_owned()])
        );
        let (mut several, mut table) = (null_mut(), null_mut());
        let names = [sprag_bytes::of(b"a"), sprag_bytes::of(b"b")];
        let to = &raw mut several;
        works(|error| sprag_lock_open_several(scene.space, names.as_ptr(), 2, 0, to, error));
        assert_eq!(
            peek(several),
            (SPRAG_OK, vec!["b held by us [1]".to_owned()])
        );
        works(|error| sprag_lock_open_table(scene.space, 0, &raw mut table, error));
        assert_eq!(
            peek(table),
            (SPRAG_OK, vec!["the table free by nobody []".to_owned()])
        );
        works(|error| sprag_hold_release(&raw mut hold, error));
        for lock in [single, several, table] {
            sprag_lock_close(lock);
        }
    }
}

extern "C" fn on_semaphore(shown: *const sprag_semaphore_info, context: *mut c_void) -> bool {
    // SAFETY: what the library shows, and the notes of the test that asked.
    unsafe { note(context, semaphore_text(&*shown)) }
}

/// What is shown of a semaphore.
///
/// # Safety
///
/// The library shows it.
unsafe fn semaphore_text(shown: &sprag_semaphore_info) -> String {
    // SAFETY: what the library shows.
    unsafe {
        assert_eq!(shown.size, size_of::<sprag_semaphore_info>());
        let holds = std::slice::from_raw_parts(shown.holds, shown.hold_count);
        let of_hold = |hold: &*const sprag_hold_info| {
            let hold = &**hold;
            assert!(hold.is_live && !hold.is_detached && hold.token > 0);
            assert_eq!(hold.lease_left_ns, 30 * SPRAG_SECOND);
            assert!(hold.held_for_ns == 0 || hold.held_for_ns == SPRAG_UNKNOWN);
            hold.permits
        };
        let holds: Vec<_> = holds.iter().map(of_hold).collect();
        let (used, remaining, permits) = (shown.used, shown.remaining, shown.permits);
        format!(
            "{} {used}+{remaining}={permits} {holds:?}",
            text(shown.name)
        )
    }
}

extern "C" fn on_concurrency(shown: *const sprag_concurrency_info, context: *mut c_void) -> bool {
    // SAFETY: what the library shows, and the notes of the test that asked.
    unsafe {
        let shown = &*shown;
        let keys = std::slice::from_raw_parts(shown.keys, shown.key_count);
        let keys: Vec<_> = keys.iter().map(|key| semaphore_text(&**key)).collect();
        note(
            context,
            format!("{} {} {keys:?}", text(shown.name), shown.permits),
        )
    }
}

#[test]
fn semaphores_and_keys_of_concurrency_limiters_are_shown() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let (mut doors, mut uploads, mut ann) = (null_mut(), null_mut(), null_mut());
        let (name, to) = (b"doors".as_ptr().cast(), &raw mut doors);
        works(|error| sprag_semaphore_open(scene.space, name, 5, 3, 0, to, error));
        let (name, to) = (b"uploads".as_ptr().cast(), &raw mut uploads);
        works(|error| sprag_concurrency_open(scene.space, name, 7, 2, 0, to, error));
        let (key, to) = (b"ann".as_ptr().cast(), &raw mut ann);
        works(|error| sprag_concurrency_key(uploads, key, 3, 0, to, error));

        let peek = |semaphore| {
            seen(|context| {
                let visit = Some(on_semaphore as extern "C" fn(_, _) -> _);
                works(|error| sprag_semaphore_peek(semaphore, visit, context, error));
            })
        };
        assert_eq!(
            (peek(doors), peek(ann)),
            (
                vec!["doors 0+3=3 []".to_owned()],
                vec!["ann 0+2=2 []".to_owned()]
            )
        );
        let mut holds: [sprag_hold; 2] = zeroed();
        let (first, second) = (&raw mut holds[0], &raw mut holds[1]);
        works(|error| sprag_semaphore_acquire(doors, 2, 0, first, error));
        works(|error| sprag_semaphore_acquire(ann, 1, 0, second, error));
        let notes = seen(|context| {
            let visit = Some(on_semaphore as extern "C" fn(_, _) -> _);
            works(|error| {
                sprag_space_each_semaphore(scene.space, null(), 0, visit, context, error)
            });
        });
        assert_eq!(notes, ["doors 2+1=3 [2]"]);
        assert_eq!(
            (notes, peek(ann)),
            (peek(doors), vec!["ann 1+1=2 [1]".to_owned()])
        );
        let notes = seen(|context| {
            works(|error| {
                sprag_space_each_concurrency(
                    scene.space,
                    null(),
                    0,
                    Some(on_concurrency),
                    context,
                    error,
                )
            });
        });
        assert_eq!(notes, ["uploads 2 [\"ann 1+1=2 [1]\"]"]);
        works(|error| sprag_hold_release(first, error));
        works(|error| sprag_hold_release(second, error));
        sprag_semaphore_close(doors);
        sprag_semaphore_close(ann);
        sprag_concurrency_close(uploads);
    }
}

#[test]
fn counters_and_idempotency_keys_are_shown() {
    extern "C" fn on_counter(shown: *const sprag_counter_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the notes of the test that asked.
        unsafe {
            note(
                context,
                format!("{} {}", text((*shown).name), (*shown).number),
            )
        }
    }
    extern "C" fn on_once(shown: *const sprag_once_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the notes of the test that asked.
        unsafe {
            let shown = &*shown;
            let (key, result) = (text(shown.name), text(shown.result));
            let left = shown.left_ns / SPRAG_SECOND;
            let is_ours = shown.holder_pid == std::process::id();
            note(
                context,
                format!("{key} {:?} {is_ours} {left} {result:?}", shown.status),
            )
        }
    }
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let mut counter = null_mut();
        let name = b"stock".as_ptr().cast();
        works(|error| sprag_counter_open(scene.space, name, 5, &raw mut counter, error));
        works(|error| sprag_counter_add(counter, -7, null_mut(), error));
        let begun = |key: &str| {
            let (mut once, mut attempt): (_, sprag_attempt) = (null_mut(), zeroed());
            let (len, key, to) = (key.len(), key.as_ptr().cast(), &raw mut once);
            works(|error| sprag_once_open(scene.space, key, len, to, error));
            works(|error| {
                let (to, none) = (&raw mut attempt, null_mut());
                let ttl_ns = 60 * SPRAG_SECOND;
                sprag_once_begin(once, ttl_ns, to, none, null_mut(), 0, null_mut(), error)
            });
            sprag_once_close(once);
            attempt
        };
        let (mut done, mut going, mut closed) = (begun("a"), begun("b"), begun("c"));
        works(|error| {
            let (result, len) = (b"ok".as_ptr().cast(), 2);
            sprag_attempt_finish(&raw mut done, result, len, 90 * SPRAG_SECOND, error)
        });
        sprag_attempt_close(&raw mut closed);
        let notes = seen(|to| {
            let space = scene.space;
            works(|error| sprag_space_each_counter(space, null(), 0, Some(on_counter), to, error));
            works(|error| sprag_space_each_once(space, null(), 0, Some(on_once), to, error));
        });
        assert_eq!(notes[0], "stock -7");
        assert_eq!(notes[1], format!("a {SPRAG_DONE:?} false 90 \"ok\""));
        assert_eq!(notes[2], "b SPRAG_IN_PROGRESS true 60 \"\"");
        assert_eq!(notes[3], format!("c {SPRAG_UNFINISHED:?} false 0 \"\""));
        sprag_attempt_close(&raw mut going);
        sprag_counter_close(counter);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let each = |space, prefix, len, visit| {
            fails(|error| sprag_space_each_lock(space, prefix, len, visit, null_mut(), error))
        };
        let visit = Some(on_lock as extern "C" fn(_, _) -> _);
        assert_eq!(
            each(null(), null(), 0, visit),
            at(SPRAG_ERROR_NULL, "space")
        );
        assert_eq!(
            each(scene.space, null(), 1, visit),
            at(SPRAG_ERROR_NULL, "prefix")
        );
        assert_eq!(
            each(scene.space, null(), 0, None),
            at(SPRAG_ERROR_NULL, "visit")
        );
    }
}
