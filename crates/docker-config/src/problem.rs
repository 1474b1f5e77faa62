//! Problems of a document: their kind, path, position and hint, never a value.

use std::fmt;

/// A position in the document; the first character is line 1, column 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Lines end at a line feed.
    pub line: u32,
    /// Counted in characters, not in bytes.
    pub column: u32,
}

/// The type of a JSON value, for messages about a wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// Any number.
    Number,
    /// Any string.
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// One problem or warning at one position.
///
/// Displayed as `path: message (line l, column c)`.
#[derive(Debug)]
pub struct Problem {
    path: String,
    kind: ProblemKind,
    position: Position,
    other: Option<String>,
}

/// The problems and warnings found so far.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl Findings {
    /// Records a problem and continues without the value.
    pub(crate) fn good<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }
}

impl Position {
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// Returns the position after `text`, if `text` starts here.
    pub(crate) fn after(mut self, text: &str) -> Self {
        for character in text.chars() {
            self.pass(character);
        }
        self
    }

    pub(crate) fn pass(&mut self, character: char) {
        if character == '\n' {
            self.line = self.line.saturating_add(1);
            self.column = 1;
        } else {
            self.column = self.column.saturating_add(1);
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

impl Problem {
    pub(crate) fn new(path: impl fmt::Display, kind: ProblemKind, position: Position) -> Self {
        Self { path: path.to_string(), kind, position, other: None }
    }

    /// Adds the path of the other member of a conflict.
    pub(crate) fn with_other(self, other: impl fmt::Display) -> Self {
        Self { other: Some(other.to_string()), ..self }
    }

    /// The member concerned, such as `auths["quay.io"].auth`; `document` for the whole.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The kind of the problem.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// The start of the offending name or value; something missing is reported at the start of the object that lacks it.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The remedy, if it is not obvious.
    pub fn hint(&self) -> Option<&'static str> {
        self.kind.hint()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.kind)?;
        if let Some(other) = &self.other {
            write!(f, ", {other}")?;
        }
        write!(f, " ({})", self.position)
    }
}

/// Declares every kind once: its stable id, its message, its hint (or "").
macro_rules! kinds {
    ($($variant:ident $({ $($field:ident: $type:ty),+ })?: $id:literal, $message:literal, $hint:literal;)+) => {
        /// The kind of a problem or warning. Its message contains no value of the document.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemKind {
            $(
                #[doc = $message]
                $variant $({
                    $(
                        #[doc = concat!("The `", stringify!($field), "` of the message.")]
                        $field: $type
                    ),+
                })?,
            )+
        }

        impl ProblemKind {
            /// A stable id for programs, in kebab case.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $id,)+
                }
            }

            /// The remedy, if it is not obvious.
            pub fn hint(self) -> Option<&'static str> {
                let hint = match self {
                    $(Self::$variant { .. } => $hint,)+
                };
                (!hint.is_empty()).then_some(hint)
            }
        }

        impl fmt::Display for ProblemKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),+ })? => write!(f, $message),)+
                }
            }
        }

        #[cfg(test)]
        pub(crate) const IDS: &[&str] = &[$($id),+];
    };
}

