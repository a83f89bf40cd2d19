//! What a replay should find, worked out a second time from the definitions alone: its own reading of a
//! line, its own calendar, exact fractions. Shares nothing with the command or the engine, and is never
//! fast.

use std::collections::HashMap;

use num_bigint::BigInt;
use num_rational::Ratio;

type Fraction = Ratio<BigInt>;

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Refused,
    Malformed,
}

/// A limit: `count` units per `period_s` seconds, at most `burst` of them at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) count: u64,
    pub(crate) period_s: u64,
    pub(crate) burst: u64,
}

/// A request as far as a limit cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) key: Vec<u8>,
    pub(crate) at_s: i64,
}

/// The requests of a log, line by line, `None` where a line is malformed; `field` counts the fields that
/// a line begins with, the host being field 0. Times never go back.
pub(crate) fn requests(log: &[u8], field: usize) -> Vec<Option<Request>> {
    let mut lines: Vec<&[u8]> = log.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let mut latest = None;
    let mut requests = Vec::new();
    for line in lines {
        let mut request = request(line, field);
        if let Some(request) = &mut request {
            request.at_s = latest.map_or(request.at_s, |latest| request.at_s.max(latest));
            latest = Some(request.at_s);
        }
        requests.push(request);
    }
    requests
}

/// Verdicts of a bucket of fluid, one per key: it holds `burst`, is full at first, and gains
/// `count / period_s` each second; a request takes its cost out of it, or nothing at all.
pub(crate) fn token_bucket(requests: &[Option<Request>], limit: Limit, cost: u64) -> Vec<Verdict> {
    let rate = Fraction::new(limit.count.into(), limit.period_s.into());
    let burst = Fraction::from(BigInt::from(limit.burst));
    let cost = Fraction::from(BigInt::from(cost));
    let mut buckets: HashMap<&[u8], (Fraction, i64)> = HashMap::new();
    verdicts(requests, |request| {
        let full = (burst.clone(), request.at_s);
        let (level, since) = buckets.entry(&request.key).or_insert(full);
        *level += &rate * BigInt::from(request.at_s - *since);
        *since = request.at_s;
        if *level > burst {
            *level = burst.clone();
        }
        let allowed = *level >= cost;
        if allowed {
            *level -= &cost;
        }
        allowed
    })
}

/// The same verdicts from what a token bucket promises instead of how it works: a request is allowed
/// if, with it, no span of time from an earlier allowed request to this one holds more than
/// `burst + rate × span`. Takes time by the square of the log.
pub(crate) fn token_bucket_by_promise(
    requests: &[Option<Request>],
    limit: Limit,
    cost: u64,
) -> Vec<Verdict> {
    let mut granted: HashMap<&[u8], Vec<i64>> = HashMap::new();
    verdicts(requests, |request| {
        let granted = granted.entry(&request.key).or_default();
        granted.push(request.at_s);
        let allowed = granted.iter().enumerate().all(|(index, &from_s)| {
            let held = i128::from(cost) * (granted.len() - index) as i128;
            let span_s = i128::from(request.at_s - from_s);
            // Times the period, so that all is whole.
            held * i128::from(limit.period_s)
                <= i128::from(limit.burst) * i128::from(limit.period_s)
                    + i128::from(limit.count) * span_s
        });
        if !allowed {
            granted.pop();
        }
        allowed
    })
}

/// Verdicts of windows of `period_s` seconds, aligned to the Unix epoch, that each hold `count` per key.
pub(crate) fn fixed_window(requests: &[Option<Request>], limit: Limit, cost: u64) -> Vec<Verdict> {
    let mut spent: HashMap<(&[u8], BigInt), BigInt> = HashMap::new();
    verdicts(requests, |request| {
        let window = Fraction::new(request.at_s.into(), limit.period_s.into())
            .floor()
            .to_integer();
        let spent = spent.entry((&request.key, window)).or_default();
        let after = &*spent + BigInt::from(cost);
        let allowed = after <= BigInt::from(limit.count);
        if allowed {
            *spent = after;
        }
        allowed
    })
}

