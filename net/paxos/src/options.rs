//! How a voter is set up, and what each option's bounds are.

use thiserror::Error;

use crate::configuration::Configuration;
use crate::voter::Voter;

/// The longest election timeout: an hour, in nanoseconds.
const ELECTION_NS_MAX: u64 = 3_600_000_000_000;

/// The most slots under way: far more than a round trip and a sync take. Small in the simulator, which so comes to what is
/// bounded by it.
pub(crate) const WINDOW_SLOTS_MAX: u64 = if cfg!(feature = "simulation") {
    64
} else {
    1024
};

/// The most bytes of a batch, a page, or all that waits: a command's length is a number of four bytes.
const BYTES_MAX: usize = 1 << 30;

/// How a voter is set up. But for `me` and `seed`, every voter of a cluster is set up alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Who it is. Where the configuration doesn't name it, it never votes nor leads.
    pub me: Voter,
    /// Who votes.
    pub configuration: Configuration,
    /// How long no leader must have been heard of before another is elected, in nanoseconds: a few times what a message
    /// and a sync take at their slowest, and at most an hour. Each voter waits that long, and up to twice.
    pub election_ns: u64,
    /// How often a leader is heard of, at least, in nanoseconds: from 1 up to half of the above, better less.
    pub beat_ns: u64,
    /// How many slots a leader has under way at once: 1 to 1024.
    pub window_slots: u64,
    /// How many bytes of commands go into a slot, unless one command alone is larger: 1 byte to 1 GiB.
    pub batch_bytes_max: usize,
    /// How many bytes of commands wait for a slot before more are refused, and the most that one command has: 1 byte to
    /// 1 GiB. Each command that waits takes four bytes more.
    pub pending_bytes_max: usize,
    /// How many bytes of entries are told at once, about: 1 byte to 1 GiB. A voter that fell behind is told a page with each
    /// round trip; where that is less than a window of batches, it catches up only when there is less to do.
    pub page_bytes_max: usize,
    /// Where its variations come from: another number for each start of each voter.
    pub seed: u64,
}

/// Why a voter can't be set up like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// An option is out of its bounds.
    #[error("{option}: {given}, must be {least} to {most}; set it within these bounds")]
    OutOfBounds {
        /// Which.
        option: &'static str,
        /// What it was set to.
        given: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// A leader would be taken for dead between two beats.
    #[error(
        "beat_ns: {beat_ns}, must be at most half of election_ns, which is {election_ns}; beat more often, or wait longer for a leader"
    )]
    BeatTooSlow {
        /// How often a leader would be heard of.
        beat_ns: u64,
        /// How long one would be waited for.
        election_ns: u64,
    },
}

impl Options {
    /// Whether each is within its bounds.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let bytes_max = BYTES_MAX as u64;
        let bounded = [
            ("election_ns", self.election_ns, 2, ELECTION_NS_MAX),
            ("beat_ns", self.beat_ns, 1, ELECTION_NS_MAX / 2),
            ("window_slots", self.window_slots, 1, WINDOW_SLOTS_MAX),
            ("batch_bytes_max", self.batch_bytes_max as u64, 1, bytes_max),
            (
                "pending_bytes_max",
                self.pending_bytes_max as u64,
                1,
                bytes_max,
            ),
            ("page_bytes_max", self.page_bytes_max as u64, 1, bytes_max),
        ];
        for (option, given, least, most) in bounded {
            if !(least..=most).contains(&given) {
                return Err(OptionsError::OutOfBounds {
                    option,
                    given,
                    least,
                    most,
                });
            }
        }
        let (beat_ns, election_ns) = (self.beat_ns, self.election_ns);
        if beat_ns > election_ns / 2 {
            return Err(OptionsError::BeatTooSlow {
                beat_ns,
                election_ns,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, OptionsError, WINDOW_SLOTS_MAX};
    use crate::testing::{options, voters};

    type Change = fn(&mut Options);

    #[test]
    fn options_at_their_bounds_are_taken() {
        let changes: [Change; 6] = [
            |_| {},
            |options| (options.election_ns, options.beat_ns) = (2, 1),
            |options| options.election_ns = 3_600_000_000_000,
            |options| options.window_slots = WINDOW_SLOTS_MAX,
            |options| options.batch_bytes_max = 1,
            |options| options.pending_bytes_max = 1 << 30,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut options = options(&voters(3), 0);
            change(&mut options);
            assert_eq!(options.check(), Ok(()), "case {number}");
        }
    }

    #[test]
    fn an_option_out_of_its_bounds_is_named_with_them() {
        let cases: [(Change, &str); 8] = [
            (|it| it.election_ns = 0, "election_ns: 0, must be 2 to "),
            (|it| it.election_ns = u64::MAX, "election_ns: "),
            (|it| it.beat_ns = 0, "beat_ns: 0, must be 1 to "),
            (|it| it.window_slots = 0, "window_slots: 0, must be 1 to "),
            (|it| it.window_slots = u64::MAX, "window_slots: "),
            (
                |it| it.batch_bytes_max = 0,
                "batch_bytes_max: 0, must be 1 to ",
            ),
            (
                |it| it.pending_bytes_max = usize::MAX,
                "pending_bytes_max: ",
            ),
            (
                |it| it.page_bytes_max = 0,
                "page_bytes_max: 0, must be 1 to ",
            ),
        ];
        for (change, begins) in cases {
            let mut options = options(&voters(3), 0);
            change(&mut options);
            let error = options.check().unwrap_err().to_string();
            assert!(error.starts_with(begins), "{error}");
            assert!(error.ends_with("set it within these bounds"), "{error}");
        }
    }

    #[test]
    fn a_leader_must_be_heard_of_twice_before_it_is_given_up() {
        let mut options = options(&voters(3), 0);
        options.beat_ns = options.election_ns / 2 + 1;
        let error = options.check().unwrap_err();
        assert!(matches!(error, OptionsError::BeatTooSlow { .. }));
        assert!(
            error
                .to_string()
                .contains("beat more often, or wait longer")
        );
    }
}
