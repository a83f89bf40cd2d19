//! The kernel's clocks, and the time namespace's offset that is taken off them.
//!
//! Nothing here allocates, takes a lock or panics, so all of it may run in a forked child.

#[cfg(target_os = "linux")]
pub(crate) use linux::{host_ns, settle_offset, to_host_ns, unix_ns};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{host_ns, settle_offset, unix_ns};

#[cfg(target_os = "linux")]
mod linux {
    use crate::host::{HostError, procfs};
    use std::io;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// The inode of the time namespace that the kernel boots with (`PROC_TIME_INIT_INO`), whose offset is none.
    const FIRST_TIME_NAMESPACE: u64 = 0xEFFF_FFFA;

    /// What this process's time namespace adds to boot time. Relaxed wherever it is used: it stands
    /// for itself, and changes only when the process has moved to another namespace.
    static OFFSET_NS: AtomicI64 = AtomicI64::new(0);

    /// Boot time of the host in nanoseconds: the same in every time namespace.
    ///
    /// Zero if the kernel refuses the clock to a process that could read it before (a filter put in
    /// place later); to whoever takes `max(now, last)` time then stands still.
    #[inline]
    pub(crate) fn host_ns() -> u64 {
        to_host_ns(read(libc::CLOCK_BOOTTIME).unwrap_or(0))
    }

    /// Boot time as this process's namespace shows it, to boot time of the host.
    #[inline]
    pub(crate) fn to_host_ns(namespace_ns: u64) -> u64 {
        namespace_ns.saturating_add_signed(OFFSET_NS.load(Ordering::Relaxed).saturating_neg())
    }

    /// Unix time in nanoseconds; zero before 1970 and where the kernel refuses it.
    pub(crate) fn unix_ns() -> u64 {
        read(libc::CLOCK_REALTIME).unwrap_or(0)
    }

    /// Checks that boot time can be read, finds out the namespace's offset, and says whether it
    /// changed.
    pub(crate) fn settle_offset() -> Result<bool, HostError> {
        read(libc::CLOCK_BOOTTIME).map_err(|source| HostError::ClockUnavailable { source })?;
        let offset_ns = namespace_offset_ns()?;
        Ok(OFFSET_NS.swap(offset_ns, Ordering::Relaxed) != offset_ns)
    }

    #[inline]
    fn read(clock: libc::clockid_t) -> io::Result<u64> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is ours to write for the length of the call, and the kernel writes a whole
        // timespec or nothing.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
        Ok(seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds))
    }

    /// `timens_offsets` shows the namespace that this process's *children* will be in. It is ours too
    /// unless the process called `unshare(CLONE_NEWTIME)` and hasn't executed anything since.
    fn namespace_offset_ns() -> Result<i64, HostError> {
        let ours = procfs::inode(c"/proc/self/ns/time");
        let childrens = procfs::inode(c"/proc/self/ns/time_for_children");
        if ours == FIRST_TIME_NAMESPACE {
            return Ok(0);
        }
        if ours != childrens {
            return Err(HostError::TimeNamespaceUnsettled { ours, childrens });
        }
        let mut buffer = [0; 256];
        // Missing on kernels without time namespaces (before 5.6) and where /proc isn't mounted.
        Ok(procfs::read(c"/proc/self/timens_offsets", &mut buffer)
            .and_then(boottime_offset_ns)
            .unwrap_or(0))
    }

    /// The line `boottime SECONDS NANOSECONDS`, where nanoseconds count up from the seconds, as in a timespec.
    fn boottime_offset_ns(table: &[u8]) -> Option<i64> {
        for line in table.split(|&byte| byte == b'\n') {
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
                .filter_map(|word| std::str::from_utf8(word).ok());
            // Older kernels print the clock's number, newer ones its name.
            if !matches!(words.next(), Some("boottime" | "7")) {
                continue;
            }
            let seconds: i64 = words.next()?.parse().ok()?;
            let nanoseconds: i64 = words.next()?.parse().ok()?;
            return Some(
                seconds
                    .saturating_mul(1_000_000_000)
                    .saturating_add(nanoseconds),
            );
        }
        None
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_boot_time_offset_is_read_from_either_form_of_the_kernels_table() {
            let cases: [(&[u8], Option<i64>); 8] = [
                (
                    b"monotonic           0         0\nboottime            0         0\n",
                    Some(0),
                ),
                (b"monotonic 5 0\nboottime 1000 7\n", Some(1_000_000_000_007)),
                (
                    b"monotonic 5 0\nboottime -2 999999999\n",
                    Some(-1_000_000_001),
                ),
                (b"1 5 0\n7 3 0\n", Some(3_000_000_000)),
                (b"boottime 9223372036854775807 0", Some(i64::MAX)),
                (b"monotonic 5 0\n", None),
                (b"boottime x 0\n", None),
                (b"", None),
            ];
            for (table, expected) in cases {
                assert_eq!(
                    boottime_offset_ns(table),
                    expected,
                    "{}",
                    String::from_utf8_lossy(table)
                );
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use crate::host::HostError;
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    /// Only threads of one process share a clock here, so any fixed start will do.
    static START: OnceLock<Instant> = OnceLock::new();

    pub(crate) fn host_ns() -> u64 {
        let elapsed = START.get_or_init(Instant::now).elapsed();
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn unix_ns() -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| {
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            })
    }

    pub(crate) fn settle_offset() -> Result<bool, HostError> {
        Ok(false)
    }
}