/// Verdicts of sliding windows, from all that was allowed: with a request, the window of `period_s` that
/// it is in, and the one before by the share of the current one that is left, hold at most `count`.
pub(crate) fn sliding_window(
    requests: &[Option<Request>],
    limit: Limit,
    cost: u64,
) -> Vec<Verdict> {
    let mut allowed: HashMap<&[u8], Vec<i64>> = HashMap::new();
    verdicts(requests, |request| {
        let allowed = allowed.entry(&request.key).or_default();
        let period_s = i128::from(limit.period_s);
        let at_s = i128::from(request.at_s);
        let into_s = at_s.rem_euclid(period_s);
        let start_s = at_s - into_s;
        let in_window = |from_s: i128| {
            let within = |at_s: &&i64| (from_s..from_s + period_s).contains(&i128::from(**at_s));
            i128::from(cost) * allowed.iter().filter(within).count() as i128
        };
        // Times the period, so that all is whole.
        let used = in_window(start_s - period_s) * (period_s - into_s)
            + (in_window(start_s) + i128::from(cost)) * period_s;
        let is_allowed = used <= i128::from(limit.count) * period_s;
        if is_allowed {
            allowed.push(request.at_s);
        }
        is_allowed
    })
}

/// The formula of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enforced {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
}

/// By which of several limits each request is refused, from what they promise alone: a request is allowed
/// if each has room for it beside all that was allowed. `None` for a malformed line. Takes time by the
/// square of the log.
pub(crate) fn refused_by_several(
    requests: &[Option<Request>],
    limits: &[(Limit, Enforced)],
    cost: u64,
) -> Vec<Option<Vec<bool>>> {
    let mut allowed: HashMap<&[u8], Vec<i64>> = HashMap::new();
    let mut refused = Vec::new();
    for request in requests {
        let Some(request) = request else {
            refused.push(None);
            continue;
        };
        let allowed = allowed.entry(&request.key).or_default();
        allowed.push(request.at_s);
        let refuses =
            |(limit, enforced): &(Limit, Enforced)| !has_room(allowed, *limit, *enforced, cost);
        let refused_by: Vec<bool> = limits.iter().map(refuses).collect();
        if refused_by.contains(&true) {
            allowed.pop();
        }
        refused.push(Some(refused_by));
    }
    refused
}

/// Whether the limit's promise holds with the last of the `times`, given that it does without it.
fn has_room(times: &[i64], limit: Limit, enforced: Enforced, cost: u64) -> bool {
    let (cost, period_s) = (i128::from(cost), i128::from(limit.period_s));
    let (count, burst) = (i128::from(limit.count), i128::from(limit.burst));
    let times: Vec<i128> = times.iter().map(|time_s| i128::from(*time_s)).collect();
    let last_s = times[times.len() - 1];
    let into_s = last_s.rem_euclid(period_s);
    let in_window = |from_s: i128| {
        let within = |at_s: &&i128| (from_s..from_s + period_s).contains(*at_s);
        cost * times.iter().filter(within).count() as i128
    };
    let start_s = last_s - into_s;
    match enforced {
        Enforced::TokenBucket => times.iter().enumerate().all(|(index, from_s)| {
            let held = cost * (times.len() - index) as i128;
            held * period_s <= burst * period_s + count * (last_s - from_s)
        }),
        Enforced::FixedWindow => in_window(start_s) <= count,
        Enforced::SlidingWindow => {
            in_window(start_s - period_s) * (period_s - into_s) + in_window(start_s) * period_s
                <= count * period_s
        }
    }
}

fn verdicts<'a>(
    requests: &'a [Option<Request>],
    mut decide: impl FnMut(&'a Request) -> bool,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for request in requests {
        verdicts.push(match request {
            None => Verdict::Malformed,
            Some(request) if decide(request) => Verdict::Allowed,
            Some(_) => Verdict::Refused,
        });
    }
    verdicts
}

/// How a field is set off from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Bare,
    Bracket,
    Quote,
}

