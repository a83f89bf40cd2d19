//! The weather: in most seeds the rates of faults change as a run goes on. Spells in which little goes wrong let a cluster
//! get into a state worth disturbing; then for a while some classes strike far more often than else. What it takes several
//! faults within one another's reach to show is hardly ever met at even rates.

use crate::chance::Chance;
use crate::fault::Class;

/// The weather of a run.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    chance: Chance,
    /// By class, the rate of each occasion, from 0 to 1, on the whole.
    rates: Vec<f64>,
    /// By class, the most that it may be.
    most: Vec<f64>,
    /// How many turns a spell lasts; 0 where the weather never changes.
    spell_turns: u64,
}

/// How much the rates are lowered in fair weather, and raised in a storm.
const FAIR: f64 = 0.5;
const STORM: f64 = 32.0;

impl Weather {
    /// Around these rates, by class.
    pub(crate) fn new(chance: Chance, rates: Vec<f64>, most: Vec<f64>) -> Self {
        let is_steady = chance.of(1).below(4) == 0;
        let spell_turns = chance.of(2).log_uniform(1, 32);
        Self {
            chance,
            rates,
            most,
            spell_turns: if is_steady { 0 } else { spell_turns },
        }
    }

    /// The rates after so many turns.
    pub(crate) fn at(&self, turn: u64) -> Vec<f64> {
        let Some(spell) = turn.checked_div(self.spell_turns) else {
            return self.rates.clone();
        };
        let chance = self.chance.of(3).of(spell);
        let is_storm = chance.of(0).below(3) == 0;
        let rate = |class: &Class| {
            let index = *class as usize;
            let factor = match chance.of(1 + index as u64).below(2) {
                0 if is_storm => STORM,
                _ => FAIR,
            };
            (factor * self.rates[index]).min(self.most[index].max(self.rates[index]))
        };
        Class::ALL.iter().map(rate).collect()
    }
}
