//! Replication: a leader's slots on their way, and what the others do with them.

use crate::acceptor::TooLate;
use crate::ballot::Ballot;
use crate::configuration::VoterSet;
use crate::effect::{Effect, Record, Ticket};
use crate::entry::{Entry, Slot, Vote};
use crate::leader::Open;
use crate::message::Message;
use crate::options::WINDOW_SLOTS_MAX;
use crate::replica::{Replica, Role};
use crate::simulation::{Bug, Mark, planted, reach};
use crate::voter::Voter;

/// How far after what is known to be decided something is accepted: what a leader may have under way, and as much again for
/// what isn't known yet.
const AHEAD_SLOTS_MAX: u64 = 2 * WINDOW_SLOTS_MAX;

impl Replica {
    /// Puts what waits into slots, and sends what has not been sent, as far as the window goes.
    pub(crate) fn pump(&mut self, now_ns: u64) {
        let decided = self.learner.decided();
        let last = Slot(decided.0 + self.options.window_slots);
        loop {
            let Role::Leader(leader) = &mut self.role else {
                return;
            };
            if leader.sent >= last {
                if !leader.pending.is_empty() {
                    reach(Mark::WindowFull);
                }
                break;
            }
            let slot = leader.sent.next();
            if slot == leader.next {
                let Some(entry) = leader.pending.take(self.options.batch_bytes_max) else {
                    break;
                };
                let open = Open {
                    entry,
                    accepted: VoterSet::default(),
                    sent_ns: now_ns,
                };
                leader.open.push_back(open);
                leader.next = slot.next();
            }
            leader.sent = slot;
            leader.told = decided;
            let ballot = leader.ballot;
            let Some(open) = leader.open_mut(slot) else {
                continue;
            };
            open.sent_ns = now_ns;
            let accept = Message::Accept {
                ballot,
                slot,
                entry: open.entry.clone(),
                decided,
            };
            // To the others before its own disk, which takes longest.
            self.broadcast(Ticket::NONE, &accept);
            self.send(Ticket::NONE, self.options.me, accept);
        }
        self.tell_decided();
    }

    /// Tells what is decided, unless that is known.
    fn tell_decided(&mut self) {
        let decided = self.learner.decided();
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        if leader.told < decided {
            leader.told = decided;
            let ballot = leader.ballot;
            self.broadcast(Ticket::NONE, &Message::Commit { ballot, decided });
        }
    }

    /// A leader asks to accept `entry`.
    pub(crate) fn on_accept(
        &mut self,
        now_ns: u64,
        from: Voter,
        ballot: Ballot,
        slot: Slot,
        entry: &Entry,
        decided: Slot,
    ) {
        self.highest = self.highest.max(ballot);
        if self.is_too_much(slot) {
            if from != self.options.me && ballot >= self.acceptor.promised() {
                self.on_commit(now_ns, from, ballot, decided);
            }
            return;
        }
        if ballot > self.acceptor.promised() {
            reach(Mark::AcceptAboveThePromise);
        }
        if slot <= self.learner.trimmed() {
            return self.accept_trimmed(now_ns, from, ballot, slot, decided);
        }
        // Something else than what is decided comes from a ballot that nobody else takes part in any more. Accepted, it would
        // be harmless to others; but on record it would look like what was decided last.
        let held = self.learner.entry(&self.acceptor, slot);
        if held.is_some_and(|held| held != entry) {
            reach(Mark::AcceptOfAnotherThanDecided);
            return;
        }
        let half = self.something_else(slot, entry);
        match self.acceptor.accept(ballot, slot, entry) {
            Err(TooLate(_)) => {
                reach(Mark::AcceptRefused);
                self.refuse(from, ballot);
            }
            Ok(is_new) => {
                if let Some(half) = half {
                    let vote = Vote { ballot, ..half };
                    self.persist(now_ns, Record::Accepted { slot, vote });
                }
                let entry = entry.clone();
                self.accepted(now_ns, from, slot, Vote { ballot, entry }, is_new);
                if from != self.options.me {
                    self.on_commit(now_ns, from, ballot, decided);
                }
            }
        }
    }

