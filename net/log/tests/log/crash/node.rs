//! The node that goes down, and what it does with its log until then.

use std::cell::RefCell;
use std::rc::Rc;

use fastrand::Rng;
use sprag_log::{Place, SyncDone, UpkeepDone};

use super::super::lives::{Mortal, Power, after_a_life};
use super::super::*;
use super::model::{Counts, Model};

/// What goes wrong besides the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// Syncs fail, and what they left in the cache is found by the next start.
    FailedSyncs,
    /// A sector goes bad each time the node is down.
    Damage,
    /// A write goes astray in each life.
    Astray,
}

/// What goes wrong with the disk, and when.
struct World {
    power: Power,
    trouble: Trouble,
    /// Writes until one goes astray.
    until_astray: u64,
}

#[derive(Clone)]
struct Hook(Rc<RefCell<World>>);

impl DiskFaults for Hook {
    fn refuses(&mut self, operation: Operation, _: &str, _: u64) -> Option<Fault> {
        let World { power, trouble, .. } = &mut *self.0.borrow_mut();
        let is_off = power.goes();
        let fails = *trouble == Trouble::FailedSyncs && power.fails_sync(operation);
        (is_off || fails).then_some(Fault::EIO)
    }

    fn misdirects(&mut self, file: &str, _: u64, bytes: u64) -> Option<Place> {
        let mut world = self.0.borrow_mut();
        // Not a whole segment at once: that is more than one fault.
        if world.trouble != Trouble::Astray || bytes > 8 * UNIT || file == "spare" {
            return None;
        }
        world.until_astray = world.until_astray.checked_sub(1)?;
        // Inside of the smallest segment: what lands nowhere is lost, which nothing tells from a power cut.
        let units = world.power.rng.u64(..4);
        let file = file.to_owned();
        (world.until_astray == 0).then_some(Place {
            file,
            offset: units * UNIT,
        })
    }

    fn survives(&mut self, _: &str, _: u64) -> bool {
        self.0.borrow_mut().power.sector_survives()
    }

    fn change_survives(&mut self, _: Operation, _: &str) -> bool {
        self.0.borrow_mut().power.name_survives()
    }
}

pub(super) struct Node {
    /// What came of jobs that the log wasn't told of yet.
    syncing: Option<SyncDone<SimulatedFile>>,
    upkeeping: Option<UpkeepDone<SimulatedDisk>>,
    disk: SimulatedDisk,
    world: Rc<RefCell<World>>,
    options: LogOptions,
    rng: Rng,
    model: Model,
    round: u64,
    /// Whether the log was opened since the last damage, which makes good what can be.
    is_repaired: bool,
}

impl Mortal for Node {
    type Trouble = Trouble;
    type Counts = Counts;
    const CUT_MAX: u64 = 150;

    fn new(seed: u64, trouble: Trouble) -> Node {
        let mut rng = Rng::with_seed(seed);
        let world = World {
            power: Power::new(rng.fork()),
            trouble,
            until_astray: 0,
        };
        let world = Rc::new(RefCell::new(world));
        let sector = if rng.bool() { 512 } else { 4096 };
        Node {
            disk: SimulatedDisk::new(sector, Hook(Rc::clone(&world))),
            world,
            options: LogOptions {
                segment_bytes: UNIT * rng.u64(4..=12),
                segments_max: rng.usize(2..=5),
                slots_max: 100,
            },
            rng,
            model: Model::default(),
            syncing: None,
            upkeeping: None,
            round: 1,
            is_repaired: false,
        }
    }

