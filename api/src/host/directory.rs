//! The directory where a host's named regions live.
//!
//! `$SPRAG_DIR` if it is set and not empty, else `/dev/shm/sprag-UID`: one place by user, in memory,
//! that a login shell, a cron job and a daemon of that user all find. `docs/decisions/0002-where-regions-live.md`
//! says why there, and what logind may do to it.

use super::filesystem::check_is_of_this_host;
use super::place::{Place, PlaceError, RegionName, Url};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The environment variable that names another directory.
const DIRECTORY_VARIABLE: &str = "SPRAG_DIR";

/// Who may change what is in the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Its owner only: mode 0700 when created, nothing for group and others to write.
    #[default]
    Owner,
    /// Its owner and its group: mode 2770 when created, so that new files are the group's.
    Group,
}

impl Sharing {
    /// [`Group`](Self::Group) where the group is to share.
    pub(crate) fn with_group(group_shared: bool) -> Self {
        if group_shared {
            Self::Group
        } else {
            Self::Owner
        }
    }
}

/// A directory of regions. Made by [`RegionDirectory::of_this_user`] or [`RegionDirectory::at`];
/// nothing is looked at or created before [`RegionDirectory::place`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionDirectory {
    path: PathBuf,
}

/// A region's file as it lies in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionFile {
    /// What follows `shm:`.
    pub name: RegionName,
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// When it was last written by a call; writing through a mapping may not show.
    pub modified: Option<SystemTime>,
}

impl RegionDirectory {
    /// The directory of the process's effective user: `$SPRAG_DIR`, else `/dev/shm/sprag-UID`.
    ///
    /// # Errors
    ///
    /// [`PlaceError::DirectoryNotAbsolute`].
    pub fn of_this_user() -> Result<Self, PlaceError> {
        Self::by(std::env::var_os(DIRECTORY_VARIABLE), effective_user())
    }

    /// This directory.
    ///
    /// # Errors
    ///
    /// [`PlaceError::DirectoryNotAbsolute`].
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, PlaceError> {
        let path = path.into();
        if path.is_absolute() {
            Ok(Self { path })
        } else {
            Err(PlaceError::DirectoryNotAbsolute { path })
        }
    }

    fn by(variable: Option<OsString>, user: u32) -> Result<Self, PlaceError> {
        match variable.filter(|value| !value.is_empty()) {
            Some(path) => Self::at(path),
            None => Self::at(default_path(user)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the region `name` lives. Creates the directory if it is missing, and refuses one that
    /// isn't this user's (or root's), that others could change, or that other machines could share.
    ///
    /// # Errors
    ///
    /// [`PlaceError`], naming the directory and the way out.
    pub fn place(&self, name: &RegionName, sharing: Sharing) -> Result<Place, PlaceError> {
        self.create_if_missing(sharing)?;
        self.check(sharing)?;
        Ok(Place {
            path: self.path.join(name.file_name()),
        })
    }

    /// Where the region `name` lives or would live. Creates nothing; refuses what [`Self::place`] does,
    /// but for a directory that isn't there.
    ///
    /// # Errors
    ///
    /// [`PlaceError`], naming the directory and the way out.
    pub fn place_if_there(&self, name: &RegionName, sharing: Sharing) -> Result<Place, PlaceError> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => self.check(sharing)?,
        }
        Ok(Place {
            path: self.path.join(name.file_name()),
        })
    }

    /// The regions here, by name. Creates nothing; a directory that doesn't exist has none.
    ///
    /// # Errors
    ///
    /// [`PlaceError::Read`].
    pub fn regions(&self) -> Result<Vec<RegionFile>, PlaceError> {
        let cannot_read = |source| PlaceError::Read {
            path: self.path.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(cannot_read)?,
        };
        let mut regions = Vec::new();
        for entry in entries {
            let entry = entry.map_err(cannot_read)?;
            let Some(name) = entry.file_name().to_str().and_then(RegionName::of_file) else {
                continue;
            };
            match entry.metadata() {
                Ok(file) if file.is_file() => regions.push(RegionFile {
                    name,
                    path: entry.path(),
                    bytes: file.len(),
                    modified: file.modified().ok(),
                }),
                // Something else with a region's name, or removed since it was listed.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(PlaceError::Read {
                        path: entry.path(),
                        source,
                    });
                }
            }
        }
        regions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(regions)
    }

    fn create_if_missing(&self, sharing: Sharing) -> Result<(), PlaceError> {
        let mode = match sharing {
            Sharing::Owner => 0o700,
            Sharing::Group => 0o2770,
        };
        let cannot_create = |source| PlaceError::CreateDirectory {
            path: self.path.clone(),
            source,
        };
        match DirBuilder::new().mode(mode).create(&self.path) {
            // The mode again, since creating it took the umask off. Nobody can have replaced it: it
            // is ours, in a directory where only the owner may remove it.
            Ok(()) => {
                fs::set_permissions(&self.path, Permissions::from_mode(mode)).map_err(cannot_create)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(cannot_create(source)),
        }
    }

    fn check(&self, sharing: Sharing) -> Result<(), PlaceError> {
        let found = fs::symlink_metadata(&self.path).map_err(|source| PlaceError::Read {
            path: self.path.clone(),
            source,
        })?;
        if !found.is_dir() {
            return Err(PlaceError::NotADirectory {
                path: self.path.clone(),
                found: kind_of(&found),
            });
        }
        check_owner_and_mode(&self.path, &Access::of(&found), effective_user(), sharing)?;
        check_is_of_this_host(&self.path)
    }
}

