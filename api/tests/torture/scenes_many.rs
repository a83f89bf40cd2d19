//! Scenes of several locks at once, of partitions and of the table, beside those who want one key.
//!
//! What a hold covers is journaled key by key: one record for each, all of which begin and end with the one call.

use crate::actor::{Actor, PATIENCE, name_of};
use crate::journal::{Entry, Op, Outcome};
use crate::scene::{Cue, LONG_TTL, SHORT_TTL, SMALL, Scene, Turn, now_ns, scene};
use crate::scenes_lock::{KEY, all_is_well, pause};
use sprag::{Caps, Error, Hold, HoldAll, Space};
use std::time::Duration;

/// The second of several.
const SECOND: u64 = 2;
const AT_ONCE: Duration = Duration::ZERO;
/// What a holder's own clock may be off by, in nanoseconds.
const CLOCK_MARGIN_NS: u64 = 20_000;

#[derive(Clone, Copy)]
enum What {
    Several,
    Partition,
    Table,
}

impl What {
    fn of(op: Op) -> Self {
        match op {
            Op::Several | Op::SeveralWait | Op::ReleaseSeveral => Self::Several,
            Op::Partition | Op::PartitionWait | Op::ReleasePartition => Self::Partition,
            _ => Self::Table,
        }
    }

    fn keys(self, space: &Space) -> Vec<u64> {
        let partition = |key| space.partition_of(&name_of(key));
        match self {
            Self::Partition => [KEY, SECOND]
                .into_iter()
                .filter(|key| partition(*key) == partition(KEY))
                .collect(),
            _ => vec![KEY, SECOND],
        }
    }
}

enum AnyHold<'s> {
    Several(HoldAll<'s>),
    Coarse(Hold<'s>),
}

/// A hold and the records of all that it covers.
pub(crate) struct HeldMany<'s> {
    hold: AnyHold<'s>,
    entries: Vec<Entry>,
    op: Op,
}

impl Actor {
    pub(crate) fn take<'s>(
        &self,
        op: Op,
        space: &'s Space,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<Option<HeldMany<'s>>, Error> {
        let keys = What::of(op).keys(space);
        let begin = |key: &u64| self.journal.begin(self.role, self.by, op, *key, 0);
        let (coarse, several) = match What::of(op) {
            What::Several => (
                None,
                Some(space.locks(keys.iter().map(|key| name_of(*key)))),
            ),
            What::Partition => {
                let partition = space.partition_of(&name_of(KEY));
                (Some(space.partition(partition)), None)
            }
            What::Table => (Some(space.table()), None),
        };
        let coarse = coarse.map(|lock| lock.and_then(|lock| lock.ttl(ttl)).expect("a lease"));
        let several = several.map(|locks| locks.and_then(|locks| locks.ttl(ttl)).expect("a lease"));
        let entries: Vec<Entry> = keys.iter().map(begin).collect();
        let hold = self.struck(op, || match (&coarse, &several) {
            (Some(coarse), _) => coarse
                .acquire_timeout(timeout)
                .map(|hold| hold.map(AnyHold::Coarse)),
            (_, Some(several)) => several
                .acquire_timeout(timeout)
                .map(|hold| hold.map(AnyHold::Several)),
            _ => Ok(None),
        });
        let hold = match hold {
            Ok(Some(hold)) => hold,
            other => {
                for entry in entries {
                    entry.end(Outcome::No, 0);
                }
                return other.map(|_| None);
            }
        };
        let (left, tokens) = match &hold {
            AnyHold::Several(hold) => (hold.lease_left(), hold.tokens().to_vec()),
            AnyHold::Coarse(hold) => (hold.lease_left(), vec![hold.token(); entries.len()]),
        };
        let until_ns = (now_ns() + left.as_nanos() as u64).saturating_sub(CLOCK_MARGIN_NS);
        for (entry, token) in entries.iter().zip(tokens) {
            // None: it was lost before that was asked.
            if token == 0 {
                entry.end(Outcome::No, 0);
                continue;
            }
            entry.claim_until(until_ns);
            entry.end(Outcome::Yes, token);
        }
        Ok(Some(HeldMany { hold, entries, op }))
    }

    /// Whether it was still held.
    pub(crate) fn let_go(&self, op: Op, held: HeldMany<'_>) -> bool {
        for entry in &held.entries {
            entry.leave();
        }
        let HeldMany {
            hold, op: taken, ..
        } = held;
        let argument = taken as u64;
        let released = self.call(
            op,
            KEY,
            argument,
            || match hold {
                AnyHold::Several(hold) => hold.release(),
                AnyHold::Coarse(hold) => hold.release(),
            },
            |released| crate::actor::yes(released.is_ok()),
        );
        match released {
            Ok(()) => true,
            Err(Error::Lost { .. }) => false,
            Err(error) => panic!("a release fails: {error}"),
        }
    }
}

