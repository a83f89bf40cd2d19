//! A node and its disk: what it writes and syncs, how it dies, and how it starts with what the disk kept.

use sprag_log::{
    ClusterId, Found, Identity, Loaded, Log, LogError, OpenError, SimulatedDisk, Snapshots, Store,
};
use sprag_paxos::simulation::{Bug, Mark, planted, reach};
use sprag_paxos::{
    Answer, Configuration, DiskId, Executor, NodeId, Options, Record, Recovered, Replica, Slot,
    Ticket, Voter,
};

use crate::fault::Class;
use crate::host::{MILLISECOND_NS, SECOND_NS};
use crate::invariant::{Broken, Fact};
use crate::machine::Machine;
use crate::node::Input;
use crate::snapshots::BYTES_MAX;
use crate::trace::Happening;
use crate::world::{Event, World};

/// How long after a disk had no room it is asked again.
const ROOM_AGAIN_NS: u64 = 50 * MILLISECOND_NS;

/// Whose disks they all are.
pub(crate) const CLUSTER: ClusterId = ClusterId(1);

impl World {
    /// Writes a record.
    pub(crate) fn persist(
        &mut self,
        node: usize,
        ticket: Ticket,
        record: Record,
    ) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        let record_ref = &record;
        self.look(Fact::Written {
            voter,
            record: record_ref,
        })?;
        let Some(store) = &mut self.nodes[node].store else {
            return Ok(());
        };
        let promised = store.log().promised();
        let written = store.persist(ticket, record.clone());
        let syncs_vote = store.log().promised() > promised;
        // What was refused may be there all the same.
        self.nodes[node].unsynced.push_back((ticket, record));
        if written.is_err() {
            self.fail(node);
            return Ok(());
        }
        self.report(node)?;
        self.sync(node);
        if syncs_vote && self.nodes[node].executor.is_some() {
            let takes_ns = 2 * self.sync_takes_ns(node);
            self.stand_still(node, takes_ns);
        }
        Ok(())
    }

    /// Has what is written synced, if somebody waits for it and no sync is under way.
    pub(crate) fn sync(&mut self, node: usize) {
        let Some(store) = &mut self.nodes[node].store else {
            return;
        };
        match store.begin_sync() {
            Ok(job) => {
                if job.is_some() {
                    self.nodes[node].syncing = job;
                    let takes_ns = self.sync_takes_ns(node);
                    let life = self.nodes[node].life;
                    self.after(takes_ns, Event::Synced { node, life });
                }
                self.keep_up(node);
            }
            Err(LogError::Full { .. } | LogError::TooFar { .. }) => {
                reach(Mark::LogFull);
                self.make_room(node);
            }
            Err(LogError::DiskFull(_)) => {
                reach(Mark::DiskFull);
                self.try_again(node);
            }
            Err(_) => self.fail(node),
        }
    }

    /// Somebody may free some room: it is asked for again.
    fn try_again(&mut self, node: usize) {
        if !self.nodes[node].tries_again {
            self.nodes[node].tries_again = true;
            let life = self.nodes[node].life;
            self.after(ROOM_AGAIN_NS, Event::RoomAgain { node, life });
        }
    }

    /// Sees whether there is room by now.
    pub(crate) fn room_again(&mut self, node: usize) -> Result<(), Broken> {
        self.nodes[node].tries_again = false;
        self.sync(node);
        self.go(node)
    }

    /// Has segments made and given back, if there are any to be, while writes go on.
    fn keep_up(&mut self, node: usize) {
        let Some(store) = &mut self.nodes[node].store else {
            return;
        };
        match store.begin_upkeep() {
            Ok(None) => {}
            Ok(Some(job)) => {
                self.nodes[node].upkeep = Some(job);
                let takes_ns = 2 * self.sync_takes_ns(node);
                let life = self.nodes[node].life;
                self.after(takes_ns, Event::Ready { node, life });
            }
            Err(_) => self.fail(node),
        }
    }

    /// The next segment is ready, even if the node stands still.
    pub(crate) fn ready(&mut self, node: usize) -> Result<(), Broken> {
        let keeper = &mut self.nodes[node];
        let (Some(job), Some(store)) = (keeper.upkeep.take(), &mut keeper.store) else {
            return Ok(());
        };
        match store.finish_upkeep(job.run()) {
            // Without room, whatever fills a segment tries again.
            Ok(()) | Err(LogError::DiskFull(_)) => {
                self.sync(node);
                self.go(node)
            }
            Err(_) => {
                self.fail(node);
                Ok(())
            }
        }
    }

    pub(crate) fn sync_takes_ns(&self, node: usize) -> u64 {
        let slow = self.faults.strike(Class::SlowDisk, node);
        let more_ns = slow.map_or(0, |chance| chance.log_uniform(MILLISECOND_NS, SECOND_NS));
        self.plan.sync_ns + more_ns
    }

    /// The disk is done, even if the node stands still.
    pub(crate) fn synced(&mut self, node: usize) -> Result<(), Broken> {
        let Some(job) = self.nodes[node].syncing.take() else {
            return Ok(());
        };
        let Some(store) = &mut self.nodes[node].store else {
            return Ok(());
        };
        if store.finish_sync(job.run()).is_err() {
            self.fail(node);
            return Ok(());
        }
        self.report(node)?;
        self.sync(node);
        self.go(node)
    }

    /// Tells the voter what has become durable.
    fn report(&mut self, node: usize) -> Result<(), Broken> {
        let Some(store) = &self.nodes[node].store else {
            return Ok(());
        };
        let ticket = store.durable();
        if ticket == self.nodes[node].durable {
            return Ok(());
        }
        self.nodes[node].durable = ticket;
        let voter = self.nodes[node].voter;
        while let Some((_, record)) = self.nodes[node]
            .unsynced
            .pop_front_if(|(of, _)| *of <= ticket)
        {
            let record = &record;
            self.look(Fact::Durable { voter, record })?;
        }
        self.note(Happening::Synced {
            node: NodeId(node as u16),
            ticket,
        });
        self.nodes[node]
            .inbox
            .push_back(Input::Persisted { ticket });
        Ok(())
    }

    /// The disk failed the node, which stops. Nothing is tried again, but by the next life.
    pub(crate) fn fail(&mut self, node: usize) {
        reach(if self.nodes[node].disk.is_cut() {
            Mark::PowerCutInADiskOperation
        } else {
            Mark::DiskFailed
        });
        self.die(node, false);
    }

    /// The node dies here and now, with the machine's power or without, and starts again later.
    pub(crate) fn die(&mut self, node: usize, with_power: bool) {
        self.note(Happening::Crashed {
            node: NodeId(node as u16),
        });
        let dead = &mut self.nodes[node];
        dead.executor = None;
        dead.store = None;
        dead.syncing = None;
        dead.upkeep = None;
        dead.tries_again = false;
        dead.snapshots = None;
        dead.saving = None;
        dead.whole = None;
        dead.installing = None;
        dead.loaded = None;
        dead.is_paused = false;
        dead.inbox.clear();
        dead.waiting.clear();
        dead.tick = None;
        dead.disk.die(with_power);
        self.start_later(node);
    }

    fn start_later(&mut self, node: usize) {
        self.nodes[node].deaths += 1;
        let number = u64::from(self.nodes[node].deaths) << 8 | node as u64;
        let down_ns = self
            .chance
            .of(0x9000)
            .of(number)
            .log_uniform(MILLISECOND_NS, SECOND_NS);
        self.after(down_ns, Event::Start { node });
    }

    /// The node starts with what its disk kept.
    pub(crate) fn start(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].executor.is_some() || self.nodes[node].is_gone {
            return Ok(());
        }
        let is_loser = self.nodes[node].is_loser;
        if self.nodes[node].life > 0 {
            self.tally.restarts += 1;
            if is_loser && self.faults.strike(Class::LostDisk, node).is_some() {
                let faults = self.faults.clone();
                self.nodes[node].disk.replace(&faults, node);
            } else if is_loser && let Some(chance) = self.faults.strike(Class::BitRot, node) {
                self.nodes[node].disk.rot(chance);
            }
        }
        let opened = self.open(node);
        match opened {
            _ if self.nodes[node].disk.is_cut() => {
                reach(Mark::PowerCutInADiskOperation);
                self.nodes[node].disk.die(true);
                self.start_later(node);
                Ok(())
            }
            Ok(opened) if opened.found.lost.is_none() => self.go_live(node, opened),
            Err(OpenError::Disk(_)) => {
                reach(Mark::StartRefused);
                self.nodes[node].disk.die(false);
                self.start_later(node);
                Ok(())
            }
            other => {
                reach(match &other {
                    Ok(_) => Mark::AcceptancesLost,
                    Err(OpenError::VoteLost) => Mark::VoteLost,
                    Err(OpenError::SnapshotLost { .. }) => Mark::SnapshotLost,
                    Err(_) => Mark::DiskEmpty,
                });
                let what = match other {
                    Ok(opened) => {
                        format!("acceptances up to {:?} are lost", opened.found.lost)
                    }
                    Err(error) => error.to_string(),
                };
                if !is_loser {
                    return Err(Broken {
                        invariant: "sound disks keep",
                        source: "Alagappan et al., Protocol-Aware Recovery for Consensus-Based Storage, 2018",
                        what: format!(
                            "node {node}, whose disk only loses what wasn't synced: {what}"
                        ),
                    });
                }
                self.renew(node);
                Ok(())
            }
        }
    }

    fn open(&self, node: usize) -> Result<Opened, OpenError> {
        let disk = &self.nodes[node].disk.disk;
        let (log, found) = Log::open(disk, CLUSTER, NodeId(node as u16), &self.plan.log)?;
        let trimmed = found.state.trimmed;
        let (snapshots, loaded) = Snapshots::open(disk, CLUSTER, trimmed, BYTES_MAX)?;
        Ok(Opened {
            log,
            found,
            snapshots,
            loaded,
        })
    }

    /// The disk forgot what it promised: the node comes back as another voter.
    fn renew(&mut self, node: usize) {
        let renewals = u64::from(self.nodes[node].deaths);
        let id = self.chance.of(0xa000 + node as u64).of(renewals).bits();
        if !planted(Bug::LostDiskKeepsItsVote) {
            self.nodes[node].voter.disk = DiskId(id);
        }
        let identity = identity_of(self.nodes[node].voter);
        let disk = &self.nodes[node].disk.disk;
        let made = Log::wipe(disk).map_err(OpenError::Disk);
        // Where it fails, the next start finds nothing, and tries again.
        let _ = made.and_then(|()| Log::create(disk, identity, &self.plan.log));
        self.nodes[node].disk.die(false);
        self.start_later(node);
    }

    fn go_live(&mut self, node: usize, opened: Opened) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        let mut recovered = opened.found.state;
        if let Some(loaded) = &opened.loaded {
            let through = loaded.snapshot.through;
            recovered.snapshot = through;
            self.look(Fact::Saved { voter, through })?;
        }
        for (_, record) in std::mem::take(&mut self.nodes[node].unsynced) {
            if survived(&recovered, &record) {
                let record = &record;
                self.look(Fact::Durable { voter, record })?;
            }
        }
        let unknown = |answer: &Answer| matches!(answer, Answer::Unknown(_));
        if recovered.answers.values().any(unknown) {
            reach(Mark::StartedWithUnknowns);
        }
        let started = &mut self.nodes[node];
        started.life += 1;
        let options = Options {
            me: voter,
            configuration: configuration_of(&self.configuration, voter),
            election_ns: self.plan.waits_ns(node),
            beat_ns: self.plan.beat_ns,
            window_slots: self.plan.window_slots[node],
            batch_bytes_max: self.plan.batch_bytes_max,
            pending_bytes_max: self.plan.pending_bytes_max,
            page_bytes_max: self.plan.page_bytes_max,
            seed: self
                .chance
                .of((node as u64) << 32 | u64::from(started.life))
                .bits(),
        };
        let now_ns = started.clock.at(self.now_ns);
        let replica = Replica::new(now_ns, options, recovered)
            .unwrap_or_else(|error| unreachable!("{error}"));
        started.machine = opened
            .loaded
            .map(|loaded| Machine::restore(&loaded.content))
            .unwrap_or_default();
        for slot in started.machine.applied().0 + 1..=replica.decided().0 {
            if let Some(entry) = replica.decided_entry(Slot(slot)) {
                started.machine.apply(entry);
            }
        }
        started.executor = Some(Executor::new(now_ns, replica));
        started.store = Some(Store::new(opened.log));
        let trimmable = opened.snapshots.trimmable();
        started.snapshots = Some(opened.snapshots);
        // It may have died before it could trim.
        started.inbox.push_back(Input::Saved { trimmable });
        started.durable = Ticket::NONE;
        started.has_led = false;
        self.note(Happening::Started { voter });
        self.compare(node)?;
        self.look_at(node, true)?;
        self.go(node)
    }
}

