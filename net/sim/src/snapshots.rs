//! A node and its snapshots: when it takes one, what it sends of them, and how it begins anew from another node's.

use sprag_log::{Finished, SimulatedDisk, SnapshotError, SnapshotJob};
use sprag_paxos::{Message, Slot, Snapshot, Voter};

use crate::invariant::{Broken, Fact};
use crate::machine::Machine;
use crate::node::{Arrival, Input};
use crate::world::{Due, World};

/// No machine is larger.
pub(crate) const BYTES_MAX: u64 = 1 << 20;

impl World {
    /// Takes a snapshot, if enough was applied since the last.
    pub(crate) fn save_in_time(&mut self, node: usize) {
        let Some(life) = &self.nodes[node].life else {
            return;
        };
        let is_half_full = life.store.log().segments() > self.plan.log.segments_max / 2;
        let every = self.plan.snapshot_slots;
        self.save(node, if is_half_full { 1 } else { every });
    }

    /// The log is full, but for what a snapshot would hold. With nothing to add to the last one, that has to do: there is
    /// none before it then that the log leads on from.
    pub(crate) fn make_room(&mut self, node: usize) {
        self.save(node, 1);
        if let Some(life) = &mut self.nodes[node].life
            && life.saving.is_none()
            && let Some(newest) = life.snapshots.newest()
            && newest.through > life.executor.replica().trimmed()
        {
            let trimmable = newest.through;
            life.inbox.push_back(Input::Saved { trimmable });
        }
    }

