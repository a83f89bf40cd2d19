//! Files that once were regions: owns the valid ones that all begin with, and how one is spoilt.

use crate::everything::{CAPACITY, JOINT_LIMITS, KEYS, NAMES, use_everything};
use crate::fuzz::{Input, interesting, literal};
use crate::support::*;
use fastrand::Rng;
use sprag_core::admission::Wants;
use sprag_core::key::Hasher;
use sprag_core::lock::Attempt;
use sprag_core::region::Caps;
use sprag_core::session::Process;
use sprag_core::{Engine, Limit, SessionId};
use std::path::Path;
use std::sync::LazyLock;

/// A valid region, and what was done to its file.
#[derive(Clone)]
pub(crate) struct Image {
    /// An index into [`BASES`].
    base: usize,
    /// What was written over it, and where.
    edits: Vec<(usize, Vec<u8>)>,
    /// Its length, if that was changed.
    len: Option<usize>,
    /// Whether the header's checksum was made to fit.
    is_sealed: bool,
    /// What everything that is done with it follows from.
    pub(crate) seed: u64,
}

/// A line of the table of regressions.
pub(crate) fn image(
    base: &str,
    edits: &[(usize, &[u8])],
    len: Option<usize>,
    is_sealed: bool,
    seed: u64,
) -> Image {
    let base = BASES.iter().position(|(name, _)| *name == base);
    Image {
        base: base.expect("the name of a base"),
        edits: edits
            .iter()
            .map(|(at, bytes)| (*at, bytes.to_vec()))
            .collect(),
        len,
        is_sealed,
        seed,
    }
}

/// All valid regions.
pub(crate) fn bases() -> Vec<Image> {
    (0..BASES.len())
        .map(|base| Image {
            base,
            edits: Vec::new(),
            len: None,
            is_sealed: false,
            seed: base as u64,
        })
        .collect()
}

impl Image {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = FILES[self.base].clone();
        if let Some(len) = self.len {
            bytes.resize(len, 0);
        }
        for (at, edit) in &self.edits {
            let end = bytes.len().min(at + edit.len());
            if let Some(part) = bytes.get_mut(*at..end) {
                part.copy_from_slice(&edit[..part.len()]);
            }
        }
        if self.is_sealed && bytes.len() >= CHECKSUM + 8 {
            let checksum = Hasher::new(0).hash(&bytes[..CHECKSUM]);
            bytes[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_le_bytes());
        }
        bytes
    }

    /// Somewhere to spoil: as a rule in the header, or at or near a word that is not zero.
    fn place(&self, random: &mut Rng) -> usize {
        let used = &USED[self.base];
        match random.u32(..8) {
            0 => random.usize(..CHECKSUM),
            1 => random.usize(..384),
            2 => random.usize(..FILES[self.base].len() - 8),
            3 | 4 => used[random.usize(..used.len())].saturating_sub(64) + random.usize(..128),
            _ => used[random.usize(..used.len())] + random.usize(..8),
        }
    }
}

impl Input for Image {
    fn mutate(&mut self, other: &Self, _: &[&[u8]], random: &mut Rng) {
        let here = &FILES[self.base];
        let at = self.place(random);
        let word_at = at & !7;
        let word = |at: usize| here[at..at + 8].to_vec();
        match random.u32(..14) {
            0 => self.edits.push((at, vec![here[at] ^ 1 << random.u32(..8)])),
            1 => self.edits.push((at, vec![random.u8(..)])),
            // A phase, kind or count: small, and in the lowest bits.
            2 | 3 => self
                .edits
                .push((word_at, vec![here[word_at] & !7 | random.u8(..8)])),
            4 | 5 => {
                let value = interesting(random).to_le_bytes();
                self.edits.push((word_at, value.to_vec()));
            }
            6 => {
                let value = interesting(random) as u32;
                self.edits.push((at & !3, value.to_le_bytes().to_vec()));
            }
            7 => {
                let from = self.place(random) & !7;
                self.edits.push((word_at, word(from)));
                self.edits.push((from, word(word_at)));
            }
            // A line of one region in another, or in another place.
            8 | 9 => {
                let there = &FILES[other.base];
                let from = if random.bool() {
                    at
                } else {
                    other.place(random)
                };
                let len = [32, 64, 128, 4_096][random.usize(..4)];
                let from = from.min(there.len() - 8) / 32 * 32;
                let line = there[from..there.len().min(from + len)].to_vec();
                self.edits.push((at / 32 * 32, line));
            }
            10 => {
                let mut edits = other.edits.clone();
                edits.truncate(random.usize(..=edits.len()));
                self.edits.extend(edits);
            }
            11 => {
                let len = here.len();
                let near = [0, 8, 255, 256, 4_095, 4_096, len - 1, len + 1, len + 4_096];
                self.len = match random.u32(..4) {
                    0 => Some(near[random.usize(..near.len())]),
                    1 => Some(random.usize(..2 * len)),
                    _ => None,
                };
            }
            // Other caps, and the length that goes with them.
            12 => {
                let (caps, len) = &OTHER_CAPS[random.usize(..OTHER_CAPS.len())];
                self.edits.push((24, caps.clone()));
                self.len = Some(*len);
                self.is_sealed = true;
            }
            _ => self.seed = random.u64(..),
        }
        self.is_sealed |= random.u32(..4) == 0;
        if self.edits.len() > 64 {
            self.edits.drain(..32);
        }
    }

