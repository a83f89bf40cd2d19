//! What a space's URL means, and the names that regions may have.
//!
//! Pure: nothing here asks the host. Where a named region lies is the `directory` module's to say.

use std::io;
use std::path::{Path, PathBuf};

/// The longest name of a region, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// What a region's file name ends in.
const FILE_SUFFIX: &str = ".sprag";

/// A parsed space URL: how far the space reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Url {
    /// `mem:`, the threads of this process.
    Mem,
    /// `shm:NAME`, the processes of this host, by a file in the region directory.
    Shm(RegionName),
    /// `shm:/path`, the processes of this host, by this very file.
    ShmPath(PathBuf),
}

/// The name of a region: 1 to 200 bytes of `A-Z a-z 0-9 . _ -`, not starting with a dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionName(String);

/// Where a region's file is or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, by an absolute path.
    pub path: PathBuf,
}

impl Url {
    /// Parses `mem:`, `shm:NAME` or `shm:/path`.
    ///
    /// # Errors
    ///
    /// [`PlaceError::UnknownUrl`], [`PlaceError::Unsupported`] for what isn't built yet,
    /// [`PlaceError::BadName`] and [`PlaceError::BadPath`] for what follows `shm:`.
    pub fn parse(url: &str) -> Result<Self, PlaceError> {
        let unknown = || PlaceError::UnknownUrl {
            url: url.to_owned(),
        };
        let (scheme, rest) = url.split_once(':').ok_or_else(unknown)?;
        match scheme {
            "mem" if rest.is_empty() => Ok(Self::Mem),
            // A name by the habit of other URLs, and not a file in the root.
            "shm" if rest.starts_with("//") => Err(PlaceError::Unsupported {
                url: url.to_owned(),
                why: "a space has no host; use shm:NAME, or shm:/path for a file",
            }),
            "shm" if rest.starts_with('/') => Ok(Self::ShmPath(file_path(url, rest)?)),
            "shm" => Ok(Self::Shm(RegionName::parse(rest)?)),
            "quic" => Err(PlaceError::Unsupported {
                url: url.to_owned(),
                why: "this version has no cluster; use mem: for threads or shm:NAME for the processes of one host",
            }),
            _ => Err(unknown()),
        }
    }
}

impl RegionName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`PlaceError::BadName`].
    pub fn parse(name: &str) -> Result<Self, PlaceError> {
        let bad = |why| {
            Err(PlaceError::BadName {
                name: name.to_owned(),
                why,
            })
        };
        if name.is_empty() {
            return bad("it is empty");
        }
        if name.len() > NAME_BYTES_MAX {
            return bad("it is too long");
        }
        if name.starts_with('.') {
            return bad("it starts with a dot");
        }
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        {
            return bad("it has a byte that is none of these");
        }
        Ok(Self(name.to_owned()))
    }

    /// The name of the region whose file is called `file_name`, if that is a region's.
    pub fn of_file(file_name: &str) -> Option<Self> {
        Self::parse(file_name.strip_suffix(FILE_SUFFIX)?).ok()
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the region's file is called.
    pub fn file_name(&self) -> String {
        format!("{}{FILE_SUFFIX}", self.0)
    }
}

impl std::fmt::Display for RegionName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn file_path(url: &str, path: &str) -> Result<PathBuf, PlaceError> {
    let bad = |why| {
        Err(PlaceError::BadPath {
            url: url.to_owned(),
            why,
        })
    };
    if path.contains('\0') {
        return bad("it has a zero byte");
    }
    if path.ends_with('/') {
        return bad("it ends in a slash, so it names a directory");
    }
    match Path::new(path).file_name() {
        Some(_) => Ok(PathBuf::from(path)),
        None => bad("it names a directory"),
    }
}