/// What others do while the victim is stopped, or once it is dead; and then all of it is to be had again.
fn look_after_all(actor: &Actor, cue: &Cue, space: &Space) {
    match cue.meet() {
        Turn::Dead | Turn::Through => {}
        Turn::Stopped => {
            let kept = if cue.case.ttl == SHORT_TTL {
                // Its lease ends, so the lock comes: to one who waits, and to one who only tries.
                let held = actor.must_acquire(space, KEY, LONG_TTL);
                assert!(actor.release(Op::Release, held));
                Some(actor.must_catch(space, KEY, LONG_TTL))
            } else {
                // Whether it comes depends on where the victim is; if it does, it is not the victim's any more.
                actor
                    .try_acquire(Op::Acquire, space, KEY, LONG_TTL)
                    .expect("room")
            };
            if cue.is_waiting() {
                cue.resume_only();
                if let Some(held) = kept {
                    pause();
                    assert!(actor.release(Op::HandOn, held), "nobody took it away");
                }
                cue.resume();
            } else {
                cue.resume();
                if let Some(held) = kept {
                    assert!(held.hold.is_held(), "a stale step ended another's hold");
                    assert!(actor.release(Op::Release, held));
                }
            }
        }
    }
    if let Some(held) = actor
        .try_acquire(Op::Acquire, space, KEY, LONG_TTL)
        .expect("room")
    {
        assert!(actor.release(Op::Release, held));
    }
    cue.probed();
    for op in [Op::Several, Op::Partition, Op::Table] {
        let held = actor
            .take(op, space, LONG_TTL, PATIENCE)
            .expect("room")
            .expect("nobody holds anything any more");
        assert!(actor.let_go(Op::Release, held));
    }
    all_is_well(actor, space, KEY, 0);
}

fn make_live(actor: &Actor, space: &Space) {
    for key in [KEY, SECOND] {
        let held = actor.must_acquire(space, key, LONG_TTL);
        assert!(actor.release(Op::Release, held));
    }
}

/// Uses the keys, and then has them free.
fn companion_of_free(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    make_live(actor, &space);
    cue.ready();
    look_after_all(actor, cue, &space);
}

/// Holds one of the keys until the victim is in its operation, and a little longer.
fn companion_of_wait(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    make_live(actor, &space);
    let held = actor.must_acquire(&space, KEY, LONG_TTL);
    cue.ready();
    cue.await_operation();
    pause();
    assert!(actor.release(Op::HandOn, held));
    look_after_all(actor, cue, &space);
}

fn take(actor: &Actor, cue: &Cue) {
    let op = cue.op();
    let timeout = if cue.is_waiting() { PATIENCE } else { AT_ONCE };
    let space = actor.open();
    cue.strike(actor);
    let held = actor.take(op, &space, cue.case.ttl, timeout);
    cue.through();
    if let Some(held) = held.expect("room") {
        actor.let_go(Op::Release, held);
    }
}

fn let_go(actor: &Actor, cue: &Cue) {
    let op = cue.op();
    let take = match op {
        Op::ReleaseSeveral => Op::Several,
        Op::ReleasePartition => Op::Partition,
        _ => Op::Table,
    };
    let space = actor.open();
    let held = actor
        .take(take, &space, cue.case.ttl, PATIENCE)
        .expect("room");
    cue.strike(actor);
    actor.let_go(op, held.expect("nobody holds anything"));
    cue.through();
}

/// A table of more than one partition.
const PARTED: Caps = Caps {
    objects: 72,
    ..SMALL
};

const fn parted(scene: &Scene) -> Scene {
    Scene {
        caps: PARTED,
        ..*scene
    }
}

pub(crate) const SCENES: [Scene; 9] = [
    scene(Op::Several, take, companion_of_free),
    scene(Op::SeveralWait, take, companion_of_wait),
    scene(Op::ReleaseSeveral, let_go, companion_of_free),
    scene(Op::Partition, take, companion_of_free),
    scene(Op::PartitionWait, take, companion_of_wait),
    scene(Op::ReleasePartition, let_go, companion_of_free),
    parted(&scene(Op::Table, take, companion_of_free)),
    parted(&scene(Op::TableWait, take, companion_of_wait)),
    parted(&scene(Op::ReleaseTable, let_go, companion_of_free)),
];
