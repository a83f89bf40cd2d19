//! Passes on what a command prints, and keeps the beginning of it. Owns the thread that does: writing may take
//! as long as whoever reads it takes, and the command's attempt must be renewed meanwhile.

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::stored::Output;
use crate::supervise::signals::wait_readable;

/// What a pipe holds, unless a program asked for more: what can be left in it when the command has ended.
const PIPE_BYTES: usize = 65_536;

/// The thread at work.
pub(super) struct Relay {
    /// Closed to say that the command has ended.
    ended: PipeWriter,
    result: Receiver<(Output, io::Result<()>)>,
}

impl Relay {
    /// Passes on what comes from `stdout` to this process's standard output.
    pub(super) fn start(mut stdout: ChildStdout) -> io::Result<Self> {
        // Not the handle of the standard library, whose lock the main thread has.
        let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (is_ended, ended) = io::pipe()?;
        let (sender, result) = channel();
        let pass_on = move || {
            let (mut output, mut written) = (Output::default(), Ok(()));
            let (mut buffer, mut left) = (vec![0; 16_384], usize::MAX);
            while left > 0 {
                let [is_ready, has_ended] = wait_readable([stdout.as_fd(), is_ended.as_fd()]);
                if has_ended {
                    // What the command left running may print on and on.
                    left = left.min(PIPE_BYTES);
                }
                if !is_ready {
                    if has_ended {
                        break;
                    }
                    continue;
                }
                let read = match stdout.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => break,
                    Ok(read) => read,
                };
                left = left.saturating_sub(read);
                output.push(&buffer[..read]);
                if written.is_ok() {
                    written = out.write_all(&buffer[..read]);
                }
                if matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
                    // Nobody reads on, which the command is to find out as it would without us.
                    written = Ok(());
                    break;
                }
            }
            // Nobody is left to hear it if the main thread failed.
            let _ = sender.send((output, written));
        };
        std::thread::Builder::new().spawn(pass_on)?;
        Ok(Self { ended, result })
    }

    /// Waits until all that the command printed is passed on, once it has ended; calls `meanwhile` again and
    /// again. What was kept, and whether all of it could be written.
    pub(super) fn finish(
        self,
        every: Duration,
        mut meanwhile: impl FnMut(),
    ) -> (Output, io::Result<()>) {
        let Self { ended, result } = self;
        drop(ended);
        loop {
            match result.recv_timeout(every) {
                Ok(finished) => return finished,
                Err(RecvTimeoutError::Timeout) => meanwhile(),
                Err(RecvTimeoutError::Disconnected) => {
                    return (Output::default(), Err(io::ErrorKind::Other.into()));
                }
            }
        }
    }
}
