//! Judges what clients saw.

use std::collections::BTreeMap;

use crate::invariant::Broken;
use crate::world::{Failure, World};

pub(crate) fn judge(world: &World) -> Result<(), Failure> {
    let mut answers = BTreeMap::new();
    for call in world.calls() {
        let Some((_, entry)) = &call.answer else {
            continue;
        };
        let first = answers.entry(call.slot).or_insert(entry);
        if *first != entry {
            let what = format!("{} was answered {first:?} and {entry:?}", call.slot);
            return Err(Failure::Safety(Broken {
                invariant: "history",
                source: "clients",
                what,
            }));
        }
    }
    Ok(())
}
