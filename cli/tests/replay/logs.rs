//! Makes access logs from a seed, good lines and bad ones: owns what they look like, never what they
//! should lead to.

use fastrand::Rng;

/// How the times of a log go on from line to line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Many requests in the same second.
    Crowd,
    /// A few seconds forward.
    Walk,
    /// Around the ends of periods.
    Edges,
    /// Anything from seconds to years forward.
    Leaps,
    /// Back and forth.
    Shuffle,
}

const PACES: [Pace; 5] = [
    Pace::Crowd,
    Pace::Walk,
    Pace::Edges,
    Pace::Leaps,
    Pace::Shuffle,
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Where the zones of a log are, in minutes ahead of UTC: some of them of real places, some not.
const ZONES: [i64; 9] = [0, 0, 60, 120, -210, 345, 840, -720, 1439];

/// When a log may begin: around the epoch, before it, at the end of a leap year and of a century, today.
const STARTS: [i64; 7] = [
    -40,
    -86_400 * 365 - 7,
    -2_203_891_200 - 30,
    951_782_400 - 20,
    1_483_228_800 - 10,
    1_431_857_103,
    4_107_542_400 - 15,
];

/// A log of about `lines` lines.
pub(crate) fn log(seed: u64, lines: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let keys = keys(&mut random);
    let pace = PACES[random.usize(..PACES.len())];
    let start_s = STARTS[random.usize(..STARTS.len())];
    let one_zone = random.bool().then(|| zone(&mut random));
    let bad_share = random.f64() * 0.3;
    let mut at_s = start_s;
    let mut log = Vec::new();
    for _ in 0..lines {
        at_s = next(&mut random, pace, start_s, at_s);
        if random.f64() < bad_share {
            bad_line(&mut random, &mut log, at_s);
        } else {
            let key = &keys[random.usize(..keys.len())];
            let zone_min = one_zone.unwrap_or_else(|| zone(&mut random));
            let stamp = stamp(&mut random, at_s, zone_min);
            good_line(&mut random, &mut log, key, &stamp);
        }
        log.extend_from_slice(if random.u8(..9) == 0 { b"\r\n" } else { b"\n" });
    }
    if random.bool() {
        log.pop();
    }
    log
}

/// The lines of `log` in another order.
pub(crate) fn shuffled(log: &[u8], seed: u64) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = log.split(|&byte| byte == b'\n').collect();
    Rng::with_seed(seed).shuffle(&mut lines);
    lines.join(&b'\n')
}

fn next(random: &mut Rng, pace: Pace, start_s: i64, at_s: i64) -> i64 {
    let step = match pace {
        Pace::Crowd => i64::from(random.u8(..40) == 0),
        Pace::Walk => random.i64(0..4),
        Pace::Edges => {
            let period = [60, 3_600, 86_400][random.usize(..3)];
            let to_edge = period - at_s.rem_euclid(period);
            [0, 1, to_edge - 1, to_edge][random.usize(..4)]
        }
        Pace::Leaps => {
            let most = [1, 60, 3_600, 86_400, 40 * 86_400, 500 * 86_400][random.usize(..6)];
            random.i64(0..=most)
        }
        Pace::Shuffle => return start_s + random.i64(0..20_000),
    };
    // Stay clear of the calendar's end; the tables of stamps go there.
    if at_s + step > 9_000_000_000 {
        start_s
    } else {
        at_s + step
    }
}

/// A handful of keys with the most awkward bytes that a bare field can have.
fn keys(random: &mut Rng) -> Vec<Vec<u8>> {
    let mut keys = vec![b"10.0.0.1".to_vec()];
    for _ in 0..random.usize(..8) {
        keys.push(match random.u8(..6) {
            0 => vec![random.u8(0x80..)],
            1 => b"2001:db8::1".to_vec(),
            2 => bytes(random, 1_024),
            3 => b"a\\\"b]".to_vec(),
            _ => {
                let length = random.usize(1..20);
                bytes(random, length)
            }
        });
    }
    keys
}

/// Bytes that are not a blank, a line end, or the mark of another kind of field.
fn bytes(random: &mut Rng, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let byte = random.u8(..);
        if !b" \n\r[\"".contains(&byte) {
            bytes.push(byte);
        }
    }
    bytes
}

fn zone(random: &mut Rng) -> i64 {
    ZONES[random.usize(..ZONES.len())]
}

