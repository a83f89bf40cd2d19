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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every other class is on.
    fn rates() -> Vec<f64> {
        let rate = |class: &Class| f64::from(*class as u8 % 2) / 100.0;
        Class::ALL.iter().map(rate).collect()
    }

    fn weather(seed: u64) -> Weather {
        Weather::new(Chance::new(seed), rates(), vec![0.1; Class::ALL.len()])
    }

    #[test]
    fn a_class_that_is_off_stays_off_and_none_strikes_more_often_than_it_may() {
        for seed in 0..50 {
            for turn in 0..50 {
                for (now, usual) in weather(seed).at(turn).iter().zip(rates()) {
                    assert_eq!(*now == 0.0, usual == 0.0, "seed {seed}, turn {turn}");
                    assert!(*now <= 0.1, "seed {seed}, turn {turn}");
                }
            }
        }
    }

    #[test]
    fn in_most_seeds_there_are_fair_spells_and_storms() {
        let changes = (0..100).filter(|seed| {
            let weather = weather(*seed);
            let all = (0..1000).flat_map(|turn| weather.at(turn));
            let (mut is_fair, mut is_stormy) = (false, false);
            for rate in all {
                is_fair |= rate > 0.0 && rate < 0.01;
                is_stormy |= rate > 0.09;
            }
            assert_eq!(is_fair, is_stormy, "seed {seed}");
            is_fair
        });
        assert!((60..90).contains(&changes.count()));
    }

    #[test]
    fn a_storm_does_not_calm_what_is_usual() {
        let rates = vec![0.5; Class::ALL.len()];
        let weather = Weather::new(Chance::new(0), rates.clone(), vec![0.1; rates.len()]);
        for turn in 0..100 {
            assert!(weather.at(turn).iter().all(|rate| *rate >= 0.25));
        }
    }
}
