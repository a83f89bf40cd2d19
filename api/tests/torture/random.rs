//! A mixed load on a few keys, whose workers are killed some thousands of times: most before a random step
//! of an operation, some from outside at any moment; others stop before a random step and go on a while
//! later. The journal is judged after each.

use crate::actor::{Actor, Begin, LONG, PERMITS, name_of, yes};
use crate::journal::{Journal, OPS, Op, Outcome, RECORDS, Record};
use crate::oracle::{Bucket, Rules, judge};
use crate::process::{Fate, alone, fork, hang_guard, in_lanes, now_ns, poll, shared_words, signal};
use crate::report::{self, Row};
use crate::scene::{DAY, FAST, LIMITS, LONG_TTL, WIDER, directory};
use crate::scenes_lock::all_is_well_but;
use sprag::{Caps, Decisions, JointLimiter, Limiter, Space};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

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

/// A semaphore's name, beside the locks'.
const POOL: u64 = 9;
/// A concurrency limiter's.
const UPLOADS: &str = "uploads";
/// Limits of which a test uses up nothing and of which nothing comes back: whoever takes of two takes as much of each.
const AMPLE: [&str; 2] = ["1000000/366d;window=fixed", "1000000/365d;window=fixed"];
/// The key of theirs.
const BOTH: u64 = 1;

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

const FENCE: u64 = 30;
/// A counter that only rises, and one that keeps its bounds.
const HITS: u64 = 31;
const STOCK: u64 = 32;
/// A striped counter.
const STRIPED: u64 = 33;
/// The keys of onces.
const ONCES: [u64; 3] = [1, 2, LONG + 1];
/// How long their results are kept.
const KEPT: Duration = Duration::from_millis(2);

/// A process at random work.
struct Worker {
    actor: Actor,
    random: fastrand::Rng,
}

struct Limiters {
    day: Limiter,
    fast: Limiter,
    changing: Limiter,
    /// For calls of both.
    pair: [Limiter; 2],
    joint: JointLimiter,
}

impl Limiters {
    fn open(space: &Space) -> Self {
        let open = |name: &str, limit: u64| {
            let text = LIMITS[limit as usize].0;
            space.limiter_updated(name, text).expect("a limiter opens")
        };
        let uploads = space.concurrency(UPLOADS, PERMITS);
        assert_eq!(
            uploads.map(|it| it.permits().ok()).ok(),
            Some(Some(PERMITS))
        );
        Self {
            day: open("day", DAY),
            fast: open("fast", FAST),
            changing: open("changing", WIDER),
            pair: AMPLE.map(|limit| space.limiter(limit, limit).expect("a limiter opens")),
            joint: space
                .joint_limiter("joint", AMPLE)
                .expect("a limiter opens"),
        }
    }

    /// What is used of each of the pair, and under each of the joint limits.
    fn used(&self) -> [[u64; 2]; 2] {
        let key = name_of(BOTH);
        let joint = self.joint.peek(&key).expect("a look");
        let used = |left: Option<u64>| 1_000_000 - left.expect("a limit");
        let pair = self.pair.each_ref();
        [
            pair.map(|limiter| used(limiter.peek(&key).ok().map(|it| it.remaining()))),
            [0, 1].map(|place| used(joint.of(place).map(|it| it.remaining()))),
        ]
    }
}

impl Worker {
    fn new(actor: Actor) -> Self {
        Self {
            random: fastrand::Rng::with_seed(
                actor.by.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ now_ns(),
            ),
            actor,
        }
    }

    /// Every other call is struck before one of its steps.
    fn op(&mut self, op: Op) -> Op {
        if self.random.bool() {
            let most = self.actor.journal.steps(op).load(SeqCst).max(1);
            // Most runs are much shorter than the longest.
            let most = if self.random.bool() {
                most
            } else {
                most.min(24)
            };
            let step = self.random.u64(1..=most);
            let aim = (op as u64) << 32 | step;
            self.actor
                .journal
                .flag(AIM + self.actor.role)
                .store(aim, SeqCst);
            let is_stop = self.random.u32(0..4) == 0;
            self.actor.aim(
                step,
                if is_stop {
                    libc::SIGSTOP
                } else {
                    libc::SIGKILL
                },
            );
        }
        op
    }

