//! A mixed load on a few keys, whose workers are killed some thousands of times: most before a random step
//! of an operation, some from outside at any moment; others stop before a random step and go on a while
//! later. The journal is judged after each.

mod worker;

use self::worker::{FENCE, HITS, KEPT, Limiters, ONCES, STOCK, STRIPED, Worker};
use crate::actor::{Actor, LONG, name_of};
use crate::journal::{Journal, OPS, Op, Outcome, Record};
use crate::oracle::{Bucket, Rules, judge};
use crate::process::{Fate, alone, fork, hang_guard, in_lanes, now_ns, poll, shared_words, signal};
use crate::report::{self, Row};
use crate::scene::{DAY, FAST, LIMITS, LONG_TTL, directory};
use crate::scenes_lock::all_is_well_but;
use sprag::Caps;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Kills in all, unless this is a soak.
const KILLS: u64 = 5_000;
/// Kills of one region; then another begins.
const KILLS_OF_A_REGION: usize = 50;
const WORKERS: usize = 4;
const LANES: usize = 3;
/// No operation takes more steps; a change of a limit looks at each cell of a table with room.
const STEPS_MAX: usize = 1 << 15;

/// Every table full, everything reclaimed and displaced all the time.
const TIGHT: Caps = Caps {
    objects: 30,
    limiter_keys: 12,
    joint_keys: 12,
    sessions: 8,
    waiters: 6,
    permits: 6,
    key_chunks: 32,
};

/// Room for everything, so that no token is missing and no key refused for another's sake.
const ROOMY: Caps = Caps {
    objects: 1_024,
    limiter_keys: 1_024,
    joint_keys: 1_024,
    key_chunks: 4_096,
    ..TIGHT
};

/// What workers do, each of which must be killed at some time.
const MIX: [Op; 41] = [
    Op::Acquire,
    Op::Wait,
    Op::Release,
    Op::Renew,
    Op::Detach,
    Op::Adopt,
    Op::ReleaseToken,
    Op::Break,
    Op::Reclaim,
    Op::ReclaimLong,
    Op::Check,
    Op::CheckReclaim,
    Op::CheckOverflow,
    Op::CheckLong,
    Op::UpdateLimit,
    Op::Admit,
    Op::Add,
    Op::AddWithin,
    Op::StripedAdd,
    Op::Gather,
    Op::Begin,
    Op::Finish,
    Op::Abandon,
    Op::LookOnce,
    Op::OpenSession,
    Op::CloseSession,
    Op::Share,
    Op::ShareWait,
    Op::ReleaseShare,
    Op::RenewShare,
    Op::Upgrade,
    Op::UpgradeWait,
    Op::DowngradeUpgraded,
    Op::TakePermits,
    Op::WaitPermits,
    Op::ReleasePermits,
    Op::TakeSlots,
    Op::WaitSlots,
    Op::ReleaseSlots,
    Op::Charge,
    Op::CheckJoint,
];

const END: usize = 0;
const AIM: usize = 16;
const TOKENS: usize = 8;

/// One region and its workers.
struct Arena<'a> {
    journal: Journal,
    url: String,
    caps: Caps,
    tally: &'a Tally,
    /// Of each role, its process while there is one, and that process's number.
    workers: Vec<(Option<libc::pid_t>, u64)>,
    next: u64,
}

