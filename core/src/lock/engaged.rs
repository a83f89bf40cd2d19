//! The words of locks that one acquire takes together: all of them, or none.
//!
//! Owns the bits, and exchanges none. One of the locks is the *leader*. It is engaged first, without a lease,
//! then the others are, each naming it; then one exchange of the leader's word gives it the plain form
//! of a held lock, and that decides for all. Until then anyone may call the whole thing off by
//! freeing the leader, and then, as after its release or the end of its lease, what names it is void: whoever
//! meets a void word takes it for free.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..4 | | LIVE, *pooled* and *held* set, which no other form has |
//! | 4 | queue | as in a lock's word |
//! | 5 | follows | clear: the leader, undecided; set: another |
//! | leader 6..24 | session | generation and line of who asks |
//! | follower 6..35 | leader | its cell |
//! | follower 35..75 | tag | the low bits of the leader's token |
//! | 75..128 | token | of the hold |
//!
//! A follower is void unless its leader's word is of a hold under the token that *tag* says. Should it lie
//! about void while the leader is granted a multiple of 2^40 times more, it would be taken for one of that very
//! hold, and so for held until that ends: two processes that do nothing else need hours for that.

use crate::object::TOKEN_BITS;
use crate::pool::POOLED;
use crate::session::{GENERATION_BITS, SessionId};
use crate::table::{LIVE, PHASE_MASK, field};

const HELD: u128 = 1 << 3;
const QUEUE: u128 = 1 << 4;
const FOLLOWS: u128 = 1 << 5;
const BODY: u32 = 6;
const LEADER_BITS: u32 = 29;
const TAG: u32 = 35;
const TAG_BITS: u32 = 40;
const TOKEN: u32 = 75;

/// Set in the cell of a coarse lock, in what a follower names: its cells have a bit that does not fit.
const COARSE_LEADER: u32 = 1 << (LEADER_BITS - 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Undecided; whose it will be.
    Leader(SessionId),
    Follower {
        leader: u32,
        tag: u64,
    },
}

/// A decoded word of a lock that is engaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Engaged {
    pub(crate) queue: bool,
    pub(crate) role: Role,
    pub(crate) token: u64,
}

/// Whether a live word has this form.
#[inline(always)]
pub(crate) fn is_engaged(state: u128) -> bool {
    state & (PHASE_MASK | POOLED | HELD) == LIVE | POOLED | HELD
}

impl Engaged {
    pub(crate) fn decode(state: u128) -> Self {
        let role = if state & FOLLOWS == 0 {
            Role::Leader(SessionId::from_bits(field(
                state,
                BODY,
                GENERATION_BITS + 12,
            )))
        } else {
            let leader = field(state, BODY, LEADER_BITS) as u32;
            Role::Follower {
                leader: match leader & COARSE_LEADER {
                    0 => leader,
                    _ => leader & !COARSE_LEADER | super::coarse::COARSE,
                },
                tag: field(state, TAG, TAG_BITS),
            }
        };
        Self {
            queue: state & QUEUE != 0,
            role,
            token: field(state, TOKEN, TOKEN_BITS),
        }
    }

    pub(crate) fn encode(self) -> u128 {
        let body = match self.role {
            Role::Leader(session) => session.bits() << BODY,
            Role::Follower { leader, tag } => {
                let leader = match leader & super::coarse::COARSE {
                    0 => leader,
                    _ => leader & !super::coarse::COARSE | COARSE_LEADER,
                };
                FOLLOWS | u128::from(leader) << BODY | u128::from(Self::tag_of(tag)) << TAG
            }
        };
        let queue = if self.queue { QUEUE } else { 0 };
        LIVE | POOLED | HELD | queue | body | u128::from(self.token) << TOKEN
    }

    /// The bits of a leader's token that a follower keeps.
    pub(crate) fn tag_of(token: u64) -> u64 {
        token & ((1 << TAG_BITS) - 1)
    }
}
