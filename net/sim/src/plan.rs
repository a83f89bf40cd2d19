//! The plan of a run: what the seed draws before anything happens.

use sprag_log::LogOptions;

use crate::chance::Chance;
use crate::fault::Class;

/// The most nodes that a run may have.
pub const NODES_MAX: usize = sprag_paxos::Configuration::VOTERS_MAX;

/// Which faults there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Each class is on for half of the seeds.
    Swarm(Vec<Class>),
    /// These classes are on for every seed.
    Always(Vec<Class>),
}

impl Mix {
    /// All classes, each on for half of the seeds.
    pub fn all() -> Self {
        Mix::Swarm(Class::ALL.to_vec())
    }

    /// No faults.
    pub fn none() -> Self {
        Mix::Always(Vec::new())
    }
}

/// What a seed draws.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    /// By class; 0 is off.
    pub(crate) rates: Vec<f64>,
    /// How many nodes may lose what they were asked to keep: no more than may be lost, unless it exceeds.
    pub(crate) losers: usize,
    /// Whether more is lost than may be: then only safety is asked for.
    pub(crate) exceeds: bool,
    /// Whether faults end when somebody has just come to lead.
    pub(crate) ends_with_election: bool,
    /// Between two messages of a link, at least.
    pub(crate) latency_ns: u64,
    pub(crate) sync_ns: u64,
    pub(crate) election_ns: u64,
    /// By node, so many times that it waits for a leader, and as a leader for others; in a third of the seeds not the same for
    /// all, so that some come to lead again and again, and others believe that they do for long after.
    pub(crate) patience: Vec<u64>,
    pub(crate) beat_ns: u64,
    /// By node; in a quarter of the seeds not the same for all, as while a cluster is set up anew node by node.
    pub(crate) window_slots: Vec<u64>,
    pub(crate) batch_bytes_max: usize,
    pub(crate) pending_bytes_max: usize,
    pub(crate) page_bytes_max: usize,
    pub(crate) log: LogOptions,
    pub(crate) sector_bytes: usize,
    /// After how many slots a node takes the next snapshot.
    pub(crate) snapshot_slots: u64,
    /// How long a disk writes a snapshot, beside its syncs.
    pub(crate) save_ns: u64,
    /// How many bytes of a snapshot go into a piece.
    pub(crate) chunk_bytes: usize,
    /// How many registers and how many issuers clients ask for.
    pub(crate) keys: u64,
    pub(crate) think_ns: u64,
}

/// Of a million occasions.
const RATE_LEAST: u64 = 100;
const RATE_MOST: u64 = 300_000;

impl Plan {
    /// The highest rate that a class may have.
    pub(crate) const RATE_MOST: f64 = RATE_MOST as f64 / 1e6;

    pub(crate) fn new(seed: u64, mix: &Mix, nodes: Option<usize>) -> Self {
        let chance = Chance::new(seed).of(0x504c_414e);
        let nodes = nodes
            .unwrap_or_else(|| [3, 3, 3, 5, 5, 5, 4, 7, 2, 1][chance.of(1).below(10) as usize]);
        let rates = Class::ALL.iter().map(|class| {
            let chance = chance.of(0x100 + *class as u64);
            let is_on = match mix {
                Mix::Swarm(classes) => classes.contains(class) && chance.of(1).below(2) == 0,
                Mix::Always(classes) => classes.contains(class),
            };
            let rate = chance.of(2).log_uniform(RATE_LEAST, RATE_MOST) as f64 / 1e6;
            if is_on { rate } else { 0.0 }
        });
        let rates: Vec<f64> = rates.collect();
        let election_ns = chance.of(6).log_uniform(10_000_000, 100_000_000);
        let exceeds = chance.of(2).below(8) == 0;
        Self {
            nodes,
            clients: chance.of(3).between(2, 12) as usize,
            rates,
            losers: if exceeds { nodes } else { (nodes - 1) / 2 },
            exceeds,
            ends_with_election: chance.of(25).below(2) == 0,
            latency_ns: chance.of(4).log_uniform(20_000, 500_000),
            sync_ns: chance.of(5).log_uniform(20_000, 2_000_000),
            election_ns,
            patience: patience(chance, nodes),
            beat_ns: election_ns / chance.of(8).between(3, 10),
            window_slots: windows(chance, nodes),
            batch_bytes_max: chance.of(10).log_uniform(1, 4096) as usize,
            pending_bytes_max: chance.of(11).log_uniform(128, 1 << 16) as usize,
            page_bytes_max: chance.of(12).log_uniform(1, 1 << 14) as usize,
            log: LogOptions {
                segment_bytes: 1 << chance.of(14).between(14, 18),
                segments_max: bound(chance.of(21), 4, 64),
                slots_max: bound(chance.of(22), 200, 5_000),
            },
            sector_bytes: if chance.of(15).below(2) == 0 {
                512
            } else {
                4096
            },
            snapshot_slots: chance.of(18).log_uniform(1, 512),
            save_ns: chance.of(20).log_uniform(100_000, 100_000_000),
            chunk_bytes: chance.of(19).log_uniform(8, 128) as usize,
            keys: chance.of(13).between(1, 4),
            think_ns: chance.of(7).log_uniform(10_000, 40_000_000),
        }
    }
}

/// None in half of the seeds.
fn bound(chance: Chance, least: u64, most: u64) -> usize {
    if chance.of(1).below(2) == 0 {
        usize::MAX
    } else {
        chance.of(2).log_uniform(least, most) as usize
    }
}

impl Plan {
    /// How long a node waits for a leader, at least.
    pub(crate) fn waits_ns(&self, node: usize) -> u64 {
        self.patience[node] * self.election_ns
    }
}

fn patience(chance: Chance, nodes: usize) -> Vec<u64> {
    let differ = chance.of(23).below(3) == 0;
    let patience = |node| {
        if differ {
            [1, 1, 2, 4][chance.of(24).of(node).below(4) as usize]
        } else {
            1
        }
    };
    (0..nodes as u64).map(patience).collect()
}

fn windows(chance: Chance, nodes: usize) -> Vec<u64> {
    let differ = chance.of(16).below(4) == 0;
    let window = |node| {
        let chance = if differ {
            chance.of(17).of(node)
        } else {
            chance.of(9)
        };
        chance.log_uniform(1, 64)
    };
    (0..nodes as u64).map(window).collect()
}
