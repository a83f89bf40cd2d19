//! The bytes of the log: owns opening it, gzip, progress and the cut into lines. Holds at most one
//! line of at most [`LINE_BYTES_MAX`] bytes, and never looks into a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

/// The most bytes that a line may have, its line end not counted. A longer one is passed over.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

const BUFFER_BYTES: usize = 128 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// An open log.
pub(crate) struct Source {
    /// The log's text, decompressed.
    pub(crate) text: Box<dyn BufRead>,
    /// How far it has been read; hidden unless the user watches.
    pub(crate) progress: ProgressBar,
}

/// Opens the log at `path`, or standard input where that is `-`, and looks at its first bytes.
/// `watched` is whether to draw a progress bar if standard error is a terminal.
pub(crate) fn open(path: &Path, watched: bool) -> io::Result<Source> {
    if path == Path::new("-") {
        let progress = progress(None, watched);
        let bytes = BufReader::with_capacity(BUFFER_BYTES, progress.wrap_read(io::stdin()));
        return Ok(Source {
            text: decompressed(bytes)?,
            progress,
        });
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let progress = progress(metadata.is_file().then_some(metadata.len()), watched);
    let bytes = BufReader::with_capacity(BUFFER_BYTES, progress.wrap_read(file));
    Ok(Source {
        text: decompressed(bytes)?,
        progress,
    })
}

fn progress(bytes_total: Option<u64>, watched: bool) -> ProgressBar {
    if !watched {
        return ProgressBar::hidden();
    }
    let (bar, template) = match bytes_total {
        Some(total) => (
            ProgressBar::new(total),
            "{bytes} of {total_bytes} {wide_bar} {eta}",
        ),
        None => (ProgressBar::no_length(), "{bytes} {spinner}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The text of `bytes`: what is in them if they begin as gzip does, else they themselves.
fn decompressed(bytes: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    let bytes = Peeked::new(bytes)?;
    if bytes.head() == GZIP_MAGIC {
        let text = MultiGzDecoder::new(bytes.0);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, text)));
    }
    Ok(Box::new(bytes.0))
}

/// Bytes whose first two, or as many as there are, have been looked at and will be read again.
struct Peeked<R>(Chain<Cursor<Vec<u8>>, R>);

impl<R: BufRead> Peeked<R> {
    /// Looks at the head of `bytes`; a pipe may hand it over one byte at a time.
    fn new(mut bytes: R) -> io::Result<Self> {
        let mut head = Vec::with_capacity(GZIP_MAGIC.len());
        let mut first = bytes.by_ref().take(GZIP_MAGIC.len() as u64);
        first.read_to_end(&mut head)?;
        Ok(Self(Cursor::new(head).chain(bytes)))
    }

    fn head(&self) -> &[u8] {
        self.0.get_ref().0.get_ref()
    }
}

/// The lines of a text.
pub(crate) struct Lines<R> {
    text: R,
    line: Vec<u8>,
    /// How many lines were read whole.
    pub(crate) count: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<'a> {
    /// The line without its line feed.
    Line(&'a [u8]),
    /// The line had more than [`LINE_BYTES_MAX`] bytes and was passed over.
    TooLong,
    /// There are no more lines.
    End,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `text` from where it stands.
    pub(crate) fn new(text: R) -> Self {
        Self {
            text,
            line: Vec::new(),
            count: 0,
        }
    }

    /// The next line. The last one needs no line feed; after an error, what had been read of the
    /// line is lost, since nobody can tell what it would have become.
    pub(crate) fn take(&mut self) -> io::Result<Taken<'_>> {
        self.line.clear();
        let bytes_max = LINE_BYTES_MAX as u64 + 1;
        let mut bounded = self.text.by_ref().take(bytes_max);
        if bounded.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(Taken::End);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > LINE_BYTES_MAX {
            self.text.skip_until(b'\n')?;
            self.count += 1;
            return Ok(Taken::TooLong);
        }
        self.count += 1;
        Ok(Taken::Line(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    /// Hands over one byte at a time, as a slow pipe does.
    struct Trickle(Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let end = out.len().min(1);
            self.0.read(&mut out[..end])
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// The lines of `bytes`, `None` for one that is too long, and whether reading them failed.
    fn lines(bytes: Vec<u8>) -> (Vec<Option<Vec<u8>>>, Option<io::ErrorKind>) {
        let trickle = BufReader::with_capacity(3, Trickle(Cursor::new(bytes)));
        let mut lines = Lines::new(decompressed(trickle).unwrap());
        let mut found = Vec::new();
        loop {
            match lines.take() {
                Ok(Taken::Line(line)) => found.push(Some(line.to_vec())),
                Ok(Taken::TooLong) => found.push(None),
                Ok(Taken::End) => {
                    assert_eq!(lines.count, found.len() as u64);
                    return (found, None);
                }
                Err(error) => {
                    assert_eq!(lines.count, found.len() as u64);
                    return (found, Some(error.kind()));
                }
            }
        }
    }

    #[test]
    fn text_is_cut_at_line_feeds_only() {
        let cases: [(&[u8], &[&[u8]]); 8] = [
            (b"", &[]),
            (b"\n", &[b""]),
            (b"a", &[b"a"]),
            (b"a\n", &[b"a"]),
            (b"a\nb", &[b"a", b"b"]),
            (b"a\r\n\r\n\nb\r", &[b"a\r", b"\r", b"", b"b\r"]),
            (b"\x1f", &[b"\x1f"]),
            (b"\xff\x00\x0b\n\x8b\x1f", &[b"\xff\x00\x0b", b"\x8b\x1f"]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|line| Some(line.to_vec())).collect();
            assert_eq!(lines(text.to_vec()), (expected.clone(), None));
            assert_eq!(lines(gzip(text)), (expected, None));
        }
    }

    #[test]
    fn members_of_a_gzip_file_are_joined() {
        let bytes = [gzip(b"a\nb"), gzip(b""), gzip(b"c\n"), gzip(b"d")].concat();
        let expected = [b"a".to_vec(), b"bc".to_vec(), b"d".to_vec()].map(Some);
        assert_eq!(lines(bytes), (expected.to_vec(), None));
    }

    #[test]
    fn a_cut_gzip_file_gives_its_whole_lines_and_then_an_error() {
        let mut text = Vec::new();
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..3_000 {
            writeln!(text, "{}", random.u64(..)).unwrap();
        }
        let whole = lines(text.clone()).0;
        let bytes = gzip(&text);
        for cut in [2, 3, 9, 10, 11, 500, bytes.len() / 2, bytes.len() - 1] {
            let (found, error) = lines(bytes[..cut].to_vec());
            assert_eq!(error, Some(io::ErrorKind::UnexpectedEof), "{cut}");
            assert_eq!(found, whole[..found.len()], "{cut}");
        }
        assert!(lines(bytes[..bytes.len() / 2].to_vec()).0.len() > 1_000);
        let mut bad_sum = bytes;
        let at = bad_sum.len() - 8;
        bad_sum[at] ^= 1;
        assert_eq!(lines(bad_sum), (whole, Some(io::ErrorKind::InvalidInput)));
    }

    #[test]
    fn a_line_over_the_bound_is_passed_over_and_not_held() {
        for (length, fits) in [
            (LINE_BYTES_MAX - 1, true),
            (LINE_BYTES_MAX, true),
            (LINE_BYTES_MAX + 1, false),
            (5 * LINE_BYTES_MAX, false),
        ] {
            let long = vec![b'x'; length];
            let kept = fits.then(|| long.clone());
            for ending in [&b"\nb\n"[..], b"\nb"] {
                let text = [b"a\n", &long[..], ending].concat();
                let mut cut = Lines::new(&text[..]);
                assert_eq!(cut.take().unwrap(), Taken::Line(b"a"));
                match &kept {
                    Some(line) => assert_eq!(cut.take().unwrap(), Taken::Line(line)),
                    None => assert_eq!(cut.take().unwrap(), Taken::TooLong),
                }
                assert!(cut.line.capacity() <= 2 * LINE_BYTES_MAX + 2);
                assert_eq!(cut.take().unwrap(), Taken::Line(b"b"));
                assert_eq!(cut.take().unwrap(), Taken::End);
                assert_eq!(cut.count, 3);
            }
            let mut last = Lines::new(&long[..]);
            assert_eq!(last.take().unwrap() == Taken::TooLong, !fits);
            assert_eq!(last.take().unwrap(), Taken::End);
        }
    }

    proptest! {
        #[test]
        fn no_damage_to_a_gzip_file_makes_the_reader_panic(
            edits in proptest::collection::vec((2..200_usize, any::<u8>()), 0..4),
            cut in 2..200_usize,
        ) {
            let text: Vec<u8> = (0..200_u8).flat_map(|byte| [byte, byte / 3, b'\n']).collect();
            let mut bytes = [gzip(&text[..99]), gzip(&text[99..])].concat();
            for (at, byte) in edits {
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            let end = bytes.len().saturating_sub(cut);
            for bytes in [&bytes[..], &bytes[..end]] {
                let _ = lines(bytes.to_vec());
            }
        }
    }
}
