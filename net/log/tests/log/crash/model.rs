//! What a node has said and asked, and what its log must hold because of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::AddAssign;

use fastrand::Rng;
use sprag_log::{Found, Position};
use sprag_paxos::{Answer, Ballot, Entry, Slot};

use super::super::ME;

/// What a node has said and asked, against which its log is held.
#[derive(Default)]
pub(super) struct Model {
    /// Each value that was ever asked to be accepted.
    pub(super) asked: BTreeMap<(Slot, Ballot), Entry>,
    /// Asked and not acknowledged yet.
    pub(super) pending: Vec<(Position, Slot, Ballot)>,
    /// The highest ballot acknowledged for a slot.
    pub(super) acknowledged: BTreeMap<Slot, Ballot>,
    pub(super) promises_asked: BTreeSet<Ballot>,
    pub(super) promised: Option<Ballot>,
    pub(super) trim_asked: u64,
    pub(super) trims_pending: Vec<(Position, u64)>,
    trimmed: u64,
    /// What each slot must hold from the moment on that somebody knew it to be decided.
    pub(super) decided: BTreeMap<Slot, Entry>,
    /// Up to where that was asked to be remembered, up to where it was taken, and up to where it is durable.
    pub(super) decided_asked: u64,
    pub(super) decided_appended: u64,
    pub(super) decided_pending: Vec<(Position, u64)>,
    decided_durable: u64,
    /// What was written last of each slot.
    pub(super) last: BTreeMap<Slot, Entry>,
    serial: u32,
    pub(super) counts: Counts,
}

/// What came to pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) lives: u64,
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    lost: u64,
    pub(super) full: u64,
    pub(super) trims: u64,
    pub(super) decided: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.lives += other.lives;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.lost += other.lost;
        self.full += other.full;
        self.trims += other.trims;
        self.decided += other.decided;
    }
}

impl Model {
    /// A value that no other is like.
    pub(super) fn value(&mut self, rng: &mut Rng) -> Entry {
        self.serial += 1;
        match rng.usize(..4) {
            0 => Entry::Noop,
            size => {
                let mut bytes = vec![rng.u8(..); rng.usize(..=[0, 1, 200, 3000][size])];
                bytes.extend(self.serial.to_le_bytes());
                Entry::Commands(bytes.into())
            }
        }
    }

    /// Everything up to `position` is durable.
    pub(super) fn synced(&mut self, position: Position) {
        let durable: Vec<_> = self
            .pending
            .extract_if(.., |(at, ..)| *at <= position)
            .collect();
        for (_, slot, ballot) in durable {
            self.acknowledge(slot, ballot);
        }
        let is_durable = |(at, _): &mut (Position, u64)| *at <= position;
        for (_, slot) in self.decided_pending.extract_if(.., is_durable) {
            self.decided_durable = self.decided_durable.max(slot);
        }
        for (_, slot) in self.trims_pending.extract_if(.., is_durable) {
            self.trimmed = self.trimmed.max(slot);
        }
    }

    /// The node is down: what wasn't acknowledged may be there or not.
    pub(super) fn forget_pending(&mut self) {
        self.decided_pending.clear();
        self.pending.clear();
        self.trims_pending.clear();
    }

    fn acknowledge(&mut self, slot: Slot, ballot: Ballot) {
        self.counts.acknowledged += 1;
        let highest = self.acknowledged.entry(slot).or_insert(ballot);
        *highest = ballot.max(*highest);
    }

    /// Holds what was found against all that. An honest disk loses nothing that was acknowledged.
    pub(super) fn check(&mut self, found: &Found, is_honest: bool) -> Result<(), String> {
        require(found.voter == ME, &"another voter")?;
        require(!is_honest || found.lost.is_none(), &("lost", found.lost))?;
        self.counts.lost += u64::from(found.lost.is_some());
        self.check_promise(found.state.promised)?;
        self.check_trimmed(found)?;
        self.check_decided(found, is_honest)?;
        let last = self.asked.keys().map(|(slot, _)| slot.0).max();
        for slot in found.state.trimmed.0 + 1..=last.unwrap_or(0) {
            self.check_slot(Slot(slot), found, is_honest)?;
        }
        Ok(())
    }

    fn check_promise(&mut self, promised: Ballot) -> Result<(), String> {
        let is_asked = promised == Ballot::NONE || self.promises_asked.contains(&promised);
        require(is_asked, &("promise invented", promised))?;
        require(
            Some(promised) >= self.promised,
            &("promise went back", promised, self.promised),
        )?;
        self.promised = Some(promised).filter(|promised| *promised > Ballot::NONE);
        Ok(())
    }

    fn check_trimmed(&mut self, found: &Found) -> Result<(), String> {
        let trimmed = found.state.trimmed.0;
        require(
            found.lost.is_some() || (self.trimmed..=self.trim_asked).contains(&trimmed),
            &("trimmed", trimmed, self.trimmed),
        )?;
        self.trimmed = trimmed;
        let above = |slot: &Slot| slot.0 > trimmed;
        require(
            found.state.answers.keys().all(above),
            &"an answer for a trimmed slot",
        )
    }

    fn check_decided(&mut self, found: &Found, is_honest: bool) -> Result<(), String> {
        let (trimmed, decided) = (found.state.trimmed.0, found.state.decided.0);
        require(
            (trimmed..=self.decided_asked.max(trimmed)).contains(&decided),
            &("decided", decided, self.decided_asked),
        )?;
        self.last.clear();
        for (slot, answer) in &found.state.answers {
            if let Answer::Accepted(vote) = answer {
                self.last.insert(*slot, vote.entry.clone());
            }
        }
        self.last.extend(found.state.learned.clone());
        for slot in (trimmed + 1..=decided).map(Slot) {
            let agrees = self.last.get(&slot) == self.decided.get(&slot);
            require(agrees, &(slot, "decided otherwise", self.last.get(&slot)))?;
        }
        let torn = found.answer(Slot(decided + 1));
        require(
            !is_honest || decided >= self.decided_durable || matches!(torn, Answer::Unknown(_)),
            &("decided went back", decided, self.decided_durable),
        )?;
        self.counts.decided += decided.saturating_sub(trimmed);
        self.decided_appended = decided;
        self.decided_durable = decided;
        Ok(())
    }

    fn check_slot(&mut self, slot: Slot, found: &Found, is_honest: bool) -> Result<(), String> {
        let acknowledged = self.acknowledged.get(&slot).copied();
        let acknowledged = acknowledged.unwrap_or(Ballot::NONE);
        match found.answer(slot) {
            Answer::Never => require(
                acknowledged == Ballot::NONE,
                &(slot, "forgotten", acknowledged),
            ),
            Answer::Accepted(vote) => {
                let is_asked = self.asked.get(&(slot, vote.ballot)) == Some(&vote.entry);
                require(is_asked, &(slot, "altered or invented", &vote))?;
                require(
                    vote.ballot >= acknowledged,
                    &(slot, "older than", acknowledged, &vote),
                )?;
                self.acknowledge(slot, vote.ballot);
                Ok(())
            }
            Answer::Unknown(ballot) => {
                self.counts.unknown += 1;
                let is_asked = found.lost.is_some() || self.asked.contains_key(&(slot, ballot));
                require(is_asked, &(slot, "unknown invented", ballot))?;
                require(
                    ballot >= acknowledged,
                    &(slot, "unknown below", acknowledged, ballot),
                )?;
                require(
                    !is_honest || ballot > acknowledged,
                    &(slot, "unknown though acknowledged", ballot),
                )
            }
        }
    }
}

fn require(holds: bool, what: &dyn Debug) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("{what:?}"))
    }
}
