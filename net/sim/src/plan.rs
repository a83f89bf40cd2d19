//! The plan of a run: what the seed draws before anything happens.

use crate::chance::Chance;
use crate::fault::Class;

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
    /// Between two messages of a link, at least.
    pub(crate) latency_ns: u64,
    pub(crate) sync_ns: u64,
    pub(crate) attempt_ns: u64,
    pub(crate) think_ns: u64,
}

const RATE_LEAST: f64 = 1e-4;
const RATE_MOST: f64 = 0.3;

impl Plan {
    pub(crate) fn new(seed: u64, mix: &Mix, nodes: Option<usize>) -> Self {
        let chance = Chance::new(seed).of(0x504c_414e);
        let nodes =
            nodes.unwrap_or_else(|| [3, 3, 3, 5, 5, 4, 7, 2, 1][chance.of(1).below(9) as usize]);
        let rates = Class::ALL.iter().map(|class| {
            let chance = chance.of(0x100 + *class as u64);
            let is_on = match mix {
                Mix::Swarm(classes) => classes.contains(class) && chance.of(1).below(2) == 0,
                Mix::Always(classes) => classes.contains(class),
            };
            let rate = RATE_LEAST * (RATE_MOST / RATE_LEAST).powf(chance.of(2).fraction());
            if is_on { rate } else { 0.0 }
        });
        let rates: Vec<f64> = rates.collect();
        let exceeds = chance.of(2).below(8) == 0;
        Self {
            nodes,
            clients: chance.of(3).between(2, 8) as usize,
            rates,
            losers: if exceeds { nodes } else { (nodes - 1) / 2 },
            exceeds,
            latency_ns: chance.of(4).log_uniform(20_000, 500_000),
            sync_ns: chance.of(5).log_uniform(20_000, 2_000_000),
            attempt_ns: chance.of(6).log_uniform(5_000_000, 50_000_000),
            think_ns: chance.of(7).log_uniform(100_000, 10_000_000),
        }
    }
}
