//! The macro that declares a closed list of reasons.

/// Declares a closed list of reasons: one enum that feeds conditions, logs, metrics, Events and the reference pages.
///
/// Each variant's doc comment is its meaning, in sentences for the person who reads the reason. The name on the wire is
/// the variant's name, or the text after `=`.
///
/// ```
/// fleet_model::reasons! {
///     /// Reason of a demonstration.
///     pub enum Reason {
///         /// The object is up to date.
///         UpToDate,
///         /// The API server refused the request:
///         /// check the RBAC rules.
///         ApiFailure = "APIFailure",
///     }
/// }
///
/// assert_eq!(Reason::ALL, [Reason::UpToDate, Reason::ApiFailure]);
/// assert_eq!(Reason::ApiFailure.to_string(), "APIFailure");
/// assert_eq!(Reason::ApiFailure.meaning(), "The API server refused the request: check the RBAC rules.");
/// assert_eq!(Reason::parse("APIFailure"), Some(Reason::ApiFailure));
///
/// // Further data per variant is a `match` of its own.
/// impl Reason {
///     fn is_warning(self) -> bool {
///         matches!(self, Self::ApiFailure)
///     }
/// }
/// assert!(Reason::ApiFailure.is_warning() && !Reason::UpToDate.is_warning());
/// ```
#[macro_export]
macro_rules! reasons {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[doc = $meaning:literal])+ $variant:ident $(= $text:literal)?,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[doc = $meaning])+ $variant,)+
        }

        impl $name {
            /// Every reason, in the order of declaration, which is the order of the reference page.
            $visibility const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            /// Returns the reason as conditions, logs and metrics write it.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $crate::reasons!(@text $variant $($text)?),)+
                }
            }

            /// Returns what the reason means and what to do about it, in sentences.
            $visibility const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($meaning),+).trim_ascii(),)+
                }
            }

            /// Returns the reason that is written as `text`.
            $visibility fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|reason| reason.as_str() == text)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
    (@text $variant:ident) => { stringify!($variant) };
    (@text $variant:ident $text:literal) => { $text };
}

#[cfg(test)]
mod tests {
    crate::reasons! {
        /// Reason of these tests.
        enum Reason {
            /// One line.
            First,
            /// Two
            /// lines.
            Second = "second",
        }
    }

    #[test]
    fn reasons_are_listed_in_the_order_of_declaration() {
        assert_eq!(Reason::ALL, [Reason::First, Reason::Second]);
        assert!(Reason::ALL.is_sorted());
    }

    #[test]
    fn the_doc_comment_is_the_meaning() {
        assert_eq!(Reason::ALL.map(Reason::meaning), ["One line.", "Two lines."]);
    }

    #[test]
    fn names_are_written_and_parsed_alike() {
        assert_eq!(Reason::ALL.map(|reason| reason.to_string()), ["First", "second"]);
        assert_eq!(Reason::ALL.map(|reason| Reason::parse(reason.as_str())), Reason::ALL.map(Some));
        assert_eq!(Reason::parse("Second"), None);
    }
}