/// The stamp of a time in a zone; sometimes as the leap second of the minute before.
fn stamp(random: &mut Rng, at_s: i64, zone_min: i64) -> String {
    let local_s = at_s + zone_min * 60;
    let leap = local_s.rem_euclid(60) == 0 && random.bool();
    let shown_s = local_s - i64::from(leap);
    let (year, month, day) = civil(shown_s.div_euclid(86_400));
    let second_of_day = shown_s.rem_euclid(86_400);
    let (hour, minute) = (second_of_day / 3_600, second_of_day / 60 % 60);
    let second = second_of_day % 60 + i64::from(leap);
    let sign = if zone_min < 0 || zone_min == 0 && random.bool() {
        '-'
    } else {
        '+'
    };
    let (zone_hour, zone_minute) = (zone_min.abs() / 60, zone_min.abs() % 60);
    format!(
        "{day:02}/{}/{year:04}:{hour:02}:{minute:02}:{second:02} {sign}{zone_hour:02}{zone_minute:02}",
        MONTHS[month]
    )
}

/// The stamp of a time in UTC.
pub(crate) fn utc_stamp(at_s: i64) -> String {
    let (year, month, day) = civil(at_s.div_euclid(86_400));
    let second = at_s.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!(
        "{day:02}/{}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000",
        MONTHS[month]
    )
}

/// The date of a day since 1970, by the 400-year cycle that begins in March. Months count from 0.
pub(crate) fn civil(day: i64) -> (i64, usize, i64) {
    let day = day + 719_468;
    let cycle = day.div_euclid(146_097);
    let of_cycle = day.rem_euclid(146_097);
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = usize::try_from((from_march + 2) % 12).expect("a month is small");
    let year = year + cycle * 400 + i64::from(month < 2);
    (year, month, day)
}

fn good_line(random: &mut Rng, log: &mut Vec<u8>, key: &[u8], stamp: &str) {
    let requests: [&[u8]; 6] = [
        b"GET / HTTP/1.1",
        b"GET /a?b=\\\"c\\\" HTTP/1.1",
        b"-",
        b"",
        b"\\x16\\x03\xff\x00 [x] \\\\",
        b"POST /\xc3\xa9 HTTP/2.0",
    ];
    let tails: [&[u8]; 6] = [
        b"",
        b" \"-\" \"-\"",
        b" \"http://a/\\\"\" \"agent \\\\\"",
        b" \"-\" \"agent\" 0.012 extra",
        b" \"cut off",
        b" \xff\xfe",
    ];
    let user: &[u8] = if random.bool() { b"-" } else { b"u\xe9" };
    let result: &[u8] = [&b"200 12"[..], b"304 -", b"- 0", b"000 007"][random.usize(..4)];
    log.extend_from_slice(key);
    log.extend_from_slice(b" - ");
    log.extend_from_slice(user);
    log.extend_from_slice(format!(" [{stamp}] \"").as_bytes());
    log.extend_from_slice(requests[random.usize(..requests.len())]);
    log.extend_from_slice(b"\" ");
    log.extend_from_slice(result);
    log.extend_from_slice(tails[random.usize(..tails.len())]);
}

/// A line that is no request, for one reason.
fn bad_line(random: &mut Rng, log: &mut Vec<u8>, at_s: i64) {
    let stamp = stamp(random, at_s, 0);
    let rest = "\"GET / HTTP/1.1\" 200 5 \"-\" \"-\"";
    let good = format!("10.0.0.1 - - [{stamp}] {rest}");
    let line = match random.u8(..18) {
        0 => String::new(),
        1 => "garbage".to_owned(),
        2 => format!(" {good}"),
        3 => format!("10.0.0.1 - [{stamp}] {rest}"),
        4 => format!("10.0.0.1 - - {stamp} {rest}"),
        5 => good.replace("] \"GET", "] GET"),
        6 => format!("10.0.0.1 - - [{stamp}] \"GET / HTTP/1.1\\\" 200 5"),
        7 => good.replace(" 200 ", " 20 "),
        8 => good.replace(" 200 ", " x00 "),
        9 => good.replace(" 200 5", " 200 5k"),
        10 => good.replace(" 200 5 \"-\" \"-\"", " 200"),
        11 => format!("10.0.0.1 - - [31/Apr/2015:10:05:03 +0000] {rest}"),
        12 => format!("10.0.0.1 - - [29/Feb/2015:10:05:03 +0000] {rest}"),
        13 => format!("10.0.0.1 - - [17/May/2015:24:05:03 +0000] {rest}"),
        14 => format!("10.0.0.1 - - [17/May/2015:10:05:61 +0000] {rest}"),
        15 => format!("10.0.0.1 - - [17/May/2999:10:05:03 +0000] {rest}"),
        16 => format!("{} - - [{stamp}] {rest}", "k".repeat(1_025)),
        _ => good[..random.usize(..40)].to_owned(),
    };
    log.extend_from_slice(line.as_bytes());
}
