//! Resident bytes per limiter key, each contestant in a fresh process.

use crate::Plan;
use crate::contest::{Outcome, median};
use clap::ValueEnum;
use sprag_benches::case::Rate;
use sprag_benches::draw;
use sprag_benches::ours::{Home, Reach};
use sprag_benches::peers;
use sprag_benches::{Failure, Result};
use std::process::Command;

const KEYS: u64 = 1_000_000;
/// It differs by pages, not by chance.
const ROUNDS_MAX: usize = 3;

/// Whose memory.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Contestant {
    Ours,
    Peer,
}

pub(crate) fn compare(plan: Plan) -> Result<Outcome> {
    let rounds = plan.rounds.min(ROUNDS_MAX);
    let mut bytes = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        bytes[0].push(in_a_process("ours")?);
        bytes[1].push(in_a_process("peer")?);
    }
    let [ours, peer] = bytes;
    // `measure` fails unless every key is admitted.
    let admitted = KEYS * rounds as u64;
    Ok(Outcome {
        ours: median(ours),
        peer: median(peer),
        ours_admitted: admitted,
        peer_admitted: admitted,
    })
}

fn in_a_process(contestant: &str) -> Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--resident", contestant])
        .output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{contestant} in a process of its own: {error}").into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Fills one contestant's limiter with a million keys of 16 bytes: by how many bytes a key this
/// process grew, its set-up included.
pub(crate) fn measure(contestant: Contestant) -> Result<f64> {
    let before = resident_bytes()?;
    let after = match contestant {
        Contestant::Ours => {
            let home = Home::open(Reach::Memory, KEYS)?;
            let limiter = home.limiter(Rate::AMPLE)?;
            resident_when_filled(|key| Ok(limiter.check(key, 1)?.is_allowed()))?
        }
        Contestant::Peer => {
            let limiter = peers::governor_by_default(Rate::AMPLE)?;
            resident_when_filled(|key| Ok(limiter.check_key(key).is_ok()))?
        }
    };
    Ok(after.saturating_sub(before) as f64 / KEYS as f64)
}

/// Checks each key once; resident memory after that, while the limiter is still there.
fn resident_when_filled(check: impl Fn(&String) -> Result<bool>) -> Result<u64> {
    let mut admitted = 0;
    for rank in 0..KEYS {
        admitted += u64::from(check(&draw::text(&draw::key(rank)))?);
    }
    if admitted != KEYS {
        return Err(format!("{admitted} of {KEYS} keys admitted").into());
    }
    resident_bytes()
}

/// Resident memory of this process.
fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .map(|kib| kib * 1_024)
        .ok_or_else(|| Failure::from("/proc/self/status does not say how much is resident"))
}
