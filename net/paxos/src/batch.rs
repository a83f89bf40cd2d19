//! Batches: commands that wait for a slot, and how they lie in an entry.

use std::sync::Arc;

use crate::entry::Entry;

/// The bytes before each command: its length, little-endian.
const PREFIX_BYTES: usize = 4;

/// Commands in the order in which they came, not proposed yet. No command waits for others to come: whatever is there
/// when a slot is free goes into it, up to a batch's size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    /// Where what still waits begins. What was taken goes only when it is half of all, so that each byte moves about once.
    begin: usize,
    /// How many commands were taken from the front, of all that ever came.
    taken: u64,
    came: u64,
}

impl Pending {
    /// Numbers go on from those given before.
    pub(crate) fn after(numbers: u64) -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            taken: numbers,
            came: numbers,
        }
    }

    /// Appends a command; gives its number.
    pub(crate) fn push(&mut self, command: &[u8]) -> u64 {
        self.bytes
            .extend_from_slice(&(command.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(command);
        self.came += 1;
        self.came - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// How much waits.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() - self.begin
    }

    /// The number of the first command that waits.
    pub(crate) fn first(&self) -> u64 {
        self.taken
    }

    /// How many ever came.
    pub(crate) fn came(&self) -> u64 {
        self.came
    }

    /// Takes as many commands as fit into `bytes_max`, and at least one, if there is one.
    pub(crate) fn take(&mut self, bytes_max: usize) -> Option<Entry> {
        let begin = self.begin;
        let mut end = begin;
        if self.bytes.len() - begin <= bytes_max {
            end = self.bytes.len();
            self.taken = self.came;
        }
        while let Some(next) = end_of_command(&self.bytes, end)
            && (end == begin || next - begin <= bytes_max)
        {
            end = next;
            self.taken += 1;
        }
        if end == begin {
            return None;
        }
        let batch = Arc::from(&self.bytes[begin..end]);
        self.begin = end;
        if 2 * end >= self.bytes.len() {
            self.bytes.drain(..end);
            self.begin = 0;
        }
        Some(Entry::Commands(batch))
    }
}

/// The commands of an entry, in order. Bytes that are no batch give those before the damage.
pub fn commands(entry: &Entry) -> impl Iterator<Item = &[u8]> {
    let bytes: &[u8] = match entry {
        Entry::Noop => &[],
        Entry::Commands(bytes) => bytes,
    };
    let mut begin = 0;
    std::iter::from_fn(move || {
        let end = end_of_command(bytes, begin)?;
        let command = &bytes[begin + PREFIX_BYTES..end];
        begin = end;
        Some(command)
    })
}

fn end_of_command(bytes: &[u8], begin: usize) -> Option<usize> {
    let prefix = bytes.get(begin..begin + PREFIX_BYTES)?;
    let length = u32::from_le_bytes(prefix.try_into().ok()?) as usize;
    let end = (begin + PREFIX_BYTES).checked_add(length)?;
    (end <= bytes.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::{Pending, commands};
    use crate::entry::Entry;

    fn texts(entry: &Entry) -> Vec<&[u8]> {
        commands(entry).collect()
    }

    #[test]
    fn commands_leave_in_the_order_in_which_they_came_as_many_as_fit() {
        let mut pending = Pending::default();
        for (number, command) in [&b"one"[..], b"", b"three"].into_iter().enumerate() {
            assert_eq!(pending.push(command), number as u64);
        }
        let first = pending.take(11).expect("two commands of 7 and 4 bytes");
        assert_eq!(texts(&first), [&b"one"[..], b""]);
        assert_eq!(pending.first(), 2);
        let second = pending.take(1).expect("one, though it is too large");
        assert_eq!(texts(&second), [b"three"]);
        assert!(pending.is_empty() && pending.take(11).is_none());
    }

    #[test]
    fn what_comes_and_what_is_taken_in_turn_keeps_its_order_and_its_count() {
        let mut pending = Pending::after(7);
        let mut next = 7_u64;
        let mut taken = Vec::new();
        for round in 0..200_u64 {
            for _ in 0..round % 5 {
                assert_eq!(pending.push(&next.to_le_bytes()), next);
                next += 1;
            }
            if let Some(entry) = pending.take(if round < 100 { 1 } else { 36 }) {
                taken.extend(texts(&entry).into_iter().map(<[u8]>::to_vec));
            }
            let waits = next - pending.first();
            assert_eq!(pending.bytes() as u64, waits * 12);
            assert_eq!(pending.is_empty(), waits == 0);
            assert!(pending.bytes.len() <= 2 * pending.bytes() + 12);
        }
        let numbers: Vec<u64> = (7..pending.first()).collect();
        let texts: Vec<_> = numbers.iter().map(|number| number.to_le_bytes()).collect();
        assert_eq!(taken, texts);
        assert_eq!(pending.came(), next);
    }

    #[test]
    fn bytes_that_are_no_batch_give_what_comes_before_the_damage() {
        let mut pending = Pending::default();
        pending.push(b"sound");
        let Some(Entry::Commands(sound)) = pending.take(100) else {
            panic!("a batch");
        };
        for damage in [&[1][..], &[9, 0, 0, 0], &[255, 255, 255, 255, 1]] {
            let bytes = [&sound[..], damage].concat();
            let entry = Entry::Commands(bytes.into());
            assert_eq!(texts(&entry), [b"sound"]);
        }
    }
}