    fn is_over(&self) -> bool {
        let actor = &self.actor;
        actor.journal.flag(END).load(SeqCst) != 0 || actor.journal.len(actor.role) > RECORDS - 256
    }

    fn work(&mut self) {
        while !self.is_over() {
            let op = self.op(Op::OpenSession);
            let Ok(space) = self.actor.open_as(op) else {
                continue;
            };
            let mut limiters = Limiters::open(&space);
            for _ in 0..self.random.u32(5..40) {
                if self.is_over() {
                    break;
                }
                self.act(&space, &mut limiters);
            }
            drop(limiters);
            let op = self.op(Op::CloseSession);
            self.actor.close(op, space);
        }
    }

    fn act(&mut self, space: &Space, limiters: &mut Limiters) {
        let key = [1, 2, 3, LONG + 1][self.random.usize(0..4)];
        match self.random.u32(0..34) {
            0..=3 => self.hold_for_a_while(space, key),
            4 => {
                let op = self.op(Op::Wait);
                let timeout = Duration::from_millis(self.random.u64(1..8));
                if let Ok(Some(held)) = self.actor.acquire(op, space, key, LONG_TTL, timeout) {
                    let op = self.op(Op::Release);
                    self.actor.release(op, held);
                }
            }
            5 => self.hand_over(space, key),
            6 if self.random.u32(0..4) == 0 => {
                let op = self.op(Op::Break);
                self.actor.break_lock(op, space, key);
            }
            6 | 7 => {
                let is_long = self.random.bool();
                let op = self.op(if is_long {
                    Op::ReclaimLong
                } else {
                    Op::Reclaim
                });
                let key = self.random.u64(100..140) + if is_long { LONG } else { 0 };
                if let Ok(Some(held)) = self.actor.try_acquire(op, space, key, LONG_TTL) {
                    let op = self.op(Op::Release);
                    self.actor.release(op, held);
                }
            }
            8 => {
                let op = self.op(Op::Check);
                let key = self.random.u64(1..5);
                self.actor.check(op, &limiters.day, DAY, key, 1);
            }
            9 => {
                let op = self.op(Op::CheckReclaim);
                let key = self.random.u64(40..60);
                self.actor.check(op, &limiters.fast, FAST, key, 1);
            }
            10 => {
                // More than there is room for beside the others: most overflow.
                let op = self.op(Op::CheckOverflow);
                let key = self.random.u64(60..80);
                self.actor.check(op, &limiters.day, DAY, key, 1);
            }
            11 => {
                let op = self.op(Op::CheckLong);
                let key = self.random.u64(60..64) + LONG;
                self.actor.check(op, &limiters.fast, FAST, key, 1);
            }
            12 => {
                let op = self.op(Op::UpdateLimit);
                let limit = [DAY, WIDER][self.random.usize(0..2)];
                let text = LIMITS[limit as usize].0;
                limiters.changing = self.actor.limiter(op, space, "changing", text);
            }
            13 | 14 => {
                // Whatever the limit is just then, it is never above the wider one.
                let op = self.op(Op::Check);
                let key = self.random.u64(5..8);
                self.actor.check(op, &limiters.changing, WIDER, key, 1);
            }
            15 => {
                let hits = space.counter(&name_of(HITS)).expect("a name");
                let op = self.op(Op::Add);
                self.actor.add(op, &hits, HITS, self.random.i64(1..4));
            }
            16 => {
                let stock = space.counter(&name_of(STOCK)).expect("a name");
                let op = self.op(Op::AddWithin);
                let delta = self.random.i64(-3..4);
                self.actor.add_within(op, &stock, STOCK, delta);
                self.actor.get(&stock, STOCK);
            }
            17 => {
                let striped = space.counter(&name_of(STRIPED)).expect("a name");
                let Ok(striped) = striped.striped() else {
                    return;
                };
                for _ in 0..self.random.u32(1..24) {
                    let op = self.op(Op::StripedAdd);
                    let delta = self.random.i64(-3..4);
                    self.actor.striped_add(op, &striped, STRIPED, delta);
                }
            }
            18 => {
                let plain = space.counter(&name_of(STRIPED)).expect("a name");
                let op = self.op(Op::Gather);
                self.actor.add(op, &plain, STRIPED, 1);
                self.actor.get(&plain, STRIPED);
            }
            19..=21 => self.do_once(space),
            22..=24 => self.share_for_a_while(space, key),
            25 => self.take_permits(space),
            26 => self.take_slots(space),
            // Who is called off, or let in and out again, spends a token.
            29 | 30 => {
                let op = self.op(Op::Charge);
                let name = name_of(BOTH);
                let [one, other] = &limiters.pair;
                let call = || space.check_all(&[(one, &name, 1), (other, &name, 1)]);
                let read = |taken: &Result<Decisions, _>| yes(taken.is_ok());
                let _ = self.actor.call(op, BOTH, 1, call, read);
            }
            31 | 32 => {
                let op = self.op(Op::CheckJoint);
                let call = || limiters.joint.check(&name_of(BOTH), 1).map(drop);
                let _ = self
                    .actor
                    .call(op, BOTH, 1, call, |taken| yes(taken.is_ok()));
            }
            27 | 28 if self.actor.caps != ROOMY => self.take_many(space),
            _ => {
                let tokens = self.actor.journal.flag(TOKENS);
                let token = tokens.fetch_add(1, SeqCst) + 4 - self.random.u64(0..4);
                let fence = space.fence(&name_of(FENCE)).expect("a name");
                let op = self.op(Op::Admit);
                self.actor.admit(op, &fence, FENCE, token);
            }
        }
    }

