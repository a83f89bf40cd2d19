//! Machines that applied the same slots are in the same state. Anybody could compare them, so this is checked also where
//! only what clients see is.

use std::collections::BTreeMap;

use sprag_paxos::Slot;

use super::Broken;

#[derive(Debug, Default)]
pub(crate) struct EqualStates {
    /// By slot, the digest of the first machine that applied it.
    digests: BTreeMap<Slot, u64>,
}

impl EqualStates {
    /// The machine of `node` has applied everything up to `slot`.
    pub(crate) fn look(&mut self, node: usize, slot: Slot, digest: u64) -> Result<(), Broken> {
        let first = *self.digests.entry(slot).or_insert(digest);
        if first == digest {
            return Ok(());
        }
        Err(Broken {
            invariant: "equal states",
            source: "Schneider, Implementing Fault-Tolerant Services Using the State Machine Approach, 1990",
            what: format!("after {slot}, node {node} is in another state than others were"),
        })
    }

    /// What the states were, slot by slot.
    #[cfg(test)]
    pub(crate) fn into_digests(self) -> Vec<u64> {
        self.digests.into_values().collect()
    }
}
