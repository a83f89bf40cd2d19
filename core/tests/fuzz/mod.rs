//! Fuzzing without instruments: what the fuzz tests share. Owns the corpus, the mutations, the child
//! process and what is printed of a failure; never what is right.
//!
//! ```text
//!  test ──▶ child: regressions, then inputs ──▶ pick one, mutate it, try it ──▶ its outcome is new?
//!    ▲               │                               ▲                              │ keep it
//!    └── its end ────┘ panic, crash, or no progress  └──────────────────────────────┘
//! ```
//!
//! No coverage is measured. An input that leads to an outcome not seen before (which error, where; the
//! shape of a result) joins the corpus instead, so that the inputs work their way in. All of it follows
//! from the seed, so a failure comes again.

// Each test file uses its own part.
#![allow(dead_code)]

use fastrand::Rng;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is mutated and tried.
pub(crate) trait Input: Clone + Send + 'static {
    /// Another one near to this: one mutation of it, or a splice with `other`.
    fn mutate(&mut self, other: &Self, dictionary: &[&[u8]], random: &mut Rng);
    /// Smaller ones that may fail in the same way.
    fn simpler(&self) -> Vec<Self>;
    /// Itself as a line of the test's table of regressions.
    fn paste(&self) -> String;
}

/// One fuzz test.
pub(crate) struct Campaign<'a, I> {
    /// The test's name, by which its child process is told to run it.
    pub(crate) test: &'a str,
    /// Valid inputs, from which all others come.
    pub(crate) corpus: Vec<I>,
    /// Inputs that failed once: always tried.
    pub(crate) regressions: Vec<I>,
    /// Pieces that mean something to what is tested.
    pub(crate) dictionary: &'a [&'a [u8]],
    /// How many inputs are tried in the short form.
    pub(crate) inputs: usize,
    /// How many times as many with `SPRAG_SOAK=1`.
    pub(crate) soak_times: usize,
    /// How many inputs are tried together.
    pub(crate) batch: usize,
}

/// Which test the child process is to work for.
const CHILD: &str = "SPRAG_FUZZ_CHILD";
/// A file to which the child writes each batch before it tries it.
const TRACE: &str = "SPRAG_FUZZ_TRACE";
/// Set to see every outcome.
const SHOW: &str = "SPRAG_FUZZ_SHOW";
/// What the child's account of itself begins with.
const MARK: &str = "fuzz: ";
/// Seconds of processor time that no batch takes but one that goes round and round.
const HANG_CPU_S: u64 = 10;
/// And the time that none takes but one that waits for what never comes.
const HANG: Duration = Duration::from_mins(2);
const CORPUS_MAX: usize = 4_096;
/// Attempts at making a failing input smaller.
const SIMPLER_MAX: usize = 300;

impl<I: Input> Campaign<'_, I> {
    /// Tries inputs by `body`, which says what came of one, and panics where that is wrong.
    pub(crate) fn run<O: Ord + Debug>(self, mut body: impl FnMut(&I) -> O) {
        self.run_batched(|inputs| inputs.iter().map(&mut body).collect());
    }

    /// [`run`](Self::run) for a body that takes many inputs at once, and says of each what came of it.
    pub(crate) fn run_batched<O: Ord + Debug>(self, body: impl FnMut(&[I]) -> Vec<O>) {
        if std::env::var(CHILD).is_ok_and(|test| test == self.test) {
            self.work(body);
        } else {
            watch(self.test);
        }
    }

    fn work<O: Ord + Debug>(self, mut body: impl FnMut(&[I]) -> Vec<O>) {
        let mut random = Rng::with_seed(seed(self.test));
        let mut worker = Worker::start();
        let mut outcomes = BTreeSet::new();
        let started = Instant::now();
        for inputs in [&self.regressions, &self.corpus] {
            for some in inputs.chunks(self.batch) {
                outcomes.extend(worker.attempt(some, &mut body));
            }
        }
        let mut corpus = self.corpus;
        let total = self.inputs * if is_soak() { self.soak_times } else { 1 };
        let mut tried = 0;
        while tried < total {
            let inputs: Vec<I> = (0..self.batch)
                .map(|_| {
                    let mut input = pick(&corpus, &mut random).clone();
                    for _ in 0..1 << random.u32(0..4) {
                        let other = pick(&corpus, &mut random);
                        input.mutate(other, self.dictionary, &mut random);
                    }
                    input
                })
                .collect();
            tried += inputs.len();
            let found = worker.attempt(&inputs, &mut body);
            assert_eq!(found.len(), inputs.len(), "an outcome for each input");
            for (outcome, input) in found.into_iter().zip(inputs) {
                if outcomes.insert(outcome) && corpus.len() < CORPUS_MAX {
                    corpus.push(input);
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        let slowest = worker.slowest.0.as_secs_f64();
        println!(
            "\n{MARK}{}: {tried} inputs in {seconds:.1} s ({:.0}/s, the slowest {slowest:.3} s), {} outcomes",
            self.test,
            tried as f64 / seconds,
            outcomes.len(),
        );
        if std::env::var_os(SHOW).is_some() {
            println!("{MARK}  {}", worker.slowest.1);
            for outcome in &outcomes {
                println!("{MARK}  {outcome:?}");
            }
        }
    }
}

/// Half of the time one of the newest, which lie deepest.
fn pick<'c, I>(corpus: &'c [I], random: &mut Rng) -> &'c I {
    let newest = corpus.len().div_ceil(4);
    let from = if random.bool() {
        corpus.len() - newest
    } else {
        0
    };
    &corpus[random.usize(from..corpus.len())]
}

