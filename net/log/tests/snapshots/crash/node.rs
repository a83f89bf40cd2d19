//! The node that goes down, and what it has said and asked, against which its disk is held.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::rc::Rc;

use fastrand::Rng;
use sprag_log::{Found, LogError, Position, SimulatedFile, SyncDone, SyncJob, UpkeepJob};
use sprag_paxos::{Answer, Ballot, Entry, Record, Vote};

use super::super::lives::{Mortal, Power, after_a_life};
use super::super::*;

const ME: Voter = Voter {
    node: NodeId(1),
    disk: DiskId(0xd15c),
};
const OPTIONS: LogOptions = LogOptions {
    segment_bytes: 4 * 4096,
    segments_max: 4,
    slots_max: 100_000,
};

/// What goes wrong besides the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// Syncs fail, and what they left in the cache is found by the next start.
    FailedSyncs,
    /// The disk has no room for a snapshot, now and then.
    NoRoom,
    /// While the node is down, a sector of the newest snapshot goes bad, if another is whole that makes up for it.
    Damage,
}

/// What goes wrong with the disk, and when.
struct World {
    power: Power,
    trouble: Trouble,
}

#[derive(Clone)]
struct Hook(Rc<RefCell<World>>);

impl DiskFaults for Hook {
    fn refuses(&mut self, operation: Operation, file: &str, _: u64) -> Option<Fault> {
        let World { power, trouble } = &mut *self.0.borrow_mut();
        let is_off = power.goes();
        let fails = *trouble == Trouble::FailedSyncs && power.fails_sync(operation);
        let takes_room = matches!(operation, Operation::Create | Operation::Write)
            && (file == "snapshot.new" || file == "snapshot.in");
        if takes_room && *trouble == Trouble::NoRoom && power.rng.u8(..) < 20 && !is_off {
            return Some(Fault::Full);
        }
        (is_off || fails).then_some(Fault::EIO)
    }

    fn survives(&mut self, _: &str, _: u64) -> bool {
        self.0.borrow_mut().power.sector_survives()
    }

    fn change_survives(&mut self, _: Operation, _: &str) -> bool {
        self.0.borrow_mut().power.name_survives()
    }
}

/// What a node has said and asked, against which its disk is held.
#[derive(Default)]
struct Model {
    /// The last slot that anything was asked for.
    last: u64,
    /// Asked to be accepted and not acknowledged yet.
    pending: Vec<(Position, u64)>,
    acknowledged: BTreeSet<u64>,
    trims_pending: Vec<(Position, u64)>,
    trimmed: u64,
    trim_asked: u64,
    /// Snapshots that were ever begun, and those of them that came from another voter.
    begun: BTreeSet<u64>,
    installed: BTreeSet<u64>,
    /// The newest that is reported durable.
    newest: u64,
    /// Those that went bad.
    damaged: BTreeSet<u64>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) acknowledged: u64,
    pub(super) saved: u64,
    pub(super) installed: u64,
    pub(super) trims: u64,
    pub(super) damaged: u64,
    pub(super) full: u64,
    pub(super) no_room: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.acknowledged += other.acknowledged;
        self.saved += other.saved;
        self.installed += other.installed;
        self.trims += other.trims;
        self.damaged += other.damaged;
        self.full += other.full;
        self.no_room += other.no_room;
    }
}

/// What a node has in its memory.
struct Life {
    log: Log<SimulatedDisk>,
    snapshots: Snapshots<SimulatedDisk>,
    syncing: Option<SyncDone<SimulatedFile>>,
    making: Option<SnapshotDone<SimulatedDisk>>,
    coming: Option<(Snapshot, u64)>,
    asked: Option<(Snapshot, u64)>,
}

pub(super) struct Node {
    disk: SimulatedDisk,
    world: Rc<RefCell<World>>,
    rng: Rng,
    model: Model,
    is_made: bool,
}

