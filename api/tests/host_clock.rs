//! Clocks against the kernel's, in forked children and across time namespaces.

#![cfg(target_os = "linux")]

mod support;

use sprag::clock::{Clock, ERROR_NS_MAX};
use sprag::host::identity::{ProcessIdentity, random_u64};
use std::process::Command;
use support::{BOTH, check_in_child};

/// How often `now_ns` was outside its stated error, and how far at most; also the widest seen inside.
#[derive(Clone, Copy, Debug, Default)]
struct Strays {
    outside: u64,
    farthest_ns: u64,
}

/// The kernel's time is read before and after, so that an interruption in between widens what is
/// allowed and never what is measured. Async-signal-safe.
fn strays(clock: &Clock, readings: u32) -> Strays {
    let mut strays = Strays::default();
    for _ in 0..readings {
        let before = clock.precise_ns();
        let now = clock.now_ns();
        let after = clock.precise_ns();
        let off = before.saturating_sub(now).max(now.saturating_sub(after));
        strays.farthest_ns = strays.farthest_ns.max(off);
        strays.outside += u64::from(off > ERROR_NS_MAX);
    }
    strays
}

#[test]
fn the_fast_clock_stays_within_its_stated_error_of_the_kernels_on_every_thread() {
    let clock = Clock::host().expect("a host clock");
    let all: Vec<Strays> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| strays(&clock, 1_000_000)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a reader panicked"))
            .collect()
    });
    println!("reads the counter: {}, {all:?}", clock.reads_counter());
    assert!(all.iter().all(|one| one.outside == 0), "{all:?}");
}

#[test]
fn the_counter_is_read_exactly_where_the_kernel_keeps_time_by_it() {
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let expected = cfg!(target_arch = "x86_64")
        && source.trim() == "tsc"
        && processor.contains(" constant_tsc ")
        && processor.contains(" nonstop_tsc ");
    let clock = Clock::host().expect("a host clock");
    assert_eq!(clock.reads_counter(), expected, "source {source:?}");
}

#[test]
fn a_clock_goes_on_in_a_forked_child() {
    let clock = Clock::host().expect("a host clock");
    let warm = strays(&clock, 100_000);
    assert_eq!(warm.outside, 0, "{warm:?}");
    for fork in BOTH {
        let before = clock.precise_ns();
        check_in_child(fork, || {
            if clock.now_ns() + ERROR_NS_MAX < before {
                return 1;
            }
            i32::from(strays(&clock, 100_000).outside != 0) * 2
        });
    }
}

#[test]
fn unix_time_is_the_systems() {
    // A clock step in between would break the order; a day allows for any but a deliberate one.
    const DAY_NS: u64 = 86_400_000_000_000;
    let clock = Clock::host().expect("a host clock");
    let since = |time: std::time::SystemTime| {
        time.duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64)
    };
    let before = since(std::time::SystemTime::now());
    let now = clock.unix_ns();
    let after = since(std::time::SystemTime::now());
    assert!(before <= now + DAY_NS && now <= after + DAY_NS);
}

const BOOT_TIME_OFFSETS: [&str; 3] = ["100000", "31536000", "-3"];

/// Runs the helper test `name` of this program in a time namespace of its own, or says why it can't.
fn in_time_namespace(offset: &str, name: &str) -> Option<String> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["-Ur", "-T", "--boottime", offset]);
        command
    };
    match unshare().arg("true").output() {
        Ok(tried) if tried.status.success() => {}
        Ok(tried) => {
            eprintln!(
                "skipped: unshare -Ur -T --boottime {offset} says: {}",
                String::from_utf8_lossy(&tried.stderr).trim()
            );
            return None;
        }
        Err(error) => {
            eprintln!("skipped: cannot run unshare: {error}");
            return None;
        }
    }
    let this_program = std::env::current_exe().expect("this test program");
    let ran = unshare()
        .arg(this_program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(IN_NAMESPACE, "1")
        .output()
        .expect("unshare ran before");
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success(),
        "{output}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Some(output)
}

/// Set in a process that `in_time_namespace` started.
const IN_NAMESPACE: &str = "SPRAG_TEST_IN_TIME_NAMESPACE";