impl Place {
    /// The place of a file that was named by its own path: used as it is, if its directory exists
    /// and is on a file system of this host.
    ///
    /// # Errors
    ///
    /// [`PlaceError::NoParent`], [`PlaceError::NotOfThisHost`], [`PlaceError::Read`].
    pub fn at(path: &Path) -> Result<Self, PlaceError> {
        let no_parent = |parent: &Path, problem| PlaceError::NoParent {
            path: path.to_owned(),
            parent: parent.to_owned(),
            problem,
        };
        let parent = match path.parent() {
            Some(parent) if path.is_absolute() => parent,
            parent => return Err(no_parent(parent.unwrap_or(path), "is not absolute")),
        };
        match fs::metadata(parent) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(no_parent(parent, "is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(no_parent(parent, "does not exist"));
            }
            Err(source) => {
                return Err(PlaceError::Read {
                    path: parent.to_owned(),
                    source,
                });
            }
        }
        // The file itself may be a mount of its own, or a link to elsewhere.
        let is_there = fs::exists(path).map_err(|source| PlaceError::Read {
            path: path.to_owned(),
            source,
        })?;
        check_is_of_this_host(if is_there { path } else { parent })?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The file of a `shm:` URL; None for one that has no file.
    ///
    /// # Errors
    ///
    /// Those of [`RegionDirectory::of_this_user`], [`RegionDirectory::place`] and [`Place::at`].
    pub fn of(url: &Url, sharing: Sharing) -> Result<Option<Self>, PlaceError> {
        match url {
            Url::Mem => Ok(None),
            Url::Shm(name) => RegionDirectory::of_this_user()?
                .place(name, sharing)
                .map(Some),
            Url::ShmPath(path) => Self::at(path).map(Some),
        }
    }

    /// The file of a `shm:` URL, there or not, for those who create none: a directory that doesn't exist
    /// is no error, and is not made. None for a URL that has no file.
    ///
    /// # Errors
    ///
    /// Those of [`Place::of`], but for what isn't there.
    pub fn if_there(url: &Url, sharing: Sharing) -> Result<Option<Self>, PlaceError> {
        match url {
            Url::Mem => Ok(None),
            Url::Shm(name) => RegionDirectory::of_this_user()?
                .place_if_there(name, sharing)
                .map(Some),
            Url::ShmPath(path) => match Self::at(path) {
                // That the file isn't there will be found out by whoever opens it.
                Err(PlaceError::NoParent { parent, .. }) if !parent.exists() => {
                    Ok(Some(Self { path: path.clone() }))
                }
                place => place.map(Some),
            },
        }
    }
}

/// The regions of this user, by name.
///
/// # Errors
///
/// Those of [`RegionDirectory::of_this_user`] and [`RegionDirectory::regions`].
pub(crate) fn list_regions() -> Result<Vec<RegionFile>, PlaceError> {
    RegionDirectory::of_this_user()?.regions()
}

/// Whose a directory is and what others may do to it.
#[derive(Clone, Copy, Debug)]
struct Access {
    owner: u32,
    is_of_our_group: bool,
    mode: u32,
}

impl Access {
    fn of(found: &Metadata) -> Self {
        Self {
            owner: found.uid(),
            is_of_our_group: is_our_group(found.gid()),
            mode: found.mode() & 0o7777,
        }
    }
}

fn check_owner_and_mode(
    path: &Path,
    access: &Access,
    user: u32,
    sharing: Sharing,
) -> Result<(), PlaceError> {
    const ROOT: u32 = 0;
    const GROUP_WRITE: u32 = 0o020;
    const OTHERS_WRITE: u32 = 0o002;
    let Access {
        owner,
        is_of_our_group,
        mode,
    } = *access;
    // Root may write anywhere in any case. Sharing with a group is to trust its members. Anybody
    // else may have been first to take a name in /dev/shm.
    let is_trusted =
        owner == user || owner == ROOT || (sharing == Sharing::Group && is_of_our_group);
    if !is_trusted {
        return Err(PlaceError::DirectoryOwner {
            path: path.to_owned(),
            owner,
            user,
        });
    }
    let (forbidden, who) = match sharing {
        Sharing::Owner if mode & OTHERS_WRITE == 0 => (GROUP_WRITE, "its group"),
        Sharing::Owner => (GROUP_WRITE | OTHERS_WRITE, "everybody"),
        Sharing::Group => (OTHERS_WRITE, "everybody"),
    };
    if mode & forbidden != 0 {
        return Err(PlaceError::DirectoryMode {
            path: path.to_owned(),
            mode,
            who,
            safe_mode: mode & !forbidden,
        });
    }
    Ok(())
}

fn default_path(user: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/sprag-{user}"))
}

fn kind_of(found: &Metadata) -> &'static str {
    if found.is_symlink() {
        "symbolic link"
    } else if found.is_file() {
        "file"
    } else {
        "special file"
    }
}

