//! A walk through everything that a region says, for `sprag region check`: what contradicts itself.
//!
//! It changes nothing and stops nobody. In a region that is in use, a finding can be a step that
//! somebody was in the middle of: such findings say so, and are gone when looked for again.

use crate::engine::Engine;
use crate::key;
use crate::limiter::overflow_at;
use crate::lock::coarse::{COARSE, Coarse};
use crate::lock::engaged::{Engaged, Role, is_engaged};
use crate::object::{Kind, Objects};
use crate::once;
use crate::permit::Permit;
use crate::pool::{POOLED, Pool, is_pooled};
use crate::region::{LIMITS, header};
use crate::session::Sessions;
use crate::table::{CLAIMED, EMPTY, Flavour, LIVE, PHASE_MASK, RETIRED, Table, count_of, phase};
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;
use std::fmt;

/// What a check counted and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// Cells of the objects table that hold an entry.
    pub live: u64,
    /// Cells being inserted.
    pub claimed: u64,
    /// Cells being reclaimed.
    pub retired: u64,
    /// Cells that were used and are free.
    pub empty: u64,
    /// The furthest that any entry lies from its home, in blocks.
    pub displacement_max: u32,
    /// The furthest that any entry ever lay from its home, in blocks.
    pub displacement_max_ever: u64,
    /// Cells of the limiter keys table that are not free.
    pub limiter_keys: u64,
    /// Cells of the joint keys table that are not free.
    pub joint_keys: u64,
    /// Waits: claimed or waiting.
    pub waits: u32,
    /// Shared holds and holds of semaphores.
    pub permits: u32,
    /// Calls of several limits at once that are under way, or whose process died in them.
    pub charges: u32,
    /// What contradicts itself.
    pub findings: Vec<Finding>,
}

/// Something that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A cell's phase is none that exists.
    Phase {
        /// The cell.
        cell: u32,
        /// Its phase.
        phase: u8,
    },
    /// A cell's kind is none that exists.
    Kind {
        /// The cell.
        cell: u32,
        /// Its kind.
        kind: u8,
    },
    /// An entry's name is empty, too long, or in chunks that are not its own.
    Name {
        /// The cell.
        cell: u32,
        /// What can be read of it.
        name: Vec<u8>,
    },
    /// The result of a once is too long, or in chunks that are not its own.
    Result {
        /// The cell.
        cell: u32,
    },
    /// An entry lies where a search for its name does not look.
    Lost {
        /// The cell.
        cell: u32,
        /// Its name.
        name: Vec<u8>,
    },
    /// A name has two entries of one kind.
    Twice {
        /// The name.
        name: Vec<u8>,
        /// The cells.
        cells: [u32; 2],
    },
    /// Fewer or more cells are in use than a counter says. In passing while the region is in use.
    Count {
        /// What is counted.
        what: &'static str,
        /// Whose; `None` for all.
        session: Option<u16>,
        /// What the counter says.
        counted: u64,
        /// What there is.
        found: u64,
    },
    /// Those who share a lock or hold permits of a semaphore have together more or less than its word
    /// says. In passing while the region is in use.
    Members {
        /// The cell.
        cell: u32,
        /// What the word says.
        counted: u64,
        /// What they have.
        found: u64,
    },
    /// The word of a partition's lock, or of the table's, has a form that such a lock never has.
    Coarse {
        /// Which: a partition, or the number of partitions for the table.
        index: u32,
    },
    /// What is held of a key is of a concurrency limiter that does not exist.
    Definition {
        /// The cell.
        cell: u32,
    },
    /// What the limits of a joint limiter have used of a key are of different times.
    Joint {
        /// The cell, of the joint keys table.
        cell: u32,
    },
    /// A lock is held with another that cannot lead it: one that does not exist, or itself.
    Leader {
        /// The cell; of a partition with bit 30 set.
        cell: u32,
        /// The cell that it names.
        leader: u32,
    },
    /// An override's limit is none that its limiter's overrides have.
    Override {
        /// The cell.
        cell: u32,
        /// The limit's slot.
        slot: u32,
    },
    /// A limiter has two entries for one key.
    KeyTwice {
        /// The key.
        key: Vec<u8>,
        /// The cells of the limiter keys table.
        cells: [u32; 2],
    },
    /// A limiter's key, or the bucket of its keys without room, is engaged in a call that knows nothing of it. In
    /// passing while the region is in use.
    Charge {
        /// Whether it is the bucket.
        is_bucket: bool,
        /// The cell, or the slot of the limit.
        index: u32,
    },
    /// A wait lies past the last one that is looked at, or names a cell that does not exist.
    Wait {
        /// Its slot.
        index: u32,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Phase { cell, phase } => write!(f, "cell {cell} is in phase {phase}"),
            Self::Kind { cell, kind } => write!(f, "cell {cell} is of kind {kind}"),
            Self::Name { cell, name } => {
                write!(f, "cell {cell} has no whole name: {}", name.escape_ascii())
            }
            Self::Result { cell } => write!(f, "cell {cell} has no whole result"),
            Self::Lost { cell, name } => {
                write!(f, "cell {cell} is not found as {}", name.escape_ascii())
            }
            Self::Twice {
                name,
                cells: [a, b],
            } => write!(f, "cells {a} and {b} both are {}", name.escape_ascii()),
            Self::Count {
                what,
                session: None,
                counted,
                found,
            } => write!(f, "{what}: counted {counted}, found {found}"),
            Self::Count {
                what,
                session: Some(session),
                counted,
                found,
            } => write!(
                f,
                "{what} of session {session}: counted {counted}, found {found}"
            ),
            Self::Members {
                cell,
                counted,
                found,
            } => write!(
                f,
                "cell {cell}: its holders count as {counted}, and are {found}"
            ),
            Self::Definition { cell } => {
                write!(f, "cell {cell} is of a limiter that does not exist")
            }
            Self::Coarse { index } => write!(f, "the lock of partition {index} is in no form"),
            Self::Joint { cell } => {
                write!(f, "joint key {cell} has values that do not belong together")
            }
            Self::Leader { cell, leader } => {
                write!(f, "cell {cell} follows cell {leader}, which cannot lead")
            }
            Self::Override { cell, slot } => {
                write!(
                    f,
                    "cell {cell} is an override by limit {slot}, which is not its limiter's"
                )
            }
            Self::KeyTwice { key, cells: [a, b] } => write!(
                f,
                "limiter key cells {a} and {b} both are {}",
                key.escape_ascii()
            ),
            Self::Charge { is_bucket, index } => write!(
                f,
                "{} {index} is engaged in a call that knows nothing of it",
                if *is_bucket {
                    "the bucket of limit"
                } else {
                    "limiter key"
                }
            ),
            Self::Wait { index } => write!(f, "wait {index} is out of place"),
        }
    }
}

