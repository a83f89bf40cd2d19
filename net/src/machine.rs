//! The replicated machine: registers of bytes, each with a version that counts its changes. What it is fed is decided, so
//! it does the same on every node: it has no clock, no randomness, no order but the log's.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use prost::Message;

use crate::frame::{FrameError, Frames, append};
use crate::wire::{Answered, Get, Operation, OperationKind, Put, Saved};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1_024;

/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// What all keys and values may have together, in bytes: the same on every node for ever, since what is refused for it is
/// part of the state.
const BYTES_MAX: usize = 1 << 30;

/// What a register takes of that beside its key and its value.
const REGISTER_BYTES: usize = 32;

/// The longest operation, in bytes: a key, a value, and what goes around them.
pub(crate) const OPERATION_BYTES_MAX: usize = KEY_BYTES_MAX + VALUE_BYTES_MAX + 64;

/// The longest answer, in bytes: a value, and what goes around it.
pub(crate) const ANSWER_BYTES_MAX: usize = VALUE_BYTES_MAX + 64;

/// How long the answer to an operation may be, in bytes: what isn't a value is short.
pub(crate) fn answer_bytes_max(operation: &Bytes) -> usize {
    match Operation::decode(operation.clone()) {
        Ok(Operation {
            kind: Some(OperationKind::Get(_)),
        }) => ANSWER_BYTES_MAX,
        _ => 128,
    }
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Register {
    /// How often it was set.
    version: u64,
    value: Bytes,
}

/// All registers.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    registers: BTreeMap<Bytes, Register>,
    bytes: usize,
}

impl Registers {
    /// Carries out an operation, and gives what is to be answered. Whatever the bytes, there is an answer: they were decided.
    pub fn apply(&mut self, operation: &[u8]) -> Vec<u8> {
        let answered = match Operation::decode(operation) {
            Ok(Operation {
                kind: Some(OperationKind::Put(put)),
            }) => self.put(put),
            Ok(Operation {
                kind: Some(OperationKind::Get(get)),
            }) => self.get(&get),
            Ok(Operation { kind: None }) | Err(_) => refused("no operation of this version"),
        };
        answered.encode_to_vec()
    }

    fn put(&mut self, put: Put) -> Answered {
        let (key, value) = (put.key, put.value);
        if let Some(words) = out_of_bounds(&key, &value) {
            return refused(words);
        }
        let before = self.registers.get(&key);
        let version = before.map_or(0, |register| register.version) + 1;
        let freed = before.map_or(0, |register| bytes_of(&key, &register.value));
        let bytes = self.bytes - freed + bytes_of(&key, &value);
        if bytes > BYTES_MAX {
            return refused("the registers are full: 1 GiB of keys and values");
        }
        self.bytes = bytes;
        // Copied, so that what is kept doesn't keep the batch that it came in.
        let value = Bytes::copy_from_slice(&value);
        let register = Register { version, value };
        if let Some(kept) = self.registers.get_mut(&key) {
            *kept = register;
        } else {
            let key = Bytes::copy_from_slice(&key);
            self.registers.insert(key, register);
        }
        Answered {
            version,
            ..Answered::default()
        }
    }

    /// All of it, as bytes: the same for the same state.
    pub fn save(&self) -> Vec<u8> {
        let mut saved = BytesMut::with_capacity(self.bytes);
        for (key, register) in &self.registers {
            let register = Saved {
                key: key.clone(),
                version: register.version,
                value: register.value.clone(),
            };
            append(&register, &mut saved);
        }
        saved.into()
    }

    /// The registers that were saved as these bytes.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn restore(saved: &[u8]) -> Result<Self, FrameError> {
        let mut frames = Frames::new(OPERATION_BYTES_MAX);
        let mut restored = Self::default();
        frames.push(saved);
        while let Some(Saved {
            key,
            version,
            value,
        }) = frames.take()?
        {
            restored.bytes += bytes_of(&key, &value);
            // Copied, so that what is set anew gives its memory back.
            let (key, value) = (Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value));
            restored.registers.insert(key, Register { version, value });
        }
        if frames.is_empty() {
            Ok(restored)
        } else {
            Err(FrameError::Missing("its end"))
        }
    }

    fn get(&self, get: &Get) -> Answered {
        if let Some(words) = out_of_bounds(&get.key, &[]) {
            return refused(words);
        }
        let register = self.registers.get(&get.key);
        Answered {
            version: register.map_or(0, |register| register.version),
            value: register.map(|register| register.value.clone()),
            refused: String::new(),
        }
    }
}

fn bytes_of(key: &[u8], value: &[u8]) -> usize {
    REGISTER_BYTES + key.len() + value.len()
}

