//! Runs with no bug planted, each run once: what they didn't ask for would have made no difference to them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sprag_paxos::simulation::{Bug, Bugs};
use sprag_sim::{Class, Mix, Report, Setup};

/// What runs of sound code asked for.
#[derive(Debug, Default)]
pub(crate) struct SoundRuns(Mutex<BTreeMap<(Option<Class>, u64), Bugs>>);

impl SoundRuns {
    /// Runs `seed` with `bug` planted and, but for the class `without`, all faults there are; `None` if that is the run of
    /// sound code.
    pub(crate) fn run_with(
        &self,
        bug: Bug,
        seed: u64,
        without: Option<Class>,
        looks_inside: bool,
    ) -> Option<Report> {
        let setup = |bug| Setup {
            mix: mix(without),
            nodes: None,
            bug,
            looks_inside,
        };
        let asked = self.asked(seed, without).unwrap_or_else(|| {
            // Two threads may run the same at once: the same comes of it.
            let asked = sprag_sim::run(seed, &setup(None)).asked;
            self.all().insert((without, seed), asked);
            asked
        });
        asked
            .contains(bug)
            .then(|| sprag_sim::run(seed, &setup(Some(bug))))
    }

    fn asked(&self, seed: u64, without: Option<Class>) -> Option<Bugs> {
        self.all().get(&(without, seed)).copied()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<(Option<Class>, u64), Bugs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mix(without: Option<Class>) -> Mix {
    let classes = Class::ALL.iter().copied();
    Mix::Swarm(classes.filter(|class| Some(*class) != without).collect())
}
