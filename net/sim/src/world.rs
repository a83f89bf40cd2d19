//! The world: one queue of events in the order of virtual time, and everything that they happen to.

use sprag_paxos::simulation;
use sprag_paxos::{Configuration, DiskId, Effect, Message, NodeId, Slot, Voter};

use crate::ask::Reply;
use crate::calm::Stage;
use crate::chance::Chance;
use crate::client::{Client, Timer};
use crate::clock::Clock;
use crate::command::CallNumber;
use crate::disk::NodeDisk;
use crate::failure::Failure;
use crate::fault::{Class, Faults, Strike};
use crate::history::{History, Issuer, Register};
use crate::host::{MILLISECOND_NS, SECOND_NS};
use crate::invariant::equal_states::EqualStates;
use crate::invariant::{Broken, Fact, Invariants};
use crate::network::{Disturbance, Network};
use crate::node::{Input, Node};
use crate::ousting::Ousting;
use crate::plan::Plan;
use crate::queue::Queue;
use crate::stale::Stale;
use crate::tally::{Point, Tally};
use crate::trace::{Happening, Trace};

/// Something that is due.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message arrives.
    Message {
        to: Voter,
        from: Voter,
        message: Message,
    },
    /// A client's request arrives.
    Request {
        to: NodeId,
        call: CallNumber,
        bytes: Vec<u8>,
    },
    /// A node's reply arrives.
    Reply {
        from: NodeId,
        call: CallNumber,
        reply: Reply,
    },
    /// A client's timer fires.
    Client {
        client: usize,
        timer: u64,
        what: Timer,
    },
    /// Something comes to a node, if it still lives the life that this was meant for.
    Due { node: usize, life: u32, due: Due },
    /// A node starts.
    Start { node: usize },
    /// Who leads is ousted.
    Oust { timer: u64 },
    /// Links and clocks have an occasion to go wrong.
    Disturb,
    /// Somebody came to lead when faults could have ended.
    Elected,
}

/// What is due in the life of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// Its timer fires.
    Tick,
    /// It goes on.
    GoOn,
    /// Its disk has done what it was asked to sync.
    Synced,
    /// Its disk, which had no room, is asked again.
    RoomAgain,
    /// Its disk has a segment ready.
    Ready,
    /// Its disk has a snapshot.
    Saved,
}

/// A run of so many events goes in circles: far more than any that gets on.
pub(crate) const EVENTS_MAX: u64 = 20_000_000;

const DISTURB_NS: u64 = 10_000_000;

/// A whole cluster and its clients.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) chance: Chance,
    pub(crate) faults: Faults,
    pub(crate) now_ns: u64,
    queue: Queue,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    pub(crate) stale: Stale,
    pub(crate) ousting: Ousting,
    pub(crate) configuration: Configuration,
    pub(crate) clients: Vec<Client>,
    pub(crate) registers: History<Register>,
    pub(crate) issuers: History<Issuer>,
    pub(crate) states: EqualStates,
    /// The highest slot that some node takes for decided.
    pub(crate) frontier: Slot,
    /// `None` where only what clients see is checked.
    invariants: Option<Invariants>,
    pub(crate) trace: Trace,
    pub(crate) tally: Tally,
    /// Whether somebody came to lead when faults could have ended.
    pub(crate) was_elected: bool,
    pub(crate) stage: Stage,
    /// When the stage must have ended; before faults have ceased of no meaning.
    pub(crate) stage_until_ns: u64,
    /// The quorum that is sound once faults have ceased.
    pub(crate) healed: Vec<usize>,
}

