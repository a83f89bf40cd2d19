//! How a node dies, and how it starts with what its disk kept.

use sprag_log::{Found, Loaded, Log, OpenError, SimulatedDisk, Snapshots, Store};
use sprag_paxos::simulation::{Bug, Mark, planted, reach};
use sprag_paxos::{
    Answer, Configuration, DiskId, Executor, NodeId, Options, Record, Recovered, Replica, Slot,
    Voter,
};

use crate::disk::{CLUSTER, identity_of};
use crate::fault::Class;
use crate::host::{MILLISECOND_NS, SECOND_NS};
use crate::invariant::{Broken, Fact, sound_disks_keep};
use crate::machine::Machine;
use crate::node::{Input, Life, Node};
use crate::snapshots::BYTES_MAX;
use crate::trace::Happening;
use crate::world::{Event, World};

impl World {
    /// The node dies here and now, with the machine's power or without, and starts again later.
    pub(crate) fn die(&mut self, node: usize, with_power: bool) {
        self.note(Happening::Crashed {
            node: NodeId(node as u16),
        });
        let dead = &mut self.nodes[node];
        dead.life = None;
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
        if self.nodes[node].life.is_some() || self.nodes[node].is_gone {
            return Ok(());
        }
        if self.nodes[node].lives > 0 {
            self.tally.restarts += 1;
            self.befall(node);
        }
        let opened = self.open(node);
        if self.nodes[node].disk.is_cut() {
            reach(Mark::PowerCutInADiskOperation);
            self.start_again(node, true);
            return Ok(());
        }
        match opened {
            Ok(opened) => match opened.found.lost {
                None => self.go_live(node, opened),
                lost => {
                    reach(Mark::AcceptancesLost);
                    self.lose(node, &format!("acceptances up to {lost:?} are lost"))
                }
            },
            Err(OpenError::Disk(_)) => {
                reach(Mark::StartRefused);
                self.start_again(node, false);
                Ok(())
            }
            Err(error) => {
                reach(match &error {
                    OpenError::VoteLost => Mark::VoteLost,
                    OpenError::SnapshotLost { .. } => Mark::SnapshotLost,
                    _ => Mark::DiskEmpty,
                });
                self.lose(node, &error.to_string())
            }
        }
    }

    /// A disk that may lose what it was asked to keep does so while the node is down: all of it, or some sectors.
    fn befall(&mut self, node: usize) {
        let down = &mut self.nodes[node];
        if !down.is_loser {
            return;
        }
        if self.faults.strike(Class::LostDisk, node).is_some() {
            down.disk.replace(&self.faults, node);
        } else if let Some(chance) = self.faults.strike(Class::BitRot, node) {
            down.disk.rot(&self.plan, chance);
        }
    }

    /// The start came to nothing, and with the machine's power or without the node goes down once more.
    fn start_again(&mut self, node: usize, with_power: bool) {
        self.nodes[node].disk.die(with_power);
        self.start_later(node);
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
    fn lose(&mut self, node: usize, what: &str) -> Result<(), Broken> {
        if !self.nodes[node].is_loser {
            return Err(sound_disks_keep::broken(node, what));
        }
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
        self.start_again(node, false);
        Ok(())
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
        self.nodes[node].lives += 1;
        let options = self.options(node);
        let now_ns = self.nodes[node].clock.at(self.now_ns);
        let replica = Replica::new(now_ns, options, recovered)
            .unwrap_or_else(|error| unreachable!("{error}"));
        let machine = machine_of(&replica, opened.loaded.as_ref());
        let executor = Executor::new(now_ns, replica);
        let trimmable = opened.snapshots.trimmable();
        let mut life = Life::new(executor, machine, Store::new(opened.log), opened.snapshots);
        // It may have died before it could trim.
        life.inbox.push_back(Input::Saved { trimmable });
        self.nodes[node].life = Some(life);
        self.note(Happening::Started { voter });
        self.compare(node)?;
        self.look_at(node, true)?;
        self.go(node)
    }

    fn options(&self, node: usize) -> Options {
        let Node { voter, lives, .. } = self.nodes[node];
        let number = (node as u64) << 32 | u64::from(lives);
        Options {
            me: voter,
            configuration: configuration_of(&self.configuration, voter),
            election_ns: self.plan.waits_ns(node),
            beat_ns: self.plan.beat_ns,
            window_slots: self.plan.window_slots[node],
            batch_bytes_max: self.plan.batch_bytes_max,
            pending_bytes_max: self.plan.pending_bytes_max,
            page_bytes_max: self.plan.page_bytes_max,
            seed: self.chance.of(number).bits(),
        }
    }
}

/// What was found on a disk.
struct Opened {
    log: Log<SimulatedDisk>,
    found: Found,
    snapshots: Snapshots<SimulatedDisk>,
    loaded: Option<Loaded>,
}

/// The machine of a voter that starts: as its snapshot has it, and with what it knows to be decided after that.
fn machine_of(replica: &Replica, loaded: Option<&Loaded>) -> Machine {
    let mut machine = loaded
        .map(|loaded| Machine::restore(&loaded.content))
        .unwrap_or_default();
    let mut applied = machine.applied().0;
    if applied > 0 && planted(Bug::AppliedAgainAfterASnapshot) {
        applied -= 1;
    }
    for slot in applied + 1..=replica.decided().0 {
        if let Some(entry) = replica.decided_entry(Slot(slot)) {
            machine.apply(entry);
        }
    }
    machine
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