    fn hold_for_a_while(&mut self, space: &Space, key: u64) {
        let ttl = [
            Duration::from_millis(2),
            Duration::from_millis(10),
            LONG_TTL,
        ][self.random.usize(0..3)];
        let op = self.op(Op::Acquire);
        let Ok(Some(mut held)) = self.actor.try_acquire(op, space, key, ttl) else {
            return;
        };
        for _ in 0..self.random.u32(0..3) {
            let until_ns = now_ns() + self.random.u64(0..2_000_000);
            while now_ns() < until_ns {
                std::thread::yield_now();
            }
            let op = self.op(Op::Renew);
            if !self.actor.renew(op, &mut held) {
                break;
            }
        }
        let op = self.op(Op::Release);
        self.actor.release(op, held);
    }

    /// Begins at one of a few keys, and ends what it has begun one way or another.
    fn do_once(&mut self, space: &Space) {
        let key = ONCES[self.random.usize(0..ONCES.len())];
        let ttl = [Duration::from_millis(2), LONG_TTL][self.random.usize(0..2)];
        let op = self.op(Op::Begin);
        let begun = self.actor.begin(op, space, key, ttl);
        match (begun, self.random.u32(0..5)) {
            (Ok(Begin::Started(owned)), 0) => {
                let op = self.op(Op::Abandon);
                self.actor.abandon(op, owned);
            }
            (Ok(Begin::Started(owned)), 1) => {
                let until_ns = now_ns() + 3_000_000;
                while now_ns() < until_ns {
                    std::thread::yield_now();
                }
                let op = self.op(Op::Finish);
                self.actor.finish(op, owned, KEPT);
            }
            (Ok(Begin::Started(owned)), _) => {
                let op = self.op(Op::Finish);
                self.actor.finish(op, owned, KEPT);
            }
            _ => {
                let op = self.op(Op::LookOnce);
                self.actor.look(op, space, key);
            }
        }
    }

