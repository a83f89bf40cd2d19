//! Elections: who may ask for promises, and what is done with them.

use crate::acceptor::TooLate;
use crate::ballot::Ballot;
use crate::candidate::{Candidate, Outcome, Page};
use crate::configuration::{Phase, VoterSet};
use crate::effect::{Effect, Record, Ticket};
use crate::entry::{Entry, Slot};
use crate::leader::Leader;
use crate::message::Message;
use crate::replica::{Replica, Role};
use crate::simulation::{Bug, Mark, planted, reach};
use crate::voter::Voter;

impl Replica {
    /// Waits for a leader, from now on.
    pub(crate) fn wait_for_leader(&mut self, now_ns: u64) {
        self.election_due_ns = now_ns + self.vary(self.options.election_ns);
    }

    /// Asks the others whether they miss a leader too. Only a voter that a quorum hears and that hears a quorum gets further;
    /// so one with a bad link can't depose a good leader.
    pub(crate) fn canvass(&mut self, now_ns: u64) {
        let me = self.options.me;
        // No candidacy gets further than its disk. What that has not done in all this time it may never do.
        if self.tickets.last_urgent() > self.tickets.durable() {
            reach(Mark::CanvassPutOff);
            return self.wait_for_leader(now_ns);
        }
        // After the last round there is no other: whoever wrote that number has ended the cluster.
        let Some(ballot) = self.highest.max(self.acceptor.promised()).next_of(me) else {
            return self.wait_for_leader(now_ns);
        };
        self.role = Role::Canvasser {
            ballot,
            ayes: VoterSet::default(),
        };
        self.leader = None;
        self.wait_for_leader(now_ns);
        self.ask_again(now_ns);
        self.send(Ticket::NONE, me, Message::Canvass { ballot });
    }

    /// Asks those that have not answered.
    pub(crate) fn ask_again(&mut self, now_ns: u64) {
        self.resend_due_ns = now_ns + self.options.beat_ns;
        let voters = self.options.configuration.voters().len();
        let asks: Vec<(usize, Message)> = match &self.role {
            Role::Canvasser { ballot, ayes } => {
                let missing = (0..voters).filter(|index| !ayes.contains(*index));
                missing
                    .map(|index| (index, Message::Canvass { ballot: *ballot }))
                    .collect()
            }
            Role::Candidate(candidate) => {
                let ballot = candidate.ballot;
                let missing =
                    (0..voters).filter_map(|index| Some((index, candidate.wants(index)?)));
                missing
                    .map(|(index, from)| (index, Message::Prepare { ballot, from }))
                    .collect()
            }
            Role::Follower | Role::Leader(_) => return,
        };
        // What was asked first still waits for the own promise to be durable.
        if self.own_promise() > self.tickets.durable() {
            return;
        }
        for (index, message) in asks {
            let to = self.options.configuration.voters()[index];
            if to != self.options.me {
                self.send(Ticket::NONE, to, message);
            }
        }
        self.go_on(now_ns);
    }

    /// What a Prepare rests on: that the ballot is never used again, whatever happens.
    fn own_promise(&self) -> Ticket {
        match self.role {
            Role::Candidate(_) => self.tickets.last_urgent(),
            _ => Ticket::NONE,
        }
    }

    /// Somebody canvasses: says aye, unless it knows of a leader or of a promise that is higher.
    pub(crate) fn on_canvass(&mut self, now_ns: u64, from: Voter, ballot: Ballot) {
        self.highest = self.highest.max(ballot);
        if ballot <= self.acceptor.promised() && !self.is_in(ballot) {
            reach(Mark::CanvassRefused);
            self.refuse(from, ballot);
            return;
        }
        let is_other = from != self.options.me;
        let has_leader = matches!(self.role, Role::Leader(_))
            || (is_other && now_ns < self.heard_ns + self.options.election_ns);
        let is_rival = matches!(self.role, Role::Canvasser { .. }) && is_other;
        if has_leader || (is_rival && planted(Bug::CanvasserSaysNoAye)) {
            reach(Mark::CanvassUnwelcome);
            return;
        }
        self.send(Ticket::NONE, from, Message::Aye { ballot });
    }

