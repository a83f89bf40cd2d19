//! Nodes that go down at any operation of their disk, over and over: their power, and the runs from seed after seed.

use std::fmt::Debug;
use std::ops::{AddAssign, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use sprag_log::{Operation, SimulatedDisk};
use sprag_paxos::simulation::{Bug, plant};

/// The power of a node's machine, and what survives when it goes.
pub(crate) struct Power {
    pub(crate) rng: Rng,
    /// Operations until it goes.
    until_cut: u64,
    is_off: bool,
    /// How likely a sector survives, and a change of a name.
    survival: f64,
    names_survive: f64,
}

impl Power {
    pub(crate) fn new(rng: Rng) -> Power {
        Power {
            rng,
            until_cut: u64::MAX,
            is_off: false,
            survival: 0.0,
            names_survive: 0.0,
        }
    }

    /// It comes back, for so many operations.
    pub(crate) fn come_back(&mut self, until_cut: u64) {
        self.is_off = false;
        self.until_cut = until_cut;
    }

    /// What survives when it goes next.
    pub(crate) fn set_survival(&mut self, sectors: f64, names: f64) {
        self.survival = sectors;
        self.names_survive = names;
    }

    /// An operation begins; whether the power is off.
    pub(crate) fn goes(&mut self) -> bool {
        self.is_off |= self.until_cut == 0;
        self.until_cut = self.until_cut.saturating_sub(1);
        self.is_off
    }

    pub(crate) fn is_off(&self) -> bool {
        self.is_off
    }

    /// Whether an operation is a sync that fails, as some do.
    pub(crate) fn fails_sync(&mut self, operation: Operation) -> bool {
        let is_sync = matches!(operation, Operation::Sync | Operation::SyncDirectory);
        is_sync && self.rng.u8(..) < 10
    }

    pub(crate) fn sector_survives(&mut self) -> bool {
        self.rng.f64() < self.survival
    }

    pub(crate) fn name_survives(&mut self) -> bool {
        self.rng.f64() < self.names_survive
    }
}

/// A node that is made from a seed, and lives until its power goes or its disk fails it.
pub(crate) trait Mortal: Sized {
    /// What goes wrong besides the power.
    type Trouble: Copy + Debug;
    /// What it counts.
    type Counts: AddAssign + Debug + Default;
    /// Where the power does nothing else, it goes within so many operations.
    const CUT_MAX: u64;

    fn new(seed: u64, trouble: Self::Trouble) -> Self;

    /// One life: at most `until_cut` operations of the disk.
    fn live(&mut self, until_cut: u64) -> Result<(), String>;

    /// What happens while it is down.
    fn lie(&mut self);

    fn is_off(&self) -> bool;

    fn rng(&mut self) -> &mut Rng;

    fn counts(self) -> Self::Counts;
}

/// The disk after a life: the power is gone, or only the process, if that is still open.
pub(crate) fn after_a_life(disk: &SimulatedDisk, is_off: bool, rng: &mut Rng) -> SimulatedDisk {
    if is_off || rng.bool() {
        disk.cut_power()
    } else {
        disk.kill()
    }
}

/// Twelve lives.
fn run<N: Mortal>(seed: u64, trouble: N::Trouble) -> Result<N::Counts, String> {
    let mut node = N::new(seed, trouble);
    for _ in 0..12 {
        let until_cut = if node.rng().u8(..) < 200 {
            node.rng().u64(..N::CUT_MAX)
        } else {
            u64::MAX
        };
        node.live(until_cut)
            .map_err(|error| format!("seed {seed}, {trouble:?}: {error}"))?;
        node.lie();
    }
    Ok(node.counts())
}

/// Each of the seeds is survived; gives what they count together.
pub(crate) fn run_all<N: Mortal>(trouble: N::Trouble, seeds: Range<u64>) -> N::Counts {
    let mut sum = N::Counts::default();
    for seed in seeds {
        sum += run::<N>(seed, trouble).unwrap_or_else(|error| panic!("{error}"));
    }
    println!("{trouble:?}: {sum:?}");
    sum
}

/// Workloads, cut at each of their operations; what survives of the unsynced differs from cut to cut.
pub(crate) fn cut_everywhere<N: Mortal>(trouble: N::Trouble) {
    for workload in 0..2 {
        for cut in 0.. {
            let mut node = N::new(workload, trouble);
            let lived = node.live(cut);
            let is_over = !node.is_off();
            *node.rng() = Rng::with_seed(cut);
            lived
                .and_then(|()| node.live(u64::MAX))
                .and_then(|()| node.live(u64::MAX))
                .unwrap_or_else(|error| panic!("workload {workload}, cut {cut}: {error}"));
            if is_over {
                assert!(cut > 100, "a short workload: {cut}");
                break;
            }
        }
    }
}

/// Each bug makes some seed fail, in the trouble beside it.
pub(crate) fn find_each<N: Mortal>(bugs: &[(Bug, N::Trouble)]) {
    for &(bug, trouble) in bugs {
        plant(Some(bug));
        let found = (0..600).find(|seed| {
            // What it breaks may be what an index relies on.
            let ran = catch_unwind(AssertUnwindSafe(|| run::<N>(*seed, trouble)));
            ran.map_or(true, |ran| ran.is_err())
        });
        plant(None);
        println!("{bug:?} under {trouble:?}: {found:?}");
        assert!(found.is_some(), "{bug:?} was not found under {trouble:?}");
    }
}
