//! A node's disk: what goes wrong with it, as the seed's faults say.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use sprag_log::{
    ClusterId, Damage, Disk, DiskFaults, Fault, Identity, Log, NoFaults, Operation, Place,
    SimulatedDisk,
};
use sprag_paxos::Voter;

use crate::chance::Chance;
use crate::fault::{Class, Faults};
use crate::plan::Plan;

/// Whose disks they all are.
pub(crate) const CLUSTER: ClusterId = ClusterId(1);

/// The smallest sector.
const SECTOR_BYTES: u64 = 512;

/// The most bytes that go astray at once, and how far into its file: no further than the smallest segment reaches.
const ASTRAY_BYTES_MAX: u64 = 1 << 14;

/// A disk and its power.
pub(crate) struct NodeDisk {
    pub(crate) disk: SimulatedDisk,
    /// The power went in the middle of something.
    is_cut: Rc<Cell<bool>>,
    written: Rc<RefCell<Written>>,
    damage: Rc<Cell<Damaged>>,
    sector_bytes: usize,
}

/// What has damaged a disk. What bears either may not bear both: the one trace of a record that a write left as it was, when
/// it went astray, may be all there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Damaged {
    #[default]
    Not,
    Rotten,
    /// A write went astray, and so many came since.
    Astray(u64),
}

/// After a write went astray, so many don't: those that leave the other traces of the same.
const SPARED: u64 = 3;

/// What was written last: of which file, from where on, and how much.
type Written = VecDeque<(String, u64, u64)>;

/// So many of them.
const WRITTEN_MAX: usize = 8;

/// The front of a segment, where the headers of its records are, is no smaller.
const UNIT_BYTES: u64 = 4096;

/// What numbers are drawn for: whether the bodies of batches rot, and how.
const BODIES: u64 = 100;

impl NodeDisk {
    /// An empty disk on which nothing goes wrong yet.
    pub(crate) fn new(sector_bytes: usize) -> Self {
        Self {
            disk: SimulatedDisk::new(sector_bytes, NoFaults),
            is_cut: Rc::new(Cell::new(false)),
            written: Rc::default(),
            damage: Rc::default(),
            sector_bytes,
        }
    }

    /// A disk with a voter's log, which has nothing in it.
    pub(crate) fn made(plan: &Plan, voter: Voter) -> Self {
        let made = Self::new(plan.sector_bytes);
        Log::create(&made.disk, identity_of(voter), &plan.log)
            .unwrap_or_else(|error| unreachable!("on a disk where nothing goes wrong: {error}"));
        made
    }

    /// Another disk in place of this one, empty.
    pub(crate) fn replace(&mut self, faults: &Faults, node: usize) {
        *self = Self::new(self.sector_bytes);
        self.let_fail(faults, node, true);
    }

    /// From now on, things go wrong.
    pub(crate) fn let_fail(&self, faults: &Faults, node: usize, is_loser: bool) {
        self.disk.set_faults(Hook {
            faults: faults.clone(),
            node,
            is_loser,
            is_cut: Rc::clone(&self.is_cut),
            written: Rc::clone(&self.written),
            damage: Rc::clone(&self.damage),
        });
    }

    /// Whether the power went in the middle of something.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// The node dies: with the power, or by itself, and then what it wrote stays in the system's cache.
    pub(crate) fn die(&mut self, with_power: bool) {
        self.disk = if with_power || self.is_cut.get() {
            self.disk.cut_power()
        } else {
            self.disk.kill()
        };
        self.is_cut.set(false);
    }