    fn live(&mut self, until_cut: u64) -> Result<(), String> {
        self.model.counts.lives += 1;
        {
            let mut world = self.world.borrow_mut();
            world.power.come_back(until_cut);
            let survival = [0.0, 0.1, 0.5, 0.9, 1.0][self.rng.usize(..5)];
            world.power.set_survival(survival, survival);
            world.until_astray = self.rng.u64(1..60);
        }
        match self.open() {
            // Nobody is there to look at what is read once the power is gone, or isn't.
            Ok(_) | Err(OpenError::VoteLost) if self.is_off() => {}
            Ok((mut log, found)) => {
                self.is_repaired = true;
                self.check(&found)?;
                for _ in 0..60 {
                    if self.act(&mut log)? {
                        break;
                    }
                }
            }
            Err(OpenError::Disk(_)) => {}
            // A batch of several units that lands on it takes both copies.
            Err(OpenError::VoteLost) if self.trouble() == Trouble::Astray => return Ok(()),
            Err(error) => return Err(format!("can't be opened: {error}")),
        }
        self.disk = after_a_life(&self.disk, self.is_off(), &mut self.rng);
        self.syncing = None;
        self.upkeeping = None;
        self.model.forget_pending();
        Ok(())
    }

    /// One sector goes bad.
    fn lie(&mut self) {
        if self.trouble() != Trouble::Damage || !std::mem::take(&mut self.is_repaired) {
            return;
        }
        self.world.borrow_mut().power.come_back(u64::MAX);
        let Ok(names) = self.disk.list() else { return };
        if names.is_empty() {
            return;
        }
        let name = &names[self.rng.usize(..names.len())];
        let sector = self.rng.u64(..self.disk.sectors(name).max(1));
        let bit = self.rng.u64(..);
        let damage = [Damage::Unreadable, Damage::Zeroed, Damage::Flipped { bit }];
        self.disk.damage(name, sector, damage[self.rng.usize(..3)]);
    }

    fn is_off(&self) -> bool {
        self.world.borrow().power.is_off()
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    fn counts(self) -> Counts {
        self.model.counts
    }
}

impl Node {
    fn trouble(&self) -> Trouble {
        self.world.borrow().trouble
    }

    fn open(&self) -> Result<(Log<SimulatedDisk>, Found), OpenError> {
        let open = || Log::open(&self.disk, CLUSTER, ME.node, &self.options);
        let is_new = self.model.asked.is_empty() && self.model.promised.is_none();
        match open() {
            Err(OpenError::Missing) if is_new => {
                Log::create(&self.disk, IDENTITY, &self.options)?;
                open()
            }
            opened => opened,
        }
    }

    fn check(&mut self, found: &Found) -> Result<(), String> {
        let is_honest = matches!(self.trouble(), Trouble::None | Trouble::FailedSyncs);
        self.model.check(found, is_honest)?;
        self.round = self.round.max(found.state.promised.round + 1);
        Ok(())
    }

    /// Does something; whether the log has stopped.
    fn act(&mut self, log: &mut Log<SimulatedDisk>) -> Result<bool, String> {
        // One batch a sync, as a store writes: what the next one overwrites is proven by then.
        let must_sync = self.trouble() == Trouble::Astray && log.appended() > log.synced();
        let outcome = match self.rng.u8(..24) {
            0..9 | 15..17 if must_sync => Ok(()),
            0..9 => self.append(log),
            9..13 => self.sync(log),
            13..15 => self.promise(log),
            15..17 => self.trim(log),
            17..19 => self.upkeep(log),
            _ => self.decide(log),
        };
        match outcome {
            Ok(()) => Ok(false),
            Err(LogError::Disk(_)) => match log.append(&[]) {
                Err(LogError::Stopped(_)) => Ok(true),
                _ => Err("goes on after the disk failed".into()),
            },
            Err(LogError::Full { .. } | LogError::TooLarge { .. } | LogError::Busy(_)) => {
                self.model.counts.full += 1;
                Ok(false)
            }
            Err(error) => Err(format!("refused: {error}")),
        }
    }