impl Arena<'_> {
    fn spawn(&mut self, role: usize) {
        let (journal, by) = (self.journal, self.next);
        self.next += 1;
        journal.flag(AIM + role).store(0, SeqCst);
        let pid = fork(|| Worker::new(Actor::new(journal, role, by, &self.url, self.caps)).work());
        if role < self.workers.len() {
            self.workers[role] = (Some(pid), by);
        } else {
            self.workers.push((Some(pid), by));
        }
    }

    /// Notes where a worker was killed or stopped.
    fn note(&self, role: usize, counts: &[AtomicU64]) {
        let by = self.workers[role].1;
        let at = match self.journal.last_unfinished(role, by) {
            None => 0,
            Some(op) => {
                let aim = self.journal.flag(AIM + role).load(SeqCst);
                let step = if aim >> 32 == op as u64 {
                    (aim & 0xffff_ffff) as usize
                } else {
                    STEPS_MAX - 1
                };
                op as usize * STEPS_MAX + step.min(STEPS_MAX - 1)
            }
        };
        counts[at].fetch_add(1, SeqCst);
    }

    fn judge(&self) {
        let limits: Vec<Bucket> = LIMITS.iter().map(|(_, bucket)| *bucket).collect();
        let problems = judge(
            &self.journal,
            &Rules {
                are_tokens_consecutive: self.caps == ROOMY,
                refusing: if self.caps == ROOMY {
                    &[DAY, FAST]
                } else {
                    &[]
                },
                limits: &limits,
            },
        );
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    fn run(&mut self, random: &mut fastrand::Rng) {
        for role in 0..WORKERS {
            self.spawn(role);
        }
        let mut kills = 0;
        let mut left = WORKERS;
        // When somebody is killed from outside, and how many were.
        let (mut outside_ns, mut from_outside) = (now_ns() + 1_000_000, 0);
        // Who is stopped, and until when.
        let mut stopped: Vec<(libc::pid_t, u64)> = Vec::new();
        while left > 0 {
            let is_over = self.journal.flag(END).load(SeqCst) != 0;
            let now_ns = now_ns();
            stopped.retain(|&(pid, until_ns)| {
                let stays = until_ns > now_ns && !is_over;
                if !stays {
                    signal(pid, libc::SIGCONT);
                }
                stays
            });
            let Some((pid, fate)) = poll(-1) else {
                if now_ns >= outside_ns
                    && from_outside * 20 <= kills
                    && let Some(pid) = self.workers[random.usize(0..WORKERS)].0
                {
                    signal(pid, libc::SIGKILL);
                    outside_ns = now_ns + random.u64(0..2_000_000);
                    from_outside += 1;
                }
                std::thread::yield_now();
                continue;
            };
            let is_it = |(other, _): &(Option<libc::pid_t>, u64)| *other == Some(pid);
            let role = self.workers.iter().position(is_it).expect("a worker");
            if fate == Fate::Stopped {
                self.note(role, self.tally.stops);
                stopped.push((pid, now_ns + random.u64(0..10_000_000)));
                self.judge();
                continue;
            }
            stopped.retain(|(other, _)| *other != pid);
            self.workers[role].0 = None;
            let is_killed = fate == Fate::Killed(libc::SIGKILL);
            assert!(is_killed || fate == Fate::Exited(0), "a worker is {fate:?}");
            if is_killed {
                self.note(role, self.tally.kills);
                kills += 1;
            }
            self.judge();
            if kills >= KILLS_OF_A_REGION || !is_killed {
                self.journal.flag(END).store(1, SeqCst);
            }
            if self.journal.flag(END).load(SeqCst) == 0 {
                self.spawn(role);
            } else {
                left -= 1;
            }
        }
    }

    /// Nothing is lost, whoever died where.
    fn settle(&mut self) {
        let (journal, by) = (self.journal, self.next);
        self.next += 1;
        let pid = fork(|| {
            hang_guard(60);
            let actor = Actor::new(journal, WORKERS, by, &self.url, self.caps);
            let space = actor.open();
            for key in [1, 2, 3, LONG + 1] {
                actor.break_lock(Op::Break, &space, key);
            }
            for key in ONCES {
                while let Some(owned) = actor.must_begin(&space, key, LONG_TTL)
                    && !actor.finish(Op::Finish, owned, KEPT)
                {}
            }
            // What stays for good: seven limiters, the fence, and a striped counter.
            let fence = space.fence(&name_of(FENCE)).expect("a name");
            fence.admit(u64::MAX >> 12).expect("the highest");
            let limiters = Limiters::open(&space);
            for limiter in [&limiters.day, &limiters.fast, &limiters.changing] {
                limiter.check("the last", 0).map(drop).expect("a check");
            }
            let records = journal.records();
            for (op, used) in [Op::Charge, Op::CheckJoint]
                .into_iter()
                .zip(limiters.used())
            {
                let count = |outcome| {
                    let is_so = |it: &&Record| it.op == op && it.outcome == outcome;
                    records.iter().filter(is_so).count() as u64
                };
                let (known, unknown) = (count(Outcome::Yes), count(Outcome::Unknown));
                assert_eq!(used[0], used[1], "{op:?}: all or nothing");
                assert!(
                    (known..=known + unknown).contains(&used[0]),
                    "{op:?}: {known} known, {unknown} unknown: {used:?}"
                );
            }
            for key in [HITS, STOCK, STRIPED] {
                let counter = space.counter(&name_of(key)).expect("a name");
                actor.get(&counter, key);
                counter.swap(0).expect("a swap");
            }
            let striped = space.counter(&name_of(STRIPED)).expect("a name");
            striped.striped().map(drop).expect("room");
            // Long keys of the fast limit and results are idle in a moment, and then make room.
            let full_again_ns = now_ns() + 5_000_000;
            while now_ns() < full_again_ns {
                std::thread::yield_now();
            }
            all_is_well_but(&actor, &space, 1, 17, 0);
        });
        let fate = crate::process::wait(pid);
        assert_eq!(fate, Fate::Exited(0), "who comes after");
        self.judge();
    }
}

