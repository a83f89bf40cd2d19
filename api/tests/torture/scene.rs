//! A scene: one operation, struck in one process, while another looks after the region.
//!
//! ```text
//!  companion: prepares ─ ready ─────────────── meets: goes on ─ resumes ──┐    probes ─┐ all is well?
//!                          │                     ▲                 │      │      ▲     │      ▲
//!  victim:                 └▶ sets up ─ struck ──┘ dead or stopped └▶ goes on, ends ───┴▶ exits
//! ```
//!
//! Both are processes of their own; the lane that runs the scene waits for the victim, tells the
//! companion what became of it, and has the oracle judge the journal in the end.

use crate::actor::Actor;
use crate::journal::{Journal, Op};
use crate::oracle::{Bucket, Rules, judge};
use crate::process::{self, Fate, fork, poll, signal, wait, wait_any};
use sprag::Caps;
use sprag::host::futex::{self, Reach};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// One operation and how its two processes play it.
pub(crate) struct Scene {
    pub(crate) op: Op,
    pub(crate) caps: Caps,
    /// Plays before the companion, in a process that then exits without closing anything.
    pub(crate) before: Option<fn(&Actor)>,
    pub(crate) victim: fn(&Actor, &Cue),
    pub(crate) companion: fn(&Actor, &Cue),
    pub(crate) is_room_for_keys: bool,
    /// Its companion takes long, and says nothing new of a stopped victim.
    pub(crate) is_for_kills_only: bool,
}

/// A scene with small tables.
pub(crate) const fn scene(op: Op, victim: fn(&Actor, &Cue), companion: fn(&Actor, &Cue)) -> Scene {
    Scene {
        op,
        caps: SMALL,
        before: None,
        victim,
        companion,
        is_room_for_keys: true,
        is_for_kills_only: false,
    }
}

/// Caps so small that every table fills, reclaims and displaces.
pub(crate) const SMALL: Caps = Caps {
    objects: 8,
    limiter_keys: 8,
    joint_keys: 8,
    sessions: 6,
    waiters: 4,
    permits: 4,
    key_chunks: 16,
};

/// The limits that scenes use, by the number that checks carry.
pub(crate) const LIMITS: [(&str, Bucket); 4] = [
    (
        "5/day",
        Bucket {
            count: 5,
            period_ns: 86_400_000_000_000,
            burst: 5,
        },
    ),
    (
        "1000/s;burst=2",
        Bucket {
            count: 1_000,
            period_ns: 1_000_000_000,
            burst: 2,
        },
    ),
    (
        "9/day",
        Bucket {
            count: 9,
            period_ns: 86_400_000_000_000,
            burst: 9,
        },
    ),
    (
        "2/day",
        Bucket {
            count: 2,
            period_ns: 86_400_000_000_000,
            burst: 2,
        },
    ),
];
pub(crate) const DAY: u64 = 0;
pub(crate) const FAST: u64 = 1;
pub(crate) const WIDER: u64 = 2;
pub(crate) const TWO: u64 = 3;

/// What became of the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its operation is done; it was never struck.
    Through,
    /// It is dead.
    Dead,
    /// It is stopped in the operation.
    Stopped,
}

/// A case: a scene, a step, a signal, and how long the victim's leases are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) step: u64,
    pub(crate) signal: i32,
    pub(crate) ttl: Duration,
}

/// A lease that outlives any case.
pub(crate) const LONG_TTL: Duration = Duration::from_mins(10);
/// A lease that ends within one.
pub(crate) const SHORT_TTL: Duration = Duration::from_millis(40);

/// How the two processes and their lane tell each other how far they are.
pub(crate) struct Cue {
    journal: Journal,
    op: Op,
    pub(crate) case: Case,
}

const READY: usize = 0;
const IN_OP: usize = 1;
const STRUCK: usize = 2;
const RESUME: usize = 3;
const THROUGH: usize = 4;
const PROBED: usize = 5;
const GONE: usize = 6;
const NOTE: usize = 8;

static TURN_UNUSED: AtomicU32 = AtomicU32::new(0);

impl Cue {
    fn set(&self, flag: usize, value: u64) {
        self.journal.flag(flag).store(value, SeqCst);
    }

    fn get(&self, flag: usize) -> u64 {
        self.journal.flag(flag).load(SeqCst)
    }

    fn until(is_so: impl Fn() -> bool) {
        // Timed waits on a word that nobody raises: a millisecond's sleep that shows as a wait.
        while !is_so() {
            futex::wait(&TURN_UNUSED, 0, Duration::from_micros(100), Reach::Process);
        }
    }

    /// Companion: what it prepared is there; the victim may start.
    pub(crate) fn ready(&self) {
        self.set(READY, 1);
    }

    /// A number that one tells the other.
    pub(crate) fn note(&self, number: u64) {
        self.set(NOTE, number);
    }

    pub(crate) fn noted(&self) -> u64 {
        self.get(NOTE)
    }

    pub(crate) fn await_note(&self, number: u64) {
        Self::until(|| self.noted() >= number);
    }

    /// Victim: aims the case's signal at the next call, which is the scene's operation.
    pub(crate) fn strike(&self, actor: &Actor) {
        actor.aim(self.case.step, self.case.signal);
        self.set(IN_OP, 1);
    }