    fn append(&mut self, log: &mut Log<SimulatedDisk>) -> Result<(), LogError> {
        let count = self.rng.u64(1..=4);
        let records = (0..count).filter_map(|_| self.record(log.trimmed()));
        let records: Vec<_> = records.collect();
        let appended = log.append(&records);
        let model = &mut self.model;
        model.promises_asked.insert(ballot(self.round));
        let position = appended?;
        for record in records {
            match record {
                Record::Accepted { slot, vote } => {
                    model.pending.push((position, slot, vote.ballot));
                    model.last.insert(slot, vote.entry);
                }
                Record::Learned { slot, entry } => {
                    model.last.insert(slot, entry);
                }
                Record::Promised(_) | Record::Decided(_) | Record::Trimmed(_) => {}
            }
        }
        Ok(())
    }

    /// A record of a slot above the trimmed, that agrees with what is decided there.
    fn record(&mut self, trimmed: Slot) -> Option<Record> {
        let model = &mut self.model;
        let slot = Slot(trimmed.0 + self.rng.u64(1..=12));
        let ballot = ballot(self.round);
        let new = model.value(&mut self.rng);
        let decided = model.decided.get(&slot);
        if decided.is_none() && self.rng.u8(..8) == 0 {
            model.decided.insert(slot, new.clone());
            return Some(Record::Learned { slot, entry: new });
        }
        let new = decided.cloned().unwrap_or(new);
        let entry = model.asked.entry((slot, ballot)).or_insert(new).clone();
        let agrees = model
            .decided
            .get(&slot)
            .is_none_or(|decided| *decided == entry);
        let vote = Vote { ballot, entry };
        agrees.then_some(Record::Accepted { slot, vote })
    }

    fn sync(&mut self, log: &mut Log<SimulatedDisk>) -> Result<(), LogError> {
        let done = match self.syncing.take() {
            Some(done) => Some(done),
            None => log.begin_sync().unwrap().map(SyncJob::run),
        };
        let Some(done) = done else {
            return Ok(());
        };
        if self.rng.u8(..3) == 0 {
            self.syncing = Some(done);
            return Ok(());
        }
        self.model.synced(log.finish_sync(done)?);
        Ok(())
    }

    fn promise(&mut self, log: &mut Log<SimulatedDisk>) -> Result<(), LogError> {
        self.round += 1;
        let ballot = Ballot {
            round: self.round,
            voter: Voter {
                node: NodeId(2),
                disk: DiskId(self.round),
            },
        };
        self.model.promises_asked.insert(ballot);
        log.promise(ballot)?;
        self.model.promised = self.model.promised.max(Some(ballot));
        self.round += 1;
        Ok(())
    }

    fn trim(&mut self, log: &mut Log<SimulatedDisk>) -> Result<(), LogError> {
        let slot = Slot(log.trimmed().0 + self.rng.u64(1..=8));
        self.model.trim_asked = self.model.trim_asked.max(slot.0);
        let position = log.append(&[Record::Trimmed(slot)])?;
        self.model.trims_pending.push((position, slot.0));
        self.model.counts.trims += 1;
        Ok(())
    }

    fn upkeep(&mut self, log: &mut Log<SimulatedDisk>) -> Result<(), LogError> {
        let done = match self.upkeeping.take() {
            Some(done) => Some(done),
            None => log.begin_upkeep().unwrap().map(UpkeepJob::run),
        };
        match done {
            Some(done) if self.rng.bool() => log.finish_upkeep(done),
            done => {
                self.upkeeping = done;
                Ok(())
            }
        }
    }

    /// What was written last of the next slot is decided by whoever asks; from now on it stays.
    fn decide(&mut self, log: &mut Log<SimulatedDisk>) -> Result<(), LogError> {
        let model = &mut self.model;
        let slot = Slot(model.decided_appended.max(log.trimmed().0) + 1);
        let is_settled = log.synced() == log.appended() && model.trims_pending.is_empty();
        let Some(entry) = model.last.get(&slot).filter(|_| is_settled) else {
            return Ok(());
        };
        if model.decided.entry(slot).or_insert(entry.clone()) != entry {
            return Ok(());
        }
        model.decided_asked = model.decided_asked.max(slot.0);
        let position = log.append(&[Record::Decided(slot)])?;
        model.decided_appended = slot.0;
        model.decided_pending.push((position, slot.0));
        Ok(())
    }
}
