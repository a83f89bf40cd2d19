//! Frames: how messages follow each other on a stream. Four bytes of length, little-endian, then so many bytes of one
//! message. No more is ever kept of what comes than one frame's bound and what the stream gave at once.

use bytes::{Buf, BufMut, BytesMut};
use prost::Message;

/// The bytes before each frame.
pub const PREFIX_BYTES: usize = 4;

/// The longest hello: who may say more isn't known before it. One with all the voters that there may be has a third of that.
pub(crate) const HELLO_BYTES_MAX: usize = 1_024;

/// Bytes that are no frame of the kind that is expected. Nothing after them on the stream means anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Longer than any frame of its kind; nothing was allocated for it.
    #[error("a frame of {bytes} bytes, of at most {bytes_max}")]
    TooLong {
        /// Its length, as it says.
        bytes: usize,
        /// The most that there may be.
        bytes_max: usize,
    },
    /// Not a message.
    #[error("a frame that is no message: {0}")]
    Malformed(String),
    /// A message without what makes it one: of a later version, or damaged.
    #[error("a message without {0}")]
    Missing(&'static str),
    /// A field holds what it can't.
    #[error("{field}: {given}, of at most {most}")]
    OutOfBounds {
        /// Which.
        field: &'static str,
        /// What it holds.
        given: u64,
        /// The most that it can.
        most: u64,
    },
}

/// Appends `message` as a frame. A frame that the other side would refuse is its sender's mistake: see [`Frames`].
pub fn append(message: &impl Message, into: &mut BytesMut) {
    let bytes = message.encoded_len();
    into.reserve(PREFIX_BYTES + bytes);
    into.put_u32_le(bytes as u32);
    message.encode_raw(into);
}

/// Parts what comes on a stream into frames.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    bytes_max: usize,
}

impl Frames {
    /// For frames of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            bytes_max,
        }
    }

    /// From now on they have at most `bytes_max` bytes.
    pub(crate) fn bound(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Takes what came. [`take`](Self::take) is to be asked until it has no more before more is given.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether nothing is left of what came.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next message, if all of it has come.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] as soon as the length is known, [`FrameError::Malformed`].
    pub fn take<M: Message + Default>(&mut self) -> Result<Option<M>, FrameError> {
        Ok(self.take_sized()?.map(|(_, message)| message))
    }

    /// The same, and how many bytes it has.
    pub(crate) fn take_sized<M: Message + Default>(
        &mut self,
    ) -> Result<Option<(usize, M)>, FrameError> {
        let Some(prefix) = self.buffer.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let bytes = u32::from_le_bytes(*prefix) as usize;
        let bytes_max = self.bytes_max;
        if bytes > bytes_max {
            return Err(FrameError::TooLong { bytes, bytes_max });
        }
        if self.buffer.len() < PREFIX_BYTES + bytes {
            return Ok(None);
        }
        self.buffer.advance(PREFIX_BYTES);
        let frame = self.buffer.split_to(bytes).freeze();
        let message = M::decode(frame);
        message
            .map(|message| Some((bytes, message)))
            .map_err(|error| FrameError::Malformed(error.to_string()))
    }
}
