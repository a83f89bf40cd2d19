//! Hand-off to a thread that sleeps: from the release to the grant, against a bare futex.
//!
//! One thread holds or keeps shut, the other waits. The first asks the kernel until the second sleeps,
//! takes the time, and lets go; the second takes the time as soon as it runs. Both are tied to a core
//! of their own, where there are two, since a wake on the same core is another thing altogether.

use crate::Plan;
use crate::contest::{self, Outcome, median};
use sprag::host::futex::{self, Reach as FutexReach, Woken};
use sprag_benches::ours::{Home, Reach};
use sprag_benches::{Failure, Result, Timed};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Hand-offs to one measurement, which is their median.
const HAND_OFFS: usize = 200;
/// Far longer than any wait here: a bare futex that loses its wake would hang for good otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn compare(reach: Reach, plan: Plan) -> Result<Outcome> {
    let home = Home::open(reach, 1)?;
    contest::alternate(plan, || lock(&home, plan), || bare(plan))
}

pub(crate) fn compare_shared(plan: Plan) -> Result<Outcome> {
    let shared = Home::open(Reach::Shared, 1)?;
    let memory = Home::open(Reach::Memory, 1)?;
    contest::alternate(plan, || lock(&shared, plan), || lock(&memory, plan))
}

/// Waits once, saying so before and after.
type Wait<'a> = dyn Fn(&dyn Fn(Said) -> Result<()>) -> Result<()> + Sync + 'a;

/// What the waiting thread says.
enum Said {
    Waiting,
    Got(Instant),
}

fn lock(home: &Home, plan: Plan) -> Result<Timed> {
    let lock = home.space.lock("job")?;
    hand_offs(
        plan,
        || Ok(lock.acquire()?),
        drop,
        |say| {
            say(Said::Waiting)?;
            let hold = lock.acquire()?;
            say(Said::Got(Instant::now()))?;
            drop(hold);
            Ok(())
        },
    )
}

fn bare(plan: Plan) -> Result<Timed> {
    let word = AtomicU32::new(0);
    hand_offs(
        plan,
        || {
            word.store(0, Ordering::Release);
            Ok(())
        },
        |()| {
            word.store(1, Ordering::Release);
            futex::wake_all(&word, FutexReach::Process);
        },
        |say| {
            say(Said::Waiting)?;
            while word.load(Ordering::Acquire) == 0 {
                if futex::wait(&word, 0, TIMEOUT, FutexReach::Process) == Woken::TimedOut {
                    return Err("a bare futex was not woken".into());
                }
            }
            say(Said::Got(Instant::now()))
        },
    )
}

/// Shuts, has the other thread wait, opens once it sleeps; the median of the times from there to
/// when it goes on.
fn hand_offs<H>(
    plan: Plan,
    shut: impl Fn() -> Result<H>,
    open: impl Fn(H),
    wait: impl Fn(&dyn Fn(Said) -> Result<()>) -> Result<()> + Sync,
) -> Result<Timed> {
    let count = (HAND_OFFS / plan.effort.divisor).max(1);
    let (go, goes) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel::<(i32, Said)>();
    let cores = two_cores();
    std::thread::scope(|scope| {
        let wait = &wait;
        let waiter =
            scope.spawn(move || waiting_thread(&goes, &tell, cores.map(|cores| cores[1]), wait));
        let restore = cores.map(|cores| Tied::to(cores[0])).transpose()?;
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            let held = shut()?;
            go.send(())?;
            let (thread, _) = told.recv()?;
            until_asleep(thread)?;
            let released = Instant::now();
            open(held);
            let (_, Said::Got(got)) = told.recv()? else {
                return Err(Failure::from("the waiting thread said that it waits twice"));
            };
            took.push(got.saturating_duration_since(released).as_nanos() as f64);
        }
        drop(go);
        drop(restore);
        waiter
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Timed {
            admitted: took.len() as u64,
            ns: median(took),
        })
    })
}

fn waiting_thread(
    goes: &Receiver<()>,
    tell: &Sender<(i32, Said)>,
    core: Option<usize>,
    wait: &Wait<'_>,
) -> Result<()> {
    let _tied = core.map(Tied::to).transpose()?;
    // SAFETY: takes nothing and can't fail.
    let thread = unsafe { libc::gettid() };
    while goes.recv().is_ok() {
        wait(&|said| Ok(tell.send((thread, said))?))?;
    }
    Ok(())
}

/// Asks until the thread is seen asleep twice in a row: once might be on its way into the wait.
fn until_asleep(thread: i32) -> Result<()> {
    let path = format!("/proc/self/task/{thread}/stat");
    let mut seen = 0;
    while seen < 2 {
        let stat = std::fs::read_to_string(&path)?;
        // The name, in brackets, may contain anything; the state comes after.
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        seen = if state.starts_with('S') { seen + 1 } else { 0 };
        std::thread::yield_now();
    }
    Ok(())
}

/// The first two cores that this thread may run on.
fn two_cores() -> Option<[usize; 2]> {
    let set = allowed().ok()?;
    // SAFETY: the index is below the set's size.
    let mut cores =
        (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) });
    Some([cores.next()?, cores.next()?])
}

fn allowed() -> Result<libc::cpu_set_t> {
    // SAFETY: a set is plain bits, for which zero is a valid value.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given size into `set`; 0 names this thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if failed != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(set)
}

/// This thread, tied to one core until dropped.
struct Tied {
    before: libc::cpu_set_t,
}

impl Tied {
    fn to(core: usize) -> Result<Self> {
        let before = allowed()?;
        // SAFETY: a set is plain bits, for which zero is a valid value.
        let mut set = unsafe { std::mem::zeroed() };
        // SAFETY: the core is from a set of the same size.
        unsafe { libc::CPU_SET(core, &mut set) };
        Self::set(&set)?;
        Ok(Self { before })
    }

    fn set(set: &libc::cpu_set_t) -> Result<()> {
        // SAFETY: the kernel reads the given size from `set`; 0 names this thread.
        let failed = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
        if failed != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }
}

impl Drop for Tied {
    fn drop(&mut self) {
        // Where it ran before it may run again; if not, only the next rows are slower.
        let _ = Self::set(&self.before);
    }
}
