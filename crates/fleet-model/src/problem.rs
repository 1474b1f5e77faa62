//! The codes of problems: one declaration for the two APIs that answer with them.

/// Declares the codes of the problems (RFC 9457) that an API answers with: each with its meaning, its code after `HYPERFLEET-`, its
/// status, its title, and the end of its type. The crate that declares them needs `http`.
#[macro_export]
macro_rules! problem_codes {
    (
        $(#[$about:meta])* $visibility:vis enum $codes:ident {
            $($(#[doc = $meaning:literal])+ $name:ident = $code:literal, $status:ident, $title:literal, $tail:literal;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $codes {
            $($(#[doc = $meaning])+ $name,)+
        }

        impl $codes {
            /// Every code, in the order of the reference page.
            $visibility const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the code as it is written, such as `HYPERFLEET-VAL-000`.
            $visibility fn as_str(self) -> &'static str {
                match self { $(Self::$name => concat!("HYPERFLEET-", $code),)+ }
            }

            /// Returns the status of the answer.
            $visibility fn status(self) -> ::http::StatusCode {
                match self { $(Self::$name => ::http::StatusCode::$status,)+ }
            }

            /// Returns the title of the problem.
            $visibility fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// Returns the type of the problem.
            $visibility fn uri(self) -> &'static str {
                match self { $(Self::$name => concat!("https://api.hyperfleet.io/errors/", $tail),)+ }
            }

            /// Returns the sentence that describes the code in the reference.
            $visibility fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($meaning),+).trim_ascii_start(),)+ }
            }
        }
    };
}
