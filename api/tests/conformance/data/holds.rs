//! Steps with locks, semaphores, concurrency limiters and fences.

use super::{World, list, milliseconds, number, outcome, text, unsigned};
use serde_json::Value;
use sprag::{Hold, HoldAll, Owner, OwnerHold, Result, Semaphore};
use std::collections::HashMap;
use std::time::Duration;

/// What was acquired.
enum Held {
    One(Hold<'static>),
    Owner(OwnerHold<'static>),
    Several(HoldAll<'static>),
}

/// Does the same with a hold of each kind.
macro_rules! each {
    ($held:expr, $hold:ident => $act:expr) => {
        match $held {
            Held::One($hold) => $act,
            Held::Owner($hold) => $act,
            Held::Several($hold) => $act,
        }
    };
}

impl Held {
    fn token(&self) -> u64 {
        match self {
            Self::One(hold) => hold.token(),
            Self::Owner(hold) => hold.token(),
            Self::Several(hold) => *hold.tokens().iter().max().unwrap(),
        }
    }

    fn upgrade(&mut self) -> Result<bool> {
        match self {
            Self::One(hold) => hold.try_upgrade(),
            Self::Owner(hold) => hold.try_upgrade(),
            Self::Several(_) => panic!("several locks are not upgraded"),
        }
    }

    fn downgrade(&mut self) -> Result<()> {
        match self {
            Self::One(hold) => hold.downgrade(),
            Self::Owner(hold) => hold.downgrade(),
            Self::Several(_) => panic!("several locks are not downgraded"),
        }
    }

    fn is_shared(&self) -> bool {
        match self {
            Self::One(hold) => hold.is_shared(),
            Self::Owner(hold) => hold.is_shared(),
            Self::Several(_) => false,
        }
    }
}

/// What the names of a case stand for.
#[derive(Default)]
pub(super) struct Named {
    holds: HashMap<String, Held>,
    tokens: HashMap<String, u64>,
    owners: HashMap<String, Owner>,
}

pub(super) fn open(_: &World, _: &Value) -> Named {
    Named::default()
}

impl Named {
    fn hold(&mut self, step: &Value) -> &mut Held {
        let name = text(step, "hold");
        self.holds.get_mut(name).expect("a hold of this name")
    }

    fn take(&mut self, step: &Value) -> Held {
        let name = text(step, "hold");
        self.holds.remove(name).expect("a hold of this name")
    }

    fn keep(&mut self, name: &str, hold: Held) {
        self.tokens.insert(name.to_owned(), hold.token());
        self.holds.insert(name.to_owned(), hold);
    }

    /// The token that a name stands for, or the number itself.
    fn token(&self, value: &Value) -> u64 {
        match value {
            Value::String(name) => self.tokens[name],
            number => unsigned(number),
        }
    }

    /// Compares the token called `name` with what the step says of it.
    fn compare(&self, step: &Value, name: &str) {
        let token = self.tokens[name];
        if let Some(before) = step.get("after") {
            assert_eq!(token, self.token(before) + 1, "{step}");
        }
        if let Some(same) = step.get("same") {
            assert_eq!(token, self.token(same), "{step}");
        }
    }
}

/// The semaphore that a step is on, or that of a concurrency limiter's key.
fn semaphore(world: &World, step: &Value) -> Result<Semaphore<'static>> {
    let permits = u32::try_from(number(&step["permits"])).unwrap();
    let space = &world.space;
    let opened = if let Some(name) = step.get("semaphore") {
        space.semaphore(name.as_str().unwrap(), permits)?
    } else {
        let name = text(step, "concurrency");
        let limiter = if step["update"] == true {
            space.concurrency_updated(name, permits)?
        } else {
            space.concurrency(name, permits)?
        };
        limiter.key(text(step, "key"))?
    };
    let opened = opened.into_owned();
    match milliseconds(step, "ttl_ms") {
        Some(ttl) => opened.ttl(ttl),
        None => Ok(opened),
    }
}

fn is_permits(step: &Value) -> bool {
    step.get("permits").is_some()
}

fn acquire(world: &World, named: &mut Named, step: &Value) -> Result<Option<Held>> {
    let space = &world.space;
    let ttl = milliseconds(step, "ttl_ms").unwrap_or(Duration::from_secs(30));
    let is_shared = step["mode"] == "shared";
    if is_permits(step) {
        let count = step.get("count").map_or(1, unsigned);
        let count = u32::try_from(count).unwrap();
        let held = semaphore(world, step)?.try_acquire(count)?;
        return Ok(held.map(Held::One));
    }
    if let Some(names) = step.get("locks") {
        let names = list(names).iter().map(|name| name.as_str().unwrap());
        let held = space.locks(names)?.ttl(ttl)?.try_acquire()?;
        return Ok(held.map(|held| Held::Several(held.into_owned())));
    }
    if step.get("partition_of").is_some() || step.get("table").is_some() {
        let lock = coarse(world, step)?.ttl(ttl)?;
        return Ok(lock.try_acquire()?.map(Held::One));
    }
    if let Some(owner) = step.get("owner") {
        let owner = owner.as_str().unwrap().to_owned();
        let owner = named.owners.entry(owner).or_insert_with(|| space.owner());
        let lock = owner.lock(text(step, "lock"))?.ttl(ttl)?;
        let held = if is_shared {
            lock.try_acquire_shared()?
        } else {
            lock.try_acquire()?
        };
        return Ok(held.map(|held| Held::Owner(held.into_owned())));
    }
    let lock = lock(world, step)?;
    let held = if is_shared {
        lock.try_acquire_shared()?
    } else {
        lock.try_acquire()?
    };
    Ok(held.map(Held::One))
}

fn lock(world: &World, step: &Value) -> Result<sprag::Lock<'static>> {
    let lock = world.space.lock(text(step, "lock"))?.into_owned();
    match milliseconds(step, "ttl_ms") {
        Some(ttl) => lock.ttl(ttl),
        None => Ok(lock),
    }
}

fn coarse(world: &World, step: &Value) -> Result<sprag::CoarseLock<'static>> {
    let space = &world.space;
    let lock = match step.get("partition_of") {
        Some(name) => space.partition(space.partition_of(name.as_str().unwrap()))?,
        None => space.table()?,
    };
    Ok(lock.into_owned())
}

