//! What the disk takes for itself: without it no figure of a cluster that syncs means anything.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const UNIT: usize = 4_096;
const UNITS: u64 = 1_024;
const TIMES: u64 = 500;

/// Tells how long it takes to write over a unit of a file that is there and sync it: alone, and three at once, as three
/// nodes on one disk do.
pub(crate) fn tell(directory: &Path) {
    let alone = overwrite(directory, 0);
    let threads: Vec<_> = (1..=3)
        .map(|number| {
            let directory = directory.to_owned();
            std::thread::spawn(move || overwrite(&directory, number))
        })
        .collect();
    let mut together: Vec<f64> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    together.sort_by(f64::total_cmp);
    println!(
        "disk: a 4 KiB overwrite and its sync take {alone:.0} us, three at once {:.0} us (medians)",
        together[1]
    );
}

fn overwrite(directory: &Path, number: u32) -> f64 {
    let path = directory.join(format!("sprag-bench-{}-{number}", std::process::id()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let unit = [1; UNIT];
    for at in 0..UNITS {
        file.write_all_at(&unit, at * UNIT as u64).unwrap();
    }
    file.sync_all().unwrap();
    let mut took_us: Vec<f64> = (0..TIMES)
        .map(|at| {
            let begin = Instant::now();
            file.write_all_at(&unit, at % UNITS * UNIT as u64).unwrap();
            file.sync_data().unwrap();
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took_us.sort_by(f64::total_cmp);
    took_us[took_us.len() / 2]
}
