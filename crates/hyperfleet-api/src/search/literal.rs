//! Literals, before the field decides their type.

use jiff::Timestamp;

/// The right side of a comparison.
#[derive(Clone, Debug)]
pub(super) enum Literal {
    Text(String),
    Number(Number),
    /// A date or a time without quotes.
    Time(Time),
    Bool(bool),
}

/// A time, or a date, which stands for its first midnight in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// In microseconds since 1970.
    pub(super) microsecond: i64,
    pub(super) is_date: bool,
}

/// A number, as an integer where it is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    /// The integer; `None` if the number has a fraction.
    pub(super) whole: Option<i64>,
    pub(super) real: f64,
}

/// The suffixes of numbers, each with base and power of its factor.
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

/// Parses a time (RFC 3339) or a date.
pub(super) fn time(text: &str) -> Option<Time> {
    let is_date = text.len() == "2026-01-31".len();
    let midnight = format!("{text}T00:00:00Z");
    let time: Timestamp = if is_date { midnight.as_str() } else { text }.parse().ok()?;
    Some(Time { microsecond: time.as_microsecond(), is_date })
}

// === impl Number ===

impl Number {
    /// Parses a number; `None` if it is none or exceeds 64 bits.
    pub(super) fn parse(text: &str, negative: bool) -> Option<Self> {
        let found = SUFFIXES.iter().find_map(|(suffix, base, power)| Some((text.strip_suffix(suffix)?, *base, *power)));
        let (digits, base, power) = found.unwrap_or((text, 10, 0));
        let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let whole = signed.parse::<i64>().ok()?.checked_mul(i64::from(base).checked_pow(power)?)?;
            return Some(Self { whole: Some(whole), real: whole.to_string().parse().ok()? });
        }
        // Rust would also parse `inf`, `nan` and `.5`; here a number begins with a digit.
        let real = signed.parse::<f64>().ok()? * f64::from(base).powi(i32::try_from(power).ok()?);
        let rounded = format!("{real:.0}").parse::<i64>().ok()?;
        Some(Self { whole: (real.fract() == 0.0).then_some(rounded), real })
    }
}
