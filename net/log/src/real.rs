//! The disk that there is: a directory of a file system, with positioned writes and data syncs.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{Disk, DiskError, DiskFile, Fault, Operation};

/// A directory, locked for as long as a handle on it or on a file of it lives. Only its owner may look inside.
#[derive(Clone, Debug)]
pub struct RealDisk(Arc<Directory>);

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// Holds the lock, and is what is synced.
    handle: File,
    syncs: Syncs,
}

/// The syncs of a directory, by whichever thread: one at a time, and none after one that failed. The system tells of a failure
/// once, to whoever asks first; another, whose change it was, would be told that all went well.
#[derive(Debug, Default)]
struct Syncs(Mutex<Option<DiskError>>);

impl Syncs {
    fn run(&self, sync: impl FnOnce() -> Result<(), DiskError>) -> Result<(), DiskError> {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failed {
            Some(error) => Err(error.clone()),
            None => sync().inspect_err(|error| *failed = Some(error.clone())),
        }
    }
}

/// A file in a [`RealDisk`].
#[derive(Clone, Debug)]
pub struct RealFile {
    file: Arc<File>,
    name: Arc<str>,
    /// The lock outlives every file: a sync on another thread may be the last to let go.
    _directory: Arc<Directory>,
}

impl RealDisk {
    /// Locks the directory at `path`, made with mode 0700 where there is none. Its parent must exist.
    ///
    /// # Errors
    /// [`Fault::Locked`] while another process, or another `RealDisk` of this one, has it; what the system says.
    pub fn open(path: &Path) -> Result<RealDisk, DiskError> {
        let name = path.display().to_string();
        let wrap =
            |operation, error: &io::Error| DiskError::new(operation, name.clone(), fault(error));
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                let parent = path
                    .parent()
                    .filter(|parent| !parent.as_os_str().is_empty());
                File::open(parent.unwrap_or(Path::new(".")))
                    .and_then(|parent| parent.sync_all())
                    .map_err(|error| wrap(Operation::SyncDirectory, &error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(wrap(Operation::Create, &error)),
        }
        let handle = File::open(path).map_err(|error| wrap(Operation::Open, &error))?;
        match handle.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DiskError::new(Operation::Lock, name, Fault::Locked));
            }
            Err(TryLockError::Error(error)) => return Err(wrap(Operation::Lock, &error)),
        }
        let path = path.to_path_buf();
        let syncs = Syncs::default();
        let directory = Directory {
            path,
            handle,
            syncs,
        };
        Ok(RealDisk(Arc::new(directory)))
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    fn error(&self, operation: Operation, name: &str, error: &io::Error) -> DiskError {
        DiskError::new(
            operation,
            self.path_of(name).display().to_string(),
            fault(error),
        )
    }

    fn file(&self, file: File, name: &str) -> RealFile {
        RealFile {
            file: Arc::new(file),
            name: self.path_of(name).display().to_string().into(),
            _directory: Arc::clone(&self.0),
        }
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn create(&self, name: &str, length: u64) -> Result<RealFile, DiskError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path_of(name))
            .map_err(|error| self.error(Operation::Create, name, &error))?;
        file.set_len(length)
            .map_err(|error| self.error(Operation::Create, name, &error))?;
        Ok(self.file(file, name))
    }

    fn open(&self, name: &str) -> Result<RealFile, DiskError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path_of(name))
            .map_err(|error| self.error(Operation::Open, name, &error))?;
        Ok(self.file(file, name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path_of(from), self.path_of(to))
            .map_err(|error| self.error(Operation::Rename, from, &error))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        fs::remove_file(self.path_of(name))
            .map_err(|error| self.error(Operation::Remove, name, &error))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let wrap = |error: io::Error| self.error(Operation::List, "", &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0.path).map_err(wrap)? {
            // A name that is no text is none of the log's.
            if let Ok(name) = entry.map_err(wrap)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.0.syncs.run(|| {
            let synced = self.0.handle.sync_all();
            synced.map_err(|error| self.error(Operation::SyncDirectory, "", &error))
        })
    }
}

impl RealFile {
    fn error(&self, operation: Operation, error: &io::Error) -> DiskError {
        DiskError::new(operation, self.name.to_string(), fault(error))
    }
}

impl DiskFile for RealFile {
    fn length(&self) -> Result<u64, DiskError> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|error| self.error(Operation::Length, &error))?;
        Ok(metadata.len())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => return Err(self.short(Operation::Read, done, into.len())),
                Ok(more) => done += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(Operation::Read, &error)),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut done = 0;
        for _ in 0..2 {
            match self.file.write_at(&bytes[done..], offset + done as u64) {
                Ok(more) if done + more == bytes.len() => return Ok(()),
                // A disk that takes less than all has its reasons: it says which, as it is, when asked for the rest.
                Ok(more) => done += more,
                Err(error) => return Err(self.error(Operation::Write, &error)),
            }
        }
        Err(self.short(Operation::Write, done, bytes.len()))
    }

    fn sync(&self) -> Result<(), DiskError> {
        let synced = self.file.sync_data();
        synced.map_err(|error| self.error(Operation::Sync, &error))
    }
}

impl RealFile {
    fn short(&self, operation: Operation, done: usize, asked: usize) -> DiskError {
        let (done, asked) = (done as u64, asked as u64);
        DiskError::new(
            operation,
            self.name.to_string(),
            Fault::Short { done, asked },
        )
    }
}

fn fault(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Fault::Full
        }
        io::ErrorKind::ReadOnlyFilesystem => Fault::ReadOnly,
        io::ErrorKind::PermissionDenied => Fault::Permission,
        io::ErrorKind::NotFound => Fault::NotFound,
        io::ErrorKind::AlreadyExists => Fault::Exists,
        _ => {
            let number = error.raw_os_error();
            number.map_or(Fault::EIO, |code| Fault::Io { code })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_could_not_be_synced_once_never_is_whoever_asks() {
        let syncs = Syncs::default();
        let error = DiskError::new(Operation::SyncDirectory, "", Fault::EIO);
        assert_eq!(syncs.run(|| Ok(())), Ok(()));
        assert_eq!(syncs.run(|| Err(error.clone())), Err(error.clone()));
        // The system has told of it, and would say that all is well now.
        assert_eq!(syncs.run(|| Ok(())), Err(error));
    }
}