/// Why a life ends.
enum End {
    /// The disk refused.
    Stopped,
    /// The node did what it must not.
    Broken(String),
}

impl From<LogError> for End {
    fn from(error: LogError) -> End {
        match error {
            LogError::Disk(_) | LogError::Stopped(_) => End::Stopped,
            error => End::Broken(format!("refused: {error}")),
        }
    }
}

impl From<SnapshotError> for End {
    fn from(error: SnapshotError) -> End {
        match error {
            SnapshotError::Disk(_) => End::Stopped,
            error => End::Broken(format!("refused: {error}")),
        }
    }
}

impl From<OpenError> for End {
    fn from(error: OpenError) -> End {
        match error {
            OpenError::Disk(_) => End::Stopped,
            error => End::Broken(format!("can't be opened: {error}")),
        }
    }
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), End> {
    if holds {
        Ok(())
    } else {
        Err(End::Broken(what()))
    }
}

fn entry(slot: u64) -> Entry {
    Entry::Commands(vec![slot as u8; 1 + slot as usize % 3 * 900].into())
}

fn accepted(slot: u64) -> Record {
    Record::Accepted {
        slot: Slot(slot),
        vote: Vote {
            ballot: Ballot {
                round: 1,
                voter: ME,
            },
            entry: entry(slot),
        },
    }
}

impl Mortal for Node {
    type Trouble = Trouble;
    type Counts = Counts;
    const CUT_MAX: u64 = 200;

    fn new(seed: u64, trouble: Trouble) -> Node {
        let mut rng = Rng::with_seed(seed);
        let power = Power::new(rng.fork());
        let world = Rc::new(RefCell::new(World { power, trouble }));
        let sector = if rng.bool() { 512 } else { 4096 };
        Node {
            disk: SimulatedDisk::new(sector, Hook(Rc::clone(&world))),
            world,
            rng,
            model: Model::default(),
            is_made: false,
        }
    }

    fn live(&mut self, until_cut: u64) -> Result<(), String> {
        {
            let power = &mut self.world.borrow_mut().power;
            power.come_back(until_cut);
            let sectors = [0.0, 0.5, 1.0][self.rng.usize(..3)];
            let names = [0.0, 0.5, 1.0][self.rng.usize(..3)];
            power.set_survival(sectors, names);
        }
        let lived = self
            .start()
            .and_then(|mut life| (0..100).try_for_each(|_| self.act(&mut life)));
        let is_off = self.is_off();
        match lived {
            // Nobody is there to look at what is read once the power is gone.
            Ok(()) | Err(End::Stopped) => {}
            Err(End::Broken(_)) if is_off => {}
            Err(End::Broken(what)) => return Err(what),
        }
        self.disk = after_a_life(&self.disk, is_off, &mut self.rng);
        self.model.pending.clear();
        self.model.trims_pending.clear();
        Ok(())
    }

