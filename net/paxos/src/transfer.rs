//! Snapshots in the place of entries: what they hold is forgotten here, and who needs that gets a snapshot, in pieces.
//!
//! ```text
//!   who is behind            who has trimmed
//!     │── Fetch from ─────────►│  nothing from there on is left entry by entry
//!     │◄─ Chunk s 0 … ─────────│
//!     │── FetchChunk s n ─────►│  or another that has s too
//!     │◄─ Chunk s n … ─────────│  or `Chunk t 0 …`, where s isn't there any more: begun anew
//!    checked, durable under its name, and only then in the place of the state, unless that is further by now
//! ```

use std::sync::Arc;

use crate::effect::{Effect, Record, Ticket};
use crate::entry::Slot;
use crate::replica::{Replica, Role};
use crate::simulation::{Bug, Mark, planted, reach};
use crate::snapshot::Snapshot;
use crate::voter::Voter;

/// A snapshot that comes from another voter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Incoming {
    pub(crate) snapshot: Snapshot,
    /// Where the next piece begins.
    pub(crate) next: u64,
    /// Who sent the last.
    of: Voter,
}

impl Incoming {
    /// Whether all pieces have come: then the host checks them, and makes them durable.
    pub(crate) fn is_whole(&self) -> bool {
        self.next == self.snapshot.bytes
    }
}

impl Replica {
    /// Forgets the slots up to `slot`, which a durable snapshot holds.
    pub(crate) fn trim(&mut self, now_ns: u64, slot: Slot) {
        let slot = if planted(Bug::TrimmedAheadOfTheSnapshot) {
            self.decided()
        } else {
            slot.min(self.decided())
        };
        if slot <= self.learner.trimmed() {
            return;
        }
        reach(Mark::Trimmed);
        self.acceptor.trim(slot);
        self.learner.trim(slot);
        self.persist(now_ns, Record::Trimmed(slot));
    }

    /// A durable snapshot holds everything up to `slot`, which is more than was known to be decided. What was accepted in
    /// those slots, of whatever ballot, may be something else; what was accepted after them counts as before.
    pub(crate) fn skip_to(&mut self, now_ns: u64, slot: Slot) {
        let first = self.acceptor.first_from(Slot::NONE);
        if first.is_some_and(|first| first <= slot) {
            reach(Mark::InstalledOverAcceptances);
        }
        if self.acceptor.first_from(slot.next()).is_some() {
            reach(Mark::InstalledBelowAcceptances);
        }
        if planted(Bug::AcceptedAboveASnapshotDropped) {
            self.acceptor.forget_after(slot);
        }
        if planted(Bug::AcceptedBelowASnapshotKept) {
            return self.learner.pass_over(slot);
        }
        self.acceptor.trim(slot);
        self.learner.skip_to(slot);
        self.persist(now_ns, Record::Trimmed(slot));
        // That says more than what was to be put on record.
        self.hint.take_back(slot);
    }

    /// A voter asks for a piece of a snapshot; or for what only a snapshot holds.
    pub(crate) fn send_chunk(&mut self, to: Voter, asked: Option<(Snapshot, u64)>) {
        self.output(Ticket::NONE, Effect::SendChunk { to, asked });
    }

    /// A piece of a snapshot came.
    pub(crate) fn on_chunk(
        &mut self,
        now_ns: u64,
        of: Voter,
        snapshot: Snapshot,
        offset: u64,
        bytes: Arc<[u8]>,
    ) {
        if matches!(self.role, Role::Leader(_)) {
            reach(Mark::EntriesForALeader);
            return;
        }
        if snapshot.through <= self.decided() {
            reach(Mark::ChunkTooLate);
            return;
        }
        let snapshot = match self.incoming {
            Some(incoming) if planted(Bug::ChunkOfAnotherSnapshotTaken) && offset > 0 => {
                incoming.snapshot
            }
            _ => snapshot,
        };
        let is_wanted = match self.incoming {
            None => offset == 0,
            Some(incoming) if incoming.is_whole() => false,
            Some(incoming) if incoming.snapshot == snapshot => incoming.next == offset,
            // Whoever was asked last has no more of the other.
            Some(_) => offset == 0 && self.fetching.is_some_and(|fetching| fetching.of == of),
        };
        let next = offset.saturating_add(bytes.len() as u64);
        let is_sound = next <= snapshot.bytes && (next == snapshot.bytes || !bytes.is_empty());
        if !(is_wanted && is_sound) {
            reach(Mark::ChunkTwice);
            return;
        }
        if offset > 0 {
            reach(Mark::SnapshotInPieces);
        } else if self.incoming.is_some() {
            reach(Mark::SnapshotBegunAnew);
        }
        self.incoming = Some(Incoming { snapshot, next, of });
        let piece = Effect::Receive {
            snapshot,
            offset,
            bytes,
        };
        self.output(Ticket::NONE, piece);
        // However many pieces there are: a candidacy lasts as long as it gets on.
        if matches!(self.role, Role::Candidate(_)) {
            self.wait_for_leader(now_ns);
        }
        self.fetch(now_ns, of);
    }

    /// All of a snapshot has come, or it can't be kept.
    pub(crate) fn received(&mut self, now_ns: u64, snapshot: Snapshot, is_durable: bool) {
        let Some(incoming) = self
            .incoming
            .take_if(|incoming| incoming.snapshot == snapshot)
        else {
            return;
        };
        self.fetching = None;
        if !is_durable {
            return;
        }
        // It was told of everything one by one while the last piece was written.
        if snapshot.through <= self.decided() && !planted(Bug::OlderSnapshotRestored) {
            return;
        }
        reach(Mark::SnapshotInstalled);
        // It began to lead while the last piece was written. What others took further, it can't lead.
        if matches!(self.role, Role::Leader(_)) {
            self.step_down(now_ns);
        }
        if matches!(self.role, Role::Candidate(_)) {
            reach(Mark::SnapshotInstalledByCandidate);
        }
        self.skip_to(now_ns, snapshot.through);
        self.output(Ticket::NONE, Effect::Restore { snapshot });
        self.caught_up(now_ns, incoming.of);
    }
}

#[cfg(test)]
mod tests;