    /// Companion: waits until the victim is about to begin the operation.
    pub(crate) fn await_operation(&self) {
        Self::until(|| self.get(IN_OP) != 0);
    }

    /// Companion: waits until the victim has noted a number, or is dead or stopped.
    pub(crate) fn await_note_or_strike(&self, number: u64) {
        Self::until(|| self.noted() >= number || self.get(STRUCK) != 0);
    }

    /// Companion: waits until the victim is dead, stopped, or through.
    pub(crate) fn meet(&self) -> Turn {
        Self::until(|| self.get(STRUCK) != 0 || self.get(THROUGH) != 0);
        match self.get(STRUCK) {
            0 => Turn::Through,
            1 => Turn::Dead,
            _ => Turn::Stopped,
        }
    }

    /// Whether the scene is of this operation.
    pub(crate) fn is_of(&self, op: Op) -> bool {
        self.op == op
    }

    /// The scene's operation.
    pub(crate) fn op(&self) -> Op {
        self.op
    }

    /// Whether the operation is one that waits for a lock.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(
            self.op,
            Op::Wait
                | Op::Future
                | Op::ShareWait
                | Op::SeveralWait
                | Op::PartitionWait
                | Op::TableWait
        )
    }

    /// Whether it is one that waits for permits.
    pub(crate) fn is_waiting_for_permits(&self) -> bool {
        self.op == Op::WaitPermits
    }

    /// Companion: lets a stopped victim go on.
    pub(crate) fn resume_only(&self) {
        self.set(RESUME, 1);
    }

    /// Companion: lets a stopped victim go on, and waits until it is through.
    pub(crate) fn resume(&self) {
        self.set(RESUME, 1);
        Self::until(|| self.get(THROUGH) != 0);
    }

    /// Victim: the operation is done. Waits until the companion has looked what that looks like.
    pub(crate) fn through(&self) {
        self.set(THROUGH, 1);
        Self::until(|| self.get(PROBED) != 0);
    }

    /// Companion: has looked; waits until the victim is gone.
    pub(crate) fn probed(&self) {
        self.set(PROBED, 1);
        Self::until(|| self.get(GONE) != 0);
    }
}

/// What a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Struck {
    /// The operation was through before that step.
    Missed,
    Killed,
    Stopped,
}

impl Scene {
    /// Plays the scene in `directory`; panics if anything is wrong.
    pub(crate) fn play(&self, journal: Journal, directory: &Path, case: Case) -> Struck {
        journal.reset();
        let path = directory.join("region");
        let url = format!("shm:{}", path.display());
        // Absent before the first case; a case that failed ends its lane.
        let _ = std::fs::remove_file(&path);
        let actor = |role: usize| Actor::new(journal, role, role as u64 + 1, &url, self.caps);
        let cue = Cue {
            journal,
            op: self.op,
            case,
        };
        if let Some(before) = self.before {
            let pid = fork(|| before(&actor(2)));
            let fate = wait(pid);
            assert!(
                matches!(fate, Fate::Exited(0) | Fate::Killed(libc::SIGKILL)),
                "what comes before the scene is {fate:?}"
            );
        }
        let companion = fork(|| (self.companion)(&actor(1), &cue));
        let is_well = || match poll(companion) {
            None => {}
            Some((_, fate)) => panic!("the companion is {fate:?} early"),
        };
        Cue::until(|| {
            is_well();
            cue.get(READY) != 0
        });
        let victim = fork(|| (self.victim)(&actor(0), &cue));
        let mut struck = Struck::Missed;
        loop {
            let (who, fate) = wait_any();
            assert_eq!(who, victim, "the companion is {fate:?} early");
            match fate {
                Fate::Stopped => {
                    struck = Struck::Stopped;
                    cue.set(STRUCK, 2);
                    Cue::until(|| {
                        is_well();
                        cue.get(RESUME) != 0
                    });
                    signal(victim, libc::SIGCONT);
                }
                Fate::Killed(libc::SIGKILL) => {
                    struck = Struck::Killed;
                    cue.set(STRUCK, 1);
                    break;
                }
                Fate::Exited(0) => break,
                fate => panic!("the victim is {fate:?}"),
            }
        }
        cue.set(GONE, 1);
        let fate = wait(companion);
        assert_eq!(fate, Fate::Exited(0), "the companion");
        let limits: Vec<Bucket> = LIMITS.iter().map(|(_, bucket)| *bucket).collect();
        let problems = judge(
            &journal,
            &Rules {
                are_tokens_consecutive: false,
                refusing: if self.is_room_for_keys {
                    &[DAY, FAST, WIDER, TWO]
                } else {
                    &[]
                },
                limits: &limits,
            },
        );
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        struck
    }
}

/// A directory of its own in memory, where there is one.
pub(crate) fn directory() -> tempfile::TempDir {
    let place = Path::new("/dev/shm");
    if place.is_dir() {
        tempfile::tempdir_in(place).expect("a directory in memory")
    } else {
        tempfile::tempdir().expect("a directory")
    }
}

/// Prints to the test's own error stream, captured or not.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    // Nobody to tell if nobody listens.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

pub(crate) fn now_ns() -> u64 {
    process::now_ns()
}
