//! The wait that a response requests.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The longest wait that is understood: who asks for more means "not today".
const LONGEST: Duration = Duration::from_hours(24);

/// The wait that a `Retry-After` asks for, given in seconds or as a date.
pub(crate) fn wait(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = if let Ok(seconds) = value.parse::<u32>() {
        Duration::from_secs(u64::from(seconds))
    } else {
        let date = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
        Duration::try_from(date.duration_since(now)).unwrap_or_default()
    };
    Some(wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("7", Some(7))]
    #[case(" 0 ", Some(0))]
    #[case("Wed, 21 Oct 2015 07:28:30 GMT", Some(30))]
    #[case("Wed, 21 Oct 2015 07:27:00 GMT", Some(0))]
    #[case("4000000000", Some(86_400))]
    #[case("-1", None)]
    #[case("soon", None)]
    fn both_forms_are_understood(#[case] value: &str, #[case] seconds: Option<u64>) {
        let now = "2015-10-21T07:28:00Z".parse().unwrap();
        assert_eq!(wait(value, now), seconds.map(Duration::from_secs));
    }
}