impl World {
    pub(crate) fn new(
        seed: u64,
        plan: Plan,
        faults: Faults,
        looks_inside: bool,
        tail_from: Option<u64>,
    ) -> Self {
        simulation::reached();
        let chance = Chance::new(seed);
        let voter = |node: usize| Voter {
            node: NodeId(node as u16),
            disk: DiskId(chance.of(0x1000 + node as u64).bits()),
        };
        let voters: Vec<Voter> = (0..plan.nodes).map(voter).collect();
        let loses = losers(chance, &plan);
        let nodes = voters.iter().enumerate().map(|(node, voter)| {
            let shows_ns = chance.of(0x2000 + node as u64).below(1_000_000_000_000);
            let disk = NodeDisk::made(&plan, *voter);
            disk.let_fail(&faults, node, loses[node]);
            Node::new(*voter, Clock::new(shows_ns), disk, loses[node])
        });
        let nodes = nodes.collect();
        let configuration =
            Configuration::new(voters).unwrap_or_else(|error| unreachable!("{error}"));
        let keys = plan.keys;
        let clients = (0..plan.clients)
            .map(|client| Client::new(client, keys, chance.of(0x3000 + client as u64)));
        let mut world = Self {
            clients: clients.collect(),
            network: Network::new(chance.of(0x4000), &plan),
            stale: Stale::new(faults.may_strike(Class::Stale)),
            ousting: Ousting::none(chance),
            plan,
            chance,
            faults,
            now_ns: 0,
            queue: Queue::default(),
            nodes,
            invariants: looks_inside.then(|| Invariants::new(configuration.clone())),
            configuration,
            registers: History::default(),
            issuers: History::default(),
            states: EqualStates::default(),
            frontier: Slot::NONE,
            trace: Trace::new(tail_from),
            tally: Tally::default(),
            was_elected: false,
            stage: Stage::Faulty,
            stage_until_ns: 0,
            healed: Vec::new(),
        };
        for node in 0..world.nodes.len() {
            world.after(0, Event::Start { node });
        }
        for client in 0..world.clients.len() {
            world.client_timer(client, 0, Timer::Begin);
        }
        world.after(DISTURB_NS, Event::Disturb);
        world
    }