    /// Takes a snapshot, if so many slots were applied since the last.
    fn save(&mut self, node: usize, every: u64) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        let last = life.snapshots.newest();
        let last = last.map_or(Slot::NONE, |last| last.through);
        let applied = life.machine.applied();
        if applied.0.saturating_sub(last.0) < every || life.saving.is_some() {
            return;
        }
        match life.snapshots.begin_save(applied, life.machine.save()) {
            Ok(job) => self.keep_busy(node, job),
            Err(_) => self.fail(node),
        }
    }

    fn keep_busy(&mut self, node: usize, job: Option<SnapshotJob<SimulatedDisk>>) {
        if let Some(life) = &mut self.nodes[node].life
            && job.is_some()
        {
            life.saving = job;
            let takes_ns = self.sync_takes_ns(node) + self.plan.save_ns;
            self.due_after(takes_ns, node, Due::Saved);
        }
    }

    /// The disk has a snapshot, even if the node stands still.
    pub(crate) fn saved(&mut self, node: usize) -> Result<(), Broken> {
        let saver = &mut self.nodes[node];
        let Some(life) = &mut saver.life else {
            return Ok(());
        };
        let Some(job) = life.saving.take() else {
            return Ok(());
        };
        let Ok(finished) = life.snapshots.finish(job.run()) else {
            self.fail(node);
            return Ok(());
        };
        match finished {
            Finished::Saved(_) => {
                self.tally.snapshots += 1;
                let trimmable = life.snapshots.trimmable();
                life.inbox.push_back(Input::Saved { trimmable });
            }
            Finished::Installed(loaded) => {
                let snapshot = loaded.snapshot;
                life.arrival = Some(Arrival::Installed(loaded));
                life.received(snapshot, true);
            }
            Finished::Damaged(_) | Finished::NoRoom(_) => {
                if let Some(Arrival::Installing(snapshot)) = life.arrival {
                    life.arrival = None;
                    life.received(snapshot, false);
                }
            }
        }
        if let Some(newest) = life.snapshots.newest() {
            let (voter, through) = (saver.voter, newest.through);
            self.look(Fact::Saved { voter, through })?;
        }
        self.install(node);
        self.sync(node);
        self.go(node)
    }

    /// Has a snapshot made durable that came from another node, unless another is.
    fn install(&mut self, node: usize) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        let Some(Arrival::Whole(whole)) = life.arrival else {
            return;
        };
        if life.saving.is_some() {
            return;
        }
        match life.snapshots.begin_install() {
            Ok(None) => {
                life.arrival = None;
                life.received(whole, false);
            }
            Ok(job) => {
                life.arrival = Some(Arrival::Installing(whole));
                self.keep_busy(node, job);
            }
            Err(_) => self.fail(node),
        }
    }

    /// Sends a piece of what is asked for, or of the newest there is.
    pub(crate) fn send_chunk(
        &mut self,
        node: usize,
        to: Voter,
        asked: Option<(Snapshot, u64)>,
    ) -> Result<(), Broken> {
        let Some(life) = &mut self.nodes[node].life else {
            return Ok(());
        };
        match life.snapshots.chunk(asked, self.plan.chunk_bytes) {
            Ok(None) => {
                // The last one can't be read any more: whoever asks for it gets the next.
                self.save(node, 1);
                Ok(())
            }
            Ok(Some(chunk)) => {
                let message = Message::Chunk {
                    snapshot: chunk.snapshot,
                    offset: chunk.offset,
                    bytes: chunk.bytes.into(),
                };
                self.send(node, to, message)
            }
            Err(_) => {
                self.fail(node);
                Ok(())
            }
        }
    }

    /// Keeps a piece that came.
    pub(crate) fn receive(&mut self, node: usize, snapshot: Snapshot, offset: u64, bytes: &[u8]) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        match life.snapshots.receive(snapshot, offset, bytes) {
            Ok(next) if next == snapshot.bytes => {
                life.arrival = Some(Arrival::Whole(snapshot));
                self.install(node);
            }
            Ok(_) => {}
            Err(SnapshotError::Disk(_) | SnapshotError::Stopped(_)) => self.fail(node),
            Err(_) => life.received(snapshot, false),
        }
    }

    /// The machine begins anew.
    pub(crate) fn restore(&mut self, node: usize, snapshot: Snapshot) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        let is_it = |arrival: &mut Arrival| match arrival {
            Arrival::Installed(loaded) => loaded.snapshot == snapshot,
            Arrival::Whole(_) | Arrival::Installing(_) => false,
        };
        if let Some(life) = &mut self.nodes[node].life
            && let Some(Arrival::Installed(loaded)) = life.arrival.take_if(is_it)
        {
            life.machine = Machine::restore(&loaded.content);
        }
        self.tally.installed += 1;
        let through = snapshot.through;
        self.frontier = self.frontier.max(through);
        self.look(Fact::Restored { voter, through })?;
        self.compare(node)
    }
}

#[cfg(test)]
mod tests {
    use crate::chance::Chance;
    use crate::fault::Faults;
    use crate::plan::{Mix, Plan};
    use crate::world::{EVENTS_MAX, World};

    /// The states that a seed's machines went through where no fault strikes and each node takes a snapshot after so many
    /// slots.
    fn states(seed: u64, snapshot_slots: u64) -> (Vec<u64>, u64) {
        let mut plan = Plan {
            snapshot_slots,
            ..Plan::new(seed, &Mix::none(), None)
        };
        // For no other reason.
        plan.log.segments_max = usize::MAX;
        plan.log.slots_max = usize::MAX;
        let faults = Faults::scripted(Chance::new(seed), &[]);
        let mut world = World::new(seed, plan, faults, true, None);
        world.run(EVENTS_MAX).unwrap();
        (world.states.into_digests(), world.tally.snapshots)
    }

    #[test]
    fn snapshots_change_no_state() {
        for seed in 0..6 {
            let (states_without, none) = states(seed, u64::MAX);
            let (states_with, many) = states(seed, 3);
            assert!(none == 0 && many > 5, "seed {seed}: {none}, {many}");
            // Who asks when at the end depends on how many events there were.
            let common = states_with.len().min(states_without.len()) / 2;
            assert!(common > 20, "seed {seed}: {common}");
            let is_same = states_with[..common] == states_without[..common];
            assert!(is_same, "seed {seed}");
        }
    }
}
