//! Shrinks a script: leaves out all faults without which the run still fails in the same way.

use crate::fault::{Class, Strike};
use crate::script::Script;

/// Shrinks `script`, whose run fails in the way that it says, with at most `replays_max` runs. What is left fails in the
/// same way; each fault alone is needed for that, if the runs sufficed. Delta debugging, by complements only (Zeller and
/// Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).
#[must_use]
pub fn shrink(script: Script, replays_max: u32) -> Script {
    let mut search = Search {
        script,
        replays_left: replays_max,
    };
    search.leave_out_classes();
    search.leave_out_parts();
    search.script
}

struct Search {
    script: Script,
    replays_left: u32,
}

impl Search {
    /// Faults of one class often have nothing to do with the failure.
    fn leave_out_classes(&mut self) {
        self.keeps_failing(Vec::new());
        for class in Class::ALL {
            let strikes = &self.script.strikes;
            let rest = strikes.iter().filter(|strike| strike.class != *class);
            let rest: Vec<Strike> = rest.copied().collect();
            if rest.len() < strikes.len() {
                self.keeps_failing(rest);
            }
        }
    }

    /// Halves first, then ever smaller parts, from the end: what came last is most likely of no use.
    fn leave_out_parts(&mut self) {
        let mut size = self.script.strikes.len().div_ceil(2);
        while size > 0 && self.replays_left > 0 {
            let mut is_smaller = false;
            let mut end = self.script.strikes.len();
            while end > 0 && self.replays_left > 0 {
                let from = end.saturating_sub(size);
                let mut rest = self.script.strikes.clone();
                rest.drain(from..end);
                is_smaller |= self.keeps_failing(rest);
                end = from.min(self.script.strikes.len());
            }
            // Single ones are tried until none can go.
            if size > 1 || !is_smaller {
                size /= 2;
            }
        }
    }

    /// Takes `strikes` for the script's if they still make it fail.
    fn keeps_failing(&mut self, strikes: Vec<Strike>) -> bool {
        if self.replays_left == 0 {
            return false;
        }
        self.replays_left -= 1;
        let smaller = Script {
            strikes,
            ..self.script.clone()
        };
        let report = smaller.replay();
        let fails = report.failure.map(|failure| failure.way());
        if fails.is_none() || fails != self.script.fails {
            return false;
        }
        // Without a fault others may have no occasion any more, or the failure comes before them.
        self.script.strikes = report.struck;
        true
    }
}