    fn simpler(&self) -> Vec<Self> {
        let mut simpler = Vec::new();
        let mut count = self.edits.len().div_ceil(2);
        while count > 0 {
            for at in (0..self.edits.len()).step_by(count) {
                let mut fewer = self.clone();
                fewer.edits.drain(at..(at + count).min(self.edits.len()));
                simpler.push(fewer);
            }
            count /= 2;
        }
        for (index, (at, edit)) in self.edits.iter().enumerate() {
            let half = edit.len() / 2;
            if half > 0 {
                for (at, part) in [(*at, &edit[..half]), (at + half, &edit[half..])] {
                    let mut shorter = self.clone();
                    shorter.edits[index] = (at, part.to_vec());
                    simpler.push(shorter);
                }
            }
        }
        if self.len.is_some() {
            simpler.push(Self {
                len: None,
                ..self.clone()
            });
        }
        if self.is_sealed {
            simpler.push(Self {
                is_sealed: false,
                ..self.clone()
            });
        }
        simpler
    }

    fn paste(&self) -> String {
        let edits: Vec<String> = self
            .edits
            .iter()
            .map(|(at, bytes)| format!("({at}, {})", literal(bytes)))
            .collect();
        format!(
            "image({:?}, &[{}], {:?}, {}, {}),",
            BASES[self.base].0,
            edits.join(", "),
            self.len,
            self.is_sealed,
            self.seed
        )
    }
}

/// A region's name, and how its file is made.
type Base = (&'static str, fn(&Path));

/// The valid regions by name, each with what has been done in it.
const BASES: [Base; 13] = [
    ("fresh", |path| drop(roomy(path))),
    ("in use", in_use),
    ("of another boot", in_use),
    ("long names", long_names),
    ("a limit changed", |path| change_limit(path, usize::MAX)),
    ("a limit half changed", |path| change_limit(path, 3)),
    ("waiters", waiters),
    ("left in the middle", left_in_the_middle),
    ("shared", shared),
    ("a call left", |path| call_left(path, UNDECIDED)),
    ("a call left decided", |path| call_left(path, DECIDED)),
    ("limited", limited),
    ("joint limits", joint_limits),
];

/// Which of them is opened as one that the machine's last boot left behind.
const OF_ANOTHER_BOOT: usize = 2;

impl Image {
    /// The boot in which to open it.
    pub(crate) fn boot_id(&self) -> [u64; 2] {
        if self.base == OF_ANOTHER_BOOT || self.seed.is_multiple_of(8) {
            [3, 4]
        } else {
            BIRTH.boot_id
        }
    }
}

/// The files of the bases.
static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let directory = memory_directory();
    let path = directory.path().join("region");
    BASES
        .iter()
        .map(|(_, make)| {
            make(&path);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            bytes
        })
        .collect()
});

/// Where in each of the files there is a word that is not zero.
static USED: LazyLock<Vec<Vec<usize>>> = LazyLock::new(|| {
    let used = |file: &Vec<u8>| {
        (0..file.len() - 72)
            .step_by(8)
            .filter(|&at| file[at..at + 8] != [0; 8])
            .collect()
    };
    FILES.iter().map(used).collect()
});

