//! What a node's host does: it feeds the voter and carries out its effects one by one. Between any two it may die, or
//! stand still. What it does with its disk is in `storage`.

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Effect, Entry, Message, NodeId, ProposeError, RoleName, Voter};

use crate::ask::Reply;
use crate::chance::Chance;
use crate::command::CallNumber;
use crate::fault::Class;
use crate::invariant::{Broken, Fact};
use crate::node::{Input, Life, Node, Tick};
use crate::stale::Sent;
use crate::trace::Happening;
use crate::world::{Due, Event, World};

pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

impl World {
    /// Something came to a node, which takes it in if it is up and doesn't stand still.
    pub(crate) fn take(&mut self, node: usize, input: Input) -> Result<(), Broken> {
        if let Some(life) = &mut self.nodes[node].life {
            life.inbox.push_back(input);
        }
        self.go(node)
    }

    /// The pause is over.
    pub(crate) fn go_on(&mut self, node: usize) -> Result<(), Broken> {
        let life = self.nodes[node].life.as_mut();
        let Some(paused) = life.filter(|life| life.is_paused) else {
            return Ok(());
        };
        paused.is_paused = false;
        self.note(Happening::WentOn {
            node: NodeId(node as u16),
        });
        self.carry_out(node)?;
        self.go(node)
    }

    /// Takes in what has come, as long as nothing stops it.
    pub(crate) fn go(&mut self, node: usize) -> Result<(), Broken> {
        while let Some(life) = self.awake(node)
            && let Some(input) = life.inbox.pop_front()
        {
            self.feed(node, input)?;
            self.look_at(node, false)?;
            self.carry_out(node)?;
        }
        self.set_timer(node);
        Ok(())
    }

    fn feed(&mut self, node: usize, input: Input) -> Result<(), Broken> {
        let now_ns = self.nodes[node].clock.at(self.now_ns);
        let Some(life) = &mut self.nodes[node].life else {
            return Ok(());
        };
        let executor = &mut life.executor;
        match input {
            Input::Message { from, message } => executor.step(now_ns, from, message),
            Input::Persisted { ticket } => executor.persisted(now_ns, ticket),
            Input::Saved { trimmable } => executor.trim(now_ns, trimmable),
            Input::Received {
                snapshot,
                is_durable,
            } => executor.received(now_ns, snapshot, is_durable),
            Input::Tick => executor.tick(now_ns),
            Input::Request { call, bytes } => self.request(node, now_ns, call, &bytes),
        }
        self.notice_role(node)
    }

    /// A client asks.
    fn request(&mut self, node: usize, now_ns: u64, call: CallNumber, bytes: &[u8]) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        if life.role == RoleName::Leader
            && let Some(outcome) = life.machine.peek(bytes)
            && planted(Bug::ReadNotThroughTheLog)
        {
            return self.reply(node, call, Reply::Done(outcome));
        }
        match life.executor.propose(now_ns, bytes) {
            Ok(number) => {
                life.waiting.insert(call, number);
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
        }
    }

    /// Sees what the voter is doing by now. Who has come to stand or to lead may not get far, and hear what
    /// was said before.
    fn notice_role(&mut self, node: usize) -> Result<(), Broken> {
        let Some(life) = &mut self.nodes[node].life else {
            return Ok(());
        };
        let role = life.role();
        let before = std::mem::replace(&mut life.role, role);
        let leads = |role| matches!(role, RoleName::Recovering | RoleName::Leader);
        if leads(role) && !leads(before) {
            self.tally.elections += 1;
            self.propose_own(node)?;
        }
        let has_risen =
            role != before && matches!(role, RoleName::Candidate | RoleName::Recovering);
        if !has_risen {
            return Ok(());
        }
        if let Some(chance) = self.faults.strike(Class::Ousting, node) {
            self.begin_ousting(node, chance);
        }
        if role == RoleName::Recovering && !self.is_calm() {
            self.come_to_lead(node);
        }
        if let Some(chance) = self.faults.strike(Class::Stale, node) {
            for (sent, chance) in self.stale.some(self.nodes[node].voter, chance) {
                let Sent { from, to, message } = sent;
                let after_ns = self.soon_ns(chance);
                self.after(after_ns, Event::Message { to, from, message });
            }
        }
        Ok(())
    }

