//! What the log needs of a disk, and how a disk says no. Nothing here has a clock or a thread.

use std::fmt;
use std::io;

/// A directory of files, for one node alone. A clone is another handle on the same directory.
///
/// A name is a plain file name. What a file holds is durable once [`DiskFile::sync`] has returned for it; that it
/// exists under its name, once [`Disk::sync_directory`] has. Neither does for the other.
pub trait Disk: Clone {
    /// An open file.
    type File: DiskFile;

    /// Makes a file of `length` bytes, which read as zeros.
    ///
    /// # Errors
    /// [`Fault::Exists`] where the name is taken; whatever else the disk says.
    fn create(&self, name: &str, length: u64) -> Result<Self::File, DiskError>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// [`Fault::NotFound`]; whatever else the disk says.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Gives a file another name, in place of any file of that name.
    ///
    /// # Errors
    /// [`Fault::NotFound`]; whatever else the disk says.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Takes a file out of the directory.
    ///
    /// # Errors
    /// [`Fault::NotFound`]; whatever else the disk says.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// The names of all files, in order.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// Makes all that was created, renamed and removed durable.
    ///
    /// # Errors
    /// Whatever the disk says. Which of the changes are durable is then unknown. Where several threads may sync, each is told,
    /// since it may be its own change that was lost.
    fn sync_directory(&self) -> Result<(), DiskError>;
}

/// An open file of a [`Disk`], of a length that never changes. A clone is the same open file.
pub trait DiskFile: Clone {
    /// Its length in bytes.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn length(&self) -> Result<u64, DiskError>;

    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// [`Fault::Short`] where the file ends before; whatever else the disk says, with `into` in any state.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError>;

    /// Writes all of `bytes` from `offset` on, inside the file's length.
    ///
    /// # Errors
    /// [`Fault::Short`] where some were not taken; whatever else the disk says. Any of them may have been written.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Makes everything that was written before the call durable.
    ///
    /// # Errors
    /// Whatever the disk says. What was written since the last sync that succeeded is then lost or not, and no later
    /// sync can tell: the system may hold it for clean.
    fn sync(&self) -> Result<(), DiskError>;
}

/// What was asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Take the directory for one node.
    Lock,
    /// Make a file.
    Create,
    /// Open a file.
    Open,
    /// Rename a file.
    Rename,
    /// Remove a file.
    Remove,
    /// List the directory.
    List,
    /// Sync the directory.
    SyncDirectory,
    /// Ask for a file's length.
    Length,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Sync a file.
    Sync,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Lock => "locking the directory",
            Operation::Create => "creating",
            Operation::Open => "opening",
            Operation::Rename => "renaming",
            Operation::Remove => "removing",
            Operation::List => "listing the directory",
            Operation::SyncDirectory => "syncing the directory",
            Operation::Length => "asking for the length of",
            Operation::Read => "reading",
            Operation::Write => "writing",
            Operation::Sync => "syncing",
        })
    }
}

/// Why a disk did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No space, or no quota.
    #[error("no space is left; free some, or raise the quota")]
    Full,
    /// Mounted read-only, as file systems become after an error.
    #[error(
        "the file system is read-only; look in the system's log for why, then mount it for writing"
    )]
    ReadOnly,
    /// Not allowed.
    #[error("permission denied; the files must belong to the user that runs the node")]
    Permission,
    /// No such file.
    #[error("no such file")]
    NotFound,
    /// The name is taken.
    #[error("there is such a file already")]
    Exists,
    /// Another node has it.
    #[error(
        "another process uses the directory; stop it, or give this node a directory of its own"
    )]
    Locked,
    /// Fewer bytes than asked for.
    #[error(
        "{done} of {asked} bytes done; the file is shorter than it was made, or the disk is failing"
    )]
    Short {
        /// Bytes read or written.
        done: u64,
        /// Bytes asked for.
        asked: u64,
    },
    /// Whatever else: the disk is failing.
    #[error("{}; the disk may be failing", io::Error::from_raw_os_error(*code))]
    Io {
        /// The system's number for the error.
        code: i32,
    },
}

impl Fault {
    /// `EIO`: what a failing disk says, and what stands for a failure that has no number.
    pub const EIO: Fault = Fault::Io { code: 5 };
}

/// A disk's refusal: what was asked, of which file, and why it was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} {file}: {fault}")]
pub struct DiskError {
    /// What was asked.
    pub operation: Operation,
    /// The file or directory.
    pub file: String,
    /// Why not.
    pub fault: Fault,
}

impl DiskError {
    /// The refusal of `operation` on `file`.
    pub fn new(operation: Operation, file: impl Into<String>, fault: Fault) -> DiskError {
        DiskError {
            operation,
            file: file.into(),
            fault,
        }
    }

    /// Whether a refused read tells of a bad place, not of a bad moment.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.fault, Fault::Io { .. } | Fault::Short { .. })
    }

    /// Whether nothing was done for want of room. Of a sync that is no answer: what was to be synced is unknown.
    pub(crate) fn is_want_of_room(&self) -> bool {
        let is_sync = matches!(self.operation, Operation::Sync | Operation::SyncDirectory);
        self.fault == Fault::Full && !is_sync
    }
}
