//! What changes nothing: into how many batches commands are put, how many slots are under way, how voters are named, and
//! what is lost on the way. Three voters, messages handed over in an order drawn from a seed.

use std::collections::BTreeSet;

use sprag_paxos::{
    Configuration, DiskId, Effect, Executor, Message, NodeId, Options, Recovered, Replica,
    RoleName, Slot, Voter, commands,
};

const ELECTION_NS: u64 = 1_000;
const COMMANDS: u64 = 100;

/// What may be another way.
#[derive(Clone, Copy)]
struct Shape {
    batch_bytes_max: usize,
    window_slots: u64,
    /// The node of each voter, by its place.
    nodes: [u16; 3],
    /// One in so many messages is lost; none where it is 0.
    loss: u64,
}

const PLAIN: Shape = Shape {
    batch_bytes_max: 64,
    window_slots: 8,
    nodes: [1, 2, 3],
    loss: 0,
};

/// Three voters and the messages on their way, each with the places of who sent it and who gets it.
struct Cluster {
    now_ns: u64,
    executors: Vec<Executor>,
    under_way: Vec<(usize, usize, Message)>,
    voters: Vec<Voter>,
    dead: BTreeSet<usize>,
    random: u64,
    loss: u64,
    /// By place, the commands in the order in which they were decided, and the slot of each.
    decided: Vec<Vec<(Slot, Vec<u8>)>>,
    sent: u64,
}

impl Cluster {
    fn new(seed: u64, shape: Shape) -> Self {
        let voters = shape.nodes.map(|node| Voter {
            node: NodeId(node),
            disk: DiskId(u64::from(node)),
        });
        let executors = (0..).zip(voters).map(|(place, me)| {
            let options = Options {
                me,
                configuration: Configuration::new(voters.to_vec()).unwrap(),
                election_ns: ELECTION_NS,
                beat_ns: ELECTION_NS / 10,
                window_slots: shape.window_slots,
                batch_bytes_max: shape.batch_bytes_max,
                pending_bytes_max: 1 << 16,
                page_bytes_max: 256,
                seed: place,
            };
            Executor::new(0, Replica::new(0, options, Recovered::default()).unwrap())
        });
        Self {
            now_ns: 0,
            executors: executors.collect(),
            under_way: Vec::new(),
            voters: voters.to_vec(),
            dead: BTreeSet::new(),
            random: seed,
            loss: shape.loss,
            decided: vec![Vec::new(); 3],
            sent: 0,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) % below
    }

    /// Time passes for the voter at `place`, until it leads.
    fn elect(&mut self, place: usize) {
        let leads = |role| matches!(role, RoleName::Leader);
        for _ in 0..1_000 {
            if leads(self.executors[place].replica().role()) {
                return;
            }
            // The others hear of no leader either, and wait for longer.
            self.now_ns += ELECTION_NS / 10;
            let now_ns = self.now_ns;
            self.executors[place].tick(now_ns);
            self.carry_out(place);
            self.deliver();
        }
        panic!("the voter at {place} was not elected");
    }

    /// Has these commands decided everywhere, from the voter at `place`, which leads.
    fn commit(&mut self, place: usize, numbers: std::ops::Range<u64>) {
        let last = numbers.end;
        for number in numbers {
            let proposed = self.executors[place].propose(self.now_ns, &number.to_le_bytes());
            assert!(proposed.is_ok(), "{proposed:?}");
            if self.draw(4) == 0 {
                self.carry_out(place);
            }
        }
        self.carry_out(place);
        for _ in 0..1_000 {
            self.deliver();
            let has_all = |place: &usize| {
                let decided = self.decided[*place].last();
                decided.is_some_and(|(_, command)| command == &(last - 1).to_le_bytes())
            };
            if (0..3)
                .filter(|place| !self.dead.contains(place))
                .all(|place| has_all(&place))
            {
                return;
            }
            self.now_ns += ELECTION_NS / 10;
            self.executors[place].tick(self.now_ns);
            self.carry_out(place);
        }
        panic!("not everything was decided");
    }

    fn deliver(&mut self) {
        while !self.under_way.is_empty() {
            let next = self.draw(self.under_way.len() as u64) as usize;
            let (from, to, message) = self.under_way.swap_remove(next);
            let is_lost = self.loss > 0 && self.draw(self.loss) == 0;
            if is_lost || self.dead.contains(&to) || self.dead.contains(&from) {
                continue;
            }
            self.executors[to].step(self.now_ns, self.voters[from], message);
            self.carry_out(to);
        }
    }

    fn carry_out(&mut self, place: usize) {
        let first = self.under_way.len();
        while let Some(effect) = self.executors[place].poll() {
            match effect {
                Effect::Persist { ticket, .. } => {
                    self.executors[place].persisted(self.now_ns, ticket);
                }
                Effect::Send { to, message } => {
                    let to = self.voters.iter().position(|voter| *voter == to).unwrap();
                    self.under_way.push((place, to, message));
                    self.sent += 1;
                }
                Effect::Decided { slot, entry } => {
                    let decided = commands(&entry).map(|command| (slot, command.to_vec()));
                    self.decided[place].extend(decided);
                }
                other => assert!(matches!(other, Effect::SteppedDown { .. }), "{other:?}"),
            }
        }
        // To whom something is sent first depends on names, and says nothing: each has a way of its own.
        self.under_way[first..].sort_by_key(|(_, to, _)| *to);
    }

    /// What was decided, by those that live, without the slots.
    fn numbers(&self) -> Vec<u64> {
        let live: Vec<usize> = (0..3).filter(|place| !self.dead.contains(place)).collect();
        let of = |place: usize| {
            let commands = self.decided[place].iter().map(|(_, command)| command);
            let numbers =
                commands.map(|command| u64::from_le_bytes(command[..].try_into().unwrap()));
            numbers.collect::<Vec<_>>()
        };
        assert!(live.iter().all(|place| of(*place) == of(live[0])));
        of(live[0])
    }
}

/// A leader has half of the commands decided and dies; another has the rest decided.
fn run(seed: u64, shape: Shape) -> Cluster {
    let mut cluster = Cluster::new(seed, shape);
    cluster.elect(0);
    cluster.commit(0, 0..COMMANDS / 2);
    cluster.dead.insert(0);
    cluster.elect(2);
    cluster.commit(2, COMMANDS / 2..COMMANDS);
    cluster
}

#[test]
fn batches_windows_and_losses_change_nothing_in_what_is_decided() {
    let expected: Vec<u64> = (0..COMMANDS).collect();
    for seed in 0..20 {
        for batch_bytes_max in [1, 64, 4096] {
            for window_slots in [1, 8, 64] {
                for loss in [0, 5] {
                    let shape = Shape {
                        batch_bytes_max,
                        window_slots,
                        loss,
                        ..PLAIN
                    };
                    let numbers = run(seed, shape).numbers();
                    assert_eq!(
                        numbers, expected,
                        "seed {seed}: {batch_bytes_max} {window_slots} {loss}"
                    );
                }
            }
        }
    }
}

#[test]
fn whatever_voters_are_called_they_do_the_same() {
    for seed in 0..50 {
        let plain = run(seed, PLAIN);
        for nodes in [
            [1, 3, 2],
            [2, 1, 3],
            [2, 3, 1],
            [3, 1, 2],
            [3, 2, 1],
            [900, 7, 65_535],
        ] {
            let named = run(seed, Shape { nodes, ..PLAIN });
            assert_eq!(named.decided, plain.decided, "seed {seed}: {nodes:?}");
            assert_eq!(named.sent, plain.sent, "seed {seed}: {nodes:?}");
        }
    }
}
