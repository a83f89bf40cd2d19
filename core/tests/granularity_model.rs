//! Locks of keys, of several keys at once, of partitions and of the table, one step after another, against
//! a list of holds and a list of waits that say what a reader of the documentation would.

mod support;

use proptest::prelude::*;
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Coarse, Grant, Released};
use sprag_core::waiter::{Poll, Ticket};
use sprag_core::{Engine, Name, SessionId};
use support::{SMALL, engine, model_config, session};

const KEYS: u8 = 5;
const MS: u64 = 1_000_000;

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Key(u8),
    Shared(u8),
    /// Keys by the bits of the number.
    Several(u8),
    PartitionOf(u8),
    Table,
}

#[derive(Clone, Debug)]
enum Step {
    Try { what: What, lease_ms: u64 },
    Enqueue { what: What },
    Poll { wait: usize },
    Cancel { wait: usize },
    Release { hold: usize },
    Pass { us: u64 },
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => (0..KEYS).prop_map(What::Key),
        3 => (0..KEYS).prop_map(What::Shared),
        3 => (1..1_u8 << KEYS).prop_map(What::Several),
        2 => (0..KEYS).prop_map(What::PartitionOf),
        1 => Just(What::Table),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let lease = prop_oneof![1..5_u64, Just(60_000)];
    prop_oneof![
        6 => (what(), lease).prop_map(|(what, lease_ms)| Step::Try { what, lease_ms }),
        4 => what().prop_map(|what| Step::Enqueue { what }),
        6 => (0..64_usize).prop_map(|wait| Step::Poll { wait }),
        1 => (0..64_usize).prop_map(|wait| Step::Cancel { wait }),
        6 => (0..64_usize).prop_map(|hold| Step::Release { hold }),
        2 => (1..3_000_u64).prop_map(|us| Step::Pass { us }),
    ]
}

struct Hold {
    what: What,
    grant: Grant,
    until_ns: u64,
}

struct Wait {
    what: What,
    ticket: Ticket,
}

struct World {
    engine: Engine,
    by: SessionId,
    now_ns: u64,
    holds: Vec<Hold>,
    /// In the order in which they came.
    waits: Vec<Wait>,
}

impl World {
    fn new() -> Self {
        let engine = engine(SMALL);
        let by = session(&engine);
        Self {
            engine,
            by,
            now_ns: MS,
            holds: Vec::new(),
            waits: Vec::new(),
        }
    }

    fn name(&self, key: u8) -> Name {
        self.engine.lock_name(&[b'k', key]).unwrap()
    }

    fn names(&self, keys: u8) -> Vec<Name> {
        let is_in = |key: &u8| keys & 1 << key != 0;
        (0..KEYS).filter(is_in).map(|key| self.name(key)).collect()
    }

    fn partition(&self, key: u8) -> u32 {
        self.engine.partition_of(&[b'k', key])
    }

    fn conflict(&self, one: &What, other: &What) -> bool {
        use What::{Key, PartitionOf, Several, Shared, Table};
        match (one, other) {
            (Table, _) | (_, Table) => true,
            (Shared(_), Shared(_)) => false,
            (Key(a) | Shared(a), Key(b) | Shared(b)) => a == b,
            (Several(keys), Key(b) | Shared(b)) | (Key(b) | Shared(b), Several(keys)) => {
                keys & 1 << b != 0
            }
            (Several(a), Several(b)) => a & b != 0,
            (PartitionOf(a), PartitionOf(b) | Key(b) | Shared(b))
            | (Key(b) | Shared(b), PartitionOf(a)) => self.partition(*a) == self.partition(*b),
            (PartitionOf(a), Several(keys)) | (Several(keys), PartitionOf(a)) => (0..KEYS)
                .any(|key| keys & 1 << key != 0 && self.partition(key) == self.partition(*a)),
        }
    }

    /// Whether it can be had, when all but the first `before` waits come later.
    fn is_free(&self, what: &What, before: usize) -> bool {
        let holds = self.holds.iter().filter(|hold| hold.until_ns > self.now_ns);
        holds
            .into_iter()
            .all(|hold| !self.conflict(&hold.what, what))
            && self.waits[..before]
                .iter()
                .all(|wait| !self.conflict(&wait.what, what))
    }

    fn wants(&self, what: &What) -> (Wants, Name) {
        match what {
            What::Key(key) => (Wants::Exclusive, self.name(*key)),
            What::Shared(key) => (Wants::Shared, self.name(*key)),
            What::PartitionOf(key) => {
                let coarse = Coarse::Partition(self.partition(*key));
                (Wants::Coarse(coarse), self.name(0))
            }
            What::Table => (Wants::Coarse(Coarse::Table), self.name(0)),
            What::Several(_) => (Wants::Several, self.name(0)),
        }
    }