kinds! {
    // The document as text.
    TooLarge { bytes: usize, allowed: usize }: "too-large", "is {bytes} bytes long, {allowed} are allowed", "keep only the registries that the cluster needs";
    Empty: "empty-document", "is empty", "";
    NotUtf8: "not-utf8", "is not UTF-8 text", "save the document as UTF-8";
    ByteOrderMark: "byte-order-mark", "starts with a byte order mark", "save the document as UTF-8 without a byte order mark";
    EncodedDocument: "encoded-document", "is base64 text, not JSON", "decode the document first, for example with base64 -d";
    KubernetesSecret: "kubernetes-secret", "is a Kubernetes Secret, not a credential document", "take the decoded value of its .dockerconfigjson key";

    // JSON.
    NulByte: "nul-byte", "a NUL byte", "remove it; files padded with NUL bytes are often the result of a broken copy";
    UnexpectedEnd: "unexpected-end", "ends too early", "the document may have been cut off";
    UnterminatedString: "unterminated-string", "a string that does not end", "the document may have been cut off";
    ExpectedValue: "expected-value", "expected a value", "";
    ExpectedName: "expected-name", "expected a member name in double quotes", "";
    ExpectedColon: "expected-colon", "expected a colon", "";
    ExpectedComma: "expected-comma", "expected a comma or a closing bracket", "";
    TrailingComma: "trailing-comma", "a comma with nothing behind it", "remove the comma";
    TrailingContent: "trailing-content", "more text behind the end of the document", "the document is one JSON object and nothing else";
    BadNumber: "bad-number", "not a number as JSON writes it", "";
    BadEscape: "bad-escape", "an escape that JSON does not know", "";
    LoneSurrogate: "lone-surrogate", "half of a surrogate pair", "";
    ControlCharacter: "control-character", "a control character in a string", "write line feeds and tabs as escapes; base64 text is one line";
    TooDeep { allowed: usize }: "too-deep", "nested deeper than {allowed} levels", "";

    // Structure.
    MustBeObject { found: JsonType }: "must-be-object", "must be an object, not {found}", "";
    MustBeString { found: JsonType }: "must-be-string", "must be a string, not {found}", "";
    MissingAuths: "missing-auths", "has no member \"auths\"", "the registries belong into an object named auths";
    BareEntries: "bare-entries", "has registries but no member \"auths\"", "wrap it in {\"auths\": …}; this is the old .dockercfg format";
    NoEntries: "no-entries", "names no registry", "";
    DuplicateMember: "duplicate-member", "stands there twice", "readers differ in which of the two they use: remove one";
    TwoCases { meant: &'static str }: "two-cases", "stands beside \"{meant}\" and differs only in case", "readers match names without case, the last one wins: remove one";
    Misspelled { meant: &'static str }: "misspelled-member", "looks like a misspelling of \"{meant}\"", "";

    // Entries.
    NoCredential: "no-credential", "has no credential", "give it an auth member: base64 of user:password";
    EmptyValue: "empty-value", "is empty", "";
    MissingUser: "missing-user", "has a password but no username", "";
    MissingPassword: "missing-password", "has a username but no password", "";
    EmptyUser: "empty-user", "has an empty user", "auth is base64 of user:password";
    EmptyPassword: "empty-password", "has an empty password", "auth is base64 of user:password";
    NulInCredential: "nul-in-credential", "has a NUL in the credential", "";
    NotBase64: "not-base64", "not base64", "auth is base64 of user:password, for example from: printf %s user:password | base64 -w0";
    BadPadding: "bad-padding", "badly padded base64", "base64 text ends with as many = as make its length a multiple of 4";
    UrlSafeBase64: "url-safe-base64", "base64 in the alphabet for URLs", "use standard base64: + and / in place of - and _";
    WhitespaceInBase64: "whitespace-in-base64", "white space in base64", "write it on one line, for example with base64 -w0";
    MissingColon: "missing-colon", "no colon in the decoded credential", "auth is base64 of user:password";
    Placeholder: "placeholder", "a placeholder, not a credential", "put base64 of user:password here, or the pull secret that you downloaded";
    OnlyRegistryToken: "only-registry-token", "has only a registry token, which neither kubelet nor containers/image can use", "give it an auth member: base64 of user:password";

    // Entries, warnings.
    Unpadded: "unpadded-base64", "unpadded base64: kubelet reads it, containers/image does not", "add = until the length is a multiple of 4";
    OnlyKubelet: "only-kubelet", "only kubelet reads username and password, containers/image needs auth", "add an auth member: base64 of user:password";
    Disagree: "credentials-disagree", "differs from auth, which every reader uses", "remove it, or correct auth";
    IdentityToken: "identity-token", "only containers/image and docker use an identity token, kubelet ignores it", "";
    IdentityTokenWithoutAuth: "identity-token-without-auth", "an identity token without auth: only docker uses it, kubelet and containers/image do not", "containers/image reads the token only beside an auth member";
    RegistryToken: "registry-token", "only docker uses a registry token, kubelet and containers/image ignore it", "";
    OnlyHelper: "only-helper", "has only a credential helper: containers/image asks it, kubelet does not", "";

    // Other members of the document, warnings.
    HelpersIgnored: "helpers-ignored", "only containers/image and docker use credential helpers, kubelet ignores them", "the helper programs must be installed on every node";
    StoreIgnored: "store-ignored", "only docker uses a credential store, kubelet and containers/image ignore it", "";
    Ignored: "member-ignored", "kubelet and containers/image ignore it", "";

    // Registry keys.
    KeyEmpty: "key-empty", "is an empty registry key", "a key is host[:port][/path]";
    KeySpace: "key-space", "has white space or a control character in the registry key", "";
    KeyUserinfo: "key-userinfo", "has a user or a credential in the registry key", "credentials belong into the entry; change this one, since keys are not kept secret";
    KeyQuery: "key-query", "has a query or fragment in the registry key", "a key is host[:port][/path]";
    KeyScheme: "key-scheme", "has a scheme in the registry key that is neither http:// nor https://", "a key is host[:port][/path]";
    KeyHost: "key-host", "has a bad host in the registry key", "a key is host[:port][/path]";
    KeyPort: "key-port", "has a bad port in the registry key", "a port is a number from 1 to 65535";
    KeyPath: "key-path", "has a bad path in the registry key", "";
    KeyGlob: "key-glob", "only kubelet knows globs, containers/image does not", "";
    KeySpelling: "key-spelling", "is spelled so that not every reader on a node finds images by it", "write host[:port][/path], the host in lower case, without a slash at the end";
    KeyRepeated: "key-repeated", "is the same registry as an earlier key", "which of the two is used depends on the reader; a merge takes the one that is spelled plainly";
}