    /// Whether it canvasses, stands or leads in this ballot.
    fn is_in(&self, ballot: Ballot) -> bool {
        self.own_ballot() == Some(ballot)
    }

    /// The ballot that it canvasses, stands or leads in.
    pub(crate) fn own_ballot(&self) -> Option<Ballot> {
        match &self.role {
            Role::Follower => None,
            Role::Canvasser { ballot, .. } => Some(*ballot),
            Role::Candidate(candidate) => Some(candidate.ballot),
            Role::Leader(leader) => Some(leader.ballot),
        }
    }

    /// A voter says aye.
    pub(crate) fn on_aye(&mut self, now_ns: u64, index: usize, to: Ballot) {
        let Role::Canvasser { ballot, ayes } = &mut self.role else {
            return;
        };
        if *ballot != to {
            reach(Mark::AyeOfAnotherBallot);
            return;
        }
        ayes.insert(index);
        if self.options.configuration.is_quorum(Phase::One, *ayes) {
            self.stand(now_ns, to);
        }
    }

    /// Phase one begins.
    fn stand(&mut self, now_ns: u64, ballot: Ballot) {
        // Its own promise, and so the ballot, is durable before anyone hears of it: or the same ballot, begun anew after a
        // crash, could propose something else.
        match self.acceptor.promise(ballot) {
            Ok(true) if planted(Bug::BallotReusedAfterRestart) => {}
            Ok(true) => self.persist(now_ns, Record::Promised(ballot)),
            // It has promised more since it began to canvass.
            Ok(false) | Err(_) => return self.step_down(now_ns),
        }
        self.highest = self.highest.max(ballot);
        let from = if planted(Bug::CandidateAsksAfterItsVotes) {
            self.acceptor.last().max(self.decided()).next()
        } else {
            self.decided().next()
        };
        let candidate = Candidate::new(ballot, from, &self.options.configuration);
        self.role = Role::Candidate(candidate);
        self.wait_for_leader(now_ns);
        self.resend_due_ns = now_ns + self.options.beat_ns;
        let prepare = Message::Prepare { ballot, from };
        self.broadcast(self.own_promise(), &prepare);
        // What it answers itself takes the same way as what others answer.
        self.send(Ticket::NONE, self.options.me, prepare);
    }

    /// A candidate asks for the promise, and for what was accepted from `first` on.
    pub(crate) fn on_prepare(&mut self, now_ns: u64, from: Voter, ballot: Ballot, first: Slot) {
        self.highest = self.highest.max(ballot);
        if self.tickets.are_behind() {
            reach(Mark::PrepareWithDiskBehind);
            return;
        }
        match self.acceptor.promise(ballot) {
            Err(TooLate(_)) => {
                reach(Mark::PrepareRefused);
                return self.refuse(from, ballot);
            }
            Ok(true) => {
                self.persist(now_ns, Record::Promised(ballot));
                self.step_down(now_ns);
                self.leader = None;
            }
            Ok(false) => {
                if from != self.options.me {
                    reach(Mark::PrepareTwice);
                    self.wait_for_leader(now_ns);
                    if self.tickets.hold_promise() {
                        reach(Mark::PrepareTwiceBeforeDurable);
                        return;
                    }
                }
            }
        }
        // However long it takes to tell a candidate everything: as long as it asks, no other is welcome.
        if from != self.options.me {
            self.heard_ns = now_ns;
        }
        let decided = self.decided();
        if decided >= first {
            reach(Mark::PrepareBehind);
        }
        let page_bytes_max = self.options.page_bytes_max;
        let (answers, next) = self
            .acceptor
            .page(first.max(decided.next()), page_bytes_max);
        // It rests on the promise, and on every vote that it tells.
        let is_early = planted(Bug::PromiseBeforeDurable) && from != self.options.me;
        let after = if is_early {
            Ticket::NONE
        } else {
            self.tickets.last_urgent()
        };
        let promise = Message::Promise {
            ballot,
            from: first,
            answers,
            next,
            decided,
        };
        self.send(after, from, promise);
    }

