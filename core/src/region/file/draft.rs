//! A region's file in the making: filled while it has no name, then given one in one step.
//!
//! Owns temporary files and their names. Never opens a region that others may have.

use super::{ATTEMPTS_MAX, Backing, Header, io_error, past_standard};
use crate::error::{Error, Result};
use crate::region::memory::Memory;
use crate::region::{Birth, Caps, Geometry, Region, system};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A region's file in the making: nobody can open it before it is published.
pub(in crate::region) struct Draft {
    file: File,
    path: PathBuf,
    /// Its name until then, where the file system knows no files without one.
    scratch: Option<Scratch>,
}

/// A file's temporary name; removed when dropped. One that is left behind by a killed process is never
/// taken for a region: its name begins with a dot and ends in `.new`.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Already renamed, or the directory is gone: nothing is left to do.
        let _ = fs::remove_file(&self.0);
    }
}

impl Draft {
    /// An empty file beside `path`, on its file system.
    pub(in crate::region) fn new(path: &Path, group_shared: bool) -> Result<Self> {
        let unnamed = File::options()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(directory(path));
        let draft = match unnamed {
            Ok(file) => Self {
                file: past_standard(file, path)?,
                path: path.to_owned(),
                scratch: None,
            },
            // What file systems, and kernels older than the flag, say.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
                ) =>
            {
                Self::named(path)?
            }
            Err(error) => return Err(create_error(path, error)),
        };
        draft.allow(group_shared)?;
        Ok(draft)
    }

    fn named(path: &Path) -> Result<Self> {
        for _ in 0..ATTEMPTS_MAX {
            let scratch = scratch_name(path);
            let created = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&scratch);
            match created {
                Ok(file) => {
                    return Ok(Self {
                        scratch: Some(Scratch(scratch)),
                        file: past_standard(file, path)?,
                        path: path.to_owned(),
                    });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(create_error(path, error)),
            }
        }
        Err(Error::Contended {
            what: "creating files with the region's temporary names",
        })
    }

    /// Sets the mode, whatever the umask. Nobody can have opened the file yet.
    fn allow(&self, group_shared: bool) -> Result<()> {
        let mode = if group_shared { 0o660 } else { 0o600 };
        self.file
            .set_permissions(Permissions::from_mode(mode))
            .map_err(|source| io_error("set the mode of", &self.path, source))
    }

    /// Makes it a region of its final length, with the pages allocated that are always reachable.
    pub(in crate::region) fn fill(&self, caps: Caps, birth: Birth) -> Result<Region> {
        caps.check()?;
        let geometry = Geometry::new(caps);
        let len = geometry.len as u64;
        let failed = |source| io_error("allocate", &self.path, source);
        if len > system::file_len_max() {
            return Err(failed(io::Error::from_raw_os_error(libc::EFBIG)));
        }
        self.file.set_len(len).map_err(failed)?;
        let is_sparse = match system::allocate(&self.file, 0, geometry.fixed as u64) {
            Ok(()) => true,
            // The file system cannot allocate. Growing would then leave holes, so there is none.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)
                ) =>
            {
                self.write_out(len).map_err(failed)?;
                false
            }
            Err(error) => return Err(failed(error)),
        };
        let failed = |source| io_error("map", &self.path, source);
        let file = self.file.try_clone().map_err(failed)?;
        let memory = Memory::of_file(&file, geometry.len).map_err(failed)?;
        let header = Header::of(caps, &birth);
        let backing = Backing::new(&file, &self.path)?.unnamed(file);
        let region = Region::of_file(memory, &header, backing);
        region.initialise(birth);
        if !is_sparse {
            region.mark_all_allocated();
        }
        Ok(region)
    }

    /// Writes zeros to the whole file.
    fn write_out(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; 1 << 16];
        let mut at = 0;
        while at < len {
            let part = zeros.len().min((len - at) as usize);
            self.file.write_all_at(&zeros[..part], at)?;
            at += part as u64;
        }
        Ok(())
    }

    /// Gives it its name. [`Error::Replaced`] if there is such a file by now.
    pub(in crate::region) fn publish(self) -> Result<()> {
        // A file that was named but not yet written would be no region after a power failure.
        self.sync()?;
        let linked = match &self.scratch {
            None => system::link_unnamed(&self.file, &self.path),
            Some(scratch) => fs::hard_link(&scratch.0, &self.path),
        };
        linked.map_err(|error| self.name_error(error))
    }

    /// Gives it its name in place of the file that has it.
    pub(in crate::region) fn publish_over(mut self) -> Result<()> {
        self.sync()?;
        // Only a file that has a name can take that of another.
        for _ in 0..ATTEMPTS_MAX {
            if self.scratch.is_some() {
                break;
            }
            let scratch = scratch_name(&self.path);
            match system::link_unnamed(&self.file, &scratch) {
                Ok(()) => self.scratch = Some(Scratch(scratch)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.name_error(error)),
            }
        }
        match &self.scratch {
            Some(scratch) => {
                fs::rename(&scratch.0, &self.path).map_err(|error| self.name_error(error))
            }
            None => Err(Error::Contended {
                what: "creating files with the region's temporary names",
            }),
        }
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|source| io_error("write", &self.path, source))
    }

    fn name_error(&self, source: io::Error) -> Error {
        match source.kind() {
            ErrorKind::AlreadyExists => Error::Replaced {
                path: self.path.clone(),
            },
            _ => create_error(&self.path, source),
        }
    }
}

