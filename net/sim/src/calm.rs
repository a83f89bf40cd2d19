//! How a run ends: faults cease and one quorum heals. Then everybody must be answered; what was acknowledged must still be
//! there, also when the power goes once more; and every node that is sound must come to know all that any of them does.

use crate::client::Timer;
use crate::failure::Failure;
use crate::invariant::Broken;
use crate::node::Node;
use crate::trace::Happening;
use crate::world::World;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Faults strike.
    Faulty,
    /// One quorum is sound, and everybody is to be answered.
    Answering,
    /// Nobody asks for anything any more, but that one client reads all there is.
    Reading,
}

/// Faults strike for so many events; then a quorum heals.
pub(crate) const FAULTY_EVENTS: u64 = 20_000;

/// In half of the seeds somebody must have come to lead just before that: so many events more are waited for it.
const FAULTY_EVENTS_MORE: u64 = 4_000;

/// How often each client must be answered.
pub(crate) const ANSWERS: u32 = 3;

/// How long of virtual time the healed quorum has for each stage.
const STAGE_NS: u64 = 120_000_000_000;

/// Who reads all there is.
pub(crate) const READER: usize = 0;

/// Numbers for what is drawn here.
const POWER_GOES_AT_FIRST: u64 = 0xb000;
const POWER_GOES_AT_LAST: u64 = 0xb001;

impl World {
    /// Whether faults have ceased.
    pub(crate) fn is_calm(&self) -> bool {
        self.stage != Stage::Faulty
    }

    /// Whether faults have struck for long enough.
    pub(crate) fn is_enough(&self) -> bool {
        let events = self.trace.events();
        if events < FAULTY_EVENTS {
            return false;
        }
        let has_come = !self.plan.ends_with_election || self.was_elected;
        has_come || events >= FAULTY_EVENTS + FAULTY_EVENTS_MORE
    }

    /// Whether all is done; goes on to the next stage where one is.
    pub(crate) fn has_ended(&mut self) -> Result<bool, Failure> {
        let is_done = match self.stage {
            Stage::Faulty => return Ok(false),
            Stage::Answering => self.unanswered().next().is_none(),
            Stage::Reading => self.has_read_all() && self.behind().next().is_none(),
        };
        if is_done && self.stage == Stage::Answering {
            self.read_all();
            return Ok(false);
        }
        if !is_done && self.now_ns > self.stage_until_ns {
            return Err(Failure::Liveness(self.missing()));
        }
        Ok(is_done)
    }

    /// Ends the faults: one quorum heals, the rest is dead or cut off for good.
    pub(crate) fn calm(&mut self) -> Result<(), Broken> {
        let count = self.nodes.len();
        // Whose disk loses nothing that it was asked to keep goes first, then by lot.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&node| {
            (
                self.nodes[node].is_loser,
                self.chance.of(0x5000 + node as u64).bits(),
            )
        });
        let gone = order.split_off(count / 2 + 1);
        self.healed = order;
        let group = |nodes: &[usize]| nodes.iter().fold(0, |group, node| group | 1u16 << node);
        self.note(Happening::Healed {
            group: group(&self.healed),
        });
        self.network.heal(group(&gone));
        for node in gone {
            // Half of those are alive and hear nothing.
            if self.nodes[node].life.is_some() && self.chance.of(0x6000 + node as u64).below(2) == 0
            {
                self.nodes[node].is_gone = true;
                self.die(node, true);
            }
        }
        // While it is still up to the faults what outlasts that.
        let power_goes = self.chance.of(POWER_GOES_AT_FIRST).below(2) == 0;
        if power_goes {
            self.cut_power();
        }
        self.faults.end();
        for node in self.healed.clone() {
            self.nodes[node].clock.run_at(self.now_ns, 1000);
            if self.nodes[node].life.is_some() {
                self.go_on(node)?;
            } else if !power_goes {
                self.start(node)?;
            }
        }
        self.go_to(Stage::Answering);
        Ok(())
    }

    /// Everybody was answered, so what one client finds now is what all were told of. On a share of the seeds the power goes
    /// first: nothing but what is durable is left.
    fn read_all(&mut self) {
        if self.chance.of(POWER_GOES_AT_LAST).below(2) == 0 {
            self.cut_power();
        }
        self.go_to(Stage::Reading);
        self.client_timer(READER, 0, Timer::Begin);
    }

    /// The power of all that are sound goes.
    fn cut_power(&mut self) {
        for node in self.healed.clone() {
            if self.nodes[node].life.is_some() {
                self.die(node, true);
            }
        }
    }

    fn go_to(&mut self, stage: Stage) {
        self.stage = stage;
        self.stage_until_ns = self.now_ns + STAGE_NS;
    }

    /// Whether a client has nothing to ask for any more.
    pub(crate) fn is_silent(&self, client: usize) -> bool {
        match self.stage {
            Stage::Faulty => false,
            Stage::Answering => self.clients[client].answered_in_calm >= ANSWERS,
            Stage::Reading => client != READER || self.has_read_all(),
        }
    }

    fn has_read_all(&self) -> bool {
        self.clients[READER].has_read_all(&self.plan)
    }

    /// The clients that were not answered often enough.
    fn unanswered(&self) -> impl Iterator<Item = String> {
        let clients = self.clients.iter().enumerate();
        clients
            .filter(|(_, client)| client.answered_in_calm < ANSWERS)
            .map(|(client, _)| format!("c{client}"))
    }

    /// The sound nodes that have not applied everything that is decided.
    fn behind(&self) -> impl Iterator<Item = String> {
        let is_behind = |node: &Node| {
            node.life
                .as_ref()
                .is_none_or(|life| life.machine.applied() < self.frontier)
        };
        let healed = self.healed.iter();
        healed
            .filter(move |node| is_behind(&self.nodes[**node]))
            .map(|node| format!("n{node}"))
    }

    /// What did not come to pass in all the time there was.
    fn missing(&self) -> String {
        let what = match self.stage {
            Stage::Reading if self.has_read_all() => {
                let behind: Vec<String> = self.behind().collect();
                format!(
                    "{} did not catch up to {}",
                    behind.join(", "),
                    self.frontier
                )
            }
            Stage::Reading => "not all could be read".to_owned(),
            Stage::Faulty | Stage::Answering => {
                let unanswered: Vec<String> = self.unanswered().collect();
                format!("{} got no answer", unanswered.join(", "))
            }
        };
        format!(
            "a quorum was sound for {} s, and {what}",
            STAGE_NS / 1_000_000_000
        )
    }
}