/// Whether the long form is asked for.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("SPRAG_SOAK").is_some_and(|value| value == "1")
}

fn seed(test: &str) -> u64 {
    let round: u64 = std::env::var("SPRAG_SOAK_ROUND")
        .ok()
        .and_then(|round| round.parse().ok())
        .unwrap_or(0);
    test.bytes()
        .fold(round.wrapping_mul(0x9e37_79b9_7f4a_7c15), |seed, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// What is being tried, and its number.
type Current<I> = Option<(u64, Vec<I>)>;

/// Tries inputs in the child process, under the eyes of a thread that ends it when it hangs.
struct Worker<I> {
    current: Arc<Mutex<Current<I>>>,
    number: u64,
    trace: Option<std::path::PathBuf>,
    /// The batch that took longest.
    slowest: (Duration, String),
}

impl<I: Input> Worker<I> {
    fn start() -> Self {
        let current = Arc::new(Mutex::new(Current::<I>::None));
        let watched = Arc::clone(&current);
        std::thread::spawn(move || {
            let (mut last, mut since, mut cpu_s) = (0, Instant::now(), 0);
            loop {
                std::thread::park_timeout(Duration::from_secs(1));
                let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((number, inputs)) = &*current else {
                    continue;
                };
                if *number != last {
                    (last, since, cpu_s) = (*number, Instant::now(), processor_seconds());
                }
                if since.elapsed() > HANG || processor_seconds() - cpu_s > HANG_CPU_S {
                    eprintln!("{}", failure("no end is in sight of one of these", inputs));
                    std::process::exit(1);
                }
            }
        });
        Self {
            current,
            number: 0,
            trace: std::env::var_os(TRACE).map(Into::into),
            slowest: (Duration::ZERO, String::new()),
        }
    }

    fn note(&mut self, inputs: Option<&[I]>) {
        self.number += 1;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) =
            inputs.map(|inputs| (self.number, inputs.to_vec()));
    }

    fn attempt<O>(&mut self, inputs: &[I], body: &mut impl FnMut(&[I]) -> Vec<O>) -> Vec<O> {
        if let Some(trace) = &self.trace {
            std::fs::write(
                trace,
                failure("the process was killed by one of these", inputs),
            )
            .unwrap();
        }
        self.note(Some(inputs));
        let started = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| body(inputs)));
        let took = started.elapsed();
        self.note(None);
        if took > self.slowest.0 {
            self.slowest = (took, failure("the slowest", inputs).replace('\n', " "));
        }
        result.unwrap_or_else(|_| {
            let inputs = self.shrink(inputs, body);
            panic!(
                "{}",
                failure("see the panic above; this is enough for it", &inputs)
            );
        })
    }

    /// Fewer and simpler inputs that fail as well.
    fn shrink<O>(&mut self, inputs: &[I], body: &mut impl FnMut(&[I]) -> Vec<O>) -> Vec<I> {
        std::panic::set_hook(Box::new(|_| {}));
        let mut fails = |inputs: &[I]| {
            self.note(Some(inputs));
            let fails = catch_unwind(AssertUnwindSafe(|| body(inputs))).is_err();
            self.note(None);
            fails
        };
        let mut smallest = inputs.to_vec();
        if let Some(one) = inputs.iter().find(|one| fails(std::slice::from_ref(*one))) {
            smallest = vec![one.clone()];
        }
        let mut left = SIMPLER_MAX;
        while let [one] = &smallest[..]
            && let Some(simpler) = one.simpler().into_iter().find(|simpler| {
                left = left.saturating_sub(1);
                left > 0 && fails(std::slice::from_ref(simpler))
            })
        {
            smallest = vec![simpler];
        }
        let _ = std::panic::take_hook();
        smallest
    }
}

/// Processor time of this process; 0 where that is not known.
fn processor_seconds() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the program's name, which may have blanks in it: user and system time are the 12th and 13th.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    // A hundred to the second, on every Linux.
    ticks.flat_map(str::parse::<u64>).sum::<u64>() / 100
}

fn failure<I: Input>(what: &str, inputs: &[I]) -> String {
    let lines: Vec<String> = inputs.iter().map(Input::paste).collect();
    format!(
        "{what}; to be pasted into the test's table of regressions:\n    {}",
        lines.join("\n    ")
    )
}