/// A name beside `path` that nobody looks for.
fn scratch_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: any number will do that was not used before.
    let number = NEXT.fetch_add(1, Relaxed);
    let mut name = std::ffi::OsString::from(".");
    let stem = path.file_name().unwrap_or_default();
    // Within the longest name that file systems take.
    if stem.len() <= 200 {
        name.push(stem);
    }
    name.push(format!(".{}.{number}.new", std::process::id()));
    path.with_file_name(name)
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn create_error(path: &Path, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Error::Permission {
            path: path.to_owned(),
            why: "cannot be created: its directory is not this user's to write to",
        },
        Some(libc::EROFS) => Error::Permission {
            path: path.to_owned(),
            why: "cannot be created: its file system is read-only",
        },
        _ => io_error("create", path, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::file::{OpenOptions, metadata, open};
    use std::os::unix::fs::MetadataExt;

    const OPTIONS: OpenOptions = OpenOptions {
        caps: Caps {
            objects: 64,
            limiter_keys: 64,
            joint_keys: 64,
            sessions: 16,
            waiters: 16,
            permits: 16,
            key_chunks: 64,
        },
        create: false,
        group_shared: false,
        birth: Birth {
            hash_seed: 7,
            unix_ns: 1_800_000_000_000_000_000,
            boot_ns: 5,
            boot_id: [1, 2],
            floor: 0,
        },
    };

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("region");
        (directory, path)
    }

    fn names_in(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn where_no_file_can_be_unnamed_a_region_appears_whole_under_its_name_too() {
        let (directory, path) = place();
        let draft = Draft::named(&path).unwrap();
        draft.allow(false).unwrap();
        draft.fill(OPTIONS.caps, OPTIONS.birth).unwrap();
        let names = names_in(directory.path());
        assert_eq!(names.len(), 1);
        assert!(names[0].starts_with(&format!(".region.{}.", std::process::id())));
        let late = Draft::named(&path).unwrap();
        draft.publish().unwrap();
        open(&path, &OPTIONS).unwrap();
        assert!(matches!(late.publish(), Err(Error::Replaced { .. })));
        assert_eq!(names_in(directory.path()), ["region"]);

        let over = Draft::named(&path).unwrap();
        over.allow(false).unwrap();
        over.fill(OPTIONS.caps, OPTIONS.birth).unwrap();
        let before = metadata(&File::open(&path).unwrap(), &path).unwrap().ino();
        over.publish_over().unwrap();
        let after = metadata(&File::open(&path).unwrap(), &path).unwrap().ino();
        assert_ne!(before, after);
        assert_eq!(names_in(directory.path()), ["region"]);
        drop(Draft::named(&path).unwrap());
        assert_eq!(names_in(directory.path()), ["region"]);
    }

    #[test]
    fn where_pages_cannot_be_allocated_the_whole_file_is_written_at_once() {
        let (_directory, path) = place();
        let draft = Draft::new(&path, false).unwrap();
        let len = (3 << 20) + 123;
        draft.file.set_len(len).unwrap();
        draft.write_out(len).unwrap();
        let metadata = draft.file.metadata().unwrap();
        assert_eq!(metadata.len(), len);
        assert!(metadata.blocks() * 512 >= len, "there are holes");
        let region = draft.fill(OPTIONS.caps, OPTIONS.birth).unwrap();
        region.mark_all_allocated();
        assert_eq!(region.allocated_bytes(), region.len_bytes());
    }

    #[test]
    fn a_temporary_name_fits_however_long_the_regions_is() {
        for len in [1, 200, 201, 255] {
            let path = Path::new("/tmp").join("x".repeat(len));
            let [first, second] = [(), ()].map(|()| scratch_name(&path));
            assert_ne!(first, second);
            assert!(first.file_name().unwrap().len() <= 255);
            assert_eq!(first.parent(), path.parent());
        }
    }
}
