//! Owners that hold and wait, one step after another, against a graph of who waits for whom: a wait is told of
//! a deadlock if and only if it closes a circle there.

mod support;

use proptest::prelude::*;
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Coarse, Grant, Upgrade};
use sprag_core::waiter::{Poll, Ticket};
use sprag_core::{Engine, Name, SessionId};
use support::{SECOND, SMALL, engine, model_config, session};

const OWNERS: usize = 5;
const KEYS: u8 = 4;
const LEASE_NS: u64 = 60 * SECOND;

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Key(u8),
    Shared(u8),
    /// Keys by the bits of the number.
    Several(u8),
    PartitionOf(u8),
    Table,
    /// Alone what the owner shares.
    Upgrade(u8),
}

#[derive(Clone, Debug)]
enum Step {
    Acquire { who: usize, what: What },
    Upgrade { who: usize },
    Release { who: usize, hold: usize },
    Poll { who: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        6 => (0..KEYS).prop_map(What::Key),
        4 => (0..KEYS).prop_map(What::Shared),
        2 => (1..1_u8 << KEYS).prop_map(What::Several),
        1 => (0..KEYS).prop_map(What::PartitionOf),
        1 => Just(What::Table),
    ];
    prop_oneof![
        10 => (0..OWNERS, what).prop_map(|(who, what)| Step::Acquire { who, what }),
        2 => (0..OWNERS).prop_map(|who| Step::Upgrade { who }),
        3 => (0..OWNERS, 0..8_usize).prop_map(|(who, hold)| Step::Release { who, hold }),
        6 => (0..OWNERS).prop_map(|who| Step::Poll { who }),
    ]
}

#[derive(Default)]
struct Owner {
    holds: Vec<(What, Grant)>,
    wait: Option<(What, Ticket, u64)>,
}

struct World {
    engine: Engine,
    by: SessionId,
    owners: Vec<Owner>,
    age: u64,
}

impl World {
    fn new() -> Self {
        let engine = engine(SMALL);
        let by = session(&engine);
        Self {
            engine,
            by,
            owners: (0..OWNERS).map(|_| Owner::default()).collect(),
            age: 0,
        }
    }

    fn name(&self, key: u8) -> Name {
        self.engine.lock_name(&[b'k', key]).unwrap()
    }

    /// Which keys something is about, or keeps from others; of a coarse one all that it covers, and one more,
    /// for those that are not ours.
    fn keys(&self, what: &What) -> u8 {
        let partition = |key: u8| self.engine.partition_of(&[b'k', key]);
        match what {
            What::Key(key) | What::Shared(key) | What::Upgrade(key) => 1 << key,
            What::Several(keys) => *keys,
            What::Table => 0xff,
            What::PartitionOf(key) => (0..KEYS)
                .filter(|other| partition(*other) == partition(*key))
                .map(|other| 1 << other)
                .sum(),
        }
    }

    fn conflict(&self, one: &What, other: &What) -> bool {
        let are_shared = matches!((one, other), (What::Shared(_), What::Shared(_)));
        !are_shared && self.keys(one) & self.keys(other) != 0
    }

    /// The owners that one waits for.
    fn waits_for(&self, who: usize) -> Vec<usize> {
        let Some((what, _, age)) = &self.owners[who].wait else {
            return Vec::new();
        };
        let blocks = |other: usize| {
            let owner = &self.owners[other];
            // Its own share does not keep an upgrade from itself, but another one that it has does.
            let shares = |key: u8| {
                owner
                    .holds
                    .iter()
                    .filter(move |(held, _)| *held == What::Shared(key))
            };
            let is_own = |held: &What| {
                other == who
                    && matches!(what, What::Upgrade(key) if *held == What::Shared(*key) && shares(*key).count() == 1)
            };
            let mut holds = owner.holds.iter();
            let by_hold = holds.any(|(held, _)| self.conflict(held, what) && !is_own(held));
            let by_turn = owner.wait.as_ref().is_some_and(|(ahead, _, other_age)| {
                let is_ahead = match (ahead, what) {
                    (_, What::Upgrade(_)) => false,
                    (What::Upgrade(_), _) => true,
                    _ => other_age < age,
                };
                is_ahead && self.conflict(ahead, what)
            });
            by_hold || (by_turn && other != who)
        };
        (0..OWNERS).filter(|other| blocks(*other)).collect()
    }

    /// Whether an owner waits for itself, by others or not.
    fn is_deadlocked(&self, who: usize) -> bool {
        let mut seen = [false; OWNERS];
        let mut open = self.waits_for(who);
        while let Some(next) = open.pop() {
            if next == who {
                return true;
            }
            if !std::mem::replace(&mut seen[next], true) {
                open.extend(self.waits_for(next));
            }
        }
        false
    }

    fn names(&self, what: &What) -> Vec<Name> {
        let keys = self.keys(what);
        let is_in = |key: &u8| keys & 1 << key != 0;
        (0..KEYS).filter(is_in).map(|key| self.name(key)).collect()
    }