    /// Who comes to lead asks for something of its own at once, as hosts do that put on record who leads: so what two leaders
    /// propose is never all the same.
    fn propose_own(&mut self, node: usize) -> Result<(), Broken> {
        let note = [node as u64, self.tally.elections];
        let note = note.map(u64::to_le_bytes).concat();
        self.look(Fact::Wanted { command: &note })?;
        let now_ns = self.nodes[node].clock.at(self.now_ns);
        if let Some(life) = &mut self.nodes[node].life {
            // Nobody waits for it.
            let _ = life.executor.propose(now_ns, &note);
        }
        Ok(())
    }

    /// A time within which a node may come to lead, and what it does first may be done.
    pub(crate) fn soon_ns(&self, chance: Chance) -> u64 {
        chance.log_uniform(self.plan.latency_ns, 4 * self.plan.election_ns)
    }

    /// Carries out all effects there are. Between any two the node may die, or stand still.
    fn carry_out(&mut self, node: usize) -> Result<(), Broken> {
        loop {
            let Some(life) = &mut self.nodes[node].life else {
                return Ok(());
            };
            let effect = life.executor.poll();
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
            if self.awake(node).is_none() {
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
                self.apply(node, &entry);
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
            Effect::SteppedDown { unproposed } => self.let_down(node, unproposed),
        }
        Ok(())
    }

    /// The machine applies what is decided, and who waits for it is told.
    fn apply(&mut self, node: usize, entry: &Entry) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        let mut outcomes = life.machine.apply(entry);
        outcomes.retain(|(call, _)| life.waiting.remove(call).is_some());
        for (call, outcome) in outcomes {
            self.reply(node, call, Reply::Done(outcome));
        }
    }

    /// The voter leads no longer: who waits is told that, or that nothing was done.
    fn let_down(&mut self, node: usize, unproposed: u64) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        for (call, number) in std::mem::take(&mut life.waiting) {
            let reply = if number >= unproposed {
                Reply::NotDone { leader: None }
            } else {
                Reply::Unknown
            };
            self.reply(node, call, reply);
        }
    }

    /// Compares the node's state with that of the others.
    pub(crate) fn compare(&mut self, node: usize) -> Result<(), Broken> {
        match &self.nodes[node].life {
            Some(Life { machine, .. }) => {
                let (slot, digest) = (machine.applied(), machine.digest());
                self.states.look(node, slot, digest)
            }
            None => Ok(()),
        }
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

    /// The life of a node that is up and doesn't stand still.
    pub(crate) fn awake(&mut self, node: usize) -> Option<&mut Life> {
        let life = self.nodes[node].life.as_mut();
        life.filter(|life| !life.is_paused)
    }

    /// The node stands still, between two effects, and goes on later.
    pub(crate) fn stand_still(&mut self, node: usize, for_ns: u64) {
        self.note(Happening::Paused {
            node: NodeId(node as u16),
            for_ns,
        });
        if let Some(life) = &mut self.nodes[node].life {
            life.is_paused = true;
        }
        self.due_after(for_ns, node, Due::GoOn);
    }

    /// A timer fires; it may be another than was set last.
    pub(crate) fn tick(&mut self, node: usize) -> Result<(), Broken> {
        let now_ns = self.now_ns;
        let life = self.nodes[node].life.as_mut();
        let tick = life.and_then(|life| life.tick.take_if(|tick| tick.at_ns == now_ns));
        if tick.is_none() {
            return Ok(());
        }
        self.note(Happening::Ticked {
            node: NodeId(node as u16),
        });
        self.take(node, Input::Tick)
    }

    /// The node's clock goes otherwise than when its timer was set.
    pub(crate) fn set_timer_anew(&mut self, node: usize) {
        if let Some(life) = &mut self.nodes[node].life {
            life.tick = None;
        }
        self.set_timer(node);
    }

    /// Sets the timer for the voter's next deadline.
    pub(crate) fn set_timer(&mut self, node: usize) {
        let Node { life, clock, .. } = &mut self.nodes[node];
        // While it stands still, so does its timer.
        let Some(life) = life.as_mut().filter(|life| !life.is_paused) else {
            return;
        };
        let Some(deadline_ns) = life.executor.deadline_ns() else {
            life.tick = None;
            return;
        };
        if life
            .tick
            .is_some_and(|tick| tick.deadline_ns == deadline_ns)
        {
            return;
        }
        let late_ns = self
            .faults
            .strike(Class::LateTick, node)
            .map_or(0, |chance| chance.log_uniform(MILLISECOND_NS, SECOND_NS));
        let at_ns = clock.when(deadline_ns, self.now_ns) + late_ns;
        life.tick = Some(Tick { deadline_ns, at_ns });
        self.due_after(at_ns - self.now_ns, node, Due::Tick);
    }
}
