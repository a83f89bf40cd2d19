//! The classes of faults, and which of them strike where: drawn by the seed's rates, or read from a script.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::chance::Chance;
use crate::site;

macro_rules! classes {
    ($($(#[$meta:meta])* $name:ident = $text:literal, $weight:literal),* $(,)?) => {
        /// A class of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Class { $($(#[$meta])* $name),* }

        impl Class {
            /// All of them.
            pub const ALL: &[Class] = &[$(Class::$name),*];

            /// Its name on the command line and in scripts.
            pub fn name(self) -> &'static str {
                match self { $(Class::$name => $text),* }
            }

            /// How much of the seed's rate one occasion of this class has: some have occasion at every effect, others at
            /// every message.
            fn weight(self) -> f64 {
                match self { $(Class::$name => $weight),* }
            }
        }
    };
}

classes! {
    /// A message is lost.
    Loss = "loss", 1.0,
    /// A message comes twice.
    Duplication = "duplication", 1.0,
    /// A message is overtaken by those after it.
    Reordering = "reordering", 1.0,
    /// A message comes late by up to a second.
    DelayTail = "delay-tail", 0.3,
    /// The nodes fall into two groups that hear nothing of each other.
    Partition = "partition", 0.2,
    /// A node hears others and isn't heard by them, or is heard and hears nothing.
    OneWay = "one-way", 0.2,
    /// A link goes down and up, again and again.
    Flapping = "flapping", 0.2,
    /// A node stops between two effects, and goes on later as if nothing had been.
    Pause = "pause", 0.1,
    /// A node dies between two effects, and starts again later with what its disk kept.
    Crash = "crash", 0.05,
    /// What was written and not synced survives a crash nevertheless, each write on its own.
    UnsyncedSurvives = "unsynced-survives", 2.0,
    /// What was accepted can't be read any more after a restart; that it was, and in which ballot, can.
    BitRot = "bit-rot", 0.3,
    /// A node comes back with an empty disk.
    LostDisk = "lost-disk", 0.5,
    /// A sync takes up to a second.
    SlowDisk = "slow-disk", 0.1,
    /// A node's clock runs fast or slow, by up to a tenth.
    ClockRate = "clock-rate", 0.3,
    /// A node's clock steps, forward or back, by up to a second.
    ClockStep = "clock-step", 0.2,
    /// A timer fires late, by up to a second.
    LateTick = "late-tick", 0.3,
}

/// The numbers of occasions that each class is counted by: of a node, or of a link from a node to another.
const SITES: usize = 16 * 16;

/// One fault: the `occasion`-th time that `class` could strike at `site`, it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strike {
    /// What.
    pub class: Class,
    /// Where: a node's number, or sixteen times the sender's plus the receiver's.
    pub site: u16,
    /// The how-manieth occasion, from 0.
    pub occasion: u32,
}

impl FromStr for Class {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let class = Class::ALL.iter().find(|class| class.name() == name);
        class.copied().ok_or_else(|| {
            let names: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
            format!(
                "no class of faults is named `{name}`; the classes are {}",
                names.join(", ")
            )
        })
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = site::name(self.class, self.site);
        write!(f, "{} {site} {}", self.class.name(), self.occasion)
    }
}

/// Where the faults come from.
#[derive(Clone, Debug)]
enum Source {
    /// By class, the rate of each occasion.
    Rates(Vec<f64>),
    /// These and no others.
    Script(BTreeSet<Strike>),
}

/// Decides of each occasion whether a fault strikes.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    chance: Chance,
    source: Source,
    occasions: Vec<u32>,
    struck: Vec<Strike>,
    is_over: bool,
}

impl Faults {
    /// By rates, one for each class, 0 to 1.
    pub(crate) fn drawn(chance: Chance, rates: &[f64]) -> Self {
        let rates = Class::ALL.iter().zip(rates);
        let rates = rates.map(|(class, rate)| (class.weight() * rate).min(1.0));
        Self::new(chance, Source::Rates(rates.collect()))
    }

    /// As written.
    pub(crate) fn scripted(chance: Chance, script: &[Strike]) -> Self {
        Self::new(chance, Source::Script(script.iter().copied().collect()))
    }

    fn new(chance: Chance, source: Source) -> Self {
        Self {
            chance,
            source,
            occasions: vec![0; Class::ALL.len() * SITES],
            struck: Vec::new(),
            is_over: false,
        }
    }

    /// Whether `class` strikes at `site` now; then gives the numbers that say how.
    pub(crate) fn strike(&mut self, class: Class, site: usize) -> Option<Chance> {
        if self.is_over {
            return None;
        }
        if let Source::Rates(rates) = &self.source
            && rates[class as usize] == 0.0
        {
            return None;
        }
        let counter = &mut self.occasions[class as usize * SITES + site];
        let occasion = *counter;
        *counter += 1;
        let strike = Strike {
            class,
            site: site as u16,
            occasion,
        };
        let purpose = (class as u64) << 48 | (site as u64) << 32 | u64::from(occasion);
        let chance = self.chance.of(purpose);
        let strikes = match &self.source {
            Source::Rates(rates) => chance.fraction() < rates[class as usize],
            Source::Script(script) => script.contains(&strike),
        };
        if !strikes {
            return None;
        }
        self.struck.push(strike);
        Some(chance.of(1))
    }

    /// Nothing strikes any more.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// What struck so far, in order.
    pub(crate) fn struck(&self) -> &[Strike] {
        &self.struck
    }
}