/// What was found on a disk.
struct Opened {
    log: Log<SimulatedDisk>,
    found: Found,
    snapshots: Snapshots<SimulatedDisk>,
    loaded: Option<Loaded>,
}

/// What a voter's disk is made for.
pub(crate) fn identity_of(voter: Voter) -> Identity {
    Identity {
        cluster: CLUSTER,
        voter,
    }
}

/// Whether a record that was not known to be durable turned out to be.
fn survived(recovered: &Recovered, record: &Record) -> bool {
    match record {
        // What comes before it in the log has survived too.
        Record::Accepted { slot, .. } | Record::Learned { slot, .. }
            if *slot <= recovered.trimmed =>
        {
            true
        }
        Record::Promised(ballot) => recovered.promised >= *ballot,
        Record::Accepted { slot, vote } => {
            recovered.answers.get(slot) == Some(&Answer::Accepted(vote.clone()))
        }
        Record::Learned { slot, entry } => recovered.learned.get(slot) == Some(entry),
        Record::Decided(slot) => recovered.decided >= *slot,
        Record::Trimmed(slot) => recovered.trimmed >= *slot,
    }
}

/// The configuration, as the node with this voter has it: where its disk was lost, somebody has put in the new one, which
/// nobody else knows. A cluster of one is another cluster then, and stays as it is.
fn configuration_of(configuration: &Configuration, voter: Voter) -> Configuration {
    if configuration.voters().len() == 1 {
        return configuration.clone();
    }
    let others = configuration
        .voters()
        .iter()
        .filter(|other| other.node != voter.node);
    let voters = others.copied().chain([voter]).collect();
    Configuration::new(voters).unwrap_or_else(|_| configuration.clone())
}