const POOLED_LIVE: u128 = LIVE | POOLED;

impl Engine {
    /// Walks through the region and says what contradicts itself. Costs a pass over all of it.
    pub fn check_region(&self) -> Check {
        let mut check = Check {
            displacement_max_ever: self.objects.displacement_max(&self.region),
            ..Check::default()
        };
        let mut names: HashMap<(u64, Vec<u8>), u32> = HashMap::new();
        let mut pools: HashMap<u32, u64> = HashMap::new();
        self.objects.for_each(&self.region, |cell, at, state| {
            match state & (PHASE_MASK | POOLED) {
                EMPTY => check.empty += 1,
                CLAIMED => check.claimed += 1,
                RETIRED => check.retired += 1,
                LIVE | POOLED_LIVE => {
                    check.live += 1;
                    self.check_object(cell, at, &mut names, &mut check);
                    self.check_follower(cell, state, &mut check);
                    if is_pooled(state) {
                        pools.insert(cell, u64::from(Pool::decode(state).used));
                    }
                    if Objects::is(&self.region, at, Kind::Once)
                        && !self.is_result_whole(cell, once::State::decode(state))
                    {
                        check.findings.push(Finding::Result { cell });
                    }
                }
                phase => check.findings.push(Finding::Phase {
                    cell,
                    phase: phase as u8,
                }),
            }
        });
        self.check_counts(&self.objects, "objects", &mut check);
        check.limiter_keys = self.check_counts(&self.limiter_keys, "limiter keys", &mut check);
        check.joint_keys = self.check_counts(&self.joint_keys, "joint keys", &mut check);
        self.joint_keys.for_each(&self.region, |cell, at, state| {
            if phase(state) == LIVE && !self.is_joint_key_sound(at, state) {
                check.findings.push(Finding::Joint { cell });
            }
        });
        for index in 0..=self.region.partitions() {
            let state = self.region.wide(self.region.coarse_at(index)).load();
            let has_form = match phase(state) {
                EMPTY => true,
                LIVE => !is_pooled(state),
                _ => false,
            };
            if !has_form {
                check.findings.push(Finding::Coarse { index });
            }
            self.check_follower(COARSE | index, state, &mut check);
        }
        self.check_charges(&mut check);
        self.check_waits(&mut check);
        self.check_permits(pools, &mut check);
        self.check_limiters(&mut check);
        check
    }

    /// Looks whether what a lock follows, if it does, can lead it: the table's lock leads those of partitions, and
    /// a key's lock those of other keys.
    fn check_follower(&self, cell: u32, state: u128, check: &mut Check) {
        if !is_engaged(state) {
            return;
        }
        let Role::Follower { leader, .. } = Engaged::decode(state).role else {
            return;
        };
        let can_lead = match self.coarse_of(cell) {
            None => leader < self.objects.cells() && leader != cell,
            Some(Coarse::Partition(_)) => leader == self.coarse_cell(Coarse::Table),
            Some(Coarse::Table) => false,
        };
        if !can_lead {
            check.findings.push(Finding::Leader { cell, leader });
        }
    }

