//! A node that goes down at any operation of its disk, over and over, and what its log holds afterwards: nothing that was
//! acknowledged is lost or altered, nothing is invented, and no promise goes back.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fastrand::Rng;
use sprag_log::{
    ClusterId, Damage, Disk, DiskFaults, Fault, Found, Identity, Log, LogError, LogOptions,
    OpenError, Operation, Place, Position, SimulatedDisk, SimulatedFile, SyncDone, SyncJob,
    UpkeepDone, UpkeepJob,
};
use sprag_paxos::simulation::{Bug, plant};
use sprag_paxos::{Answer, Ballot, DiskId, Entry, NodeId, Record, Slot, Vote, Voter};

const CLUSTER: ClusterId = ClusterId(7);
const ME: Voter = Voter {
    node: NodeId(1),
    disk: DiskId(0xd15c),
};

/// What goes wrong besides the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Nothing.
    None,
    /// Syncs fail, and what they left in the cache is found by the next start.
    FailedSyncs,
    /// A sector goes bad each time the node is down.
    Damage,
    /// A write goes astray in each life.
    Astray,
}

/// The hook: cuts the power before one operation, and says what survives.
struct World {
    rng: Rng,
    trouble: Trouble,
    /// Operations until the power goes.
    until_cut: u64,
    /// Writes until one goes astray.
    until_astray: u64,
    /// How likely a sector survives.
    survival: f64,
    operations: u64,
    is_off: bool,
}

#[derive(Clone)]
struct Hook(Rc<RefCell<World>>);

impl DiskFaults for Hook {
    fn refuses(&mut self, operation: Operation, _: &str, _: u64) -> Option<Fault> {
        let mut world = self.0.borrow_mut();
        world.operations += 1;
        world.is_off |= world.operations > world.until_cut;
        let is_sync = matches!(operation, Operation::Sync | Operation::SyncDirectory);
        let fails = is_sync && world.trouble == Trouble::FailedSyncs && world.rng.u8(..) < 10;
        (world.is_off || fails).then_some(Fault::EIO)
    }

    fn misdirects(&mut self, file: &str, _: u64, bytes: u64) -> Option<Place> {
        let mut world = self.0.borrow_mut();
        // Not a whole segment at once: that is more than one fault.
        if world.trouble != Trouble::Astray || bytes > 8 * 4096 || file == "spare" {
            return None;
        }
        world.until_astray = world.until_astray.checked_sub(1)?;
        // Inside of the smallest segment: what lands nowhere is lost, which nothing tells from a power cut.
        let units = world.rng.u64(..4);
        let file = file.to_owned();
        (world.until_astray == 0).then_some(Place {
            file,
            offset: units * 4096,
        })
    }

    fn survives(&mut self, _: &str, _: u64) -> bool {
        let mut world = self.0.borrow_mut();
        let survival = world.survival;
        world.rng.f64() < survival
    }

    fn change_survives(&mut self, _: Operation, _: &str) -> bool {
        let mut world = self.0.borrow_mut();
        let survival = world.survival;
        world.rng.f64() < survival
    }
}

/// What a node has said and asked, against which its log is held.
#[derive(Default)]
struct Model {
    /// Each value that was ever asked to be accepted.
    asked: BTreeMap<(Slot, Ballot), Entry>,
    /// Asked and not acknowledged yet.
    pending: Vec<(Position, Slot, Ballot)>,
    /// The highest ballot acknowledged for a slot.
    acknowledged: BTreeMap<Slot, Ballot>,
    promises_asked: BTreeSet<Ballot>,
    promised: Option<Ballot>,
    trim_asked: u64,
    trims_pending: Vec<(Position, u64)>,
    trimmed: u64,
    /// What each slot must hold from the moment on that somebody knew it to be decided.
    decided: BTreeMap<Slot, Entry>,
    /// Up to where that was asked to be remembered, up to where it was taken, and up to where it is durable.
    decided_asked: u64,
    decided_appended: u64,
    decided_pending: Vec<(Position, u64)>,
    decided_durable: u64,
    /// What was written last of each slot.
    last: BTreeMap<Slot, Entry>,
    serial: u32,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    lives: u64,
    acknowledged: u64,
    unknown: u64,
    lost: u64,
    full: u64,
    trims: u64,
    decided: u64,
}