    /// Runs to the end, or to the first failure, as which more than `events_max` events count.
    pub(crate) fn run(&mut self, events_max: u64) -> Result<(), Failure> {
        while let Some((at_ns, event)) = self.queue.pop() {
            self.now_ns = at_ns;
            self.happen(event).map_err(Failure::Safety)?;
            if self.trace.events() > events_max {
                return Err(Failure::Liveness(format!("{events_max} events and no end")));
            }
            if !self.is_calm() && self.is_enough() {
                if self.plan.exceeds {
                    return Ok(());
                }
                self.calm().map_err(Failure::Safety)?;
            }
            if self.has_ended()? {
                return Ok(());
            }
        }
        Err(Failure::Liveness("nothing is due any more".to_owned()))
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Message { to, from, message } => return self.arrive(to, from, message),
            Event::Request { to, call, bytes } => {
                let node = usize::from(to.0);
                if self.nodes[node].life.is_some() {
                    return self.take(node, Input::Request { call, bytes });
                }
            }
            Event::Reply { from, call, reply } => self.replied(from, call, reply),
            Event::Client {
                client,
                timer,
                what,
            } => self.client_fires(client, timer, what)?,
            Event::Due { node, life, due } => {
                if self.nodes[node].lives == life && self.nodes[node].life.is_some() {
                    return self.come_to(node, due);
                }
            }
            Event::Oust { timer } => {
                if !self.is_calm() {
                    return self.oust(timer);
                }
            }
            Event::Start { node } => return self.start(node),
            Event::Elected => self.was_elected = true,
            Event::Disturb => {
                if !self.is_calm() {
                    self.disturb();
                    self.after(DISTURB_NS, Event::Disturb);
                }
            }
        }
        Ok(())
    }

    fn arrive(&mut self, to: Voter, from: Voter, message: Message) -> Result<(), Broken> {
        let node = usize::from(to.node.0);
        if self.nodes[node].voter != to || self.nodes[node].life.is_none() {
            return Ok(());
        }
        self.note(Happening::Came {
            from,
            to,
            message: &message,
        });
        self.take(node, Input::Message { from, message })
    }

    fn come_to(&mut self, node: usize, due: Due) -> Result<(), Broken> {
        match due {
            Due::Tick => self.tick(node),
            Due::GoOn => self.go_on(node),
            Due::Synced => self.synced(node),
            Due::RoomAgain => self.room_again(node),
            Due::Ready => self.ready(node),
            Due::Saved => self.saved(node),
        }
    }

    /// Lets links and clocks go wrong, and the power.
    fn disturb(&mut self) {
        let nodes = self.nodes.len();
        self.faults.turn(self.now_ns / DISTURB_NS);
        if let Some(chance) = self.faults.strike(Class::Blackout, 0) {
            self.black_out(chance, 0, 0);
        }
        for disturbance in self.network.disturb(&self.faults, self.now_ns, nodes) {
            self.note_disturbance(disturbance);
        }
        for node in 0..nodes {
            if let Some(chance) = self.faults.strike(Class::ClockRate, node) {
                let rate = chance.between(900, 1100);
                self.nodes[node].clock.run_at(self.now_ns, rate);
                self.set_timer_anew(node);
            }
            if let Some(chance) = self.faults.strike(Class::ClockStep, node) {
                let ahead_ns = chance.of(1).log_uniform(1_000, 1_000_000_000).cast_signed();
                let step_ns = if chance.of(2).below(2) == 0 {
                    ahead_ns
                } else {
                    -ahead_ns
                };
                self.step_clock(node, step_ns);
            }
        }
    }

    pub(crate) fn step_clock(&mut self, node: usize, step_ns: i64) {
        self.nodes[node].clock.step(self.now_ns, step_ns);
        self.set_timer_anew(node);
    }

    pub(crate) fn note_disturbance(&mut self, disturbance: Disturbance) {
        self.note(match disturbance {
            Disturbance::Parted {
                group,
                between,
                for_ns,
            } => Happening::Parted {
                group,
                between,
                for_ns,
            },
            Disturbance::CutOff { from, to, for_ns } => Happening::CutOff {
                from: NodeId(from as u16),
                to: NodeId(to as u16),
                for_ns,
            },
        });
    }

    /// The power goes, of all nodes or of some, those in `group` among them and those in `spared` not; and comes back, for all
    /// of them at once or as it may.
    pub(crate) fn black_out(&mut self, chance: Chance, group: u64, spared: u64) {
        let any = match chance.of(1).below(2) {
            0 => u64::MAX,
            _ => chance.of(2).bits(),
        };
        let group = (group | any) & !spared;
        let down_ns = chance.of(3).log_uniform(MILLISECOND_NS, SECOND_NS);
        for node in 0..self.nodes.len() {
            if group & 1 << node == 0 || self.nodes[node].life.is_none() {
                continue;
            }
            self.count_death(node, None);
            self.die(node, true);
            if chance.of(4).below(2) == 0 {
                self.after(down_ns, Event::Start { node });
            }
        }
    }

    /// Counts a death, before this was done.
    pub(crate) fn count_death(&mut self, node: usize, effect: Option<&Effect>) {
        if let Some(life) = &self.nodes[node].life {
            let point = Point::before(effect, life.syncing.is_some());
            self.tally.crashes[point as usize][life.role() as usize] += 1;
        }
    }

    pub(crate) fn after(&mut self, after_ns: u64, event: Event) {
        self.at(self.now_ns + after_ns, event);
    }

    /// The node is up, and something is due in its life.
    pub(crate) fn due_after(&mut self, after_ns: u64, node: usize, due: Due) {
        let life = self.nodes[node].lives;
        self.after(after_ns, Event::Due { node, life, due });
    }

    pub(crate) fn at(&mut self, at_ns: u64, event: Event) {
        self.queue.push(at_ns, event);
    }

    pub(crate) fn note(&mut self, happening: Happening<'_>) {
        self.trace.note(self.now_ns, happening);
    }

    /// Shows a fact to the invariants.
    pub(crate) fn look(&mut self, fact: Fact<'_>) -> Result<(), Broken> {
        match &mut self.invariants {
            Some(invariants) => invariants.look(fact),
            None => Ok(()),
        }
    }

    /// Shows a node's state to the invariants.
    pub(crate) fn look_at(&mut self, node: usize, has_started: bool) -> Result<(), Broken> {
        let (Some(invariants), Some(life)) = (&mut self.invariants, &self.nodes[node].life) else {
            return Ok(());
        };
        let replica = life.executor.replica();
        invariants.look(if has_started {
            Fact::Started { replica }
        } else {
            Fact::Stepped { replica }
        })
    }

    pub(crate) fn struck(&self) -> Vec<Strike> {
        self.faults.struck()
    }
}

/// Which nodes may lose what they were asked to keep.
fn losers(chance: Chance, plan: &Plan) -> Vec<bool> {
    let mut order: Vec<usize> = (0..plan.nodes).collect();
    order.sort_by_key(|&node| chance.of(0x7000 + node as u64).bits());
    let mut loses = vec![false; plan.nodes];
    for &node in &order[..plan.losers] {
        loses[node] = true;
    }
    loses
}