/// A region can't be where it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Not a URL of a space.
    #[error("{url:?} is not a space's URL; use mem:, shm:NAME or shm:/absolute/path")]
    UnknownUrl {
        /// As given.
        url: String,
    },

    /// A URL that this build can't serve.
    #[error("{url:?} is not supported: {why}")]
    Unsupported {
        /// As given.
        url: String,
        /// What to use instead.
        why: &'static str,
    },

    /// Not a region's name.
    #[error(
        "{name:?} cannot name a region: {why}; a name is 1 to {max} bytes of A-Z a-z 0-9 . _ - and does not start with a dot",
        max = NAME_BYTES_MAX
    )]
    BadName {
        /// As given.
        name: String,
        /// Which of the rules it breaks.
        why: &'static str,
    },

    /// Not a file's path.
    #[error("{url:?} does not name a file: {why}; use shm:/absolute/path/of/a/file")]
    BadPath {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },

    /// `$SPRAG_DIR` is relative, so that two processes would find two directories.
    #[error(
        "SPRAG_DIR is {path:?}, which is not absolute; set it to an absolute path, or unset it"
    )]
    DirectoryNotAbsolute {
        /// As given.
        path: PathBuf,
    },

    /// There is no directory and it can't be made.
    #[error(
        "cannot create the region directory {path:?}: {source}; set SPRAG_DIR to a directory of your own on a memory file system"
    )]
    CreateDirectory {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },

    /// It is there but can't be looked at.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// What was read.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },

    /// Something else has its name.
    #[error(
        "{path:?} is a {found}, not a directory; set SPRAG_DIR to a directory of your own, or move that out of the way"
    )]
    NotADirectory {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },

    /// It is somebody else's.
    #[error(
        "the region directory {path:?} belongs to user {owner}, not to user {user}; set SPRAG_DIR to a directory of your own, or have its owner remove it"
    )]
    DirectoryOwner {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// The effective user of this process.
        user: u32,
    },

    /// Others could put files into it, or take them away.
    #[error(
        "the region directory {path:?} has mode {mode:04o}, so that {who} may change what is in it; set SPRAG_DIR to a directory of your own, or, if nothing but Sprag uses this one, run chmod {safe_mode:04o} {path:?}"
    )]
    DirectoryMode {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Who has too much.
        who: &'static str,
        /// The bits that would do.
        safe_mode: u32,
    },

    /// `shm:/path` in a directory that doesn't exist.
    #[error("cannot put a region at {path:?}: {parent:?} {problem}; create that directory first")]
    NoParent {
        /// The region's file.
        path: PathBuf,
        /// The directory it would be in.
        parent: PathBuf,
        /// What is wrong with the directory.
        problem: &'static str,
    },

    /// Processes on several machines could map it, and their atomic operations wouldn't meet.
    #[error(
        "{path:?} is on {file_system} (type {magic:#x}), where processes of several machines could share a file but not its memory; \
         use a file system of this host, such as /dev/shm, by SPRAG_DIR or shm:/path"
    )]
    NotOfThisHost {
        /// What was looked at.
        path: PathBuf,
        /// The kind of file system.
        file_system: &'static str,
        /// Its number in `statfs`.
        magic: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_how_far_a_space_reaches_or_what_is_wrong_with_it() {
        let long = "n".repeat(NAME_BYTES_MAX);
        let too_long = "n".repeat(NAME_BYTES_MAX + 1);
        let name = |name: &str| Url::Shm(RegionName(name.to_owned()));
        let good = [
            ("mem:", Url::Mem),
            ("shm:a", name("a")),
            ("shm:Orders.v2_x-1", name("Orders.v2_x-1")),
            ("shm:-", name("-")),
            (&format!("shm:{long}"), name(&long)),
            ("shm:/a", Url::ShmPath("/a".into())),
            (
                "shm:/run/my app/é.region",
                Url::ShmPath("/run/my app/é.region".into()),
            ),
        ];
        for (url, expected) in good {
            match Url::parse(url) {
                Ok(parsed) => assert_eq!(parsed, expected, "{url}"),
                Err(error) => panic!("{url}: {error}"),
            }
        }
        let bad = [
            ("", "use mem:, shm:NAME or shm:/absolute/path"),
            ("mem", "use mem:, shm:NAME"),
            ("mem:x", "use mem:, shm:NAME"),
            ("MEM:", "use mem:, shm:NAME"),
            ("redis://h", "use mem:, shm:NAME"),
            ("quic://a:1,b:2", "this version has no cluster"),
            ("shm:", "it is empty"),
            ("shm:.hidden", "starts with a dot"),
            ("shm:..", "starts with a dot"),
            ("shm:a/b", "none of these"),
            ("shm:a b", "none of these"),
            ("shm:é", "none of these"),
            ("shm:a\0b", "none of these"),
            (&format!("shm:{too_long}"), "1 to 200 bytes"),
            ("shm:/", "names a directory"),
            ("shm:/a/", "ends in a slash"),
            ("shm:/a/..", "names a directory"),
            ("shm:/a\0b", "zero byte"),
        ];
        for (url, expected) in bad {
            match Url::parse(url) {
                Ok(parsed) => panic!("{url:?} was taken for {parsed:?}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(expected), "{url:?}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_regions_file_name_gives_its_name_back_and_nothing_else_does() {
        let name = RegionName::parse("orders.v2").expect("a good name");
        assert_eq!(name.file_name(), "orders.v2.sprag");
        assert_eq!(RegionName::of_file("orders.v2.sprag"), Some(name));
        for other in [
            "orders",
            ".sprag",
            "..sprag",
            "a b.sprag",
            "a.sprag~",
            "a.SPRAG",
        ] {
            assert_eq!(RegionName::of_file(other), None, "{other}");
        }
    }
}
