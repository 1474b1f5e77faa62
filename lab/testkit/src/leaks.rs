//! Detection of test credentials in anything that a program prints, logs, reports or stores.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The password of test documents.
pub const PASSWORD: &str = "Zq7wordThatMustNotShow";
/// The token of test documents.
pub const TOKEN: &str = "tok3nThatMustNotShow";
/// A digest key.
pub const KEY: &[u8] = b"k3yThatMustNotShow-32-bytes-long";

/// The test credentials, plain and in the encodings in which they could leak.
fn credentials() -> Vec<String> {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    let credentials = [
        PASSWORD.to_owned(),
        TOKEN.to_owned(),
        String::from_utf8_lossy(KEY).into_owned(),
        STANDARD.encode(PASSWORD),
        auth.clone(),
        auth.trim_end_matches('=').to_owned(),
        STANDARD.encode(&auth),
    ];
    credentials.into()
}

/// Fails if `text` holds a test credential or a piece of one; `source` names where the text is from.
pub fn check(source: &str, text: &str) {
    for credential in credentials() {
        for piece in [&credential[..], &credential[4..16]] {
            assert!(!text.contains(piece), "{source} contains a credential: {text}");
        }
    }
}

/// Documents that hold the credentials, valid and malformed.
pub fn documents() -> Vec<(&'static str, String)> {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    vec![
        ("valid", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"}}}}}}"#)),
        ("user and password", format!(r#"{{"auths":{{"quay.io":{{"username":"user","password":"{PASSWORD}"}}}}}}"#)),
        ("a token", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}","identitytoken":"{TOKEN}"}}}}}}"#)),
        ("not base64", format!(r#"{{"auths":{{"quay.io":{{"auth":"{PASSWORD}"}}}}}}"#)),
        ("a wrong type", format!(r#"{{"auths":{{"quay.io":"{auth}"}}}}"#)),
        ("a number", format!(r#"{{"auths":{{"quay.io":{{"auth":["{PASSWORD}"]}}}}}}"#)),
        ("as a key", format!(r#"{{"auths":{{"https://user:{PASSWORD}@quay.io":{{"auth":"{auth}"}}}}}}"#)),
        ("cut off", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"#)),
        ("no JSON", PASSWORD.to_owned()),
        ("bare entries", format!(r#"{{"quay.io":{{"auth":"{auth}"}}}}"#)),
        ("encoded", STANDARD.encode(format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"}}}}}}"#))),
        ("twice", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}","auth":"{auth}"}}}}}}"#)),
    ]
}