    /// For a planted bug only: what was accepted in `slot` before, if that was something else.
    fn something_else(&self, slot: Slot, entry: &Entry) -> Option<Vote> {
        if !cfg!(feature = "simulation") {
            return None;
        }
        let last = self.acceptor.vote(slot)?;
        (last.entry != *entry && planted(Bug::BallotAndVoteInTwoWrites)).then(|| last.clone())
    }

    /// Whether an acceptance of `slot` would be more than can be taken on.
    fn is_too_much(&self, slot: Slot) -> bool {
        // A leader is never further ahead of what is decided than a window; and who is behind fetches.
        if slot.0 > self.decided().0.saturating_add(AHEAD_SLOTS_MAX) {
            reach(Mark::AcceptTooFarAhead);
            return true;
        }
        let is_behind = self.tickets.are_behind();
        if is_behind {
            reach(Mark::AcceptWithDiskBehind);
        }
        is_behind
    }

    /// What a leader asked for is accepted: it is put on record, if it is new, and the leader told.
    fn accepted(&mut self, now_ns: u64, to: Voter, slot: Slot, vote: Vote, is_new: bool) {
        let ballot = vote.ballot;
        // An answer that still waits for the disk goes out by itself.
        let is_answered = !is_new && self.tickets.hold_acceptance(slot);
        if is_new {
            self.persist(now_ns, Record::Accepted { slot, vote });
        } else {
            reach(if is_answered {
                Mark::AcceptTwiceBeforeDurable
            } else {
                Mark::AcceptTwice
            });
        }
        if !is_answered {
            let after = self.own_acceptance(to);
            self.send(after, to, Message::Accepted { ballot, slot });
        }
    }

    /// What an Accepted to that voter rests on: that the acceptance is never forgotten.
    fn own_acceptance(&self, to: Voter) -> Ticket {
        let bug = if to == self.options.me {
            Bug::OwnVoteBeforeDurable
        } else {
            Bug::AcceptedBeforeDurable
        };
        if planted(bug) {
            Ticket::NONE
        } else {
            self.tickets.last_urgent()
        }
    }

    /// An Accept for a slot that only a snapshot holds. The slot is decided by votes that are durable elsewhere, so this one
    /// decides nothing; but a leader that doesn't know may need it to go on. It is never told as `never`: promises begin after
    /// what is decided.
    fn accept_trimmed(
        &mut self,
        now_ns: u64,
        from: Voter,
        ballot: Ballot,
        slot: Slot,
        decided: Slot,
    ) {
        match self.acceptor.promise(ballot) {
            Err(TooLate(_)) => self.refuse(from, ballot),
            Ok(is_new) => {
                reach(Mark::AcceptOfTrimmed);
                if is_new {
                    self.persist(now_ns, Record::Promised(ballot));
                }
                let after = self.tickets.last_urgent();
                self.send(after, from, Message::Accepted { ballot, slot });
                if from != self.options.me {
                    self.on_commit(now_ns, from, ballot, decided);
                }
            }
        }
    }