fn release_token(world: &World, step: &Value, token: u64) -> Result<()> {
    if is_permits(step) {
        semaphore(world, step)?.release_token(token)
    } else if step.get("lock").is_some() {
        lock(world, step)?.release_token(token)
    } else {
        coarse(world, step)?.release_token(token)
    }
}

fn renew_token(world: &World, step: &Value, token: u64) -> Result<()> {
    if is_permits(step) {
        semaphore(world, step)?.renew_token(token)
    } else {
        lock(world, step)?.renew_token(token)
    }
}

fn adopt_token(world: &World, step: &Value, token: u64) -> Result<Hold<'static>> {
    if is_permits(step) {
        semaphore(world, step)?.adopt_token(token)
    } else {
        lock(world, step)?.adopt_token(token)
    }
}

pub(super) fn step(world: &World, named: &mut Named, step: &Value) {
    let expect = &step["expect"];
    let token = |named: &Named| named.token(step.get("number").unwrap_or(&step["token"]));
    match text(step, "do") {
        "advance" => world.advance(milliseconds(step, "ms").unwrap()),
        "try" => {
            let (word, held) = outcome(acquire(world, named, step));
            let word = match &held {
                Some(Some(_)) => "granted",
                Some(None) => "busy",
                None => word,
            };
            assert_eq!(word, expect, "{step}");
            if let Some(Some(held)) = held {
                let name = text(step, "as");
                named.keep(name, held);
                named.compare(step, name);
            }
        }
        "release" => {
            let released = each!(named.take(step), hold => hold.release());
            assert_eq!(outcome(released).0, expect, "{step}");
        }
        "detach" => {
            let Held::One(hold) = named.take(step) else {
                panic!("only a hold of one lock is detached: {step}");
            };
            assert_eq!(outcome(hold.detach()).0, expect, "{step}");
        }
        "drop" => drop(named.take(step)),
        "renew" => {
            let renewed = each!(named.hold(step), hold => hold.renew());
            assert_eq!(outcome(renewed).0, expect, "{step}");
        }
        "extend" => {
            let ttl = milliseconds(step, "ttl_ms").unwrap();
            let extended = each!(named.hold(step), hold => hold.extend(ttl));
            assert_eq!(outcome(extended).0, expect, "{step}");
        }
        "upgrade" => {
            let (word, is_alone) = outcome(named.hold(step).upgrade());
            let word = if is_alone == Some(false) {
                "busy"
            } else {
                word
            };
            assert_eq!(word, expect, "{step}");
            let (name, token) = (text(step, "hold"), named.hold(step).token());
            named.tokens.insert(name.to_owned(), token);
            named.compare(step, name);
        }
        "downgrade" => {
            let (word, _) = outcome(named.hold(step).downgrade());
            assert_eq!(word, expect, "{step}");
        }
        "shared" => assert_eq!(named.hold(step).is_shared(), *expect, "{step}"),
        "valid" => {
            let is_valid = each!(named.hold(step), hold => hold.is_valid());
            assert_eq!(is_valid, *expect, "{step}");
        }
        "held" => {
            let is_held = each!(named.hold(step), hold => hold.is_held());
            assert_eq!(is_held, *expect, "{step}");
        }
        "release_token" => {
            let released = release_token(world, step, token(named));
            assert_eq!(outcome(released).0, expect, "{step}");
        }
        "renew_token" => {
            let renewed = renew_token(world, step, token(named));
            assert_eq!(outcome(renewed).0, expect, "{step}");
        }
        "adopt" => {
            let (word, hold) = outcome(adopt_token(world, step, token(named)));
            assert_eq!(word, expect, "{step}");
            if let Some(hold) = hold {
                named.keep(text(step, "as"), Held::One(hold));
            }
        }
        "break" => {
            let broken = world.space.break_lock(text(step, "lock")).unwrap();
            let expected = (!expect.is_null()).then(|| named.token(expect));
            assert_eq!(broken, expected, "{step}");
        }
        "inspect" => inspect(world, named, step),
        "admit" => {
            let fence = world.space.fence(text(step, "fence")).unwrap();
            assert_eq!(outcome(fence.admit(token(named))).0, expect, "{step}");
        }
        "admit_once" => {
            let fence = world.space.fence(text(step, "fence")).unwrap();
            assert_eq!(outcome(fence.admit_once(token(named))).0, expect, "{step}");
        }
        "highest" => {
            let fence = world.space.fence(text(step, "fence")).unwrap();
            assert_eq!(fence.highest(), named.token(expect), "{step}");
        }
        unknown => panic!("unknown step `{unknown}`"),
    }
}

fn inspect(world: &World, named: &Named, step: &Value) {
    let locks = world.space.inspect(text(step, "lock")).unwrap();
    let info = locks.first().unwrap();
    for (field, value) in step["expect"].as_object().unwrap() {
        match field.as_str() {
            "held" => assert_eq!(info.is_held, *value, "{step}"),
            "token" => assert_eq!(info.token, named.token(value), "{step}"),
            "waiters" => assert_eq!(info.waiters, *value, "{step}"),
            "lease_left_ms" => {
                let left = Duration::from_millis(unsigned(value));
                assert_eq!(info.lease_left, left, "{step}");
            }
            _ => panic!("unknown field `{field}` in {step}"),
        }
    }
}
