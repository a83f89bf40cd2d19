//! Giving back what an admission took.
//!
//! This file owns which word an admission is in and whether it still is. How much of it can be given
//! back is in [`crate::limit`].
//!
//! An admission remembers the word that decided, and all of it but the value ([`KeyState::tag`]). A key
//! that is reclaimed, or whose limit is changed, is in its next generation, and so is one of which more
//! was given back since than its word can say; the bucket of keys without room is whenever a key is
//! inserted. Then nothing is given back.
//!
//! A refund is one exchange. The clock is read between the load of the word and its exchange: every
//! admission in the word is stamped no later.

use super::{Checked, LimiterRef, overflow_at, settle};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limit::{Amount, Records, Refund};
use crate::limiter_key::{KeyState, reclaimed_at_ns};
use crate::table::ROUNDS_MAX;

/// What a refund did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum Refunded {
    /// So much was given back.
    Given(Amount),
    /// Nothing: nothing was taken, or all of it has drained, or its window no longer counts.
    Over,
    /// Nothing, since it is not known how much of it still counts: the limit was changed, the key made room
    /// for another, or something of the key was given back and something else taken since. Also what
    /// another limiter admitted.
    Void,
}

impl Refunded {
    /// How much was given back, in whole units of cost, rounded down.
    pub const fn cost(&self) -> u64 {
        match self {
            Self::Given(amount) => amount.cost(),
            Self::Over | Self::Void => 0,
        }
    }
}

impl Engine {
    /// Gives back what still counts of what `checked` took, and no more: no interval admits more than
    /// the limit with what came back left out. `now_ns` reads the clock by which checks are stamped.
    /// One exchange, and two of the word by which the table says when it may have room.
    ///
    /// A reservation that is given back before its time comes back whole if it was the last of its key;
    /// else what later reservations do not rest on.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is used up: a refund works once"
    )]
    pub fn refund(
        &self,
        limiter: &LimiterRef,
        checked: Checked,
        now_ns: impl Fn() -> u64,
    ) -> Result<Refunded> {
        let (decision, tag) = (checked.decision, checked.tag);
        if !decision.is_allowed() || decision.cost() == 0 {
            return Ok(Refunded::Over);
        }
        if checked.family != limiter.family {
            return Ok(Refunded::Void);
        }
        let at = if checked.is_overflow {
            overflow_at(&self.region, KeyState(tag.into()).limit())
        } else {
            checked.at
        };
        let word = self.region.wide(at);
        for _ in 0..ROUNDS_MAX {
            let mut state = KeyState(word.load());
            if state.is_engaged() {
                state = KeyState(settle(&self.region, at)?);
            }
            if state.tag() != tag {
                return Ok(Refunded::Void);
            }
            let now_ns = now_ns().max(reclaimed_at_ns(&self.region));
            let moment = self.region.moment(now_ns);
            let refund = decision.refund(state.value(), state.is_marked(), moment);
            let Refund::Given {
                new_value,
                amount,
                records,
            } = refund
            else {
                return Ok(Refunded::Over);
            };
            let after = state.with_value(new_value);
            let after = match records {
                Records::Kept => after,
                Records::Marked => after.marked(),
                Records::Void => after.next_generation(),
            };
            // The key is idle sooner than was said. Before: whoever dies right after has stirred. And
            // after: somebody may have said it anew in between.
            self.limiter_keys.stir(&self.region);
            let is_given = word.compare_exchange(state.0, after.0).is_ok();
            self.limiter_keys.stir(&self.region);
            if is_given {
                return Ok(Refunded::Given(amount));
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }
}
