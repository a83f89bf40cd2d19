//! The worker in Rust; `page.h` has the rules, and what is `enum` and `#define` there is `const` here.

use sprag::{Fence, Limiter, Lock, Locks, Semaphore, Space};
use std::error::Error;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const LOCKS: usize = 4;
const SEATS_MAX: usize = 16;
const PERMITS: u32 = 3;

const STOP: usize = 0;
const SEATS: usize = 1;
const INSIDE: usize = 8;
const TOKEN: usize = INSIDE + LOCKS;
const COUNT: usize = TOKEN + LOCKS;
const SEAT: usize = 32;
const SEAT_WORDS: usize = 16;
const SEAT_ID: usize = 0;
const HAS: usize = 1;
const FEW_ADMITTED: usize = 2;
const RATE_ADMITTED: usize = 3;
const ADDED: usize = 4;
const SHARED: usize = 5;
const SNAPSHOTS: usize = 6;
const COUNTED: usize = 8;
const KILLED: usize = SEAT + SEATS_MAX * SEAT_WORDS;

const FEW_LIMIT: &str = "1000/366d";
const RATE_LIMIT: &str = "500/second;burst=50";
const KEY: &str = "key";

type Outcome = Result<(), Box<dyn Error>>;

/// The page, which all processes share.
struct Page {
    map: memmap2::MmapRaw,
    seat: usize,
    id: u64,
}

impl Page {
    #[allow(
        clippy::cast_ptr_alignment,
        reason = "a mapping is aligned as a page is"
    )]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at * 8 < self.map.len());
        // SAFETY: within the mapping, which is aligned as a page is; every word of it is used by atomic accesses alone.
        unsafe { &*self.map.as_ptr().cast::<AtomicU64>().add(at) }
    }

    fn get(&self, at: usize) -> u64 {
        self.word(at).load(SeqCst)
    }

    fn set(&self, at: usize, value: u64) {
        self.word(at).store(value, SeqCst);
    }

    fn of_seat(seat: usize, word: usize) -> usize {
        SEAT + seat * SEAT_WORDS + word
    }

    fn mine(&self, word: usize) -> &AtomicU64 {
        self.word(Self::of_seat(self.seat, word))
    }

    fn count(&self, word: usize) {
        self.mine(word).fetch_add(1, SeqCst);
    }

    fn is_killed(&self, id: u64) -> bool {
        self.get(KILLED + id as usize) != 0
    }

    /// What each seat has, by who sits there, if all of it stood still.
    fn snapshot(&self) -> Option<u64> {
        let seats = 0..self.get(SEATS) as usize;
        let look = || -> Vec<(u64, u64)> {
            let seat = |seat| {
                let id = self.get(Self::of_seat(seat, SEAT_ID));
                (id, self.get(Self::of_seat(seat, HAS)))
            };
            seats.clone().map(seat).collect()
        };
        let (mut has, mut again) = (look(), look());
        for at in seats.clone() {
            if self.is_killed(has[at].0) {
                (has[at].1, again[at].1) = (0, 0);
            }
        }
        (has == again).then(|| has.iter().map(|(_, has)| has % 256).sum())
    }
}

struct Worker {
    page: Page,
    random: fastrand::Rng,
    locks: Vec<Lock<'static>>,
    fences: Vec<Fence>,
    pair: Locks<'static>,
    semaphore: Semaphore<'static>,
    few: Limiter,
    rate: Limiter,
    counter: sprag::Counter<'static>,
}

impl Worker {
    fn open(url: &str, page: Page) -> Result<Self, Box<dyn Error>> {
        let space = Space::open(url)?;
        let name = |lock| format!("lock {lock}");
        let lock = |at| Ok(space.lock(&name(at))?.into_owned());
        let fence = |at| space.fence(&name(at));
        Ok(Self {
            random: fastrand::Rng::with_seed(page.id),
            page,
            locks: (0..LOCKS).map(lock).collect::<sprag::Result<_>>()?,
            fences: (0..LOCKS).map(fence).collect::<sprag::Result<_>>()?,
            pair: space.locks([name(0), name(1)])?.into_owned(),
            semaphore: space.semaphore("permits", PERMITS)?.into_owned(),
            few: space.limiter("few", FEW_LIMIT)?,
            rate: space.limiter("rate", RATE_LIMIT)?,
            counter: space.counter("counter")?.into_owned(),
        })
    }

