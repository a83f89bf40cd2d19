//! A client's connection, on the node's side: one stream with requests, and with answers in any order.

use std::convert::Infallible;
use std::sync::Arc;

use quinn::{Connection, RecvStream, SendStream};

use crate::frame::{FrameError, Frames};
use crate::inbox::Input;
use crate::machine::OPERATION_BYTES_MAX;
use crate::outbox::Outbox;
use crate::reception::{CHUNK_BYTES_MAX, Gone, Shared, read_frame};
use crate::transport::Close;
use crate::wire::{ClientFrame, ClientKind, Outcome, Response};

/// The longest frame from a client.
pub(crate) const CLIENT_FRAME_BYTES_MAX: usize = OPERATION_BYTES_MAX + 64;

/// Answers that wait for a client, at most. One that lets more gather is cut off.
const OUTBOX_BYTES_MAX: usize = 16 << 20;

/// The streams of a client, and what has come on them.
pub(crate) struct Streams {
    send: SendStream,
    stream: RecvStream,
    frames: Frames,
}

/// A client that is connected.
pub(crate) struct Session {
    connection: Connection,
    outbox: Outbox,
}

impl Session {
    /// Answers the request `id`.
    pub(crate) fn answer(&self, id: u64, outcome: Outcome) {
        let response = Response {
            id,
            outcome: Some(outcome),
        };
        if !self.outbox.push(&response) {
            Close::TooSlow.close(&self.connection, "answers are not taken");
        }
    }
}

/// Reads the hello with which each client begins.
pub(crate) async fn introduce(
    shared: &Shared,
    send: SendStream,
    mut stream: RecvStream,
) -> Result<Streams, Gone> {
    let mut frames = Frames::new(CLIENT_FRAME_BYTES_MAX);
    let frame: ClientFrame = read_frame(&mut stream, &mut frames).await?;
    let Some(ClientKind::Hello(hello)) = frame.kind else {
        return Err(FrameError::Missing("a hello before everything else").into());
    };
    shared.check(hello.version, hello.cluster)?;
    Ok(Streams {
        send,
        stream,
        frames,
    })
}

/// Runs a session until its client goes.
pub(crate) async fn run(shared: &Shared, connection: Connection, streams: Streams) {
    let session = Arc::new(Session {
        connection: connection.clone(),
        outbox: Outbox::new(OUTBOX_BYTES_MAX),
    });
    let Streams {
        mut send,
        stream,
        frames,
    } = streams;
    let gone = tokio::select! {
        Err(gone) = read(shared, &session, stream, frames) => gone,
        _ = session.outbox.write_to(&mut send) => Gone::Closed,
    };
    gone.close(&connection);
}

async fn read(
    shared: &Shared,
    session: &Arc<Session>,
    mut stream: RecvStream,
    mut frames: Frames,
) -> Result<Infallible, Gone> {
    loop {
        while let Some(frame) = frames.take::<ClientFrame>()? {
            match frame.kind {
                Some(ClientKind::Request(request)) => {
                    let input = Input::Request {
                        session: Arc::clone(session),
                        id: request.id,
                        operation: request.operation,
                    };
                    shared.inbox.put(input).await?;
                }
                Some(ClientKind::Hello(_)) => {
                    return Err(FrameError::Missing("anything but a second hello").into());
                }
                // Of a later version, which would not send it here.
                None => return Err(FrameError::Missing("a kind").into()),
            }
        }
        let chunk = stream.read_chunk(CHUNK_BYTES_MAX, true).await?;
        frames.push(&chunk.ok_or(Gone::Closed)?.bytes);
    }
}
