//! What is stored of a command: the form of it, and how it is shown to those who come later.
//!
//! | bytes | field |
//! |---|---|
//! | 0..2 | `0xff`, `s`: never the beginning of a text |
//! | 2 | 1 if the output was longer than what is here, else 0 |
//! | 3 | the exit code |
//! | 4.. | the beginning of the output |

use std::io::{self, Write};
use std::process::ExitCode;

use sprag::RESULT_BYTES_MAX;

use super::Error;

const MARK: [u8; 2] = [0xff, b's'];
const HEAD: usize = 4;

/// The most that is stored of a command's output, in bytes.
pub(super) const OUTPUT_BYTES_MAX: usize = RESULT_BYTES_MAX - HEAD;

/// The beginning of a command's output, and whether there was more.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Output {
    /// Adds what comes next.
    pub(super) fn push(&mut self, more: &[u8]) {
        let room = OUTPUT_BYTES_MAX - self.bytes.len();
        self.is_cut |= more.len() > room;
        self.bytes.extend_from_slice(&more[..more.len().min(room)]);
    }

    /// The result to store.
    pub(super) fn encode(&self, exit_code: u8) -> Vec<u8> {
        let mut result = Vec::with_capacity(HEAD + self.bytes.len());
        result.extend(MARK);
        result.extend([u8::from(self.is_cut), exit_code]);
        result.extend_from_slice(&self.bytes);
        result
    }
}

/// Prints what was stored, and gives the code that the command had. What was stored by other means than
/// running a command has none: 0.
pub(super) fn show(result: &[u8], out: &mut impl Write) -> Result<ExitCode, Error> {
    let (output, is_cut, exit_code) = match result {
        [mark_0, mark_1, is_cut, code, output @ ..] if [*mark_0, *mark_1] == MARK => {
            (output, *is_cut != 0, *code)
        }
        _ => (result, false, 0),
    };
    match out.write_all(output).and_then(|()| out.flush()) {
        // A reader that has gone away has seen enough.
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            let outcome = "nothing was run, for it was done before";
            return Err(Error::Write { source, outcome });
        }
        Ok(()) | Err(_) => {}
    }
    if is_cut {
        // Nobody is left to be told of a failure to tell.
        let _ = writeln!(
            io::stderr(),
            "sprag: this is the beginning of what it printed; no more than {OUTPUT_BYTES_MAX} bytes are stored"
        );
    }
    Ok(ExitCode::from(exit_code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_the_output_and_the_code_come_back() {
        for (parts, code) in [
            (vec![], 0),
            (vec![b"one\n".to_vec(), b"two\n".to_vec()], 3),
            (vec![vec![7; OUTPUT_BYTES_MAX - 1], vec![8]], 255),
            (vec![vec![7; OUTPUT_BYTES_MAX], vec![8]], 1),
            (vec![vec![7; 5_000], vec![8; 5_000]], 1),
        ] {
            let mut output = Output::default();
            for part in &parts {
                output.push(part);
            }
            let whole = parts.concat();
            let result = output.encode(code);
            assert!(result.len() <= RESULT_BYTES_MAX);
            assert_eq!(result[2] == 1, whole.len() > OUTPUT_BYTES_MAX);
            let mut out = Vec::new();
            let shown = show(&result, &mut out).unwrap();
            assert_eq!(out, whole[..whole.len().min(OUTPUT_BYTES_MAX)]);
            assert_eq!(shown, ExitCode::from(code));
        }
        for plain in ["", "s", "a result", "\u{ff}s12345"] {
            let mut out = Vec::new();
            assert_eq!(show(plain.as_bytes(), &mut out).unwrap(), ExitCode::SUCCESS);
            assert_eq!(out, plain.as_bytes());
        }
    }
}
