//! The grammar of durations, one for all settings: whole numbers with the units `h`, `m`, `s` and `ms`, the largest first.

use std::time::Duration;

use super::row::Row;

/// Requirement of a duration, for messages.
pub const MUST: &str = "must be a duration such as 500ms, 5s, 1m30s or 168h";

/// Greatest duration of a setting without bounds, ten years: arithmetic on it cannot overflow.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// Reads a duration such as `500ms`, `5s`, `1m30s` or `168h`; `None` for any other text.
///
/// It is read by jiff. Of jiff's grammar signs, fractions, blanks, long names of units and ISO 8601 are left out: Go
/// programs and Kubernetes manifests read the rest alike.
pub fn parse(text: &str) -> Option<Duration> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"hms".contains(&byte));
    let parsed: jiff::SignedDuration = if is_plain { text.parse().ok()? } else { return None };
    parsed.try_into().ok()
}

// === impl Row ===

impl Row {
    /// The duration that a text stands for, within the setting's bounds.
    ///
    /// # Errors
    ///
    /// The text must be something else, which the message says without quoting it.
    pub fn duration(&self, text: &str) -> Result<Duration, String> {
        let is_within = |duration: &Duration| {
            parse(self.least).is_none_or(|least| least <= *duration) && *duration <= parse(self.most).unwrap_or(LONGEST)
        };
        parse(text).filter(is_within).ok_or_else(|| match self.bounds().as_str() {
            "" => MUST.to_owned(),
            _ => format!("must be a duration{}, such as 500ms, 5s or 1m30s", self.of_bounds()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_go() {
        let right = [
            ("500ms", 500),
            ("5s", 5_000),
            ("90s", 90_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("168h", 604_800_000),
            ("5m0s", 300_000),
            ("0s", 0),
        ];
        for (text, expected) in right {
            assert_eq!(parse(text), Some(Duration::from_millis(expected)), "{text}");
        }
        let wrong = [
            "",
            "5",
            "90",
            "s",
            "-1s",
            "+1s",
            "1.5s",
            "1d",
            "5 s",
            "1s ago",
            "PT5S",
            "1hour",
            "1s1m",
            "5s5s",
            "1mms",
            "99999999999999999999s",
        ];
        for text in wrong {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
