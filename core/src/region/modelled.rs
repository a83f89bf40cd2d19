//! Which words of a region are loom's in a model, and which are not and why.

use super::{CELLS_PER_BLOCK, CHARGES, LINE, Region, Section, header};
use crate::joint::definition::overflow_at;
use crate::limiter::{CELL, USES, overflow, slots_end};
use crate::lock::deadlock::MARK;
use crate::object::{Kind, OWN, Objects};
use crate::table::count_of;
use core::sync::atomic::Ordering::Relaxed;

impl Region {
    /// Slots of overrides, where there are any: no model fills one, or brings one into use.
    fn share_overrides(&self) {
        self.word(header::OVERRIDES).leave();
        for slot in 0..slots_end(self).max(1) {
            let at = self.limit_at(slot);
            self.half(at + CELL).leave();
            self.word(at + USES).share();
            if slot > 0 {
                self.word(at).share();
                for i in 1..7 {
                    self.word(at + i * 8).leave();
                }
                overflow(self, slot).share();
            }
        }
    }

    fn has_concurrency_limiter(&self) -> bool {
        let section = &self.geometry.objects;
        let cells = |block: u32| (0..CELLS_PER_BLOCK as usize).map(move |cell| (block, cell));
        (0..section.units).flat_map(cells).any(|(block, cell)| {
            let at = section.at(block) + LINE + cell * 64;
            Objects::is(self, at, Kind::Concurrency)
        })
    }

    /// Makes loom's words of those that the threads of a model may touch, just before they start. A model is as
    /// slow as these are many, so those that no model needs are left out: breaks, all limits but one, the
    /// limiters' and the joint limiters' where their cap allows for one key only, charges where it allows for two,
    /// and chunks where it allows for one only.
    ///
    /// Some are left plain, since who comes first at them changes nothing that a model could see:
    /// - the latest time is read only when a region's file is opened;
    /// - when a wait last looked is compared with the time, which stands still;
    /// - when a lock was granted is for people, and says that the grant is not to be undone, which is waited for in
    ///   looks that a model has none of;
    /// - what a session says of its process is written before the threads start, and for people to read;
    /// - where to begin to look for a chunk is a hint;
    /// - what each session has created is compared with its share, which in memory is the whole;
    /// - when a permit was granted is for people where there is no limiter whose keys it may be of, and whose
    ///   share it is of is asked only where there are shares;
    /// - a table's *quiet* word and clock hand are looked at only when it is full. They are loom's where
    ///   it is full at the start. A lock can become idle at any moment, so that beside one that is not
    ///   idle no sweep leaves anything in the word; for limiter keys see the model at the cap.
    pub fn share(&self) {
        let words = |at: usize, count: usize| {
            for i in 0..count {
                self.word(at + i * 8).share();
            }
        };
        self.word(header::LATEST).leave();
        words(header::WAITERS_HIGH, 1);
        words(header::TICKETS, 1);
        for partition in 0..self.geometry.partitions {
            self.floor(partition).share();
        }
        // Coarse locks that no scene has made live are nobody's in its model either.
        for coarse in 0..=self.geometry.partitions {
            let at = self.coarse_at(coarse);
            self.word(at + OWN).leave();
            if self.wide(at).load() == 0 {
                self.wide(at).leave();
                self.word(at + MARK).leave();
            } else {
                self.wide(at).share();
                self.word(at + MARK).share();
            }
        }
        for session in 0..self.geometry.caps.sessions {
            let at = self.session_at(session);
            words(at, 1);
            for said in [8, 16, 24] {
                self.word(at + said).leave();
            }
            self.word(at + 32).leave();
            self.word(at + 40).leave();
            self.word(at + 48).leave();
        }
        for waiter in 0..self.geometry.caps.waiters {
            self.waiter_word(waiter).share();
            self.half(self.waiter_at(waiter)).share();
            self.half(self.waiter_at(waiter) + 4).share();
            words(self.waiter_at(waiter) + 8, 2);
            for at in [24, 40, 48] {
                self.word(self.waiter_at(waiter) + at).leave();
            }
            words(self.waiter_at(waiter) + 32, 1);
        }
        words(header::PERMITS_HIGH, 1);
        let has_limiter = self.has_concurrency_limiter();
        for permit in 0..self.geometry.caps.permits {
            let at = self.permit_at(permit);
            self.wide(at).share();
            words(at + 16, 2);
            for at in [40, 48].map(|offset| at + offset) {
                self.word(at).leave();
            }
            // What it says there of a limiter's key decides something.
            if has_limiter {
                self.word(at + 32).share();
            } else {
                self.word(at + 32).leave();
            }
        }
        let table = |counters: usize, cap: u32, section: &Section, cell_bytes: usize| {
            let count = self.word(counters);
            let is_full = count_of(count.load(Relaxed)) >= u64::from(cap);
            count.share();
            for at in [counters + 8, counters + 16] {
                if is_full {
                    self.word(at).share();
                } else {
                    self.word(at).leave();
                }
            }
            words(counters + 24, 1);
            for block in 0..section.units {
                let at = section.at(block);
                words(at, 2);
                for cell in 0..CELLS_PER_BLOCK as usize {
                    self.half(at + 16 + cell * 4).share();
                    let cell = at + LINE + cell * cell_bytes;
                    self.wide(cell).share();
                    if cell_bytes == 128 {
                        words(cell + 16, 2);
                        for value in 0..2 {
                            self.wide(cell + 32 + value * 16).share();
                        }
                        continue;
                    }
                    words(cell + 16, (cell_bytes - 16) / 8);
                    if cell_bytes == 64
                        && self.wide(cell).load() != 0
                        && Objects::is_lock(self, cell)
                    {
                        self.word(cell + OWN).leave();
                    }
                }
            }
        };
        let (geometry, caps) = (&self.geometry, self.geometry.caps);
        table(header::OBJECTS, caps.objects, &geometry.objects, 64);
        if caps.key_chunks > 1 {
            self.word(header::CHUNK_HINT).leave();
            for chunk in 0..caps.key_chunks {
                words(geometry.chunks.at(chunk), 8);
            }
        }
        if caps.limiter_keys > 1 {
            words(header::RECLAIMED_AT, 1);
            words(self.limit_at(0), 7);
            overflow(self, 0).share();
            self.share_overrides();
            let keys = &geometry.limiter_keys;
            table(header::LIMITER_KEYS, caps.limiter_keys, keys, 32);
        }
        if caps.limiter_keys > 2 {
            for charge in 0..CHARGES {
                let at = self.charge_at(charge);
                words(at, 1);
                // Of two entries; no model has a call with more.
                words(at + LINE, 10);
            }
        }
        if caps.joint_keys > 1 {
            words(header::RECLAIMED_AT, 1);
            // Limits never change once they are named, which they are before the threads start. Of the values, models
            // use two.
            let at = self.joint_at(0);
            self.word(at + 8).leave();
            self.half(at + 20).leave();
            for word in 0..30 {
                self.word(at + 24 + word * 8).leave();
            }
            let entry = |at: usize| {
                self.wide(at).share();
                for value in 0..2 {
                    self.wide(at + 32 + value * 16).share();
                }
            };
            entry(overflow_at(self, 0));
            let keys = &geometry.joint_keys;
            table(header::JOINT_KEYS, caps.joint_keys, keys, 128);
        }
    }
}
