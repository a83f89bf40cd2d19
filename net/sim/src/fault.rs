//! The classes of faults, and which of them strike where: drawn by the seed's rates, or read from a script.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use crate::chance::Chance;
use crate::site;
use crate::weather::Weather;

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
    DelayTail = "delay-tail", 0.5,
    /// The nodes fall into two groups that hear nothing of each other, perhaps but for one node that is in both.
    Partition = "partition", 0.5,
    /// A node hears others and isn't heard by them, or is heard and hears nothing.
    OneWay = "one-way", 0.2,
    /// A link goes down and up, again and again.
    Flapping = "flapping", 0.2,
    /// A node stops between two effects, and goes on later as if nothing had been.
    Pause = "pause", 0.1,
    /// A node dies between two effects, and starts again later with what its disk kept.
    Crash = "crash", 0.05,
    /// A node's power goes in the middle of something that it asks of its disk.
    PowerCut = "power-cut", 0.02,
    /// A sector that was written and not synced survives a power cut nevertheless, each on its own.
    UnsyncedSurvives = "unsynced-survives", 20.0,
    /// A file that was made, renamed or removed, without a sync of the directory, stays so over a power cut.
    NamesSurvive = "names-survive", 20.0,
    /// A sync fails, and what it should have synced is held for clean.
    FailedSync = "failed-sync", 0.02,
    /// A write is refused, or takes only a part.
    FailedWrite = "failed-write", 0.01,
    /// There is no room for another file.
    DiskFull = "disk-full", 5.0,
    /// A write lands in another place than asked for.
    Misdirected = "misdirected", 0.2,
    /// The power of several nodes goes at once.
    Blackout = "blackout", 0.2,
    /// Who has come to stand or to lead is ousted, and so are those who do after it, some times in a row: others choose
    /// another while it is apart from them, or stands still, or is down.
    Ousting = "ousting", 100.0,
    /// When a node has come to stand or to lead, messages of a while ago come, lost then or not.
    Stale = "stale", 30.0,
    /// Sectors go bad while a node is down: they can't be read, or read otherwise than written.
    BitRot = "bit-rot", 30.0,
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

/// No class strikes at more of its occasions than this, whatever its weight.
const RATE_MOST: f64 = 0.8;

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
    /// By class, the rate of each occasion now; and how that changes.
    Rates { now: Vec<f64>, weather: Weather },
    /// These and no others.
    Script(BTreeSet<Strike>),
}

/// Decides of each occasion whether a fault strikes. A clone is another handle on the same.
#[derive(Clone, Debug)]
pub(crate) struct Faults(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    chance: Chance,
    source: Source,
    occasions: Vec<u32>,
    struck: Vec<Strike>,
    is_over: bool,
}

impl Faults {
    /// By rates, one for each class, 0 to 1, none of which storms raise above `most`.
    pub(crate) fn drawn(chance: Chance, rates: &[f64], most: f64) -> Self {
        let weighted = |rate: f64, class: &Class| (class.weight() * rate).min(RATE_MOST);
        let classes = || Class::ALL.iter();
        let rates = classes()
            .zip(rates)
            .map(|(class, rate)| weighted(*rate, class));
        let most = classes().map(|class| weighted(most, class));
        let weather = Weather::new(chance.of(u64::MAX), rates.collect(), most.collect());
        let now = weather.at(0);
        Self::new(chance, Source::Rates { now, weather })
    }

    /// As written.
    pub(crate) fn scripted(chance: Chance, script: &[Strike]) -> Self {
        Self::new(chance, Source::Script(script.iter().copied().collect()))
    }

    fn new(chance: Chance, source: Source) -> Self {
        Self(Rc::new(RefCell::new(State {
            chance,
            source,
            occasions: vec![0; Class::ALL.len() * SITES],
            struck: Vec::new(),
            is_over: false,
        })))
    }

    /// Whether `class` strikes at `site` now; then gives the numbers that say how.
    pub(crate) fn strike(&self, class: Class, site: usize) -> Option<Chance> {
        self.0.borrow_mut().strike(class, site)
    }

    /// Whether `class` may ever strike.
    pub(crate) fn may_strike(&self, class: Class) -> bool {
        match &self.0.borrow().source {
            Source::Rates { now, .. } => now[class as usize] > 0.0,
            Source::Script(script) => script.iter().any(|strike| strike.class == class),
        }
    }

    /// The weather has had so many turns.
    pub(crate) fn turn(&self, turns: u64) {
        if let Source::Rates { now, weather } = &mut self.0.borrow_mut().source {
            *now = weather.at(turns);
        }
    }

    /// Nothing strikes any more.
    pub(crate) fn end(&self) {
        self.0.borrow_mut().is_over = true;
    }

    /// What struck so far, in order.
    pub(crate) fn struck(&self) -> Vec<Strike> {
        self.0.borrow().struck.clone()
    }
}

impl State {
    fn strike(&mut self, class: Class, site: usize) -> Option<Chance> {
        if self.is_over {
            return None;
        }
        if let Source::Rates { now, .. } = &self.source
            && now[class as usize] == 0.0
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
            Source::Rates { now, .. } => chance.fraction() < now[class as usize],
            Source::Script(script) => script.contains(&strike),
        };
        if !strikes {
            return None;
        }
        self.struck.push(strike);
        Some(chance.of(1))
    }
}