    /// A page of a promise came.
    pub(crate) fn on_promise(&mut self, now_ns: u64, index: usize, ballot: Ballot, page: Page) {
        if self.own_ballot() != Some(ballot) {
            reach(Mark::PromiseOfAnotherBallot);
            let is_candidate = matches!(self.role, Role::Candidate(_));
            if !is_candidate || !planted(Bug::PromiseOfAnotherBallotCounted) {
                return;
            }
        }
        let election_ns = self.vary(self.options.election_ns);
        match &mut self.role {
            Role::Candidate(candidate) => {
                if !candidate.take(index, page) {
                    return;
                }
                // However many pages there are: a candidacy lasts as long as it gets on.
                self.election_due_ns = now_ns + election_ns;
                if let Some(from) = candidate.wants(index) {
                    let ballot = candidate.ballot;
                    let to = self.options.configuration.voters()[index];
                    self.send(Ticket::NONE, to, Message::Prepare { ballot, from });
                } else {
                    // A promise counts as a whole, so only its last page can change anything.
                    self.go_on(now_ns);
                }
            }
            Role::Leader(leader) => {
                reach(Mark::PromiseAfterPhaseOne);
                if planted(Bug::DecidedGoesBackOnALatePromise) {
                    let entries = leader.open.iter().map(|open| open.entry.clone()).collect();
                    self.learner.go_back_to(page.decided);
                    self.lead(now_ns, ballot, entries);
                }
            }
            Role::Follower | Role::Canvasser { .. } => {}
        }
    }

    /// Sees what a candidate can do next.
    pub(crate) fn go_on(&mut self, now_ns: u64) {
        let Role::Candidate(candidate) = &self.role else {
            return;
        };
        let decided = self.learner.decided();
        match candidate.outcome(&self.options.configuration, decided) {
            Outcome::Open => {}
            Outcome::Behind => {
                reach(Mark::CandidateBehind);
                if let Some(index) = candidate.further_than(decided) {
                    let of = self.options.configuration.voters()[index];
                    self.fetch(now_ns, of);
                }
            }
            Outcome::Ready(entries) => {
                let ballot = candidate.ballot;
                self.lead(now_ns, ballot, entries);
            }
        }
    }

    /// Phase two begins.
    fn lead(&mut self, now_ns: u64, ballot: Ballot, entries: Vec<Entry>) {
        reach(if entries.is_empty() {
            Mark::ElectedWithNothingToRecover
        } else {
            Mark::ElectedWithEntriesToRecover
        });
        let voters = self.options.configuration.voters().len();
        let decided = self.decided();
        let leader = Leader::new(ballot, decided, entries, voters, now_ns, self.proposals);
        self.role = Role::Leader(leader);
        self.leader = Some(ballot);
        self.pump(now_ns);
    }

    /// Follows, whatever it did before.
    pub(crate) fn step_down(&mut self, now_ns: u64) {
        if let Role::Leader(leader) = &self.role {
            reach(if leader.open.is_empty() {
                Mark::DeposedIdle
            } else {
                Mark::DeposedWithSlotsOpen
            });
            let unproposed = if planted(Bug::ProposedToldAsNever) {
                0
            } else {
                leader.pending.first()
            };
            self.proposals = leader.pending.came();
            self.output(Ticket::NONE, Effect::SteppedDown { unproposed });
        }
        if matches!(self.role, Role::Candidate(_)) {
            reach(Mark::CandidateSteppedDown);
        }
        if planted(Bug::VoteClearedOnStepDown) {
            self.acceptor.forget_vote();
        }
        if !matches!(self.role, Role::Follower) {
            self.role = Role::Follower;
            self.leader = None;
        }
        self.wait_for_leader(now_ns);
    }

    /// A voter refuses this ballot, since it has promised a higher one.
    pub(crate) fn on_refused(&mut self, now_ns: u64, ballot: Ballot, promised: Ballot) {
        self.highest = self.highest.max(promised);
        if self.is_in(ballot) && promised > ballot {
            reach(match self.role {
                Role::Leader(_) => Mark::LeaderRefused,
                _ => Mark::CandidateRefused,
            });
            self.step_down(now_ns);
        }
    }
}

#[cfg(test)]
mod tests;