struct Node {
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

impl Node {
    fn new(seed: u64, trouble: Trouble) -> Node {
        let mut rng = Rng::with_seed(seed);
        let world = World {
            rng: rng.fork(),
            trouble,
            until_cut: u64::MAX,
            until_astray: 0,
            survival: 0.0,
            operations: 0,
            is_off: false,
        };
        let world = Rc::new(RefCell::new(world));
        let sector = if rng.bool() { 512 } else { 4096 };
        Node {
            disk: SimulatedDisk::new(sector, Hook(Rc::clone(&world))),
            world,
            options: LogOptions {
                segment_bytes: 4096 * rng.u64(4..=12),
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

    fn create(&self) -> Result<(), OpenError> {
        let identity = Identity {
            cluster: CLUSTER,
            voter: ME,
        };
        Log::create(&self.disk, identity, &self.options)
    }

    /// One life: at most `until_cut` operations.
    fn live(&mut self, until_cut: u64) -> Result<(), String> {
        self.model.counts.lives += 1;
        {
            let mut world = self.world.borrow_mut();
            world.operations = 0;
            world.is_off = false;
            world.until_cut = until_cut;
            world.survival = [0.0, 0.1, 0.5, 0.9, 1.0][self.rng.usize(..5)];
            world.until_astray = self.rng.u64(1..60);
        }
        let opened = Log::open(&self.disk, CLUSTER, ME.node, &self.options);
        let opened = match opened {
            Err(OpenError::Missing)
                if self.model.asked.is_empty() && self.model.promised.is_none() =>
            {
                self.create()
                    .and_then(|()| Log::open(&self.disk, CLUSTER, ME.node, &self.options))
            }
            opened => opened,
        };
        match opened {
            // Nobody is there to look at what is read once the power is gone, or isn't.
            Ok(_) | Err(OpenError::VoteLost) if self.world.borrow().is_off => {}
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
            Err(OpenError::VoteLost) if self.world.borrow().trouble == Trouble::Astray => {
                return Ok(());
            }
            Err(error) => return Err(format!("can't be opened: {error}")),
        }
        let is_off = self.world.borrow().is_off;
        self.disk = if is_off || self.rng.bool() {
            self.disk.cut_power()
        } else {
            self.disk.kill()
        };
        self.syncing = None;
        self.upkeeping = None;
        self.model.decided_pending.clear();
        self.model.pending.clear();
        self.model.trims_pending.clear();
        Ok(())
    }

    /// Does something; whether the log has stopped.
    fn act(&mut self, log: &mut Log<SimulatedDisk>) -> Result<bool, String> {
        let model = &mut self.model;
        // One batch a sync, as a store writes: what the next one overwrites is proven by then.
        let must_sync =
            self.world.borrow().trouble == Trouble::Astray && log.appended() > log.synced();
        let outcome = match self.rng.u8(..24) {
            0..9 | 15..17 if must_sync => return Ok(false),
            0..9 => {
                let count = self.rng.u64(1..=4);
                let records: Vec<_> = (0..count)
                    .filter_map(|_| {
                        let slot = Slot(log.trimmed().0 + self.rng.u64(1..=12));
                        let ballot = Ballot {
                            round: self.round,
                            voter: ME,
                        };
                        let new = model.value(&mut self.rng);
                        let decided = model.decided.get(&slot);
                        if decided.is_none() && self.rng.u8(..8) == 0 {
                            model.decided.insert(slot, new.clone());
                            return Some(Record::Learned { slot, entry: new });
                        }
                        let new = decided.cloned().unwrap_or(new);
                        let asked = model.asked.entry((slot, ballot)).or_insert(new).clone();
                        let agrees = model.decided.get(&slot).is_none_or(|entry| *entry == asked);
                        let vote = Vote {
                            ballot,
                            entry: asked,
                        };
                        agrees.then_some(Record::Accepted { slot, vote })
                    })
                    .collect();
                let appended = log.append(&records);

                model.promises_asked.insert(Ballot {
                    round: self.round,
                    voter: ME,
                });
                if let Ok(position) = &appended {
                    for record in &records {
                        match record {
                            Record::Accepted { slot, vote } => {
                                model.pending.push((*position, *slot, vote.ballot));
                                model.last.insert(*slot, vote.entry.clone());
                            }
                            Record::Learned { slot, entry } => {
                                model.last.insert(*slot, entry.clone());
                            }
                            Record::Promised(_) | Record::Decided(_) | Record::Trimmed(_) => {}
                        }
                    }
                }
                appended.map(drop)
            }
            9..13 => {
                let done = match self.syncing.take() {
                    Some(done) => Some(done),
                    None => log.begin_sync().unwrap().map(SyncJob::run),
                };
                let Some(done) = done else {
                    return Ok(false);
                };
                if self.rng.u8(..3) == 0 {
                    self.syncing = Some(done);
                    return Ok(false);
                }
                let synced = log.finish_sync(done);
                if let Ok(position) = synced {
                    for (at, slot, ballot) in std::mem::take(&mut model.pending) {
                        if at <= position {
                            model.acknowledge(slot, ballot);
                        } else {
                            model.pending.push((at, slot, ballot));
                        }
                    }
                    let durable = |(at, _): &mut (Position, u64)| *at <= position;
                    for (_, slot) in model.decided_pending.extract_if(.., durable) {
                        model.decided_durable = model.decided_durable.max(slot);
                    }
                    for (_, slot) in model.trims_pending.extract_if(.., durable) {
                        model.trimmed = model.trimmed.max(slot);
                    }
                }
                synced.map(drop)
            }
            13..15 => {
                self.round += 1;
                let ballot = Ballot {
                    round: self.round,
                    voter: Voter {
                        node: NodeId(2),
                        disk: DiskId(self.round),
                    },
                };
                model.promises_asked.insert(ballot);
                let promised = log.promise(ballot);
                if promised.is_ok() {
                    model.promised = model.promised.max(Some(ballot));
                    self.round += 1;
                }
                promised
            }
            15..17 => {
                let slot = Slot(log.trimmed().0 + self.rng.u64(1..=8));
                model.trim_asked = model.trim_asked.max(slot.0);
                let trimmed = log.append(&[Record::Trimmed(slot)]);
                if let Ok(position) = trimmed {
                    model.trims_pending.push((position, slot.0));
                    model.counts.trims += 1;
                }
                trimmed.map(drop)
            }
            17..19 => {
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
            _ => {
                let slot = Slot(model.decided_appended.max(log.trimmed().0) + 1);
                match model.last.get(&slot) {
                    Some(entry)
                        if log.synced() == log.appended() && model.trims_pending.is_empty() =>
                    {
                        // Decided by whoever asks; from now on it stays.
                        let decided = model.decided.entry(slot).or_insert(entry.clone());
                        if decided == entry {
                            model.decided_asked = model.decided_asked.max(slot.0);
                            let appended = log.append(&[Record::Decided(slot)]);
                            if let Ok(position) = appended {
                                model.decided_appended = slot.0;
                                model.decided_pending.push((position, slot.0));
                            }
                            appended.map(drop)
                        } else {
                            Ok(())
                        }
                    }
                    _ => Ok(()),
                }
            }
        };
        match outcome {
            Ok(()) => Ok(false),
            Err(LogError::Disk(_)) => {
                let stopped = matches!(log.append(&[]), Err(LogError::Stopped(_)));
                if stopped {
                    Ok(true)
                } else {
                    Err("goes on after the disk failed".into())
                }
            }
            Err(LogError::Full { .. } | LogError::TooLarge { .. } | LogError::Busy(_)) => {
                model.counts.full += 1;
                Ok(false)
            }
            Err(error) => Err(format!("refused: {error}")),
        }
    }

    fn check(&mut self, found: &Found) -> Result<(), String> {
        let world = self.world.borrow();
        let is_honest = matches!(world.trouble, Trouble::None | Trouble::FailedSyncs);
        let model = &mut self.model;
        let require = |holds: bool, what: &dyn std::fmt::Debug| {
            if holds {
                Ok(())
            } else {
                Err(format!("{what:?}"))
            }
        };
        require(found.voter == ME, &"another voter")?;
        require(!is_honest || found.lost.is_none(), &("lost", found.lost))?;
        model.counts.lost += u64::from(found.lost.is_some());
        let asked = found.state.promised == Ballot::NONE
            || model.promises_asked.contains(&found.state.promised);
        require(asked, &("promise invented", found.state.promised))?;
        let kept = Some(found.state.promised) >= model.promised;
        require(
            kept,
            &("promise went back", found.state.promised, model.promised),
        )?;
        model.promised = Some(found.state.promised).filter(|promised| *promised > Ballot::NONE);
        self.round = self.round.max(found.state.promised.round + 1);
        let trimmed = found.state.trimmed.0;
        let is_lost = found.lost.is_some();
        require(
            is_lost || (model.trimmed..=model.trim_asked).contains(&trimmed),
            &("trimmed", trimmed, model.trimmed),
        )?;
        model.trimmed = trimmed;
        let above = |slot: &Slot| slot.0 > trimmed;
        require(
            found.state.answers.keys().all(above),
            &"an answer for a trimmed slot",
        )?;
        let decided = found.state.decided.0;
        require(
            (trimmed..=model.decided_asked.max(trimmed)).contains(&decided),
            &("decided", decided, model.decided_asked),
        )?;
        model.last.clear();
        for (slot, answer) in &found.state.answers {
            if let Answer::Accepted(vote) = answer {
                model.last.insert(*slot, vote.entry.clone());
            }
        }
        model.last.extend(found.state.learned.clone());
        for slot in (trimmed + 1..=decided).map(Slot) {
            let agrees = model.last.get(&slot) == model.decided.get(&slot);
            require(agrees, &(slot, "decided otherwise", model.last.get(&slot)))?;
        }
        let torn = found.answer(Slot(decided + 1));
        require(
            !is_honest || decided >= model.decided_durable || matches!(torn, Answer::Unknown(_)),
            &("decided went back", decided, model.decided_durable),
        )?;
        model.counts.decided += decided.saturating_sub(trimmed);
        model.decided_appended = decided;
        model.decided_durable = decided;
        let last = model
            .asked
            .keys()
            .map(|(slot, _)| slot.0)
            .max()
            .unwrap_or(0);
        for slot in (trimmed + 1..=last).map(Slot) {
            let acknowledged = model
                .acknowledged
                .get(&slot)
                .copied()
                .unwrap_or(Ballot::NONE);
            let answer = found.answer(slot);
            match &answer {
                Answer::Never => require(
                    acknowledged == Ballot::NONE,
                    &(slot, "forgotten", acknowledged),
                )?,
                Answer::Accepted(vote) => {
                    let asked = model.asked.get(&(slot, vote.ballot)) == Some(&vote.entry);
                    require(asked, &(slot, "altered or invented", vote))?;
                    require(
                        vote.ballot >= acknowledged,
                        &(slot, "older than", acknowledged, vote),
                    )?;
                    model.acknowledge(slot, vote.ballot);
                }
                Answer::Unknown(ballot) => {
                    model.counts.unknown += 1;
                    let asked = is_lost || model.asked.contains_key(&(slot, *ballot));
                    require(asked, &(slot, "unknown invented", ballot))?;
                    require(
                        *ballot >= acknowledged,
                        &(slot, "unknown below", acknowledged, ballot),
                    )?;
                    let torn = *ballot > acknowledged;
                    require(
                        !is_honest || torn,
                        &(slot, "unknown though acknowledged", ballot),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// While the node is down, one sector goes bad.
    fn damage(&mut self) {
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
}

impl Model {
    /// A value that no other is like.
    fn value(&mut self, rng: &mut Rng) -> Entry {
        self.serial += 1;
        match rng.usize(..4) {
            0 => Entry::Noop,
            size => {
                let mut bytes = vec![rng.u8(..); rng.usize(..=[0, 1, 200, 3000][size])];
                bytes.extend(self.serial.to_le_bytes());
                Entry::Commands(bytes.into())
            }
        }
    }

    fn acknowledge(&mut self, slot: Slot, ballot: Ballot) {
        self.counts.acknowledged += 1;
        let highest = self.acknowledged.entry(slot).or_insert(ballot);
        *highest = ballot.max(*highest);
    }
}

/// Lives until `lives` are over.
fn run(seed: u64, trouble: Trouble, lives: u64) -> Result<Counts, String> {
    let mut node = Node::new(seed, trouble);
    for _ in 0..lives {
        let until_cut = if node.rng.u8(..) < 200 {
            node.rng.u64(..150)
        } else {
            u64::MAX
        };
        node.live(until_cut)
            .map_err(|error| format!("seed {seed}, {trouble:?}: {error}"))?;
        if trouble == Trouble::Damage && std::mem::take(&mut node.is_repaired) {
            node.world.borrow_mut().is_off = false;
            node.world.borrow_mut().until_cut = u64::MAX;
            node.damage();
        }
    }
    Ok(node.model.counts)
}

fn run_all(trouble: Trouble, seeds: std::ops::Range<u64>) -> Counts {
    let mut sum = Counts::default();
    for seed in seeds {
        let counts = run(seed, trouble, 12).unwrap_or_else(|error| panic!("{error}"));
        sum.lives += counts.lives;
        sum.acknowledged += counts.acknowledged;
        sum.unknown += counts.unknown;
        sum.lost += counts.lost;
        sum.full += counts.full;
        sum.trims += counts.trims;
        sum.decided += counts.decided;
    }
    println!("{trouble:?}: {sum:?}");
    sum
}

#[test]
fn wherever_the_power_goes_nothing_acknowledged_is_lost_and_nothing_is_invented() {
    let sum = run_all(Trouble::None, 0..200);
    // What a power cut tears was never told of, and is known not to have been.
    assert!(
        sum.acknowledged > 5_000 && sum.trims > 1_000 && sum.unknown == 0,
        "{sum:?}"
    );
}

#[test]
fn after_failed_syncs_nothing_is_taken_for_durable_that_is_not() {
    run_all(Trouble::FailedSyncs, 0..200);
}

#[test]
fn what_a_bad_sector_takes_is_unknown_and_never_never() {
    let sum = run_all(Trouble::Damage, 0..200);
    assert!(sum.unknown > 0, "{sum:?}");
}

#[test]
fn what_a_write_gone_astray_takes_is_unknown_and_never_never() {
    run_all(Trouble::Astray, 0..200);
}

/// Workloads, cut at each of their operations; what survives of the unsynced differs from cut to cut.
#[test]
fn a_cut_at_each_operation_of_a_workload_is_survived() {
    for workload in 0..2 {
        for cut in 0.. {
            let mut node = Node::new(workload, Trouble::None);
            node.live(cut).unwrap();
            let is_over = !node.world.borrow().is_off;
            node.rng = Rng::with_seed(cut);
            for _ in 0..2 {
                node.live(u64::MAX)
                    .unwrap_or_else(|error| panic!("workload {workload}, cut {cut}: {error}"));
            }
            if is_over {
                assert!(cut > 100, "a short workload: {cut}");
                break;
            }
        }
    }
}

/// Each bug is found by one of the kinds of trouble.
#[test]
fn planted_bugs_are_found() {
    let found = |bug, trouble| {
        plant(Some(bug));
        let found = (0..600).find(|seed| {
            std::panic::catch_unwind(|| run(*seed, trouble, 12)).map_or(true, |ran| ran.is_err())
        });
        plant(None);
        println!("{bug:?} under {trouble:?}: {found:?}");
        found
    };
    for (bug, trouble) in [
        (Bug::BallotAndVoterInTwoWrites, Trouble::None),
        (Bug::CorruptMiddleReadAsEnd, Trouble::Damage),
        (Bug::RecycledRecordTaken, Trouble::None),
        (Bug::SyncRetried, Trouble::FailedSyncs),
        (Bug::TrimBeforeSync, Trouble::None),
        (Bug::SegmentUsedBeforeItsName, Trouble::None),
        (Bug::FoundTakenForDurable, Trouble::FailedSyncs),
        (Bug::OlderVoteTaken, Trouble::Astray),
    ] {
        assert!(
            found(bug, trouble).is_some(),
            "{bug:?} was not found under {trouble:?}"
        );
    }
}