    /// Now and then lets others run, so that they meet what is held.
    fn let_others_run(&mut self) {
        if self.random.u32(..4) == 0 {
            std::thread::yield_now();
        }
    }

    fn nobody_is_inside(&self, lock: usize) -> Outcome {
        let inside = self.page.get(INSIDE + lock);
        if inside != 0 && !self.page.is_killed(inside) {
            return Err(format!("somebody else is inside: {inside}").into());
        }
        Ok(())
    }

    fn be_inside(&mut self, lock: usize, token: u64) -> Outcome {
        self.nobody_is_inside(lock)?;
        self.page.set(INSIDE + lock, self.page.id);
        let before = self.page.get(TOKEN + lock);
        if token <= before {
            return Err(format!("a token did not rise: {token} after {before}").into());
        }
        self.page.set(TOKEN + lock, token);
        self.fences[lock].admit(token)?;
        let count = self.page.get(COUNT + lock);
        self.let_others_run();
        self.page.set(COUNT + lock, count + 1);
        let inside = self.page.get(INSIDE + lock);
        if inside != self.page.id {
            return Err(format!("somebody else came inside: {inside}").into());
        }
        self.page.set(INSIDE + lock, 0);
        self.page.count(COUNTED + lock);
        Ok(())
    }

    fn alone(&mut self) -> Outcome {
        let at = self.random.usize(..LOCKS);
        let lock = self.locks[at].clone();
        let hold = lock.acquire()?;
        self.be_inside(at, hold.token())?;
        Ok(hold.release()?)
    }

    fn beside_others(&mut self) -> Outcome {
        let at = self.random.usize(..LOCKS);
        let lock = self.locks[at].clone();
        let hold = lock.acquire_shared()?;
        self.let_others_run();
        self.nobody_is_inside(at)?;
        hold.release()?;
        self.page.count(SHARED);
        Ok(())
    }

    fn two_at_once(&mut self) -> Outcome {
        let pair = self.pair.clone();
        let hold = pair.acquire()?;
        for (lock, token) in hold.tokens().to_vec().into_iter().enumerate() {
            self.be_inside(lock, token)?;
        }
        Ok(hold.release()?)
    }

    fn with_permits(&mut self) -> Outcome {
        let permits = self.random.u32(1..=2);
        let used = self.page.mine(HAS).load(SeqCst) / 256 + 1;
        let semaphore = self.semaphore.clone();
        let hold = semaphore.acquire(permits)?;
        let has = used * 256 + u64::from(permits);
        self.page.mine(HAS).store(has, SeqCst);
        self.let_others_run();
        if let Some(sum) = self.page.snapshot() {
            if sum > u64::from(PERMITS) {
                return Err(format!("more permits are out than there are: {sum}").into());
            }
            self.page.count(SNAPSHOTS);
        }
        self.page.mine(HAS).store(used * 256, SeqCst);
        Ok(hold.release()?)
    }

    fn check_limits(&mut self) -> Outcome {
        if self.few.check(KEY, 1)?.is_allowed() {
            self.page.count(FEW_ADMITTED);
        }
        if self.rate.check(KEY, 1)?.is_allowed() {
            self.page.count(RATE_ADMITTED);
        }
        Ok(())
    }

    fn add(&mut self) -> Outcome {
        self.counter.add(1)?;
        self.page.count(ADDED);
        Ok(())
    }

    fn work(&mut self) -> Outcome {
        while self.page.get(STOP) == 0 {
            match self.random.u32(..6) {
                0 => self.alone()?,
                1 => self.beside_others()?,
                2 => self.two_at_once()?,
                3 => self.with_permits()?,
                4 => self.check_limits()?,
                _ => self.add()?,
            }
        }
        Ok(())
    }
}

fn run() -> Outcome {
    let given: Vec<_> = std::env::args().collect();
    let [_, url, page, seat, id] = &given[..] else {
        return Err("usage: worker URL PAGE SEAT ID".into());
    };
    let file = File::options().read(true).write(true).open(page)?;
    let page = Page {
        map: memmap2::MmapRaw::map_raw(&file)?,
        seat: seat.parse()?,
        id: id.parse()?,
    };
    let id = page.id;
    let mut worker = Worker::open(url, page)?;
    worker
        .work()
        .map_err(|error| format!("Rust worker {id}: {error}").into())
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
