//! What the decisions add up to, in all and by key: owns the counts and their order, never a decision
//! or its printing.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use super::batch::Decided;
use super::decide::LIMITS_MAX;

/// The counts of a replay. Its memory grows with the number of different keys, not of requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests decided.
    pub(crate) requests: u64,
    /// Of these, the refused ones.
    pub(crate) refused: u64,
    /// Of these, those that each limit had no room for.
    pub(crate) refused_by: [u64; LIMITS_MAX],
    /// Time spent in deciding.
    pub(crate) deciding: Duration,
    keys: HashMap<Vec<u8>, Count>,
}

/// The counts of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Requests decided.
    pub(crate) requests: u64,
    /// Of these, the refused ones.
    pub(crate) refused: u64,
}

impl Tally {
    /// Counts one decision.
    pub(crate) fn add(&mut self, decided: Decided<'_>) {
        let refused = u64::from(decided.refused_by != 0);
        self.requests += 1;
        self.refused += refused;
        for (i, count) in self.refused_by.iter_mut().enumerate() {
            *count += u64::from(decided.refused_by >> i & 1);
        }
        if let Some(count) = self.keys.get_mut(decided.key) {
            count.requests += 1;
            count.refused += refused;
        } else {
            let requests = 1;
            let count = Count { requests, refused };
            self.keys.insert(decided.key.to_vec(), count);
        }
    }

    /// How many keys were met.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The keys that were refused most, at most `top` of them: the most refused first, and of keys
    /// refused alike the one whose bytes are lowest.
    pub(crate) fn most_refused(&self, top: usize) -> Vec<(&[u8], Count)> {
        let mut keys: Vec<_> = self
            .keys
            .iter()
            .filter(|(_, count)| count.refused > 0)
            .map(|(key, count)| (key.as_slice(), *count))
            .collect();
        keys.sort_unstable_by_key(|&(key, count)| (Reverse(count.refused), key));
        keys.truncate(top);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_refused_come_first_and_ties_go_by_bytes() {
        let mut tally = Tally::default();
        let decisions: [(&[u8], bool); 10] = [
            (b"b", false),
            (b"a", false),
            (b"never", true),
            (b"\xff", false),
            (b"z", false),
            (b"a", true),
            (b"z", false),
            (b"\x00", false),
            (b"aa", false),
            (b"a", true),
        ];
        for (line, (key, allowed)) in (1..).zip(decisions) {
            let refused_by = if allowed { 0 } else { 1 << (line % 2) };
            tally.add(Decided {
                line,
                key,
                refused_by,
            });
        }
        assert_eq!(tally.refused_by[..3], [3, 4, 0]);
        assert_eq!((tally.requests, tally.refused, tally.keys()), (10, 7, 7));
        let order: Vec<_> = tally.most_refused(9).iter().map(|(key, _)| *key).collect();
        let expected: [&[u8]; 6] = [b"z", b"\x00", b"a", b"aa", b"b", b"\xff"];
        assert_eq!(order, expected);
        assert_eq!(tally.most_refused(0), []);
        let (requests, refused) = (3, 1);
        let a = Count { requests, refused };
        assert_eq!(tally.most_refused(3)[2], (&b"a"[..], a));
    }
}
