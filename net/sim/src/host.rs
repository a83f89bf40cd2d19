//! What a node's host does: it feeds the voter and carries out its effects one by one. Between any two it may die, or
//! stand still. What it does with its disk is in `storage`.

use sprag_paxos::{Effect, Message, NodeId, ProposeError, RoleName, Voter};

use crate::ask::Reply;
use crate::chance::Chance;
use crate::fault::Class;
use crate::invariant::{Broken, Fact};
use crate::node::{Input, Tick};
use crate::stale::Sent;
use crate::trace::Happening;
use crate::world::{Event, World};

pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Those who come to lead are ousted at most so many times in a row.
const OUSTINGS_MAX: u64 = 32;

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
    pub(crate) fn go(&mut self, node: usize) -> Result<(), Broken> {
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
            Input::Saved { trimmable } => executor.trim(now_ns, trimmable),
            Input::Received {
                snapshot,
                is_durable,
            } => executor.received(now_ns, snapshot, is_durable),
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
        self.may_have_risen(node);
    }

    /// Who has come to stand or to lead may not get far, and hear what was said before.
    fn may_have_risen(&mut self, node: usize) {
        let role = self.nodes[node].role();
        let has_risen = role != self.nodes[node].was
            && matches!(role, Some(RoleName::Candidate | RoleName::Recovering));
        self.nodes[node].was = role;
        if !has_risen {
            return;
        }
        if let Some(chance) = self.faults.strike(Class::Ousting, node) {
            let times = chance.of(0).log_uniform(1, OUSTINGS_MAX);
            let after_ns = self.soon_ns(chance.of(1));
            let oust = Event::Oust {
                chance: chance.of(2),
                times,
                last: node,
            };
            self.after(after_ns, oust);
        }
        if let Some(chance) = self.faults.strike(Class::Stale, node) {
            for (sent, chance) in self.stale.some(chance) {
                let Sent { from, to, message } = sent;
                let after_ns = self.soon_ns(chance);
                self.after(after_ns, Event::Message { to, from, message });
            }
        }
    }

    /// A time within which a node may come to lead, and what it does first may be done.
    pub(crate) fn soon_ns(&self, chance: Chance) -> u64 {
        chance.log_uniform(self.plan.latency_ns, 4 * self.plan.election_ns)
    }

    /// Carries out all effects there are. Between any two the node may die, or stand still.
    fn carry_out(&mut self, node: usize) -> Result<(), Broken> {
        loop {
            let Some(executor) = &mut self.nodes[node].executor else {
                return Ok(());
            };
            let effect = executor.poll();
            if let Some(chance) = self.faults.strike(Class::Crash, node) {
                self.count_death(node, effect.as_ref());
                self.die(node, chance.below(2) == 0);
                return Ok(());
            }
            let Some(effect) = effect else { return Ok(()) };
            self.note(Happening::Does {
                node: NodeId(node as u16),
                effect: &effect,
            });
            self.perform(node, effect)?;
            if self.nodes[node].is_paused {
                return Ok(());
            }
            if let Some(chance) = self.faults.strike(Class::Pause, node) {
                self.stand_still(node, chance.log_uniform(MILLISECOND_NS, SECOND_NS));
                return Ok(());
            }
        }
    }

    fn perform(&mut self, node: usize, effect: Effect) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        match effect {
            Effect::Persist { ticket, record } => self.persist(node, ticket, record)?,
            Effect::Send { to, message } => self.send(node, to, message)?,
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
                self.save_in_time(node);
            }
            Effect::SendChunk { to, asked } => self.send_chunk(node, to, asked)?,
            Effect::Receive {
                snapshot,
                offset,
                bytes,
            } => self.receive(node, snapshot, offset, &bytes),
            Effect::Restore { snapshot } => self.restore(node, snapshot)?,
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
    pub(crate) fn compare(&mut self, node: usize) -> Result<(), Broken> {
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

    pub(crate) fn send(&mut self, node: usize, to: Voter, message: Message) -> Result<(), Broken> {
        let from = self.nodes[node].voter;
        let fact = Fact::Sent {
            from,
            message: &message,
        };
        self.look(fact)?;
        self.stale.keep(from, to, &message);
        let receiver = usize::from(to.node.0);
        let [first, second] = self.network.send(&self.faults, self.now_ns, node, receiver);
        if let Some(at_ns) = second {
            let message = message.clone();
            self.at(at_ns, Event::Message { to, from, message });
        }
        if let Some(at_ns) = first {
            self.at(at_ns, Event::Message { to, from, message });
        }
        Ok(())
    }

    /// The node stands still, between two effects, and goes on later.
    pub(crate) fn stand_still(&mut self, node: usize, for_ns: u64) {
        let life = self.nodes[node].life;
        self.note(Happening::Paused {
            node: NodeId(node as u16),
            for_ns,
        });
        self.nodes[node].is_paused = true;
        self.after(for_ns, Event::GoOn { node, life });
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
        let Some(deadline_ns) = executor.deadline_ns() else {
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
