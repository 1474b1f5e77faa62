//! Literals as they are written, before a field says what they must be.

use jiff::Timestamp;

/// What stands on the right of a comparison.
#[derive(Clone, Debug)]
pub(super) enum Literal {
    Text(String),
    Number(Number),
    /// A date or a time without quotes, in microseconds since 1970.
    Time(i64),
    Bool(bool),
}

/// A number, as whole as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    /// Unless it has a fraction.
    pub(super) whole: Option<i64>,
    pub(super) real: f64,
}

/// What may follow a number: base and power of the factor.
const SUFFIXES: &[(&str, u32, u32)] = &[
    ("Ki", 2, 10),
    ("Mi", 2, 20),
    ("Gi", 2, 30),
    ("Ti", 2, 40),
    ("Pi", 2, 50),
    ("Ei", 2, 60),
    ("k", 10, 3),
    ("K", 10, 3),
    ("M", 10, 6),
    ("G", 10, 9),
    ("T", 10, 12),
    ("P", 10, 15),
    ("E", 10, 18),
];

/// A time in microseconds since 1970: RFC 3339, or a date for the midnight (UTC) that begins it.
pub(super) fn time(text: &str) -> Option<i64> {
    let midnight = format!("{text}T00:00:00Z");
    let written = if text.len() == "2026-01-31".len() { midnight.as_str() } else { text };
    written.parse().ok().map(Timestamp::as_microsecond)
}

// === impl Number ===

impl Number {
    /// Nothing if it is no number, or not within 64 bits.
    pub(super) fn parse(text: &str, negative: bool) -> Option<Self> {
        let found = SUFFIXES.iter().find_map(|(suffix, base, power)| Some((text.strip_suffix(suffix)?, *base, *power)));
        let (digits, base, power) = found.unwrap_or((text, 10, 0));
        let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let whole = signed.parse::<i64>().ok()?.checked_mul(i64::from(base).checked_pow(power)?)?;
            return Some(Self { whole: Some(whole), real: whole.to_string().parse().ok()? });
        }
        // Rust would also read `inf`, `nan` and `.5`; the language begins a number with a digit.
        let real = signed.parse::<f64>().ok()? * f64::from(base).powi(i32::try_from(power).ok()?);
        let rounded = format!("{real:.0}").parse::<i64>().ok()?;
        Some(Self { whole: (real.fract() == 0.0).then_some(rounded), real })
    }
}