    fn wants(&self, who: usize, what: &What) -> (Wants, Name) {
        match what {
            What::Key(key) => (Wants::Exclusive, self.name(*key)),
            What::Shared(key) => (Wants::Shared, self.name(*key)),
            What::PartitionOf(key) => {
                let partition = self.engine.partition_of(&[b'k', *key]);
                (Wants::Coarse(Coarse::Partition(partition)), self.name(0))
            }
            What::Table => (Wants::Coarse(Coarse::Table), self.name(0)),
            What::Several(_) => (Wants::Several, self.name(0)),
            What::Upgrade(key) => {
                let holds = &self.owners[who].holds;
                let hold = holds.iter().find(|(held, _)| *held == What::Shared(*key));
                (Wants::Upgrade(hold.unwrap().1), self.name(*key))
            }
        }
    }

    fn enqueue(&mut self, who: usize, what: What) {
        let mut ticket = match &what {
            What::Several(_) => {
                let names = self.names(&what);
                self.engine
                    .enqueue_for(&names, Wants::Several, self.by, 1, u64::MAX)
            }
            what => {
                let (wants, name) = self.wants(who, what);
                self.engine
                    .enqueue_for(&[name], wants, self.by, 1, u64::MAX)
            }
        }
        .unwrap();
        let holds = self.owners[who].holds.iter().map(|(_, grant)| *grant);
        self.engine.set_holds(&mut ticket, holds.collect());
        self.age += 1;
        self.owners[who].wait = Some((what, ticket, self.age));
        self.poll(who);
    }

    fn poll(&mut self, who: usize) {
        let Some((what, ticket, _)) = &self.owners[who].wait else {
            return;
        };
        let is_deadlocked = self.is_deadlocked(who);
        let poll = match what {
            What::Several(_) => {
                let names = self.names(what);
                self.engine
                    .poll_for(ticket, &names, self.by, 1, LEASE_NS, true)
            }
            what => {
                let (_, name) = self.wants(who, what);
                self.engine.poll(ticket, &name, self.by, 1, LEASE_NS, true)
            }
        };
        match poll.unwrap() {
            Poll::Granted { grant, .. } => {
                let (what, ..) = self.owners[who].wait.take().unwrap();
                let holds = &mut self.owners[who].holds;
                if let What::Upgrade(key) = what {
                    holds.retain(|(held, _)| *held != What::Shared(key));
                    holds.push((What::Key(key), grant));
                } else {
                    holds.push((what, grant));
                }
            }
            Poll::Waiting { .. } => {
                assert!(!is_deadlocked, "{who} waits for itself, and is not told");
            }
            Poll::Deadlock(deadlock) => {
                assert!(is_deadlocked, "{who} is told of what is none: {deadlock}");
                self.owners[who].wait = None;
            }
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Acquire { who, what } => {
                let owner = &self.owners[*who];
                // An owner that has something of it already would re-enter, or wait for itself.
                if owner.wait.is_some() || owner.holds.len() > 3 {
                    return;
                }
                let attempt = match what {
                    What::Several(_) => {
                        let names = self.names(what);
                        self.engine.try_acquire_all(&names, self.by, 1, LEASE_NS)
                    }
                    what => {
                        let (wants, name) = self.wants(*who, what);
                        self.engine.try_get(&name, wants, self.by, 1, LEASE_NS)
                    }
                };
                match attempt.unwrap() {
                    Attempt::Granted(grant) => {
                        self.owners[*who].holds.push((what.clone(), grant));
                    }
                    Attempt::Busy => self.enqueue(*who, what.clone()),
                }
            }
            Step::Upgrade { who } => {
                let owner = &self.owners[*who];
                if owner.wait.is_some() {
                    return;
                }
                let shared = owner.holds.iter().find_map(|(held, grant)| match held {
                    What::Shared(key) => Some((*key, *grant)),
                    _ => None,
                });
                let Some((key, grant)) = shared else { return };
                match self.engine.try_upgrade(&grant, 1, LEASE_NS).unwrap() {
                    Upgrade::Granted(grant) => {
                        let holds = &mut self.owners[*who].holds;
                        let at = holds
                            .iter()
                            .position(|(held, _)| *held == What::Shared(key));
                        holds[at.unwrap()] = (What::Key(key), grant);
                    }
                    Upgrade::Shared => self.enqueue(*who, What::Upgrade(key)),
                    Upgrade::Conflict => {}
                    Upgrade::NotHeld => panic!("it is held"),
                }
            }
            Step::Release { who, hold } => {
                let owner = &mut self.owners[*who];
                // Who waits does nothing else.
                if owner.wait.is_some() {
                    return;
                }
                if let Some(index) = hold.checked_rem(owner.holds.len()) {
                    let (what, grant) = owner.holds.remove(index);
                    self.engine.release(&grant, || 1);
                    if let What::Several(_) = what {
                        let names = self.names(&what);
                        self.engine.release_followers(&grant, &names, 1, |_| {});
                    }
                }
            }
            Step::Poll { who } => self.poll(*who),
        }
    }
}

proptest! {
    #![proptest_config(model_config())]

    // property 14
    #[test]
    fn a_deadlock_is_told_to_whoever_closes_the_circle_and_to_nobody_else(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
    }
}
