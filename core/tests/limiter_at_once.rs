//! Everything that is done with limiters at once, by threads: checks of one and of several, refunds, overrides, changes of
//! the limits, through references of any age, until each limit slot had another limit. Nothing drains meanwhile, so
//! what was admitted and not given back is what each key has used, to the unit.

mod support;

use fastrand::Rng;
use sprag_core::limit::Limit;
use sprag_core::limiter::Asked;
use sprag_core::region::Caps;
use sprag_core::{Checked, Engine, LimiterRef, SessionId};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{SMALL, engine_with_session, is_soak};

const MOST: u64 = 100;
/// Of one burst, and of rates in which it is a whole number.
const LIMITS: [&str; 3] = ["100/day", "200/day;burst=100", "400/day;burst=100"];
const LIMITERS: [&[u8]; 2] = [b"a", b"b"];
/// The same of both limiters: they lie in each other's way.
const KEYS: [&[u8]; 3] = [b"k0", b"k1", b"a key that does not fit a cell"];
/// References that are kept.
const KEPT: usize = 50;

struct World {
    engine: Engine,
    me: SessionId,
    references: Mutex<Vec<LimiterRef>>,
    /// Of each key of each limiter, what was admitted and not given back.
    taken: [[AtomicU64; KEYS.len()]; LIMITERS.len()],
    is_over: AtomicBool,
}

impl World {
    fn new() -> Self {
        let (engine, me) = engine_with_session(Caps {
            limiter_keys: 10,
            ..SMALL
        });
        let world = Self {
            engine,
            me,
            references: Mutex::default(),
            taken: Default::default(),
            is_over: AtomicBool::new(false),
        };
        for which in 0..LIMITERS.len() {
            let limiter = world.change(which, LIMITS[0]);
            for (key, taken) in KEYS.iter().zip(&world.taken[which]) {
                // For good, so that each has its cell.
                let checked = world.engine.check(&limiter, key, 1, me, 0).unwrap();
                assert!(checked.decision.is_allowed() && !checked.is_overflow);
                taken.store(1, Ordering::Relaxed);
            }
            world.references.lock().unwrap().push(limiter);
        }
        world
    }

    fn change(&self, which: usize, text: &str) -> LimiterRef {
        let (name, limit) = (LIMITERS[which], text.parse().unwrap());
        let changed = self.engine.open_limiter(name, limit, true, self.me, 0);
        changed.unwrap()
    }

    fn current(&self, which: usize) -> LimiterRef {
        self.engine.limiter(LIMITERS[which]).unwrap().unwrap()
    }

    /// A reference to a limiter, of now or from before.
    fn any(&self, which: usize, random: &mut Rng) -> LimiterRef {
        let references = self.references.lock().unwrap();
        let kept = &references[random.usize(0..references.len())];
        if kept.name().to_vec() == LIMITERS[which] {
            return kept.clone();
        }
        self.current(which)
    }

    fn keep(&self, limiter: LimiterRef, random: &mut Rng) {
        let mut references = self.references.lock().unwrap();
        if references.len() < KEPT {
            references.push(limiter);
        } else {
            let place = random.usize(0..KEPT);
            references[place] = limiter;
        }
    }

