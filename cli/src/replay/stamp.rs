//! The time of a log line, `17/May/2015:10:05:03 +0000`: owns its layout and which stamps are times;
//! the calendar is jiff's. Never reads a clock or the machine's zone.

use jiff::civil::DateTime;
use jiff::tz::Offset;

/// How many bytes a stamp has.
pub(crate) const STAMP_BYTES: usize = 26;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Nanoseconds since the Unix epoch, or `None` where the text is not a time between 1677-09-21 and
/// 2262-04-11, the span that 64 bits hold.
///
/// A second of 60 is taken as POSIX counts it: the first second of the next minute.
pub(crate) fn unix_ns(stamp: &[u8]) -> Option<i64> {
    let stamp: &[u8; STAMP_BYTES] = stamp.try_into().ok()?;
    let punctuated = [
        (2, b'/'),
        (6, b'/'),
        (11, b':'),
        (14, b':'),
        (17, b':'),
        (20, b' '),
    ];
    if punctuated.iter().any(|&(at, byte)| stamp[at] != byte) {
        return None;
    }
    let month = MONTHS.iter().position(|name| stamp[3..6] == name[..])? + 1;
    let year = i16::from(two(stamp, 7)?) * 100 + i16::from(two(stamp, 9)?);
    let second = two(stamp, 18)?;
    let leap = second == 60;
    let civil = DateTime::new(
        year,
        i8::try_from(month).ok()?,
        two(stamp, 0)?,
        two(stamp, 12)?,
        two(stamp, 15)?,
        if leap { 59 } else { second },
        0,
    )
    .ok()?;
    let local = Offset::UTC.to_timestamp(civil).ok()?.as_second() + i64::from(leap);
    (local - zone_seconds(stamp)?).checked_mul(1_000_000_000)
}

/// How far the stamp's zone is ahead of UTC.
fn zone_seconds(stamp: &[u8; STAMP_BYTES]) -> Option<i64> {
    let (hours, minutes) = (two(stamp, 22)?, two(stamp, 24)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = i64::from(hours) * 3_600 + i64::from(minutes) * 60;
    match stamp[21] {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// The number that two digits write.
fn two(stamp: &[u8; STAMP_BYTES], at: usize) -> Option<i8> {
    let (tens, units) = (stamp[at], stamp[at + 1]);
    if !tens.is_ascii_digit() || !units.is_ascii_digit() {
        return None;
    }
    i8::try_from((tens - b'0') * 10 + (units - b'0')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_stamps_are_read() {
        // Right-hand sides from `date -u -d … +%s`.
        let cases: [(&str, i64); 17] = [
            ("01/Jan/1970:00:00:00 +0000", 0),
            ("17/May/2015:10:05:03 +0000", 1_431_857_103),
            ("17/May/2015:10:05:03 +0200", 1_431_849_903),
            ("17/May/2015:10:05:03 -0930", 1_431_891_303),
            ("17/May/2015:10:05:03 -0000", 1_431_857_103),
            ("31/Dec/1969:23:59:59 +0000", -1),
            ("01/Jan/1970:00:00:00 +0001", -60),
            ("31/Dec/1969:23:00:00 -0100", 0),
            ("29/Feb/2000:12:00:00 +0000", 951_825_600),
            ("01/Mar/1900:00:00:00 +0000", -2_203_891_200),
            ("31/Dec/2016:23:59:60 +0000", 1_483_228_800),
            ("01/Jan/2017:00:00:00 +0000", 1_483_228_800),
            ("01/Jul/2015:05:29:60 +0530", 1_435_708_800),
            ("28/Feb/2100:23:59:59 +1400", 4_107_491_999),
            ("01/Jan/2100:00:00:00 -2359", 4_102_531_140),
            ("11/Apr/2262:23:47:16 +0000", 9_223_372_036),
            ("21/Sep/1677:00:12:44 +0000", -9_223_372_036),
        ];
        for (text, seconds) in cases {
            let expected = seconds * 1_000_000_000;
            assert_eq!(unix_ns(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn bad_stamps_are_refused() {
        let cases = [
            "",
            "17/May/2015:10:05:03",
            "17/May/2015:10:05:03 +000",
            "17/May/2015:10:05:03 +00000",
            "17/May/2015:10:05:03  0000",
            "17/May/2015:10:05:03 00000",
            "17/may/2015:10:05:03 +0000",
            "17/Mai/2015:10:05:03 +0000",
            "00/May/2015:10:05:03 +0000",
            "32/May/2015:10:05:03 +0000",
            "31/Apr/2015:10:05:03 +0000",
            "29/Feb/2015:10:05:03 +0000",
            "29/Feb/1900:10:05:03 +0000",
            "17/May/2015:24:00:00 +0000",
            "17/May/2015:10:60:03 +0000",
            "17/May/2015:10:05:61 +0000",
            "17/May/2015:10:05:03 +2400",
            "17/May/2015:10:05:03 +0060",
            "17/May/2015:10:05:03 +0a00",
            "17-May-2015:10:05:03 +0000",
            "17/May/2015 10:05:03 +0000",
            " 7/May/2015:10:05:03 +0000",
            "+7/May/2015:10:05:03 +0000",
            "17/May/-015:10:05:03 +0000",
            "11/Apr/2262:23:47:17 +0000",
            "21/Sep/1677:00:12:43 +0000",
            "01/Jan/9999:00:00:00 +0000",
            "01/Jan/0000:00:00:00 +0000",
            "17/M\u{e9}/2015:10:05:03 +0000",
        ];
        for text in cases {
            assert_eq!(unix_ns(text.as_bytes()), None, "{text}");
        }
    }
}
