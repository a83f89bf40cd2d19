//! Who this process is, for others to tell whether it is still the same one.
//!
//! A pid alone says nothing: it is used again. Whether a process lives is told by a kernel lock; what is here
//! stands beside it, for people and for cross-checks. Whatever can't be found out is 0, which means unknown and
//! never an error: a sandbox without `/proc` can still use a space.

use super::{HostError, procfs};
use std::io;

/// A process, as it is written beside its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// As seen in the process's own pid namespace.
    pub pid: u32,
    /// When it started, in nanoseconds of the host's boot time ([`crate::clock::Clock::host`]), to
    /// the kernel's tick of 10 ms; 0 is unknown.
    pub start_ns: u64,
    /// The boot that it belongs to; `[0, 0]` is unknown. Two that are unknown may or may not be the same boot: a
    /// region whose boot can't be told must not be taken for one from another boot, since that ends live holds.
    pub boot_id: [u64; 2],
    /// Inode of its pid namespace; 0 is unknown.
    pub pid_namespace: u64,
}

/// The kernel's tick in `/proc/PID/stat`, where it does not tell another.
const TICK_NS: u64 = 10_000_000;

impl ProcessIdentity {
    /// This process. Reads a handful of small files: for opening a space, not for every call.
    ///
    /// # Errors
    ///
    /// As for [`crate::clock::Clock::host`], whose time `start_ns` is in.
    pub fn of_this_process() -> Result<Self, HostError> {
        crate::clock::real::settle_offset()?;
        Ok(Self {
            pid: std::process::id(),
            start_ns: start_ns(c"/proc/self/stat"),
            boot_id: boot_id(),
            pid_namespace: procfs::inode(c"/proc/self/ns/pid"),
        })
    }
}

/// 64 bits from the kernel's random number generator.
///
/// # Errors
///
/// [`HostError::Random`] if the kernel has neither `getrandom` for us nor `/dev/urandom`.
pub fn random_u64() -> Result<u64, HostError> {
    let mut bytes = [0; 8];
    loop {
        // SAFETY: `bytes` is writable for its length. Up to 256 bytes come whole or not at all.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if usize::try_from(got) == Ok(bytes.len()) {
            return Ok(u64::from_ne_bytes(bytes));
        }
        let source = io::Error::last_os_error();
        if source.kind() == io::ErrorKind::Interrupted {
            continue;
        }
        return match procfs::read(c"/dev/urandom", &mut bytes).map(<[u8]>::len) {
            Some(8) => Ok(u64::from_ne_bytes(bytes)),
            _ => Err(HostError::Random { source }),
        };
    }
}

fn start_ns(path: &std::ffi::CStr) -> u64 {
    let mut buffer = [0; 1_024];
    let Some(ticks) = procfs::read(path, &mut buffer).and_then(start_ticks) else {
        return 0;
    };
    // SAFETY: sysconf only reads its argument.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let tick_ns = u64::try_from(per_second)
        .ok()
        .and_then(|per_second| 1_000_000_000_u64.checked_div(per_second))
        .unwrap_or(TICK_NS);
    // The kernel shows it in the reader's time namespace.
    crate::clock::real::to_host_ns(ticks.saturating_mul(tick_ns))
}

/// Field 22. The name in field 2 may hold anything, parentheses, spaces and line ends included, so
/// fields are counted from the last parenthesis.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    const FIELDS_FROM_STATE_TO_START: usize = 22 - 3;
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let start = stat[name_end + 1..]
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .nth(FIELDS_FROM_STATE_TO_START)?;
    std::str::from_utf8(start).ok()?.parse().ok()
}

fn boot_id() -> [u64; 2] {
    let mut buffer = [0; 64];
    procfs::read(c"/proc/sys/kernel/random/boot_id", &mut buffer)
        .and_then(parse_boot_id)
        .unwrap_or([0, 0])
}

/// 32 hexadecimal digits with dashes anywhere.
fn parse_boot_id(text: &[u8]) -> Option<[u64; 2]> {
    let text = text.trim_ascii();
    let mut value: u128 = 0;
    let mut digits = 0;
    for &byte in text.iter().filter(|&&byte| byte != b'-') {
        value = (value << 4) | u128::from(char::from(byte).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then_some([(value >> 64) as u64, value as u64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_process_name() {
        let fields = "S 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 11 12";
        for name in ["sh", "a b", "a) S 1 (b", "))))", "", "new\nline)"] {
            let stat = format!("42 ({name}) {fields}\n");
            assert_eq!(start_ticks(stat.as_bytes()), Some(987_654), "{name:?}");
        }
        for broken in [
            "",
            "42 (sh",
            "42 (sh) S 1 1",
            "42 (sh) S 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 x",
        ] {
            assert_eq!(start_ticks(broken.as_bytes()), None, "{broken:?}");
        }
    }

    #[test]
    fn a_boot_id_is_128_bits_or_unknown() {
        let id = b"01234567-89ab-cdef-fedc-ba9876543210\n";
        assert_eq!(
            parse_boot_id(id),
            Some([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210])
        );
        for broken in [
            "",
            "0123",
            "g1234567-89ab-cdef-fedc-ba9876543210",
            "01234567-89ab-cdef-fedc-ba98765432100",
        ] {
            assert_eq!(parse_boot_id(broken.as_bytes()), None, "{broken:?}");
        }
    }
}