fn effective_user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

fn is_our_group(group: u32) -> bool {
    // SAFETY: getegid has no arguments and cannot fail.
    if group == unsafe { libc::getegid() } {
        return true;
    }
    // SAFETY: with a size of 0, getgroups writes nothing and returns how many there are.
    let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
    let mut groups = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: `groups` has room for `count`, which is its length; should there be more by now, it is an error.
    let count = unsafe { libc::getgroups(count.max(0), groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).unwrap_or(0));
    groups.contains(&group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_the_variables_or_one_by_user() {
        let by = |variable: Option<&str>| {
            RegionDirectory::by(variable.map(OsString::from), 1_234)
                .map(|directory| directory.path)
                .map_err(|error| error.to_string())
        };
        let default = Ok(PathBuf::from("/dev/shm/sprag-1234"));
        assert_eq!(by(None), default);
        assert_eq!(by(Some("")), default, "set to nothing is not set");
        assert_eq!(by(Some("/srv/r")), Ok(PathBuf::from("/srv/r")));
        let error = by(Some("srv/r")).expect_err("relative");
        assert!(
            error.contains("SPRAG_DIR") && error.contains("srv/r"),
            "{error}"
        );
    }

    #[test]
    fn a_directory_that_is_not_ours_or_that_others_can_change_is_refused_with_the_way_out() {
        use Sharing::{Group, Owner};
        const ME: u32 = 1_000;
        // (sharing, owner, of our group, mode, what the error says)
        let cases = [
            (Owner, ME, true, 0o700, None),
            (Owner, ME, true, 0o755, None),
            (Owner, 0, false, 0o755, None),
            (Owner, ME, true, 0o770, Some("its group may change")),
            (Owner, ME, true, 0o777, Some("everybody may change")),
            (Owner, ME, true, 0o1777, Some("chmod 1755")),
            (Owner, 0, false, 0o1777, Some("everybody may change")),
            (
                Owner,
                7,
                true,
                0o700,
                Some("belongs to user 7, not to user 1000"),
            ),
            (Group, ME, true, 0o2770, None),
            (Group, ME, true, 0o700, None),
            (Group, 7, true, 0o2770, None),
            (Group, 7, false, 0o2770, Some("belongs to user 7")),
            (Group, ME, true, 0o2777, Some("chmod 2775")),
        ];
        for (sharing, owner, is_of_our_group, mode, expected) in cases {
            let access = Access {
                owner,
                is_of_our_group,
                mode,
            };
            let outcome = check_owner_and_mode(Path::new("/d"), &access, ME, sharing)
                .map_err(|error| error.to_string());
            match (outcome, expected) {
                (Ok(()), None) => {}
                (Err(text), Some(part)) if text.contains(part) && text.contains("/d") => {}
                (outcome, _) => panic!("{sharing:?} {access:?}: {outcome:?}, not {expected:?}"),
            }
        }
    }
}