    /// Checks and gives back.
    fn use_up(&self, near: u32, random: &mut Rng) {
        let mut admitted: Vec<(usize, usize, Checked)> = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let (which, key) = (random.usize(0..LIMITERS.len()), random.usize(0..KEYS.len()));
            match random.u8(0..8) {
                0 | 1 => self.check_all(&[(which, key, 1)], near, random, &mut admitted),
                2..=4 => {
                    let count = random.usize(2..5);
                    let part = |random: &mut Rng| {
                        let which = random.usize(0..LIMITERS.len());
                        (which, random.usize(0..KEYS.len()), random.u64(0..3))
                    };
                    let parts: Vec<_> = (0..count).map(|_| part(random)).collect();
                    self.check_all(&parts, near, random, &mut admitted);
                }
                5 | 6 if !admitted.is_empty() => {
                    // The last one more often than another.
                    let last = admitted.len() - 1;
                    let place = if random.bool() {
                        last
                    } else {
                        random.usize(0..=last)
                    };
                    let (which, key, checked) = admitted.swap_remove(place);
                    let limiter = self.any(which, random);
                    let refunded = self.engine.refund(&limiter, checked, || 0).unwrap();
                    self.taken[which][key].fetch_sub(refunded.cost(), Ordering::Relaxed);
                }
                _ => {
                    // Others come, and go for the next.
                    let (limiter, other) = (self.any(which, random), [b'x', random.u8(0..20)]);
                    let looked = self.engine.check(&limiter, &other, 0, self.me, 0);
                    assert!(looked.unwrap().decision.is_allowed());
                }
            }
        }
    }

    fn check_all(
        &self,
        parts: &[(usize, usize, u64)],
        near: u32,
        random: &mut Rng,
        admitted: &mut Vec<(usize, usize, Checked)>,
    ) {
        let limiters: Vec<_> = parts.iter().map(|part| self.any(part.0, random)).collect();
        let asked = parts.iter().zip(&limiters).map(|(part, limiter)| Asked {
            limiter,
            key: KEYS[part.1],
            cost: part.2,
        });
        let mut answers = Vec::new();
        let is_allowed = match parts {
            [(_, key, cost)] if random.bool() => {
                let checked = self
                    .engine
                    .check(&limiters[0], KEYS[*key], *cost, self.me, 0);
                answers.extend(checked);
                answers[0].decision.is_allowed()
            }
            _ => self
                .engine
                .check_all(asked, self.me, near, 0, |_, checked| answers.push(checked))
                .unwrap(),
        };
        if is_allowed {
            for ((which, key, cost), checked) in parts.iter().zip(answers) {
                self.taken[*which][*key].fetch_add(*cost, Ordering::Relaxed);
                if *cost > 0 {
                    admitted.push((*which, *key, checked));
                }
            }
        }
    }

    /// Changes limits, and sets and clears overrides.
    fn rule(&self, steps: u64, random: &mut Rng) {
        let (engine, me) = (&self.engine, self.me);
        for _ in 0..steps {
            let which = random.usize(0..LIMITERS.len());
            let limiter = self.any(which, random);
            let key = KEYS[random.usize(0..KEYS.len())];
            let text = LIMITS[random.usize(0..LIMITS.len())];
            match random.u8(0..10) {
                0..=2 => {
                    let limit = text.parse().unwrap();
                    engine.set_override(&limiter, key, limit, me, || 0).unwrap();
                }
                3 | 4 => drop(engine.clear_override(&limiter, key, || 0).unwrap()),
                5 => drop(engine.override_of(&limiter, key, || 0).unwrap()),
                6 => {
                    let (other, count) = ([b'x', random.u8(0..4)], random.u64(200..1_000));
                    let limit = Limit::token_bucket(count, 86_400_000_000_000).unwrap();
                    engine
                        .set_override(&limiter, &other, limit, me, || 0)
                        .unwrap();
                }
                _ => self.keep(self.change(which, text), random),
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn check_what_is_left(&self) {
        for (which, taken) in self.taken.iter().enumerate() {
            for (key, taken) in KEYS.iter().zip(taken) {
                let peeked = self.engine.peek(&self.current(which), key, 0).unwrap();
                let taken = taken.load(Ordering::Relaxed);
                let (left, key) = (peeked.decision.remaining(), key.escape_ascii());
                assert_eq!(
                    taken + left,
                    MOST,
                    "limiter {which}, {key}: {taken} are taken"
                );
            }
        }
        assert_eq!(self.engine.check_region().findings, []);
    }
}

#[test]
fn property_12_what_was_admitted_and_not_given_back_is_what_is_used_whatever_becomes_of_the_limits()
{
    for seed in 0..if is_soak() { 100 } else { 1 } {
        let world = World::new();
        std::thread::scope(|scope| {
            for near in 0..2 {
                let (world, mut random) = (&world, Rng::with_seed(seed << 8 | u64::from(near)));
                scope.spawn(move || world.use_up(near, &mut random));
            }
            world.rule(15_000, &mut Rng::with_seed(seed << 8 | 2));
        });
        world.check_what_is_left();
    }
}
