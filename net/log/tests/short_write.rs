//! A write of which the system takes less than all, as it does just before there is no room: by itself in its process, since the
//! bound that brings it about is the process's.

use sprag_log::{Disk, DiskFile, Fault, Operation, RealDisk};

/// No file has more bytes than that.
const BOUND: u64 = 10_000;

#[test]
fn what_is_taken_in_part_is_asked_for_again_and_the_reason_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let file = disk.create("a", BOUND).unwrap();
    let limit = libc::rlimit {
        rlim_cur: BOUND,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit lives as long as the call, and the signal that tells of it is ignored.
    let bound = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit)
    };
    assert_eq!(bound, 0);
    let error = file.write(BOUND - 1_000, &[7; 3_000]).unwrap_err();
    // Not that it was short, which would be a failing disk.
    assert_eq!(
        (error.operation, error.fault),
        (Operation::Write, Fault::Full)
    );
    let mut taken = [0; 1_000];
    file.read(BOUND - 1_000, &mut taken).unwrap();
    assert_eq!(taken, [7; 1_000]);
    file.write(0, &[8; 1_000]).unwrap();
}
