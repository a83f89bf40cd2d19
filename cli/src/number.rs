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

#[cfg(test)]
mod tests {
    use super::within;

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
