//! Fences: the resource's side of a token. A fence remembers the highest token it admitted and
//! rejects lower ones, so that a paused holder that wakes up late cannot overwrite its successor.
//!
//! In a space a fence is an object: its highest token is the value of its state word (see
//! [`crate::object`]), so each admission is one exchange. Fences are never reclaimed: forgetting one
//! would admit the stale writer it was there to stop.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Name, Plain, TOKEN_MAX};
use crate::session::SessionId;
use crate::table::ROUNDS_MAX;
use std::fmt;

/// A fence to embed in your own storage, beside the data that it guards.
///
/// Read it, [`admit`](Self::admit), and write it back in the same transaction as the data. In SQL the
/// whole step is one statement, and no row changed means rejected:
///
/// ```sql
/// UPDATE accounts SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token;
/// ```
///
/// ```
/// # mod sprag { pub use sprag_core as embed; }
/// let mut fence = sprag::embed::Fence::default();
/// assert!(fence.admit(7).is_ok());
/// assert!(fence.admit(7).is_ok()); // the same holder again
/// assert_eq!(fence.admit(6).unwrap_err().highest, 7); // a stale one
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// The highest token admitted; 0 before the first.
    pub highest: u64,
}

/// A token that came too late, or that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The token that was rejected.
    pub token: u64,
    /// The highest token admitted.
    pub highest: u64,
}

impl std::error::Error for Stale {}

impl fmt::Display for Stale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, highest } = self;
        if (1..=TOKEN_MAX).contains(token) {
            write!(
                formatter,
                "token {token} is stale: the fence has admitted {highest}; give up what you hold"
            )
        } else {
            write!(
                formatter,
                "{token} is no token of a lock: those are 1 to {TOKEN_MAX}; send the hold's own"
            )
        }
    }
}

impl Fence {
    /// Admits a token not lower than the highest seen, and remembers it. Tokens are 1 to 2^53 - 1.
    pub fn admit(&mut self, token: u64) -> Result<(), Stale> {
        self.admit_if(token, token >= self.highest)
    }

    /// Admits a token strictly higher than the highest seen, and remembers it: once for each token.
    pub fn admit_once(&mut self, token: u64) -> Result<(), Stale> {
        self.admit_if(token, token > self.highest)
    }

    fn admit_if(&mut self, token: u64, is_fresh: bool) -> Result<(), Stale> {
        // Token 0 means none. One too high no lock can have handed out, and admitting it would shut every
        // holder out for ever.
        if !is_fresh || !(1..=TOKEN_MAX).contains(&token) {
            return Err(Stale {
                token,
                highest: self.highest,
            });
        }
        self.highest = token;
        Ok(())
    }
}

impl Engine {
    /// Prepares a fence's name. Names of at most 24 bytes allocate nothing.
    pub fn fence_name(&self, name: &[u8]) -> Result<Name> {
        Name::new(&self.region, "fence name", name)
    }

    /// Admits `token`, at most [`TOKEN_MAX`], if it is not lower than the highest admitted (`once`: strictly
    /// higher). One exchange; none if the token equals the highest or is rejected.
    pub fn admit(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        token: u64,
        once: bool,
    ) -> Result<Result<(), Stale>> {
        // A higher one no lock can have handed out, and admitting it would shut every holder out for ever.
        if token > TOKEN_MAX {
            return Err(Error::OutOfRange {
                what: "token",
                value: token,
                min: 1,
                max: TOKEN_MAX,
            });
        }
        let object = self.object(Kind::Fence, name);
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_object(&object) {
                Some(found) => found,
                None => self.insert_object(&object, by, now_ns)?,
            };
            let plain = Plain::decode(found.state);
            let mut fence = Fence {
                highest: plain.value,
            };
            let admitted = if once {
                fence.admit_once(token)
            } else {
                fence.admit(token)
            };
            if admitted.is_err() || fence.highest == plain.value {
                if found.is_unchanged(&self.region) {
                    return Ok(admitted);
                }
                continue;
            }
            let after = Plain {
                value: fence.highest,
                ..plain
            }
            .encode();
            let word = self.region.wide(found.at);
            // AcqRel: an admission orders the guarded writes of holders that share memory.
            if word.compare_exchange(found.state, after).is_ok() {
                return Ok(Ok(()));
            }
        }
        Err(Error::Damaged {
            what: "a fence never settles",
        })
    }

    /// The highest token admitted; 0 if none was.
    pub fn fence_highest(&self, name: &Name) -> u64 {
        let object = self.object(Kind::Fence, name);
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.find_object(&object) else {
                return 0;
            };
            if found.is_unchanged(&self.region) {
                return Plain::decode(found.state).value;
            }
        }
        // Only a scribbled region gets here, where no answer is right.
        0
    }
}