/// The words of other caps, and how long a file is with them.
static OTHER_CAPS: LazyLock<Vec<(Vec<u8>, usize)>> = LazyLock::new(|| {
    let directory = memory_directory();
    let path = directory.path().join("region");
    [
        [1, 1, 1, 1, 1, 1, 1],
        [1_000, 1, 4_095, 1, 1, 1, 500],
        [1, 2_000, 1, 500, 1, 300, 1],
        [16, 16, 16, 16, 5_000, 16, 16],
        [64, 64, 15, 16, 64, 17, 64],
        [512, 512, 16, 16, 64, 16, 512],
    ]
    .into_iter()
    .map(|caps: [u32; 7]| {
        let mut options = OPTIONS;
        options.caps = Caps {
            objects: caps[0],
            limiter_keys: caps[1],
            sessions: caps[2],
            waiters: caps[3],
            key_chunks: caps[4],
            permits: caps[5],
            joint_keys: caps[6],
        };
        try_open(&path, &options).unwrap();
        let len = std::fs::metadata(&path).unwrap().len();
        std::fs::remove_file(&path).unwrap();
        let words = caps.iter().flat_map(|cap| u64::from(*cap).to_le_bytes());
        (words.collect(), len as usize)
    })
    .collect()
});

/// A directory in memory, where that can be: each image is written anew.
pub(crate) fn memory_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// A region with room for names of every length.
fn roomy(path: &Path) -> Engine {
    let mut options = OPTIONS;
    options.caps.key_chunks = 1_024;
    options.caps.objects = 128;
    try_open(path, &options).unwrap()
}

/// Some of everything, and a session that nobody closes.
fn in_use(path: &Path) {
    let engine = roomy(path);
    let me = session(&engine);
    for name in NAMES {
        acquire(&engine, me, name, 0).unwrap();
        let fence = engine.fence_name(name).unwrap();
        let _ = engine.admit(&fence, me, 0, 7, false).unwrap();
        let counter = engine.counter(name).unwrap();
        engine.counter_add(&counter, -7, me, 0).unwrap();
    }
    let counter = engine.counter(b"striped").unwrap();
    let striped = engine.counter_striped(&counter, me, 0).unwrap();
    for lane in 0..20 {
        engine.striped_add(&striped, lane, 1).unwrap();
    }
    for (i, name) in NAMES.into_iter().enumerate() {
        let once = engine.once_name(name).unwrap();
        let begun = engine.begin(&once, me, 0, SECOND).unwrap();
        let sprag_core::once::Begun::Started(attempt) = begun else {
            panic!("{begun:?}");
        };
        match i {
            0 => {}
            1 => drop(engine.abandon(&attempt, 0, false)),
            2 => drop(engine.detach_attempt(&attempt, 0, 30 * SECOND).unwrap()),
            _ => assert!(
                engine
                    .finish(&attempt, me, name, 0, 3_600 * SECOND)
                    .unwrap()
            ),
        }
    }
    fill_limiter(&engine, me);
    for name in [&b"a"[..], b"orders"] {
        let name = engine.lock_name(name).unwrap();
        engine.break_lock(&name, Process::default(), SECOND);
    }
    let hold = acquire(&engine, me, b"script", 0).unwrap();
    let _ = engine.transfer(&hold, SessionId::DETACHED, 0, 30 * SECOND);
}

fn fill_limiter(engine: &Engine, me: SessionId) {
    let limit: Limit = "10/h".parse().unwrap();
    let limiter = engine.open_limiter(b"api", limit, false, me, 0).unwrap();
    for key in KEYS {
        let _ = engine.check(&limiter, key, 3, me, SECOND).unwrap();
    }
    for (key, own) in [(KEYS[0], "30/h"), (KEYS[1], "30/h"), (b"none", "0/h")] {
        let own = own.parse().unwrap();
        engine
            .set_override(&limiter, key, own, me, || SECOND)
            .unwrap();
    }
}

/// A call of several limits whose process died in it.
fn call_left(path: &Path, phase: u64) {
    let engine = roomy(path);
    let me = session(&engine);
    fill_limiter(&engine, me);
    let limiter = engine.limiter(b"api").unwrap().unwrap();
    leave_call(&engine, path, &limiter, [KEYS[0], KEYS[1]], 1, me, phase);
}

/// Many more operations than there is room for.
fn long_names(path: &Path) {
    use_everything(&roomy(path), 100, &mut Rng::with_seed(1));
    let engine = roomy(path);
    let me = session(&engine);
    for len in (25..300).step_by(20) {
        let _ = acquire(&engine, me, &vec![b'n'; len], SECOND);
    }
}

/// Changes a limit under its keys; whoever does it is gone when it has asked for the time so many
/// times.
fn change_limit(path: &Path, times: usize) {
    let engine = roomy(path);
    let me = session(&engine);
    fill_limiter(&engine, me);
    let to: Limit = "100/s;burst=7".parse().unwrap();
    let asked = std::cell::Cell::new(0);
    let clock = || {
        asked.set(asked.get() + 1);
        if asked.get() > times {
            std::panic::resume_unwind(Box::new(()));
        }
        2 * SECOND
    };
    let change = std::panic::AssertUnwindSafe(|| {
        let _ = engine.open_limiter_by_clock(b"api", to, true, me, clock);
    });
    assert_eq!(std::panic::catch_unwind(change).is_err(), times < 100);
}

