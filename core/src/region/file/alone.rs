//! Being alone with a region, by the kernel locks that make it so.
//!
//! Owns who may set a region up, or replace it. Never touches the region itself.

use crate::error::{Error, Result};
use crate::session::ofd;
use std::fs::File;
use std::path::Path;

/// This process alone at work on a region: the kernel locks that make it so.
pub(in crate::region) struct Alone<'f> {
    file: &'f File,
    with_sessions: bool,
}

/// How often, and in which steps, somebody else is waited for.
const WAITS_MAX: u32 = 1_000;
const WAIT: std::time::Duration = std::time::Duration::from_millis(10);

impl<'f> Alone<'f> {
    /// Alone in setting the region up. Others may have sessions.
    pub(in crate::region) fn in_setup(file: &'f File) -> Result<Self> {
        Self::in_setup_after(file, WAITS_MAX)
    }

    fn in_setup_after(file: &'f File, waits_max: u32) -> Result<Self> {
        for wait in 0..=waits_max {
            if ofd::try_lock(file, ofd::Bytes::SETUP)? {
                return Ok(Self {
                    file,
                    with_sessions: false,
                });
            }
            if wait < waits_max {
                // The lock has no timed form. Its holder is at work for milliseconds, or stopped.
                std::thread::sleep(WAIT);
            }
        }
        Err(Error::Contended {
            what: "setting up the region",
        })
    }

    /// Alone in the region: no session is alive, and none can open.
    pub(in crate::region) fn without_sessions(file: &'f File, path: &Path) -> Result<Self> {
        let mut alone = Self::in_setup(file)?;
        if !ofd::try_lock(file, ofd::Bytes::SESSIONS)? {
            return Err(Error::InUse {
                path: path.to_owned(),
                sessions: ofd::count_alive(file)?.max(1),
                detached: 0,
            });
        }
        alone.with_sessions = true;
        Ok(alone)
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if self.with_sessions {
            ofd::unlock(self.file, ofd::Bytes::SESSIONS);
        }
        ofd::unlock(self.file, ofd::Bytes::SETUP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::file::open_file;

    #[test]
    fn who_waits_too_long_to_be_alone_is_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("region");
        File::create(&path).unwrap();
        let [first, second] = [(), ()].map(|()| open_file(&path, true).unwrap());
        let alone = Alone::in_setup(&first).unwrap();
        let result = Alone::in_setup_after(&second, 1).map(drop);
        assert!(matches!(result, Err(Error::Contended { .. })));
        drop(alone);
        let alone = Alone::without_sessions(&second, &path).unwrap();
        assert!(ofd::is_being_replaced(&first));
        assert!(Alone::in_setup_after(&first, 0).is_err());
        drop(alone);
        assert!(!ofd::is_being_replaced(&first));
        assert_eq!(ofd::count_alive(&first).unwrap(), 0);
    }
}
