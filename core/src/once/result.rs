//! Where results are stored, and when that is whose. Owns how chunks pass from who writes them to the
//! attempt that they are the result of. Changes no state word.
//!
//! An attempt may be over at any moment, and its chunks are then anybody's to take. So nobody writes to
//! a chunk of an attempt:
//!
//! ```text
//!         taken                     filled, then handed over            done, by the state word
//!  free ─────────▶ the session's ───────────────────────▶ the attempt's ───────────────────────▶ read
//!    ▲                   │ it dies                             │ the attempt ends unfinished,
//!    └───────────────────┴─────────────────────────────────────┘ or a later one begins
//! ```
//!
//! *Stopped while it writes*: its session lives, so the chunks are its own. *Dead there*: they are free,
//! since its session is. *Stopped later, while the attempt ends*: what it goes on to do are exchanges
//! of whole owner words, which no longer are what it expects, or which make a chunk an attempt's
//! that is over, so nobody's. *Dead later*: what was handed over is free once somebody begins anew.

use super::RESULT_BYTES_MAX;
use super::state::{State, Status};
use crate::chunk::{self, CHAIN_MAX, Owner, PAYLOAD, Taker};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Objects};
use crate::session::{SessionId, Sessions};
use crate::table::{LIVE, phase};
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

/// The chunks that a result was written to, its first one last.
pub(super) struct Written {
    chunks: [u32; CHAIN_MAX],
    count: usize,
}

impl Written {
    fn chunks(&self) -> &[u32] {
        &self.chunks[..self.count]
    }

    /// The first chunk of the result; `None` if that is empty.
    pub(super) fn first(&self) -> Option<u32> {
        self.chunks().last().copied()
    }
}

impl Engine {
    /// Writes a result, and hands it over to the attempt under `token` at the once in `cell`.
    pub(super) fn write_result(
        &self,
        cell: u32,
        token: u64,
        by: SessionId,
        result: &[u8],
    ) -> Result<Written> {
        let mut written = Written {
            chunks: [0; CHAIN_MAX],
            count: 0,
        };
        if result.is_empty() {
            return Ok(written);
        }
        let writer = Owner::Writer {
            line: by.index(),
            generation: Sessions::generation(&self.region, by),
        };
        let filled = self.counting_chunks(result.len(), || {
            let mut taker = Taker::new(&self.region, |owner| self.is_current(owner));
            let mut next = 0;
            // From the end, so that each is linked to the next before anybody can see it.
            for part in result.chunks(PAYLOAD).rev() {
                let is_first = written.count + 1 == chunk::count(result.len()) as usize;
                let len = if is_first { result.len() as u64 } else { 0 };
                let link = u64::from(next) | u64::from(by.index()) << 32 | len << 44;
                let chunk = taker.take(writer, part, link)?;
                written.chunks[written.count] = chunk;
                written.count += 1;
                next = chunk + 1;
            }
            taker.leave_off();
            Ok(())
        });
        if let Err(error) = filled {
            self.pass_chunks(&written, writer.encode(), 0);
            return Err(error);
        }
        let attempt = Owner::attempt(cell, token);
        self.pass_chunks(&written, writer.encode(), attempt.encode());
        Ok(written)
    }

    /// Gives the chunks of a result back that nobody will read.
    pub(super) fn give_back(&self, cell: u32, token: u64, written: &Written) {
        let attempt = Owner::attempt(cell, token);
        self.pass_chunks(written, attempt.encode(), 0);
    }

    fn pass_chunks(&self, written: &Written, from: u64, to: u64) {
        for chunk in written.chunks() {
            let word = self.region.word(self.region.geometry.chunks.at(*chunk));
            // Release: what was written comes before; whoever takes it next acquires the word. It fails
            // where the chunk is another's by now.
            let _ = word.compare_exchange(from, to, AcqRel, Relaxed);
        }
    }

    /// Whether chunks of the attempt under the low bits `token` are its own: it is in progress or done.
    pub(crate) fn is_attempt_current(&self, cell: u32, token: u64) -> bool {
        if !self.objects.is_present(&self.region, cell) {
            return false;
        }
        let at = self.objects.at(cell);
        let word = self.region.wide(at).load();
        let state = State::decode(word);
        // If the kind is read of another entry than the state, the state's is gone.
        phase(word) == LIVE
            && Objects::is(&self.region, at, Kind::Once)
            && !matches!(state.status, Status::Open { .. })
            && Owner::attempt(cell, state.token) == Owner::attempt(cell, token)
    }

    /// The result whose first chunk is given. The caller revalidates the state after.
    #[inline]
    pub(super) fn read_result(&self, first: Option<u32>) -> Vec<u8> {
        let Some(first) = first else {
            return Vec::new();
        };
        let section = &self.region.geometry.chunks;
        if first >= section.units || !self.region.is_present(section, first) {
            return Vec::new();
        }
        // Relaxed: written before the exchange that made the state what the caller acquired.
        let link = self.region.word(section.at(first) + 8).load(Relaxed);
        let len = (link >> 44 & 0xffff) as usize;
        chunk::read(&self.region, first, len.min(RESULT_BYTES_MAX))
    }

    /// Whether a result can be read whole, from chunks that are the attempt's own.
    pub(crate) fn is_result_whole(&self, cell: u32, state: State) -> bool {
        let Status::Done {
            first: Some(first), ..
        } = state.status
        else {
            return true;
        };
        let section = &self.region.geometry.chunks;
        let owner = Owner::attempt(cell, state.token).encode();
        let mut chunk = first;
        let mut left = None;
        for _ in 0..CHAIN_MAX {
            if chunk >= section.units || !self.region.is_present(section, chunk) {
                return false;
            }
            let at = section.at(chunk);
            let link = self.region.word(at + 8).load(Relaxed);
            if self.region.word(at).load(Relaxed) != owner {
                return false;
            }
            let len = left.unwrap_or((link >> 44 & 0xffff) as usize);
            match (len, link as u32) {
                (1..=PAYLOAD, 0) => return true,
                (0..=PAYLOAD, _) | (_, 0) => return false,
                (_, next) => chunk = next - 1,
            }
            left = Some(len - PAYLOAD);
        }
        false
    }
}

/// Fails for a result that is too long.
pub(super) fn check_len(result: &[u8]) -> Result<()> {
    if result.len() <= RESULT_BYTES_MAX {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "result (bytes)",
        value: result.len() as u64,
        min: 0,
        max: RESULT_BYTES_MAX as u64,
    })
}