    fn hold(&mut self, what: What, grant: Grant, lease_ns: u64) {
        self.holds.retain(|hold| hold.until_ns > self.now_ns);
        self.holds.push(Hold {
            what,
            grant,
            until_ns: (self.now_ns + lease_ns).div_ceil(1_000) * 1_000,
        });
    }

    fn poll(&mut self, index: usize) {
        let what = self.waits[index].what.clone();
        let is_free = self.is_free(&what, index);
        let (by, now_ns, lease_ns) = (self.by, self.now_ns, 20 * MS);
        let ticket = &self.waits[index].ticket;
        let poll = match &what {
            What::Several(keys) => {
                let names = self.names(*keys);
                self.engine
                    .poll_for(ticket, &names, by, now_ns, lease_ns, true)
            }
            what => {
                let (_, name) = self.wants(what);
                self.engine.poll(ticket, &name, by, now_ns, lease_ns, true)
            }
        };
        match poll.unwrap() {
            Poll::Granted { grant, .. } => {
                assert!(is_free, "{what:?} is granted while it is not to be had");
                self.waits.remove(index);
                self.hold(what, grant, lease_ns);
            }
            Poll::Waiting { .. } => {
                assert!(!is_free, "{what:?} is kept waiting while it can be had");
            }
            Poll::Moved | Poll::Lost | Poll::Deadlock(_) => panic!("nothing is reclaimed here"),
        }
    }

    fn step(&mut self, step: &Step) {
        let (by, now_ns) = (self.by, self.now_ns);
        match step {
            Step::Try { what, lease_ms } => {
                let is_free = self.is_free(what, self.waits.len());
                let lease_ns = lease_ms * MS;
                let attempt = match what {
                    What::Several(keys) => {
                        let names = self.names(*keys);
                        self.engine.try_acquire_all(&names, by, now_ns, lease_ns)
                    }
                    What::Key(key) => {
                        self.engine
                            .try_acquire(&self.name(*key), by, now_ns, lease_ns)
                    }
                    what => {
                        let (wants, name) = self.wants(what);
                        self.engine.try_get(&name, wants, by, now_ns, lease_ns)
                    }
                };
                match attempt.unwrap() {
                    Attempt::Granted(grant) => {
                        assert!(is_free, "{what:?} is granted while it is not to be had");
                        self.hold(what.clone(), grant, lease_ns);
                    }
                    Attempt::Busy => assert!(!is_free, "{what:?} is refused while it can be had"),
                }
            }
            Step::Enqueue { what } => {
                if self.waits.len() > 6 {
                    return;
                }
                let ticket = match what {
                    What::Several(keys) => {
                        let names = self.names(*keys);
                        self.engine
                            .enqueue_for(&names, Wants::Several, by, now_ns, u64::MAX)
                    }
                    what => {
                        let (wants, name) = self.wants(what);
                        self.engine
                            .enqueue_for(&[name], wants, by, now_ns, u64::MAX)
                    }
                };
                self.waits.push(Wait {
                    what: what.clone(),
                    ticket: ticket.unwrap(),
                });
            }
            Step::Poll { wait } => {
                if let Some(index) = wait.checked_rem(self.waits.len()) {
                    self.poll(index);
                }
            }
            Step::Cancel { wait } => {
                if let Some(index) = wait.checked_rem(self.waits.len()) {
                    let wait = self.waits.remove(index);
                    self.engine.cancel(wait.ticket, now_ns, |_| {});
                }
            }
            Step::Release { hold } => {
                if let Some(index) = hold.checked_rem(self.holds.len()) {
                    let hold = self.holds.remove(index);
                    let released = self.engine.release(&hold.grant, || now_ns);
                    if hold.until_ns > now_ns {
                        assert!(matches!(released, Released::Done { .. }), "only the holder");
                    }
                    if let What::Several(keys) = hold.what {
                        let names = self.names(keys);
                        self.engine
                            .release_followers(&hold.grant, &names, now_ns, |_| {});
                    }
                }
            }
            Step::Pass { us } => {
                self.now_ns += us * 1_000;
                // All look, so that nobody is passed over.
                let mut index = 0;
                while index < self.waits.len() {
                    let before = self.waits.len();
                    self.poll(index);
                    index += usize::from(self.waits.len() == before);
                }
            }
        }
        for hold in &self.holds {
            let is_held = self.engine.is_held(&hold.grant, self.now_ns);
            assert_eq!(is_held, hold.until_ns > self.now_ns, "{:?}", hold.what);
        }
    }
}

proptest! {
    #![proptest_config(model_config())]

    // property 1, property 2, property 10
    #[test]
    fn locks_of_every_granularity_do_what_a_list_of_holds_does(
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
    }
}