    /// Looks whether each word that is engaged is one that its charge names.
    fn check_charges(&self, check: &mut Check) {
        check.charges = self.charges_in_use();
        let mut look = |is_bucket, index, at| {
            if !self.is_charged(at) {
                check.findings.push(Finding::Charge { is_bucket, index });
            }
        };
        self.limiter_keys
            .for_each(&self.region, |cell, at, _| look(false, cell, at));
        for limit in 0..LIMITS {
            look(true, limit, overflow_at(&self.region, limit));
        }
    }

    /// Compares a table's counters with a count, which it returns.
    fn check_counts<F: Flavour>(
        &self,
        table: &Table<F>,
        what: &'static str,
        check: &mut Check,
    ) -> u64 {
        let sessions = self.region.caps().sessions;
        let mut by_session = vec![0; sessions as usize];
        table.for_each(&self.region, |cell, _, state| {
            if phase(state) != EMPTY {
                let creator = u32::from(table.creator(&self.region, cell));
                by_session[(creator % sessions) as usize] += 1;
            }
        });
        let used = by_session.iter().sum();
        let mut compare = |session, counted, found| {
            if counted != found {
                check.findings.push(Finding::Count {
                    what,
                    session,
                    counted,
                    found,
                });
            }
        };
        compare(None, table.live_count(&self.region), used);
        for (session, found) in (0..).zip(by_session) {
            let counter = Sessions::counter_at(&self.region, session, F::COUNTER);
            let counted = count_of(self.region.word(counter).load(Relaxed));
            compare(Some(session), counted, found);
        }
        used
    }

    fn check_object(
        &self,
        cell: u32,
        at: usize,
        names: &mut HashMap<(u64, Vec<u8>), u32>,
        check: &mut Check,
    ) {
        let kind = Objects::kind(&self.region, at);
        let identity = Objects::kind_and_part(&self.region, at);
        let name = Objects::name(&self.region, at);
        if ![
            Kind::Lock,
            Kind::Fence,
            Kind::Limiter,
            Kind::Counter,
            Kind::Once,
            Kind::Stripe,
            Kind::Semaphore,
            Kind::Override,
            Kind::Concurrency,
            Kind::Slots,
            Kind::JointLimiter,
        ]
        .map(|kind| kind as u8)
        .contains(&kind)
        {
            check.findings.push(Finding::Kind { cell, kind });
            return;
        }
        if !Objects::has_whole_name(&self.region, at, &name) {
            check.findings.push(Finding::Name { cell, name });
            return;
        }
        if !self.has_definition(cell) {
            check.findings.push(Finding::Definition { cell });
        }
        let hash = key::mix(self.region.hasher.hash(&name), identity);
        match self.objects.distance(&self.region, hash, cell) {
            Some(distance) => check.displacement_max = check.displacement_max.max(distance),
            None => check.findings.push(Finding::Lost {
                cell,
                name: name.clone(),
            }),
        }
        if let Some(other) = names.insert((identity, name.clone()), cell) {
            check.findings.push(Finding::Twice {
                name,
                cells: [other, cell],
            });
        }
    }

    /// Compares what each pool's word says its members have with what they say.
    fn check_permits(&self, mut pools: HashMap<u32, u64>, check: &mut Check) {
        let mut has = HashMap::new();
        for index in 0..self.region.caps().permits {
            let permit = Permit::decode(self.permit(index).load());
            if !permit.is_free() {
                check.permits += 1;
                pools.entry(permit.cell).or_default();
            }
            if permit.is_member() {
                *has.entry(permit.cell).or_default() += u64::from(self.permit_record(index).amount);
            }
        }
        let mut pools: Vec<(u32, u64)> = pools.into_iter().collect();
        pools.sort_unstable();
        for (cell, counted) in pools {
            let found = has.get(&cell).copied().unwrap_or_default();
            if counted != found {
                check.findings.push(Finding::Members {
                    cell,
                    counted,
                    found,
                });
            }
        }
    }

    fn check_waits(&self, check: &mut Check) {
        let high = self.region.word(header::WAITERS_HIGH).load(Relaxed);
        for index in 0..self.region.caps().waiters {
            let Some(cell) = self.waits_for(index) else {
                continue;
            };
            check.waits += 1;
            if u64::from(index) >= high
                || (cell >= self.objects.cells() && self.coarse_of(cell).is_none())
            {
                check.findings.push(Finding::Wait { index });
            }
        }
    }
}