/// How often each operation was struck at each step, by all lanes: operation times `STEPS_MAX` plus step.
/// The last step stands for strikes from outside, operation 0 for those between two operations.
struct Tally {
    kills: &'static [AtomicU64],
    stops: &'static [AtomicU64],
    /// The most steps that each operation took.
    steps: &'static [AtomicU64],
}

impl Tally {
    fn new() -> Self {
        Self {
            kills: shared_words(OPS * STEPS_MAX),
            stops: shared_words(OPS * STEPS_MAX),
            steps: shared_words(OPS),
        }
    }

    fn rows(&self, counts: &[AtomicU64]) -> Vec<Row> {
        MIX.iter()
            .map(|&op| {
                let steps = (self.steps[op as usize].load(SeqCst) as usize).min(STEPS_MAX - 2);
                let count = |step: usize| counts[op as usize * STEPS_MAX + step].load(SeqCst);
                let mut by_step: Vec<u64> = (1..=steps).map(count).collect();
                let from_outside: u64 = (steps + 1..STEPS_MAX).map(count).sum();
                if let Some(step) = by_step.first_mut() {
                    *step += from_outside;
                }
                Row::of(op, &by_step)
            })
            .collect()
    }
}

fn play(next: &mut dyn FnMut() -> Option<usize>, tally: &Tally, base: &Path) {
    let journal = Journal::new();
    let mut random = fastrand::Rng::new();
    while let Some(number) = next() {
        journal.reset();
        let path = base.join(format!("r{number}"));
        let mut arena = Arena {
            journal,
            url: format!("shm:{}", path.display()),
            caps: if number % 2 == 0 { TIGHT } else { ROOMY },
            tally,
            workers: Vec::new(),
            next: 1,
        };
        arena.run(&mut random);
        arena.settle();
        std::fs::remove_file(&path).expect("the region's file");
        for op in MIX {
            let most = journal.steps(op).load(SeqCst);
            tally.steps[op as usize].fetch_max(most, SeqCst);
        }
    }
}

// property 1, property 2, property 3, property 11, property 12, property 15
#[test]
fn thousands_of_random_kills_break_no_promise() {
    alone("random::thousands_of_random_kills_break_no_promise", || {
        let is_soak = std::env::var_os("SPRAG_SOAK").is_some();
        let target = if is_soak { KILLS * 20 } else { KILLS };
        let regions = target.div_ceil(KILLS_OF_A_REGION as u64) as usize;
        let tally = Tally::new();
        let directory = directory();
        let describe = |region| format!("region {region}");
        in_lanes(LANES, regions, describe, |next| {
            play(next, &tally, directory.path());
        });
        let rows = tally.rows(tally.kills);
        let inside: u64 = rows.iter().map(|row| row.count).sum();
        let all = inside + tally.kills[0].load(SeqCst);
        let closing = format!(
            "{all} kills, {inside} of them ({:.1} %) inside an operation",
            inside as f64 * 100.0 / all as f64
        );
        report::print("Killed at random", "kills", &rows, &closing);
        let stops = tally.rows(tally.stops);
        report::print("Stopped at random", "stops", &stops, "all of them went on");
        assert!(all >= 2_000, "{all} kills");
        assert!(inside * 10 >= all * 9, "{closing}");
        for row in rows {
            assert!(row.count > 0, "{:?} was never killed", row.op);
        }
    });
}
