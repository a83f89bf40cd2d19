//! What a node's host does: it feeds the voter, carries out its effects one by one, dies between any two, and starts again.

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{
    Configuration, DiskId, Effect, Executor, Message, NodeId, Options, ProposeError, Replica,
    RoleName, Slot, Voter,
};

use crate::ask::Reply;
use crate::fault::Class;
use crate::invariant::{Broken, Fact};
use crate::machine::Machine;
use crate::node::{Input, Tick};
use crate::tally::Point;
use crate::trace::Happening;
use crate::world::{Event, World};

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

impl World {
    /// Something came to a node that is up.
    pub(crate) fn take(&mut self, node: usize, input: Input) -> Result<(), Broken> {
        self.nodes[node].inbox.push_back(input);
        self.go(node)
    }

    /// The pause is over.
    pub(crate) fn go_on(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].is_paused {
            self.nodes[node].is_paused = false;
            self.note(Happening::WentOn {
                node: NodeId(node as u16),
            });
            self.carry_out(node)?;
            self.go(node)?;
        }
        Ok(())
    }

    /// Takes in what has come, as long as nothing stops it.
    fn go(&mut self, node: usize) -> Result<(), Broken> {
        while !self.nodes[node].is_paused
            && self.nodes[node].executor.is_some()
            && let Some(input) = self.nodes[node].inbox.pop_front()
        {
            self.feed(node, input);
            self.look_at(node, false)?;
            self.carry_out(node)?;
        }
        self.set_timer(node);
        Ok(())
    }

    fn feed(&mut self, node: usize, input: Input) {
        let now_ns = self.nodes[node].clock.at(self.now_ns);
        let Some(executor) = &mut self.nodes[node].executor else {
            return;
        };
        match input {
            Input::Message { from, message } => executor.step(now_ns, from, message),
            Input::Persisted { ticket } => executor.persisted(now_ns, ticket),
            Input::Tick => executor.tick(now_ns),
            Input::Request { call, bytes } => match executor.propose(now_ns, &bytes) {
                Ok(number) => {
                    self.nodes[node].waiting.insert(call, number);
                }
                Err(error) => {
                    let leader = match error {
                        ProposeError::NotLeader { leader } => leader,
                        ProposeError::Overloaded { .. } | ProposeError::TooLarge { .. } => {
                            Some(NodeId(node as u16))
                        }
                    };
                    self.reply(node, call, Reply::NotDone { leader });
                }
            },
        }
        let leads = matches!(
            self.nodes[node].role(),
            Some(RoleName::Recovering | RoleName::Leader)
        );
        if leads && !self.nodes[node].has_led {
            self.tally.elections += 1;
        }
        self.nodes[node].has_led = leads;
    }

    /// Carries out all effects there are. Between any two the node may die, or stand still.
    fn carry_out(&mut self, node: usize) -> Result<(), Broken> {
        loop {
            let Some(executor) = &mut self.nodes[node].executor else {
                return Ok(());
            };
            let effect = executor.poll();
            if let Some(chance) = self.faults.strike(Class::Crash, node) {
                let point = Point::before(effect.as_ref(), self.nodes[node].is_syncing);
                if let Some(role) = self.nodes[node].role() {
                    self.tally.crashes[point as usize][role as usize] += 1;
                }
                self.die(node)?;
                let down_ns = chance.log_uniform(MILLISECOND_NS, SECOND_NS);
                self.after(down_ns, Event::Start { node });
                return Ok(());
            }
            let Some(effect) = effect else { return Ok(()) };
            self.note(Happening::Does {
                node: NodeId(node as u16),
                effect: &effect,
            });
            self.perform(node, effect)?;
            if let Some(chance) = self.faults.strike(Class::Pause, node) {
                let for_ns = chance.log_uniform(MILLISECOND_NS, SECOND_NS);
                let life = self.nodes[node].life;
                self.note(Happening::Paused {
                    node: NodeId(node as u16),
                    for_ns,
                });
                self.nodes[node].is_paused = true;
                self.after(for_ns, Event::GoOn { node, life });
                return Ok(());
            }
        }
    }

    fn perform(&mut self, node: usize, effect: Effect) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        match effect {
            Effect::Persist { record, .. } => {
                self.nodes[node].journal.write(record);
                self.sync(node);
            }
            Effect::Send { to, message } => {
                self.look(Fact::Sent {
                    from: voter,
                    message: &message,
                })?;
                self.send(node, to, message);
            }
            Effect::Decided { slot, entry } => {
                self.look(Fact::Decided {
                    voter,
                    slot,
                    entry: &entry,
                })?;
                self.frontier = self.frontier.max(slot);
                for (call, outcome) in self.nodes[node].machine.apply(&entry) {
                    if self.nodes[node].waiting.remove(&call).is_some() {
                        self.reply(node, call, Reply::Done(outcome));
                    }
                }
                self.compare(node)?;
            }
            Effect::SteppedDown { unproposed } => {
                let waiting = std::mem::take(&mut self.nodes[node].waiting);
                for (call, number) in waiting {
                    let reply = if number >= unproposed {
                        Reply::NotDone { leader: None }
                    } else {
                        Reply::Unknown
                    };
                    self.reply(node, call, reply);
                }
            }
        }
        Ok(())
    }

    /// Machines that applied the same slots are in the same state.
    fn compare(&mut self, node: usize) -> Result<(), Broken> {
        let machine = &self.nodes[node].machine;
        let (slot, digest) = (machine.applied(), machine.digest());
        let first = *self.digests.entry(slot).or_insert(digest);
        if first == digest {
            return Ok(());
        }
        Err(Broken {
            invariant: "equal states",
            source: "Schneider, Implementing Fault-Tolerant Services Using the State Machine Approach, 1990",
            what: format!("after {slot}, node {node} is in another state than others were"),
        })
    }

    fn send(&mut self, node: usize, to: Voter, message: Message) {
        let from = self.nodes[node].voter;
        let receiver = usize::from(to.node.0);
        let [first, second] = self
            .network
            .send(&mut self.faults, self.now_ns, node, receiver);
        if let Some(at_ns) = second {
            let message = message.clone();
            self.at(at_ns, Event::Message { to, from, message });
        }
        if let Some(at_ns) = first {
            self.at(at_ns, Event::Message { to, from, message });
        }
    }

    /// Has what is written synced, unless that is under way.
    fn sync(&mut self, node: usize) {
        if self.nodes[node].is_syncing || !self.nodes[node].journal.is_urgent() {
            return;
        }
        self.nodes[node].is_syncing = true;
        let count = self.nodes[node].journal.begin_sync();
        let mut takes_ns = self.plan.sync_ns;
        if let Some(chance) = self.faults.strike(Class::SlowDisk, node) {
            takes_ns += chance.log_uniform(MILLISECOND_NS, SECOND_NS);
        }
        let life = self.nodes[node].life;
        self.after(takes_ns, Event::Synced { node, life, count });
    }

    /// The disk is done, even if the node stands still.
    pub(crate) fn synced(&mut self, node: usize, count: usize) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        let records: Vec<_> = self.nodes[node].journal.sync(count).cloned().collect();
        for record in &records {
            self.look(Fact::Durable { voter, record })?;
        }
        self.nodes[node].is_syncing = false;
        self.sync(node);
        let ticket = self.ticket(node, count);
        self.note(Happening::Synced {
            node: NodeId(node as u16),
            ticket,
        });
        self.take(node, Input::Persisted { ticket })
    }

    /// The node dies here and now.
    pub(crate) fn die(&mut self, node: usize) -> Result<(), Broken> {
        self.note(Happening::Crashed {
            node: NodeId(node as u16),
        });
        let dead = &mut self.nodes[node];
        dead.executor = None;
        dead.is_paused = false;
        dead.is_syncing = false;
        dead.inbox.clear();
        dead.waiting.clear();
        dead.tick = None;
        let voter = dead.voter;
        let survived: Vec<_> = dead
            .journal
            .crash(&mut self.faults, node)
            .cloned()
            .collect();
        for record in &survived {
            self.look(Fact::Durable { voter, record })?;
        }
        Ok(())
    }

    /// The node starts with what its disk kept.
    pub(crate) fn start(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].executor.is_some() {
            return Ok(());
        }
        let is_loser = self.nodes[node].is_loser;
        let life = self.nodes[node].life + 1;
        if life > 1 {
            self.tally.restarts += 1;
            if is_loser && let Some(chance) = self.faults.strike(Class::LostDisk, node) {
                if !planted(Bug::LostDiskKeepsItsVote) {
                    self.nodes[node].voter.disk = DiskId(chance.bits());
                }
                self.nodes[node].journal = crate::journal::Journal::default();
            }
        }
        let started = &mut self.nodes[node];
        let recovered = started.journal.recover(&mut self.faults, node, is_loser);
        let options = Options {
            me: started.voter,
            configuration: configuration_of(&self.configuration, started.voter),
            election_ns: self.plan.election_ns,
            beat_ns: self.plan.beat_ns,
            window_slots: self.plan.window_slots,
            batch_bytes_max: self.plan.batch_bytes_max,
            pending_bytes_max: self.plan.pending_bytes_max,
            page_bytes_max: self.plan.page_bytes_max,
            seed: self.chance.of((node as u64) << 32 | u64::from(life)).bits(),
        };
        let now_ns = started.clock.at(self.now_ns);
        started.life = life;
        started.written_before = started.journal.written();
        let replica = Replica::new(now_ns, options, recovered);
        started.machine = Machine::default();
        for slot in 1..=replica.decided().0 {
            if let Some(entry) = replica.decided_entry(Slot(slot)) {
                started.machine.apply(entry);
            }
        }
        started.executor = Some(Executor::new(now_ns, replica));
        started.has_led = false;
        let voter = started.voter;
        self.note(Happening::Started { voter });
        self.compare(node)?;
        self.look_at(node, true)?;
        self.set_timer(node);
        Ok(())
    }

    /// Sets the timer for the voter's next deadline.
    pub(crate) fn set_timer(&mut self, node: usize) {
        let Some(executor) = &self.nodes[node].executor else {
            return;
        };
        // While it stands still, so does its timer.
        if self.nodes[node].is_paused {
            return;
        }
        let Some(deadline_ns) = executor.replica().deadline_ns() else {
            self.nodes[node].tick = None;
            return;
        };
        if self.nodes[node]
            .tick
            .is_some_and(|tick| tick.deadline_ns == deadline_ns)
        {
            return;
        }
        let late_ns = self
            .faults
            .strike(Class::LateTick, node)
            .map_or(0, |chance| chance.log_uniform(MILLISECOND_NS, SECOND_NS));
        let at_ns = self.nodes[node].clock.when(deadline_ns, self.now_ns) + late_ns;
        self.nodes[node].tick = Some(Tick { deadline_ns, at_ns });
        let life = self.nodes[node].life;
        self.at(at_ns, Event::Tick { node, life });
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
