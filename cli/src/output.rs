//! What goes to standard output: owns the end of a subcommand's printing, JSON lines, and tables.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::error::Error;

/// The exit code for "the answer is no".
pub(crate) const NO: u8 = 1;

/// Lets `print` write to `out`, then gives `code`. A reader that has gone away has seen enough: the
/// answer stands in the exit code all the same.
pub(crate) fn print<W: Write>(
    out: &mut W,
    code: ExitCode,
    print: impl FnOnce(&mut BufWriter<&mut W>) -> io::Result<()>,
) -> Result<ExitCode, Error> {
    let mut out = BufWriter::new(out);
    match print(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Write(error)),
        Ok(()) | Err(_) => Ok(code),
    }
}

/// Writes `value` as one line of JSON.
pub(crate) fn json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// The heading, a word for each column (`-` stands for a blank), and rows, with their columns lined up
/// by characters; the last column is not padded.
pub(crate) fn table(
    out: &mut impl Write,
    heading: &str,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let heading = heading.split(' ').map(|word| word.replace('-', " "));
    let rows: Vec<Vec<String>> = std::iter::once(heading.collect()).chain(rows).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == row.len() {
                writeln!(out, "{cell}")?;
            } else {
                write!(out, "{cell:<width$}  ", width = widths[column])?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_has_no_trailing_blanks() {
        let rows = [["long", "é"], ["é", "n"]].map(|row| row.map(str::to_owned).to_vec());
        let mut out = Vec::new();
        table(&mut out, "A-B NAME", rows).unwrap();
        let expected = "A B   NAME\nlong  é\né     n\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// A reader that closed its end, or a disk that is full.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_answer_stands_when_nobody_reads_it_and_a_full_disk_is_an_error() {
        let mut gone = Broken(io::ErrorKind::BrokenPipe);
        let code = print(&mut gone, ExitCode::from(NO), |out| writeln!(out, "no"));
        assert_eq!(code.unwrap(), ExitCode::from(NO));
        let mut full = Broken(io::ErrorKind::StorageFull);
        let result = print(&mut full, ExitCode::from(NO), |out| writeln!(out, "no"));
        assert!(matches!(result, Err(Error::Write(_))));
    }
}