/// Lets a child process do the work, and fails as it does.
fn watch(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let child = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--nocapture", "--quiet"])
            .env(CHILD, test);
        command
    };
    let output = child().output().unwrap();
    let (out, err) = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .into();
    if output.status.success() {
        let account: Vec<&str> = out.lines().filter(|line| line.starts_with(MARK)).collect();
        assert!(!account.is_empty(), "no test here is called {test}");
        println!("{}", account.join("\n"));
        return;
    }
    let mut traced = String::new();
    if output.status.code().is_none() {
        // It takes the same way once more, and leaves a trace of it.
        let _ = child().env(TRACE, &trace).output();
        traced = std::fs::read_to_string(&trace).unwrap_or_default();
    }
    panic!("the child ended with {}\n{err}\n{traced}", output.status);
}

/// Bytes as they are: text, a file, words.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    /// One of each.
    pub(crate) fn all(inputs: &[&[u8]]) -> Vec<Self> {
        inputs.iter().map(|input| Self(input.to_vec())).collect()
    }
}

impl Input for Bytes {
    fn mutate(&mut self, other: &Self, dictionary: &[&[u8]], random: &mut Rng) {
        mutate_bytes(&mut self.0, &other.0, dictionary, random);
    }

    fn simpler(&self) -> Vec<Self> {
        simpler_bytes(&self.0).into_iter().map(Self).collect()
    }

    fn paste(&self) -> String {
        format!("{},", literal(&self.0))
    }
}

/// Bytes as Rust writes them.
pub(crate) fn literal(bytes: &[u8]) -> String {
    format!("b\"{}\"", bytes.escape_ascii())
}

/// The same bytes without some of them: halves first, then less and less.
pub(crate) fn simpler_bytes(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut simpler = Vec::new();
    let mut len = bytes.len().div_ceil(2);
    while len > 0 {
        for at in (0..bytes.len()).step_by(len) {
            let end = (at + len).min(bytes.len());
            simpler.push([&bytes[..at], &bytes[end..]].concat());
        }
        len /= 2;
    }
    simpler
}

/// Longer inputs find nothing that these don't.
const BYTES_MAX: usize = 1 << 16;

/// One mutation.
pub(crate) fn mutate_bytes(
    bytes: &mut Vec<u8>,
    other: &[u8],
    dictionary: &[&[u8]],
    random: &mut Rng,
) {
    let at = random.usize(..=bytes.len());
    let len = 1 << random.u32(0..7) >> random.u32(0..4);
    let end = (at + len).min(bytes.len());
    match random.u32(..12) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.u32(..8),
        1 if at < bytes.len() => bytes[at] = random.u8(..),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            // Once more, some of the time very often.
            let piece = bytes[at..end].to_vec();
            let times = if random.u32(..8) == 0 {
                random.usize(1..200)
            } else {
                1
            };
            bytes.splice(end..end, piece.repeat(times));
        }
        5 => {
            let from = random.usize(..=other.len());
            let tail = bytes.split_off(at);
            bytes.extend_from_slice(&other[from..]);
            if random.bool() {
                bytes.extend(tail);
            }
        }
        6 | 7 if !dictionary.is_empty() => {
            let token = dictionary[random.usize(..dictionary.len())];
            let end = if random.bool() { end } else { at };
            bytes.splice(at..end, token.iter().copied());
        }
        8 => {
            let number = interesting(random).to_string();
            // In place of a number, where there is one.
            let digits = |from: usize| {
                bytes[from..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count()
            };
            let from = (0..bytes.len())
                .filter(|&from| digits(from) > 0)
                .find(|_| random.bool());
            let range = from.map_or(at..at, |from| from..from + digits(from));
            bytes.splice(range, number.bytes());
        }
        9 if bytes.len() >= 8 => {
            let at = random.usize(..=bytes.len() - 8) & if random.bool() { !7 } else { !0 };
            bytes[at..at + 8].copy_from_slice(&interesting(random).to_le_bytes());
        }
        10 if bytes.len() >= 16 => {
            let words = bytes.len() / 8;
            let [a, b] = [(); 2].map(|()| random.usize(..words) * 8);
            for i in 0..8 {
                bytes.swap(a + i, b + i);
            }
        }
        11 if !bytes.is_empty() => {
            let [a, b] = [(); 2].map(|()| random.usize(..bytes.len()));
            bytes.swap(a, b);
        }
        _ => bytes.insert(at, random.u8(..)),
    }
    bytes.truncate(BYTES_MAX);
}

/// Any word, among them more of those that look like an index, a count or a phase, or that are next to
/// an overflow of the word or of one of its parts.
pub(crate) fn interesting(random: &mut Rng) -> u64 {
    match random.u32(..8) {
        0 => random.u64(..),
        1 => random.u64(..) >> random.u32(..64),
        2 => !(random.u64(..) >> random.u32(..64)),
        3 => u64::MAX,
        4 => u64::from(u32::MAX) | random.u64(..) << 32,
        5 => random.u64(..) & 7 | random.u64(..) << 32,
        6 => (1 << random.u32(..64)) - u64::from(random.bool()),
        _ => 10_u64.pow(random.u32(..20)) + random.u64(..2),
    }
}