/// Reads a line byte by byte into marked fields; one that is not closed is not there.
fn fields(line: &[u8]) -> Vec<(Mark, Vec<u8>)> {
    let mut fields = Vec::new();
    let mut open: Option<(Mark, Vec<u8>)> = None;
    let mut escaped = false;
    for &byte in line {
        let Some((mark, bytes)) = &mut open else {
            open = match byte {
                b' ' => None,
                b'[' => Some((Mark::Bracket, Vec::new())),
                b'"' => Some((Mark::Quote, Vec::new())),
                other => Some((Mark::Bare, vec![other])),
            };
            continue;
        };
        let closes = match mark {
            Mark::Bare => byte == b' ',
            Mark::Bracket => byte == b']',
            Mark::Quote => byte == b'"' && !escaped,
        };
        escaped = *mark == Mark::Quote && byte == b'\\' && !escaped;
        if closes {
            fields.extend(open.take());
        } else {
            bytes.push(byte);
        }
    }
    if let Some((Mark::Bare, bytes)) = open {
        fields.push((Mark::Bare, bytes));
    }
    fields
}

fn request(line: &[u8], field: usize) -> Option<Request> {
    let line = match line.split_last() {
        Some((b'\r', before)) => before,
        _ => line,
    };
    if line.first() == Some(&b' ') {
        return None;
    }
    let fields = fields(line);
    let shape = [
        Mark::Bare,
        Mark::Bare,
        Mark::Bare,
        Mark::Bracket,
        Mark::Quote,
        Mark::Bare,
        Mark::Bare,
    ];
    if fields.len() < shape.len() {
        return None;
    }
    for (field, mark) in fields.iter().zip(shape) {
        if field.0 != mark {
            return None;
        }
    }
    let is_number = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let (status, size) = (&fields[5].1, &fields[6].1);
    if status != b"-" && !(is_number(status) && status.len() == 3) {
        return None;
    }
    if size != b"-" && !is_number(size) {
        return None;
    }
    let at_s = unix_s(&fields[3].1)?;
    let key = fields.get(field)?.1.clone();
    if key.is_empty() || key.len() > 1024 {
        return None;
    }
    Some(Request { key, at_s })
}

/// Seconds since the epoch of `17/May/2015:10:05:03 +0000`.
fn unix_s(stamp: &[u8]) -> Option<i64> {
    let stamp = std::str::from_utf8(stamp).ok()?;
    let (civil, zone) = stamp.split_once(' ')?;
    let parts: Vec<&str> = civil.split(['/', ':']).collect();
    let [day, month, year, hour, minute, second] = parts[..] else {
        return None;
    };
    // Each mark in its place.
    if civil != format!("{day}/{month}/{year}:{hour}:{minute}:{second}") {
        return None;
    }
    let names = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    let month = names.split(' ').position(|name| name == month)?;
    let year = digits(year, 4)?;
    let day = digits(day, 2)?;
    if day < 1 || day > days_of_month(year, month) {
        return None;
    }
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (zone_hour, zone_minute) = (digits(zone.get(1..3)?, 2)?, digits(zone.get(3..)?, 2)?);
    if zone_hour > 23 || zone_minute > 59 {
        return None;
    }
    let local = days_before(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let unix_s = local - sign * (zone_hour * 3_600 + zone_minute * 60);
    // What fits 64 bits of nanoseconds.
    (unix_s.abs() <= 9_223_372_036).then_some(unix_s)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let good = text.len() == count && text.chars().all(|character| character.is_ascii_digit());
    good.then(|| text.parse().ok()).flatten()
}

fn is_leap(year: i64) -> bool {
    year % 400 == 0 || year % 4 == 0 && year % 100 != 0
}

/// Months count from 0.
fn days_of_month(year: i64, month: usize) -> i64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

/// Days from 1 January 1970 to a date of the Gregorian calendar, counted year by year and month by
/// month.
pub(crate) fn days_before(year: i64, month: usize, day: i64) -> i64 {
    let year_days = |year| if is_leap(year) { 366 } else { 365 };
    let years: i64 = if year >= 1970 {
        (1970..year).map(year_days).sum()
    } else {
        -(year..1970).map(year_days).sum::<i64>()
    };
    let months: i64 = (0..month).map(|month| days_of_month(year, month)).sum();
    years + months + day - 1
}
