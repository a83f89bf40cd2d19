//! Whole numbers as arguments: owns what is said of one that is none, or out of its bounds.

use std::ops::RangeInclusive;

/// Reads a number within `bounds`, for a value parser.
pub(crate) fn within<T: TryFrom<u64>>(
    bounds: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        // `u64::from_str` would take a plus sign.
        let number = text
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten()
            .filter(|number| bounds.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                let (min, max) = bounds.clone().into_inner();
                format!("it must be a whole number from {min} to {max}")
            })
    }
}

/// Reads a number with a sign of 64 bits, for a value parser.
pub(crate) fn signed(text: &str) -> Result<i64, String> {
    // `i64::from_str` would take a plus sign.
    let digits = text.strip_prefix('-').unwrap_or(text);
    Some(text)
        .filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            format!(
                "it must be a whole number from {} to {}",
                i64::MIN,
                i64::MAX
            )
        })
}

#[cfg(test)]
mod tests {
    use super::{signed, within};

    #[test]
    fn a_signed_number_is_digits_behind_a_minus_sign_or_none() {
        for number in [0, 7, -7, i64::MIN, i64::MAX] {
            assert_eq!(signed(&number.to_string()), Ok(number));
        }
        for text in ["", "-", "+1", "--1", "1.5", " 1", "9223372036854775808"] {
            assert!(signed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_is_digits_within_its_bounds() {
        let parse = within::<u32>(1..=256);
        for (text, expected) in [("1", Some(1)), ("256", Some(256)), ("007", Some(7))] {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
        for text in [
            "",
            "0",
            "257",
            "-1",
            "+1",
            "1.5",
            "1e2",
            " 1",
            "99999999999999999999",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("from 1 to 256"), "{text}: {error}");
        }
    }
}