fn waiters(path: &Path) {
    let engine = roomy(path);
    let me = session(&engine);
    for name in [NAMES[0], NAMES[4]] {
        acquire(&engine, me, name, 0).unwrap();
        let name = engine.lock_name(name).unwrap();
        for _ in 0..3 {
            engine.enqueue(&name, me, 0, 60 * SECOND).unwrap();
        }
    }
    // The session stays open, as that of a process which was killed.
}

/// Keys under limits declared together, one of them as it is left by one who is killed once it has closed it.
fn joint_limits(path: &Path) {
    let engine = roomy(path);
    let me = session(&engine);
    let limits = JOINT_LIMITS.map(|limit| limit.parse().unwrap());
    let joint = engine.open_joint(b"joint", &limits, me, 0).unwrap();
    for now_ns in [0, 1, SECOND, 100 * SECOND] {
        for key in KEYS {
            let _ = engine.check_joint(&joint, key, 1, me, now_ns).unwrap();
        }
    }
    let bytes = std::fs::read(path).unwrap();
    let padded = [KEYS[0], &[0; 15]].concat();
    let keys = bytes.windows(16).enumerate();
    // In a joint key's cell the first value follows, which is 0 of no key that was ever used.
    let mut keys =
        keys.filter(|(at, window)| *window == padded && bytes[at + 16..at + 32] != [0; 16]);
    let cell = keys.next().unwrap().0 - 16;
    scribble(path, cell as u64 + 1, &[bytes[cell + 1] | 1]);
    assert_eq!(engine.check_region().findings, []);
}

/// Shares, permits, one who wants alone what it shares, and others who wait.
fn shared(path: &Path) {
    let engine = roomy(path);
    let me = session(&engine);
    let permits = Wants::permits(2, CAPACITY).unwrap();
    for bytes in [NAMES[0], NAMES[4]] {
        let name = engine.lock_name(bytes).unwrap();
        for wants in [Wants::Shared, permits] {
            let [first, _] =
                [(); 2].map(
                    |()| match engine.try_get(&name, wants, me, 0, 30 * SECOND).unwrap() {
                        Attempt::Granted(grant) => grant,
                        Attempt::Busy => panic!("there is room"),
                    },
                );
            // Of permits it is refused.
            let _ = engine.try_upgrade(&first, 0, 30 * SECOND);
            engine
                .enqueue_for(std::slice::from_ref(&name), wants, me, 0, 60 * SECOND)
                .unwrap();
        }
        engine.enqueue(&name, me, 0, 60 * SECOND).unwrap();
    }
}

/// Keys of limiters, of every length, of which some are held and others waited for.
fn limited(path: &Path) {
    let engine = roomy(path);
    let me = session(&engine);
    for (bytes, capacity) in [(NAMES[0], CAPACITY), (NAMES[5], 1)] {
        let limiter = engine
            .open_concurrency(bytes, capacity, false, me, 0, |_| {})
            .unwrap();
        for bytes in [NAMES[0], NAMES[2], NAMES[5]] {
            let key = engine.slots_name(limiter, bytes).unwrap();
            let wants = Wants::slots(capacity, limiter).unwrap();
            let attempt = engine.try_get(&key, wants, me, 0, 30 * SECOND).unwrap();
            assert!(matches!(attempt, Attempt::Granted(_)));
            engine
                .enqueue_for(&[key], wants, me, 0, 60 * SECOND)
                .unwrap();
        }
    }
}

/// Cells as those leave them who are killed within an insertion or a reclaim.
fn left_in_the_middle(path: &Path) {
    in_use(path);
    let engine = roomy(path);
    let bytes = std::fs::read(path).unwrap();
    for (name, phase) in [(NAMES[0], 1), (NAMES[1], 3)] {
        let padded = [name, &[0; 24]].concat();
        // From the end: the ring of breaks has names too. A short one lies 24 bytes into its cell.
        let at = bytes
            .windows(24)
            .rposition(|window| window == &padded[..24]);
        let cell = at.unwrap() - 24;
        scribble(path, cell as u64, &[bytes[cell] & !7 | phase]);
    }
    assert_eq!(engine.check_region().claimed, 1);
    assert_eq!(engine.check_region().retired, 1);
}
