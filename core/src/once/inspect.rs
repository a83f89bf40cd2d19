//! Looking at onces: the status of one, and the list of all. Owns what is told of them. Begins nothing; of
//! words it changes only those that it is about to say are over.

use super::state::{State, Status};
use crate::engine::Engine;
use crate::error::Result;
use crate::object::{Kind, Name, Objects};
use crate::session::{Process, SessionId, Sessions};
use crate::sync::fence;
use crate::table::{LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::Acquire;

/// An attempt that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The owner's process; `None` if it is detached, or not known any more.
    pub process: Option<Process>,
    /// Whether it belongs to no session and lives until its deadline.
    pub detached: bool,
    /// What is left until the deadline, in nanoseconds.
    pub left_ns: u64,
    /// Its token.
    pub token: u64,
    /// Whether an attempt before ended unfinished.
    pub is_after_unfinished: bool,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnceStatus {
    /// Nobody began, or whoever did abandoned it, or the result is no longer kept.
    New,
    /// An attempt is under way.
    InProgress(Progress),
    /// It was done.
    Done {
        /// The result.
        result: Vec<u8>,
        /// For how much longer it is kept at least, in nanoseconds.
        left_ns: u64,
    },
    /// The last attempt ended unfinished, so that its work may have been done in part: its deadline
    /// passed, its owner died, or it was dropped.
    Unfinished,
}

impl Engine {
    /// What is known of a key. Creates nothing. An attempt that is found to be over is closed first,
    /// so that its owner can't store any more what would make this answer wrong.
    pub fn once_status(&self, name: &Name, now_ns: u64) -> Result<OnceStatus> {
        let object = self.object(Kind::Once, name);
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.find_object(&object) else {
                return Ok(OnceStatus::New);
            };
            let state = State::decode(found.state);
            let status = self.status_of(state, now_ns);
            let is_to_close = status == OnceStatus::Unfinished
                && matches!(state.status, Status::InProgress { .. });
            let is_so = if is_to_close {
                let word = self.region.wide(found.at);
                let after = state.left_unfinished(now_ns / 1_000);
                word.compare_exchange(found.state, after.encode()).is_ok()
            } else {
                found.is_unchanged(&self.region)
            };
            if is_so {
                return Ok(status);
            }
        }
        Err(super::never_settles())
    }

    /// Calls `visit` with the name and status of each once whose name begins with `prefix`, in no particular
    /// order. One that changes meanwhile is seen before or after, never in between. Changes nothing.
    pub fn for_each_once(
        &self,
        prefix: &[u8],
        now_ns: u64,
        mut visit: impl FnMut(Vec<u8>, OnceStatus),
    ) {
        self.objects.for_each(&self.region, |_, at, _| {
            for _ in 0..ROUNDS_MAX {
                let word = self.region.wide(at).load();
                if phase(word) != LIVE || !Objects::is(&self.region, at, Kind::Once) {
                    return;
                }
                let name = Objects::name(&self.region, at);
                let status = self.status_of(State::decode(word), now_ns);
                // The loads above come before the one below; pairs with the fences in `Table::insert` and
                // `Taker::take`. Unchanged means that the name and the result were this state's.
                fence(Acquire);
                if self.region.wide(at).load() == word {
                    if name.starts_with(prefix) {
                        visit(name, status);
                    }
                    return;
                }
            }
        });
    }

    fn status_of(&self, state: State, now_ns: u64) -> OnceStatus {
        match state.status {
            Status::Open {
                unfinished_us: None,
            } => OnceStatus::New,
            Status::Open { .. } => OnceStatus::Unfinished,
            Status::Done { first, until_ms } => {
                match (until_ms * 1_000_000).saturating_sub(now_ns) {
                    0 => OnceStatus::New,
                    left_ns => OnceStatus::Done {
                        result: self.read_result(first),
                        left_ns,
                    },
                }
            }
            Status::InProgress { .. } => match self.live_owner(state, now_ns) {
                Some(owner) => OnceStatus::InProgress(self.progress(owner, state, now_ns)),
                None => OnceStatus::Unfinished,
            },
        }
    }

    pub(super) fn progress(&self, by: SessionId, state: State, now_ns: u64) -> Progress {
        let (until_us, is_after_unfinished) = match state.status {
            Status::InProgress {
                until_us,
                is_after_unfinished,
                ..
            } => (until_us, is_after_unfinished),
            Status::Open { .. } | Status::Done { .. } => (0, false),
        };
        Progress {
            process: Sessions::process(&self.region, by),
            detached: by == SessionId::DETACHED,
            left_ns: (until_us * 1_000).saturating_sub(now_ns),
            token: state.token,
            is_after_unfinished,
        }
    }
}
