//! The trace context of a run, in the W3C's form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A valid `traceparent`, such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext(String);

/// Error for a text that is not a [`TraceContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a traceparent has the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, in lower case and not all zero")]
pub struct InvalidTraceContext;

// === impl TraceContext ===

impl TraceContext {
    /// Returns the value of the header `traceparent`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id of the trace: 32 hex digits.
    pub fn trace_id(&self) -> &str {
        self.0.split('-').nth(1).unwrap_or_default()
    }

    /// Returns the id of the span: 16 hex digits.
    pub fn span_id(&self) -> &str {
        self.0.split('-').nth(2).unwrap_or_default()
    }

    /// Returns true if the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        let flags = self.0.split('-').nth(3).unwrap_or_default();
        u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    fn from_str(text: &str) -> Result<Self, InvalidTraceContext> {
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace, span, flags] = parts.as_slice() else {
            return Err(InvalidTraceContext);
        };
        let is_hex = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let formed = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        if !formed || *version == "ff" || is_zero(trace) || is_zero(span) {
            return Err(InvalidTraceContext);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for TraceContext {
    type Error = InvalidTraceContext;

    fn try_from(text: String) -> Result<Self, InvalidTraceContext> {
        text.parse()
    }
}

impl From<TraceContext> for String {
    fn from(context: TraceContext) -> Self {
        context.0
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_valid_value_is_kept() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context: TraceContext = text.parse().unwrap();
        assert_eq!(
            (context.as_str(), context.trace_id(), context.span_id()),
            (text, "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
        );
    }

    #[rstest]
    #[case("00", false)]
    #[case("01", true)]
    #[case("02", false)]
    #[case("ff", true)]
    fn the_lowest_flag_tells_that_a_trace_is_recorded(#[case] flags: &str, #[case] is_sampled: bool) {
        let context: TraceContext = format!("00-{}-{}-{flags}", "a".repeat(32), "b".repeat(16)).parse().unwrap();
        assert_eq!(context.is_sampled(), is_sampled);
    }

    #[rstest]
    #[case("")]
    #[case("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01")]
    #[case("00-00000000000000000000000000000000-b7ad6b7169203331-01")]
    #[case("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01")]
    #[case("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
    #[case("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x")]
    #[case("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331\r\n-1")]
    fn invalid_values_are_refused(#[case] text: &str) {
        assert_eq!(text.parse::<TraceContext>(), Err(InvalidTraceContext));
    }
}