    /// Some sectors go bad: of each of the batches written last, one of its body; or one of what was written last, and any
    /// others.
    pub(crate) fn rot(&self, plan: &Plan, chance: Chance) {
        if matches!(self.damage.get(), Damaged::Astray(_)) {
            return;
        }
        self.damage.set(Damaged::Rotten);
        let written = self.written.borrow();
        if chance.of(BODIES).below(2) == 0 {
            // Not of the front, too, where the other traces of the same are.
            let body = (plan.log.segment_bytes / 8).max(UNIT_BYTES);
            let bodies = written
                .iter()
                .zip(0..)
                .filter(|((file, offset, _), _)| file.starts_with("segment-") && *offset >= body);
            for ((file, offset, bytes), number) in bodies {
                let chance = chance.of(BODIES).of(number);
                let byte = offset + chance.of(2).below(*bytes);
                self.spoil(file, byte / self.sector_bytes as u64, chance);
            }
            return;
        }
        let names = self.disk.list().unwrap_or_default();
        for number in 0..chance.of(0).log_uniform(1, 8) {
            let chance = chance.of(1 + number);
            let anywhere = names.get(chance.of(1).below(names.len() as u64) as usize);
            // The later the likelier.
            let among = chance.of(6).below(written.len() as u64) + 1;
            let last = written.get(chance.of(1).below(among) as usize);
            // Only one of them: the others would be of the other traces of the same.
            let (file, sector) = match (number, last, anywhere) {
                (0, Some((file, offset, bytes)), _) => {
                    let byte = offset + chance.of(2).below(*bytes);
                    (file, byte / self.sector_bytes as u64)
                }
                (_, _, Some(file)) => (file, chance.of(2).below(self.disk.sectors(file))),
                _ => return,
            };
            self.spoil(file, sector, chance);
        }
    }

    fn spoil(&self, file: &str, sector: u64, chance: Chance) {
        let damage = match chance.of(3).below(3) {
            0 => Damage::Unreadable,
            1 => Damage::Zeroed,
            _ => Damage::Flipped {
                bit: chance.of(4).bits(),
            },
        };
        self.disk.damage(file, sector, damage);
    }
}

/// What a voter's disk is made for.
pub(crate) fn identity_of(voter: Voter) -> Identity {
    Identity {
        cluster: CLUSTER,
        voter,
    }
}

struct Hook {
    faults: Faults,
    node: usize,
    is_loser: bool,
    is_cut: Rc<Cell<bool>>,
    written: Rc<RefCell<Written>>,
    damage: Rc<Cell<Damaged>>,
}

impl Hook {
    fn strike(&self, class: Class) -> Option<Chance> {
        self.faults.strike(class, self.node)
    }

    fn note_write(&self, file: &str, offset: u64, bytes: u64) {
        let mut written = self.written.borrow_mut();
        written.truncate(WRITTEN_MAX - 1);
        written.push_front((file.to_owned(), offset, bytes));
    }
}

impl DiskFaults for Hook {
    fn refuses(&mut self, operation: Operation, _file: &str, bytes: u64) -> Option<Fault> {
        if self.is_cut.get() || self.strike(Class::PowerCut).is_some() {
            self.is_cut.set(true);
            return Some(Fault::EIO);
        }
        match operation {
            Operation::Sync | Operation::SyncDirectory => {
                self.strike(Class::FailedSync).map(|_| Fault::EIO)
            }
            Operation::Write => {
                let chance = self.strike(Class::FailedWrite)?;
                Some(match chance.of(1).below(3) {
                    0 => Fault::EIO,
                    1 => Fault::ReadOnly,
                    // Whole sectors: a disk takes no less.
                    _ => Fault::Short {
                        done: chance.of(2).below(bytes) / SECTOR_BYTES * SECTOR_BYTES,
                        asked: bytes,
                    },
                })
            }
            Operation::Create => self.strike(Class::DiskFull).map(|_| Fault::Full),
            _ => None,
        }
    }

    // Not a whole file at once, as one is made.
    fn misdirects(&mut self, file: &str, offset: u64, bytes: u64) -> Option<Place> {
        self.note_write(file, offset, bytes);
        if !self.is_loser || bytes > ASTRAY_BYTES_MAX {
            return None;
        }
        match self.damage.get() {
            Damaged::Rotten => return None,
            Damaged::Astray(since) if since < SPARED => {
                self.damage.set(Damaged::Astray(since + 1));
                return None;
            }
            Damaged::Astray(_) | Damaged::Not => {}
        }
        let chance = self.strike(Class::Misdirected)?;
        self.damage.set(Damaged::Astray(0));
        Some(Place {
            file: file.to_owned(),
            offset: chance.below(ASTRAY_BYTES_MAX - bytes + 1),
        })
    }

    fn survives(&mut self, _file: &str, _sector: u64) -> bool {
        self.strike(Class::UnsyncedSurvives).is_some()
    }

    fn change_survives(&mut self, _operation: Operation, _file: &str) -> bool {
        self.strike(Class::NamesSurvive).is_some()
    }
}
