//! What is to be sent over one stream: frames, gathered until the stream takes them, and no more than a bound.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use prost::Message;
use quinn::{SendStream, WriteError};
use tokio::sync::Notify;

use crate::frame::{self, PREFIX_BYTES};

/// Frames that wait for a stream. Whoever has some pushes them; one task [writes](Self::write_to) them.
#[derive(Debug)]
pub(crate) struct Outbox {
    frames: Mutex<BytesMut>,
    came: Notify,
    bytes_max: usize,
}

impl Outbox {
    /// Keeps at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            frames: Mutex::default(),
            came: Notify::new(),
            bytes_max,
        }
    }

    /// Takes a frame, unless there is no room for it; whether it did. A single frame finds room in an empty outbox whatever
    /// its length.
    pub(crate) fn push(&self, message: &impl Message) -> bool {
        let is_taken = self.push_along(message);
        if is_taken {
            self.came.notify_one();
        }
        is_taken
    }

    /// The same for a frame that has time: it leaves with the next that has none.
    pub(crate) fn push_along(&self, message: &impl Message) -> bool {
        let mut frames = self.lock();
        let bytes = frames.len() + PREFIX_BYTES + message.encoded_len();
        let has_room = frames.is_empty() || bytes <= self.bytes_max;
        if has_room {
            frame::append(message, &mut frames);
        }
        has_room
    }

    /// Writes what comes, for ever: all that has gathered at once.
    pub(crate) async fn write_to(&self, stream: &mut SendStream) -> WriteError {
        loop {
            if let Err(error) = stream.write_chunk(self.next().await).await {
                return error;
            }
        }
    }

    /// All that waits, once there is something.
    pub(crate) async fn next(&self) -> Bytes {
        loop {
            let frames = self.lock().split().freeze();
            if !frames.is_empty() {
                return frames;
            }
            self.came.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BytesMut> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Request;

    #[test]
    fn no_more_waits_than_the_bound_but_for_one_frame_alone() {
        let frame = |bytes| Request {
            id: 1,
            operation: vec![0; bytes].into(),
        };
        let bytes = PREFIX_BYTES + frame(100).encoded_len();
        let outbox = Outbox::new(2 * bytes);
        for is_taken in [true, true, false, false] {
            assert_eq!(outbox.push(&frame(100)), is_taken);
        }
        assert_eq!(outbox.lock().len(), 2 * bytes);
        outbox.lock().clear();
        assert!(outbox.push(&frame(10_000)));
        assert!(!outbox.push(&frame(0)));
    }
}
