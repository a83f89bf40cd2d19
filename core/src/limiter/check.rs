//! What of limiters contradicts itself, for `sprag region check`.
//!
//! Owns the walks over overrides and over keys; changes nothing. What is found of a word that changed meanwhile is
//! passed over.

use super::definition::name_cell;
use super::overrides::Chosen;
use crate::cell_key;
use crate::check::{Check, Finding};
use crate::engine::Engine;
use crate::limiter_key::KeyState;
use crate::object::{Kind, Name, Objects, parts_of_pair};
use crate::slot::Control;
use crate::table::{LIVE, phase};
use core::sync::atomic::Ordering::Acquire;
use std::collections::HashMap;

impl Engine {
    /// Looks for overrides whose limit is none of their limiter's, and for keys that a limiter has twice.
    pub(crate) fn check_limiters(&self, check: &mut Check) {
        self.objects.for_each(&self.region, |cell, at, state| {
            let is_override = phase(state) == LIVE && Objects::is(&self.region, at, Kind::Override);
            let slot = Chosen::decode(state).current;
            if let Some(slot) = slot.filter(|_| is_override)
                && !self.is_its_slot(at, slot)
                && self.region.wide(at).load() == state
            {
                check.findings.push(Finding::Override { cell, slot });
            }
        });
        let mut keys: HashMap<(u32, Vec<u8>), (u32, u128)> = HashMap::new();
        self.limiter_keys.for_each(&self.region, |cell, at, state| {
            if phase(state) != LIVE {
                return;
            }
            let key = cell_key::read(&self.region, at, state);
            let limiter = name_cell(&self.region, KeyState(state).limit());
            let word = |cell| self.limiter_keys.state(&self.region, cell).load();
            if let Some((other, seen)) = keys.insert((limiter, key.clone()), (cell, state))
                && word(other) == seen
                && word(cell) == state
            {
                let cells = [other, cell];
                check.findings.push(Finding::KeyTwice { key, cells });
            }
        });
    }

    /// Whether a slot is of overrides of the limiter that the override at `at` is of.
    fn is_its_slot(&self, at: usize, slot: u32) -> bool {
        let name = Objects::name(&self.region, at);
        let limiter = parts_of_pair(&name)
            .and_then(|(limiter, _)| Name::new(&self.region, "limiter name", limiter).ok())
            .and_then(|limiter| self.find_object(&self.object(Kind::Limiter, &limiter)));
        limiter.is_some_and(|limiter| {
            Control(self.limit_control(slot).load(Acquire)).is_in_use()
                && self.is_of_overrides(slot)
                && name_cell(&self.region, slot) == limiter.cell
        })
    }
}