fn out_of_bounds(key: &[u8], value: &[u8]) -> Option<&'static str> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Some("key: must be 1 to 1024 bytes");
    }
    (value.len() > VALUE_BYTES_MAX).then_some("value: must be at most 1 MiB")
}

fn refused(words: &str) -> Answered {
    Answered {
        refused: words.to_owned(),
        ..Answered::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(registers: &mut Registers, kind: OperationKind) -> Answered {
        let operation = Operation { kind: Some(kind) };
        Answered::decode(&registers.apply(&operation.encode_to_vec())[..]).unwrap()
    }

    fn put(key: &[u8], value: &[u8]) -> OperationKind {
        OperationKind::Put(Put {
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
        })
    }

    fn get(key: &[u8]) -> OperationKind {
        OperationKind::Get(Get {
            key: Bytes::copy_from_slice(key),
        })
    }

    #[test]
    fn a_register_counts_its_changes_from_one_and_gives_the_last() {
        let mut registers = Registers::default();
        let answered = run(&mut registers, get(b"a"));
        assert_eq!((answered.version, answered.value), (0, None));
        for version in 1..=3_u64 {
            let answered = run(&mut registers, put(b"a", &version.to_le_bytes()));
            assert_eq!((answered.version, answered.value), (version, None));
        }
        assert_eq!(run(&mut registers, put(b"b", b"other")).version, 1);
        let answered = run(&mut registers, get(b"a"));
        let value = Some(Bytes::copy_from_slice(&3_u64.to_le_bytes()));
        assert_eq!((answered.version, answered.value), (3, value));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_them_and_changes_nothing() {
        let mut registers = Registers::default();
        let cases = [
            (put(b"", b"value"), "key: must be 1 to 1024 bytes"),
            (put(&[1; 1025], b"value"), "key: must be 1 to 1024 bytes"),
            (get(b""), "key: must be 1 to 1024 bytes"),
            (
                put(b"key", &vec![0; VALUE_BYTES_MAX + 1]),
                "value: must be at most 1 MiB",
            ),
        ];
        for (kind, words) in cases {
            assert_eq!(run(&mut registers, kind).refused, words);
        }
        assert!(registers.registers.is_empty());
        let largest = put(&[1; KEY_BYTES_MAX], &vec![0; VALUE_BYTES_MAX]);
        assert_eq!(run(&mut registers, largest).version, 1);
    }

    #[test]
    fn what_is_saved_is_restored_and_goes_on_alike() {
        let mut registers = Registers::default();
        for number in 0..50_u8 {
            run(
                &mut registers,
                put(&[1 + number % 7], &vec![number; number.into()]),
            );
        }
        let saved = registers.save();
        assert!(saved.len() <= registers.bytes);
        let mut restored = Registers::restore(&saved).unwrap();
        assert_eq!(restored.registers, registers.registers);
        assert_eq!(restored.bytes, registers.bytes);
        assert_eq!(restored.save(), saved);
        for registers in [&mut registers, &mut restored] {
            assert_eq!(run(registers, put(&[1], b"more")).version, 9);
        }
        for cut in [1, saved.len() - 1] {
            assert!(Registers::restore(&saved[..cut]).is_err());
        }
    }

    #[test]
    fn bytes_that_are_no_operation_are_answered_too() {
        let mut registers = Registers::default();
        for bytes in [&b""[..], b"\xff\xff\xff", b"\x1a\x00"] {
            let answered = Answered::decode(&registers.apply(bytes)[..]).unwrap();
            assert_eq!(answered.refused, "no operation of this version");
        }
    }

    #[test]
    fn no_answer_is_longer_than_was_foreseen() {
        let mut registers = Registers::default();
        let value = vec![1; VALUE_BYTES_MAX];
        let kinds = [
            get(b"a"),
            put(b"a", &value),
            get(b"a"),
            put(b"", b""),
            put(b"a", &[value, vec![1]].concat()),
        ];
        let operations = kinds.map(|kind| Operation { kind: Some(kind) }.encode_to_vec());
        for operation in operations.into_iter().chain([vec![0xff]]) {
            let foreseen = answer_bytes_max(&operation.clone().into());
            let answer = registers.apply(&operation);
            assert!(answer.len() <= foreseen, "{} > {foreseen}", answer.len());
        }
        assert!(answer_bytes_max(&Bytes::new()) < ANSWER_BYTES_MAX);
    }

    #[test]
    fn what_is_set_again_takes_the_place_of_what_was_there() {
        let mut registers = Registers::default();
        for length in [10, 1_000, 1] {
            run(&mut registers, put(b"key", &vec![0; length]));
            assert_eq!(registers.bytes, REGISTER_BYTES + 3 + length);
        }
    }
}