    /// Takes several locks, a partition or the table, for not so long that a stopped one holds up all others.
    fn take_many(&mut self, space: &Space) {
        let kinds = [
            [Op::Several, Op::SeveralWait, Op::ReleaseSeveral],
            [Op::Partition, Op::PartitionWait, Op::ReleasePartition],
            [Op::Table, Op::TableWait, Op::ReleaseTable],
        ];
        let [at_once, wait, release] = kinds[self.random.usize(0..kinds.len())];
        let is_waiting = self.random.bool();
        let timeout = Duration::from_millis(if is_waiting { 5 } else { 0 });
        let ttl = Duration::from_millis(self.random.u64(2..20));
        let op = self.op(if is_waiting { wait } else { at_once });
        let Ok(Some(held)) = self.actor.take(op, space, ttl, timeout) else {
            return;
        };
        let until_ns = now_ns() + self.random.u64(0..1_000_000);
        while now_ns() < until_ns {
            std::thread::yield_now();
        }
        let op = self.op(release);
        self.actor.let_go(op, held);
    }

    /// Shares a lock, and goes on to have it alone and to share it again.
    fn share_for_a_while(&mut self, space: &Space, key: u64) {
        let ttl = [
            Duration::from_millis(2),
            Duration::from_millis(10),
            LONG_TTL,
        ][self.random.usize(0..3)];
        let timeout = Duration::from_millis(self.random.u64(0..4));
        let op = self.op(if timeout.is_zero() {
            Op::Share
        } else {
            Op::ShareWait
        });
        let Ok(Some(mut held)) = self.actor.share(op, space, key, ttl, timeout) else {
            return;
        };
        for _ in 0..self.random.u32(0..3) {
            let timeout = Duration::from_millis(self.random.u64(0..4));
            let op = self.op(if timeout.is_zero() {
                Op::Upgrade
            } else {
                Op::UpgradeWait
            });
            if self.actor.upgrade(op, &mut held, timeout) {
                let op = self.op(Op::DowngradeUpgraded);
                if !self.actor.downgrade(op, &mut held) {
                    break;
                }
            }
            let op = self.op(Op::RenewShare);
            if !self.actor.renew(op, &mut held) {
                break;
            }
        }
        let op = self.op(Op::ReleaseShare);
        self.actor.release(op, held);
    }

    fn take_slots(&mut self, space: &Space) {
        let ttl = [Duration::from_millis(10), LONG_TTL][self.random.usize(0..2)];
        let timeout = Duration::from_millis(self.random.u64(0..4));
        let op = self.op(if timeout.is_zero() {
            Op::TakeSlots
        } else {
            Op::WaitSlots
        });
        let permits = self.random.u32(1..=PERMITS);
        let taken = self.actor.slots(op, space, UPLOADS, permits, ttl, timeout);
        if let Ok(Some(held)) = taken {
            let op = self.op(Op::ReleaseSlots);
            self.actor.release(op, held);
        }
    }

    fn take_permits(&mut self, space: &Space) {
        let ttl = [Duration::from_millis(10), LONG_TTL][self.random.usize(0..2)];
        let timeout = Duration::from_millis(self.random.u64(0..4));
        let op = self.op(if timeout.is_zero() {
            Op::TakePermits
        } else {
            Op::WaitPermits
        });
        let permits = self.random.u32(1..=PERMITS);
        let taken = self.actor.permits(op, space, POOL, permits, ttl, timeout);
        if let Ok(Some(held)) = taken {
            let op = self.op(Op::ReleasePermits);
            self.actor.release(op, held);
        }
    }

    /// Detaches a hold, then ends it by its token, or takes it back first.
    fn hand_over(&mut self, space: &Space, key: u64) {
        let ttl = Duration::from_millis(10);
        let Ok(Some(held)) = self.actor.try_acquire(Op::Acquire, space, key, ttl) else {
            return;
        };
        let op = self.op(Op::Detach);
        let Some(token) = self.actor.detach(op, held) else {
            return;
        };
        if self.random.bool() {
            let op = self.op(Op::Adopt);
            if let Some(held) = self.actor.adopt(op, space, key, token, ttl) {
                let op = self.op(Op::Release);
                self.actor.release(op, held);
            }
        } else {
            let op = self.op(Op::ReleaseToken);
            self.actor.release_token(op, space, key, token);
        }
    }
}

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
