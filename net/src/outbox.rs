//! What is to be sent over one stream: frames, gathered until the stream takes them, and no more than a bound.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use prost::Message;
use quinn::{SendStream, WriteError};
use tokio::sync::Notify;

use crate::frame;

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
        let has_room = frames.is_empty() || frames.len() + message.encoded_len() <= self.bytes_max;
        if has_room {
            frame::append(message, &mut frames);
        }
        has_room
    }

    /// Writes what comes, for ever: all that has gathered at once.
    pub(crate) async fn write_to(&self, stream: &mut SendStream) -> WriteError {
        loop {
            let frames = self.take();
            if frames.is_empty() {
                self.came.notified().await;
            } else if let Err(error) = stream.write_chunk(frames).await {
                return error;
            }
        }
    }

    /// All that waits.
    pub(crate) fn take(&self) -> Bytes {
        self.lock().split().freeze()
    }

    fn lock(&self) -> MutexGuard<'_, BytesMut> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
