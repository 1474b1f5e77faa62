//! Quantities of resources, as `500m` or `1Gi`: read, compared, and written as the real server writes them.

/// A quantity in thousandths, and the suffixes that it is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    thousandths: i128,
    is_binary: bool,
}

/// Suffixes of powers of ten and of two, with their factors in thousandths.
const DECIMAL: [(&str, i128); 8] = [
    ("E", 1_000_000_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("G", 1_000_000_000_000),
    ("M", 1_000_000_000),
    ("k", 1_000_000),
    ("", 1_000),
    ("m", 1),
];

const BINARY: [(&str, i128); 7] = [
    ("Ei", 1_000 << 60),
    ("Pi", 1_000 << 50),
    ("Ti", 1_000 << 40),
    ("Gi", 1_000 << 30),
    ("Mi", 1_000 << 20),
    ("Ki", 1_000 << 10),
    ("", 1_000),
];

impl Quantity {
    /// None if the text is no quantity. Parts smaller than a thousandth are rounded up.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits = text.find(|character: char| !character.is_ascii_digit() && !"+-.".contains(character));
        let (number, suffix) = text.split_at(digits.unwrap_or(text.len()));
        let binary = BINARY.iter().find(|(name, _)| *name == suffix && !suffix.is_empty());
        let decimal = DECIMAL.iter().find(|(name, _)| *name == suffix);
        let (factor, is_binary) = match (binary, decimal) {
            (Some((_, factor)), _) => (*factor, true),
            (None, Some((_, factor))) => (*factor, false),
            (None, None) => (exponent(suffix)?, false),
        };
        let (is_negative, number) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number.strip_prefix('+').unwrap_or(number)),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || whole.len() + fraction.len() > 15 {
            return None;
        }
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        let value = format!("{whole}{fraction}").parse::<u64>().ok()?;
        let scaled = i128::from(value) * factor;
        let thousandths = scaled / scale + i128::from(scaled % scale != 0);
        Some(Self { thousandths: if is_negative { -thousandths } else { thousandths }, is_binary })
    }

    pub(crate) fn is_negative(self) -> bool {
        self.thousandths < 0
    }

    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.thousandths > other.thousandths
    }
}

/// The factor of an exponent such as `e3`.
fn exponent(suffix: &str) -> Option<i128> {
    let exponent: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    10_i128.checked_pow(exponent.min(18)).map(|power| power * 1_000)
}

impl std::fmt::Display for Quantity {
    /// With the largest suffix that needs no fraction.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let binary = self.is_binary && self.thousandths % 1_000 == 0 && self.thousandths.abs() >= 1_024_000;
        let suffixes = if binary { BINARY.as_slice() } else { DECIMAL.as_slice() };
        let fits = suffixes.iter().find(|(_, factor)| self.thousandths % factor == 0);
        match fits.filter(|_| self.thousandths != 0) {
            Some((suffix, factor)) => write!(formatter, "{}{suffix}", self.thousandths / factor),
            None => formatter.write_str("0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("0.5", "500m")]
    #[case("1024Mi", "1Gi")]
    #[case("1.5Gi", "1536Mi")]
    #[case("1000000", "1M")]
    #[case("100m", "100m")]
    #[case("1000m", "1")]
    #[case("0", "0")]
    #[case("-2", "-2")]
    #[case("1Ki", "1Ki")]
    #[case("512Ki", "512Ki")]
    #[case("2e3", "2k")]
    fn quantities_are_written_canonically(#[case] given: &str, #[case] written: &str) {
        assert_eq!(Quantity::read(given).unwrap().to_string(), written);
    }

    #[rstest::rstest]
    #[case("")]
    #[case("1 GB")]
    #[case("1GB")]
    #[case("Gi")]
    #[case("1..2")]
    #[case("--1")]
    fn other_texts_are_no_quantities(#[case] text: &str) {
        assert_eq!(Quantity::read(text), None);
    }
}