    /// A voter accepted; what is chosen by that is decided.
    pub(crate) fn on_accepted(&mut self, now_ns: u64, index: usize, ballot: Ballot, slot: Slot) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        leader.accepted(index, ballot, slot);
        if ballot == leader.ballot {
            leader.heard_ns[index] = now_ns;
        }
        let mut has_advanced = false;
        loop {
            let Role::Leader(leader) = &mut self.role else {
                return;
            };
            let Some(entry) = leader.take_chosen(&self.options.configuration) else {
                break;
            };
            self.learn(now_ns, entry);
            has_advanced = true;
        }
        if has_advanced {
            self.pump(now_ns);
        }
    }

    /// The leader of `ballot` says that everything up to `decided` is decided; whether it may lead.
    pub(crate) fn on_commit(
        &mut self,
        now_ns: u64,
        from: Voter,
        ballot: Ballot,
        decided: Slot,
    ) -> bool {
        if ballot < self.acceptor.promised() {
            return false;
        }
        self.highest = self.highest.max(ballot);
        if self.leader != Some(ballot) {
            self.step_down(now_ns);
            self.leader = Some(ballot);
        }
        self.heard_ns = now_ns;
        self.wait_for_leader(now_ns);
        self.known = self.known.max(decided);
        while self.learner.decided() < decided {
            let slot = self.learner.decided().next();
            match self.acceptor.vote(slot) {
                Some(vote) if vote.ballot == ballot => reach(Mark::CommitOfOwnVote),
                Some(_) => {
                    reach(Mark::CommitOfAnotherVote);
                    if !planted(Bug::CommitBlessesAStaleVote) {
                        self.fetch(now_ns, from);
                        break;
                    }
                }
                None => {
                    reach(Mark::CommitWithoutVote);
                    self.fetch(now_ns, from);
                    break;
                }
            }
            self.learner.advance();
            self.tell_host();
        }
        true
    }

    /// The next slot is decided to hold `entry`.
    pub(crate) fn learn(&mut self, now_ns: u64, entry: Entry) {
        let slot = self.decided().next();
        let vote = self.acceptor.vote(slot);
        if vote.is_some_and(|vote| vote.entry == entry) {
            self.learner.advance();
        } else {
            if !planted(Bug::LearnedNotRecorded) {
                let entry = entry.clone();
                self.persist(now_ns, Record::Learned { slot, entry });
            }
            self.learner.learn(entry);
        }
        self.tell_host();
    }

    /// One more slot is decided: the host is told.
    fn tell_host(&mut self) {
        let slot = self.decided();
        self.note_decided();
        if let Some(entry) = self.learner.entry(&self.acceptor, slot).cloned() {
            self.output(Ticket::NONE, Effect::Decided { slot, entry });
        }
    }

    /// A leader's beat: it makes sure that it is heard and hears, and that its disk goes on; and sends again what was lost.
    pub(crate) fn beat(&mut self, now_ns: u64) {
        let election_ns = self.options.election_ns;
        let decided = self.learner.decided();
        let me = self.index_of(self.options.me);
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        if let Some(me) = me {
            leader.heard_ns[me] = now_ns;
        }
        if !leader.is_connected(
            &self.options.configuration,
            now_ns.saturating_sub(election_ns),
        ) {
            reach(Mark::LeaderUnheard);
            return self.step_down(now_ns);
        }
        if leader
            .writes_since_ns
            .is_some_and(|since_ns| now_ns > since_ns + election_ns)
        {
            reach(Mark::LeaderDiskStands);
            return self.step_down(now_ns);
        }
        leader.beat_due_ns = now_ns + self.options.beat_ns;
        let ballot = leader.ballot;
        let mut again = Vec::new();
        let slots = leader.first_open().0..=leader.sent.0;
        for (slot, open) in slots.map(Slot).zip(&mut leader.open) {
            if open.sent_ns + self.options.beat_ns > now_ns || planted(Bug::AcceptNotSentAgain) {
                continue;
            }
            open.sent_ns = now_ns;
            let missing = self.options.configuration.voters().iter().enumerate();
            for (_, to) in missing.filter(|(index, _)| !open.accepted.contains(*index)) {
                let entry = open.entry.clone();
                let accept = Message::Accept {
                    ballot,
                    slot,
                    entry,
                    decided,
                };
                again.push((*to, accept));
            }
        }
        self.broadcast(Ticket::NONE, &Message::Beat { ballot, decided });
        for (to, accept) in again {
            reach(Mark::AcceptSentAgain);
            self.send(Ticket::NONE, to, accept);
        }
        // A cluster of one has nobody to hear from.
        self.pump(now_ns);
    }

    /// The leader of `ballot` asks whether it is heard.
    pub(crate) fn on_beat(&mut self, now_ns: u64, from: Voter, ballot: Ballot, decided: Slot) {
        if self.on_commit(now_ns, from, ballot, decided) {
            self.send(Ticket::NONE, from, Message::Heard { ballot });
        } else {
            self.refuse(from, ballot);
        }
    }

    /// A voter heard a beat.
    pub(crate) fn on_heard(&mut self, now_ns: u64, index: usize, to: Ballot) {
        if let Role::Leader(leader) = &mut self.role
            && leader.ballot == to
        {
            leader.heard_ns[index] = now_ns;
        }
    }
}

#[cfg(test)]
mod tests;