    /// A sector of the newest snapshot goes bad, if another, or the log alone, makes up for it.
    fn lie(&mut self) {
        if self.trouble() != Trouble::Damage {
            return;
        }
        self.world.borrow_mut().power.come_back(u64::MAX);
        let names = files(&self.disk);
        let throughs = names.iter().filter_map(|name| {
            let digits = name.strip_prefix("snapshot-")?;
            u64::from_str_radix(digits, 16).ok()
        });
        let mut throughs: BTreeSet<_> = throughs.collect();
        let model = &mut self.model;
        let Some(newest) = throughs.pop_last() else {
            return;
        };
        let rests_on =
            |through: &u64| *through >= model.trim_asked && !model.damaged.contains(through);
        if model.trim_asked > 0 && !throughs.iter().any(rests_on)
            || model.installed.contains(&newest)
        {
            return;
        }
        let sector = self.rng.u64(..self.disk.sectors(&file(newest)));
        let bit = self.rng.u64(..);
        let damage = [Damage::Unreadable, Damage::Zeroed, Damage::Flipped { bit }];
        let damage = damage[self.rng.usize(..3)];
        self.disk.damage(&file(newest), sector, damage);
        model.newest = 0;
        model.damaged.insert(newest);
        model.counts.damaged += 1;
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

    fn start(&mut self) -> Result<Life, End> {
        let opened = match Log::open(&self.disk, CLUSTER, ME.node, &OPTIONS) {
            Err(OpenError::Missing) if !self.is_made => {
                let cluster = CLUSTER;
                Log::create(&self.disk, Identity { cluster, voter: ME }, &OPTIONS)?;
                Log::open(&self.disk, CLUSTER, ME.node, &OPTIONS)
            }
            opened => opened,
        };
        let (log, recovered) = opened?;
        self.is_made = true;
        let trimmed = recovered.state.trimmed;
        let (snapshots, found) = Snapshots::open(&self.disk, CLUSTER, trimmed, BYTES_MAX)?;
        self.check(&recovered, found.as_ref())?;
        Ok(Life {
            log,
            snapshots,
            syncing: None,
            making: None,
            coming: None,
            asked: None,
        })
    }

    fn check(&mut self, recovered: &Found, found: Option<&Loaded>) -> Result<(), End> {
        let model = &mut self.model;
        let trimmed = recovered.state.trimmed.0;
        require(
            (model.trimmed..=model.trim_asked).contains(&trimmed),
            || format!("trimmed up to {trimmed}, not {}", model.trimmed),
        )?;
        model.trimmed = trimmed;
        let through = found.map_or(0, |found| found.snapshot.through.0);
        require(through >= trimmed.max(model.newest), || {
            format!("a snapshot up to {through}, not {}", model.newest)
        })?;
        if let Some(found) = found {
            require(model.begun.contains(&through), || {
                format!("{through} invented")
            })?;
            require(found.content == content(through), || {
                format!("{through} altered")
            })?;
        }
        model.newest = through;
        model.last = model.last.max(through);
        for slot in model.acknowledged.range(through + 1..) {
            let is_there = match recovered.answer(Slot(*slot)) {
                Answer::Accepted(vote) => vote.entry == entry(*slot),
                Answer::Never | Answer::Unknown(_) => false,
            };
            require(is_there, || {
                format!("slot {slot} forgotten above {through}")
            })?;
        }
        Ok(())
    }

    /// Does something.
    fn act(&mut self, life: &mut Life) -> Result<(), End> {
        match self.rng.u8(..32) {
            0..10 => self.append(life),
            10..16 => self.sync(life),
            16..23 => self.make(life),
            23..28 => self.receive(life),
            28..30 => {
                if let Some(chunk) = life.snapshots.chunk(life.asked, 300)? {
                    let content = content(chunk.snapshot.through.0);
                    let part = &content[chunk.offset as usize..][..chunk.bytes.len()];
                    require(chunk.bytes == part, || {
                        format!("{} given altered", chunk.snapshot)
                    })?;
                    let next = chunk.offset + chunk.bytes.len() as u64;
                    life.asked = (next < chunk.snapshot.bytes).then_some((chunk.snapshot, next));
                }
                Ok(())
            }
            _ => match life.log.begin_upkeep()?.map(UpkeepJob::run) {
                Some(done) => Ok(life.log.finish_upkeep(done)?),
                None => Ok(()),
            },
        }
    }

    fn append(&mut self, life: &mut Life) -> Result<(), End> {
        let model = &mut self.model;
        let first = model.last + 1;
        let last = model.last + self.rng.u64(..4);
        let mut records: Vec<_> = (first..=last).map(accepted).collect();
        // A log is full only of what is decided.
        let acknowledged = model.acknowledged.last().copied().unwrap_or(0);
        records.push(Record::Decided(Slot(acknowledged)));
        let trimmable = life.snapshots.trimmable();
        let trims = trimmable > life.log.trimmed() && self.rng.bool();
        if trims {
            let at = self.rng.usize(..=records.len());
            records.insert(at, Record::Trimmed(trimmable));
            model.trim_asked = model.trim_asked.max(trimmable.0);
        }
        match life.log.append(&records) {
            Ok(position) => {
                model.last = last;
                model
                    .pending
                    .extend((first..=last).map(|slot| (position, slot)));
                if trims {
                    model.trims_pending.push((position, trimmable.0));
                }
                Ok(())
            }
            Err(LogError::Full { .. }) if !trims => {
                model.counts.full += 1;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&mut self, life: &mut Life) -> Result<(), End> {
        let model = &mut self.model;
        let done = match life.syncing.take() {
            Some(done) => Some(done),
            None => life.log.begin_sync()?.map(SyncJob::run),
        };
        match done {
            Some(done) if self.rng.bool() => {
                let position = life.log.finish_sync(done)?;
                for (_, slot) in model.pending.extract_if(.., |(at, _)| *at <= position) {
                    model.acknowledged.insert(slot);
                    model.counts.acknowledged += 1;
                }
                for (_, slot) in model
                    .trims_pending
                    .extract_if(.., |(at, _)| *at <= position)
                {
                    model.trimmed = model.trimmed.max(slot);
                    model.counts.trims += 1;
                }
            }
            done => life.syncing = done,
        }
        Ok(())
    }

    /// Makes a snapshot, or installs the one that came.
    fn make(&mut self, life: &mut Life) -> Result<(), End> {
        let model = &mut self.model;
        if let Some(done) = life.making.take() {
            if self.rng.bool() {
                life.making = Some(done);
                return Ok(());
            }
            let (snapshot, counted) = match life.snapshots.finish(done)? {
                Finished::Saved(snapshot) => (snapshot, &mut model.counts.saved),
                Finished::Installed(whole) => {
                    let through = whole.snapshot.through.0;
                    require(whole.content == content(through), || {
                        format!("{through} installed altered")
                    })?;
                    (whole.snapshot, &mut model.counts.installed)
                }
                Finished::Damaged(_) => return Ok(()),
                Finished::NoRoom(_) => {
                    model.counts.no_room += 1;
                    return Ok(());
                }
            };
            *counted += 1;
            model.damaged.remove(&snapshot.through.0);
            model.newest = model.newest.max(snapshot.through.0);
            model.last = model.last.max(snapshot.through.0);
            return Ok(());
        }
        let through = model.acknowledged.last().copied().unwrap_or(0);
        let through = through.max(model.newest);
        let job = match life.snapshots.begin_install()? {
            Some(job) => Some(job),
            None => life.snapshots.begin_save(Slot(through), content(through))?,
        };
        model.begun.insert(through);
        life.making = job.map(SnapshotJob::run);
        Ok(())
    }

    /// Takes a part of a snapshot of another voter, which is ahead; some go bad on their way.
    fn receive(&mut self, life: &mut Life) -> Result<(), End> {
        let is_noisy = self.trouble() == Trouble::None;
        let model = &mut self.model;
        let (snapshot, offset) = match life.coming {
            Some(coming) if coming.0.through.0 > model.last => coming,
            _ => (foreign(model.last + self.rng.u64(1..8)).snapshot, 0),
        };
        let through = snapshot.through.0;
        model.begun.insert(through);
        model.installed.insert(through);
        let mut bytes = content(through)[offset as usize..].to_vec();
        bytes.truncate(self.rng.usize(..3_000));
        if is_noisy
            && self.rng.u8(..16) == 0
            && let Some(byte) = bytes.first_mut()
        {
            *byte ^= 1;
        }
        match life.snapshots.receive(snapshot, offset, &bytes) {
            Ok(next) => life.coming = (next < snapshot.bytes).then_some((snapshot, next)),
            Err(SnapshotError::Busy) => life.coming = None,
            Err(SnapshotError::DiskFull(_)) => {
                model.counts.no_room += 1;
                life.coming = None;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