fn number_after(label: &str, output: &str) -> u64 {
    let rest = output
        .split_once(label)
        .unwrap_or_else(|| panic!("no {label} in {output}"))
        .1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn processes_in_different_time_namespaces_agree_on_one_host_time() {
    let clock = Clock::host().expect("a host clock");
    for offset in BOOT_TIME_OFFSETS {
        let before = clock.precise_ns();
        let Some(output) = in_time_namespace(offset, "helper_shows_host_time") else {
            return;
        };
        let after = clock.precise_ns();
        for label in ["precise=", "first=", "later="] {
            let inside = number_after(label, &output);
            assert!(
                before <= inside + ERROR_NS_MAX && inside <= after + ERROR_NS_MAX,
                "offset {offset}: {label}{inside} is outside {before} to {after}"
            );
        }
    }
}

#[test]
fn a_process_says_when_it_started_in_the_hosts_time_in_every_time_namespace() {
    /// The kernel's tick, in which it tells when a process started.
    const TICK_NS: u64 = 10_000_000;
    let this = ProcessIdentity::of_this_process().expect("this process");
    let clock = Clock::host().expect("a host clock");
    assert_eq!(this.pid, std::process::id());
    assert_ne!(this.boot_id, [0, 0]);
    assert_ne!(this.pid_namespace, 0);
    assert!(this.start_ns > 0 && this.start_ns <= clock.precise_ns() + TICK_NS);
    for offset in BOOT_TIME_OFFSETS {
        let before = clock.precise_ns();
        let Some(output) = in_time_namespace(offset, "helper_shows_host_time") else {
            return;
        };
        let started: u64 = number_after("start=", &output);
        assert!(
            before <= started + TICK_NS && started <= clock.precise_ns() + TICK_NS,
            "offset {offset}: {started} is not after {before}"
        );
        assert_eq!(number_after("boot_high=", &output), this.boot_id[0]);
    }
}

#[test]
fn helper_shows_host_time() {
    if std::env::var_os(IN_NAMESPACE).is_none() {
        return;
    }
    let clock = Clock::host().expect("a host clock");
    println!("precise={} first={} ", clock.precise_ns(), clock.now_ns());
    let strays = strays(&clock, 200_000);
    assert_eq!(strays.outside, 0, "{strays:?}");
    println!("later={} ", clock.now_ns());
    let this = ProcessIdentity::of_this_process().expect("this process");
    println!("boot_high={} start={} ", this.boot_id[0], this.start_ns);
}

#[test]
fn a_process_that_prepared_another_time_namespace_for_its_children_keeps_its_own_offset() {
    const NOT_ALLOWED: i32 = 77;
    let clock = Clock::host().expect("a host clock");
    let child = support::start_child(support::Fork::Libc, || {
        let before = clock.precise_ns();
        if !prepare_time_namespace() {
            return NOT_ALLOWED;
        }
        let Ok(again) = Clock::host() else { return 1 };
        let now = again.precise_ns();
        i32::from(!(before <= now && now <= clock_gettime_boottime())) * 2
    });
    match support::wait_for(child) {
        Ok(NOT_ALLOWED) => eprintln!("skipped: this user may not unshare a time namespace"),
        outcome => assert_eq!(outcome, Ok(0)),
    }
}

#[test]
fn a_process_between_two_time_namespaces_is_told_so() {
    if let Some(output) = in_time_namespace("50", "helper_prepares_a_second_time_namespace") {
        assert!(
            output.contains("open the space in a child of it"),
            "{output}"
        );
    }
}

#[test]
fn helper_prepares_a_second_time_namespace() {
    if std::env::var_os(IN_NAMESPACE).is_none() {
        return;
    }
    let clock = Clock::host().expect("a host clock");
    let before = clock.precise_ns();
    check_in_child(support::Fork::Libc, || {
        if !prepare_time_namespace() {
            return 1;
        }
        let is_told = matches!(
            Clock::host(),
            Err(sprag::host::HostError::TimeNamespaceUnsettled { .. })
        );
        // What was open keeps the right time.
        i32::from(!is_told || clock.precise_ns() < before) * 2
    });
    let error = sprag::host::HostError::TimeNamespaceUnsettled {
        ours: 1,
        childrens: 2,
    };
    println!("{error}");
}

/// A new time namespace for the caller's children, an hour ahead. Async-signal-safe.
fn prepare_time_namespace() -> bool {
    // SAFETY: changes what this process's children will be in. Only a forked child, which has one
    // thread, calls this.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | CLONE_NEWTIME) } != 0 {
        return false;
    }
    let line = b"boottime 3600 0\n";
    // SAFETY: opens, writes `line`, closes.
    unsafe {
        let fd = libc::open(
            c"/proc/self/timens_offsets".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        let written = libc::write(fd, line.as_ptr().cast(), line.len());
        libc::close(fd);
        usize::try_from(written) == Ok(line.len())
    }
}

const CLONE_NEWTIME: libc::c_int = 0x80;

fn clock_gettime_boottime() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[test]
fn random_numbers_differ() {
    let mut drawn: Vec<u64> = (0..64)
        .map(|_| random_u64().expect("the kernel's random numbers"))
        .collect();
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 64);
}
