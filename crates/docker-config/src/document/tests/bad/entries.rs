//! Documents with a fault in an entry or beside the entries.

use super::Bad;

pub(super) const ENTRIES: &[Bad] = &[
    ("auths null", r#"{"auths": null}"#, &["auths: must be an object, not null (line 1, column 11)"]),
    ("auths string", r#"{"auths": "quay.io"}"#, &["auths: must be an object, not a string (line 1, column 11)"]),
    ("auths array", r#"{"auths": []}"#, &["auths: must be an object, not an array (line 1, column 11)"]),
    ("auths empty", r#"{"auths": {}}"#, &["auths: names no registry (line 1, column 11)"]),
    ("auths number", r#"{"auths": 1}"#, &["auths: must be an object, not a number (line 1, column 11)"]),
    (
        "nested auths",
        r#"{"auths": {"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}}"#,
        &[r#"auths["auths"]: has no credential (line 1, column 21)"#],
    ),
    (
        "auths twice",
        "{\"auths\": {\"quay.io\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"}},\n \"auths\": {}}",
        &["auths: stands there twice (line 2, column 2)"],
    ),
    (
        "registry twice, once escaped",
        "{\"auths\": {\"quay.io\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"},\n \"quay\\u002eio\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"}}}",
        &[r#"auths["quay.io"]: stands there twice (line 2, column 2)"#],
    ),
    (
        "auth twice",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io"].auth: stands there twice (line 1, column 56)"#],
    ),
    (
        "unknown member twice",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}, "x": [{"y": 1, "y": 2}]}"#,
        &["x[0].y: stands there twice (line 1, column 73)"],
    ),
    (
        "entry null",
        r#"{"auths": {"quay.io": null}}"#,
        &[r#"auths["quay.io"]: must be an object, not null (line 1, column 23)"#],
    ),
    (
        "entry string",
        r#"{"auths": {"quay.io": "dXNlcjpwYXNzLXdvcmQ="}}"#,
        &[r#"auths["quay.io"]: must be an object, not a string (line 1, column 23)"#],
    ),
    (
        "entry array",
        r#"{"auths": {"quay.io": []}}"#,
        &[r#"auths["quay.io"]: must be an object, not an array (line 1, column 23)"#],
    ),
    (
        "entry true",
        r#"{"auths": {"quay.io": true}}"#,
        &[r#"auths["quay.io"]: must be an object, not a boolean (line 1, column 23)"#],
    ),
    ("entry empty", r#"{"auths": {"quay.io": {}}}"#, &[r#"auths["quay.io"]: has no credential (line 1, column 23)"#]),
    (
        "entry with email only",
        r#"{"auths": {"quay.io": {"email": "me@example.com"}}}"#,
        &[r#"auths["quay.io"]: has no credential (line 1, column 23)"#],
    ),
    (
        "auth null",
        r#"{"auths": {"quay.io": {"auth": null}}}"#,
        &[r#"auths["quay.io"].auth: must be a string, not null (line 1, column 32)"#],
    ),
    (
        "auth number",
        r#"{"auths": {"quay.io": {"auth": 12345678}}}"#,
        &[r#"auths["quay.io"].auth: must be a string, not a number (line 1, column 32)"#],
    ),
    (
        "auth object",
        r#"{"auths": {"quay.io": {"auth": {"user": "me"}}}}"#,
        &[r#"auths["quay.io"].auth: must be a string, not an object (line 1, column 32)"#],
    ),
    (
        "email number",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "email": 1}}}"#,
        &[r#"auths["quay.io"].email: must be a string, not a number (line 1, column 65)"#],
    ),
    (
        "username and password of wrong types",
        r#"{"auths": {"quay.io": {"username": 1, "password": null}}}"#,
        &[
            r#"auths["quay.io"].username: must be a string, not a number (line 1, column 36)"#,
            r#"auths["quay.io"].password: must be a string, not null (line 1, column 51)"#,
        ],
    ),
    (
        "wrong type beside a bad auth",
        r#"{"auths": {"quay.io": {"auth": "%%%", "email": null}}}"#,
        &[
            r#"auths["quay.io"].auth: not base64 (line 1, column 32)"#,
            r#"auths["quay.io"].email: must be a string, not null (line 1, column 48)"#,
        ],
    ),
    (
        "auth empty",
        r#"{"auths": {"quay.io": {"auth": ""}}}"#,
        &[r#"auths["quay.io"].auth: is empty (line 1, column 32)"#],
    ),
    (
        "auth not base64",
        r#"{"auths": {"quay.io": {"auth": "%%%%"}}}"#,
        &[r#"auths["quay.io"].auth: not base64 (line 1, column 32)"#],
    ),
    (
        "auth plain",
        r#"{"auths": {"quay.io": {"auth": "bob:hunter2!"}}}"#,
        &[r#"auths["quay.io"].auth: not base64 (line 1, column 32)"#],
    ),
    (
        "auth URL-safe",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz_-8="}}}"#,
        &[r#"auths["quay.io"].auth: base64 in the alphabet for URLs (line 1, column 32)"#],
    ),
    (
        "auth with a blank",
        r#"{"auths": {"quay.io": {"auth": " dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io"].auth: white space in base64 (line 1, column 32)"#],
    ),
    (
        "auth with an escaped line feed",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=\n"}}}"#,
        &[r#"auths["quay.io"].auth: white space in base64 (line 1, column 32)"#],
    ),
    (
        "auth with one = too few",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzdw="}}}"#,
        &[r#"auths["quay.io"].auth: badly padded base64 (line 1, column 32)"#],
    ),
    (
        "auth with a = too many",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz="}}}"#,
        &[r#"auths["quay.io"].auth: badly padded base64 (line 1, column 32)"#],
    ),
    (
        "auth with impossible length",
        r#"{"auths": {"quay.io": {"auth": "dXNlc"}}}"#,
        &[r#"auths["quay.io"].auth: not base64 (line 1, column 32)"#],
    ),
    (
        "no colon",
        r#"{"auths": {"quay.io": {"auth": "anVzdC1hLXRva2Vu"}}}"#,
        &[r#"auths["quay.io"].auth: no colon in the decoded credential (line 1, column 32)"#],
    ),
    (
        "empty user",
        r#"{"auths": {"quay.io": {"auth": "OnBhc3N3b3Jk"}}}"#,
        &[r#"auths["quay.io"].auth: has an empty user (line 1, column 32)"#],
    ),
    (
        "empty password",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjo="}}}"#,
        &[r#"auths["quay.io"].auth: has an empty password (line 1, column 32)"#],
    ),
    (
        "only a colon",
        r#"{"auths": {"quay.io": {"auth": "Og=="}}}"#,
        &[r#"auths["quay.io"].auth: has an empty user (line 1, column 32)"#],
    ),
    (
        "NUL in password",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzAHdvcmQ="}}}"#,
        &[r#"auths["quay.io"].auth: has a NUL in the credential (line 1, column 32)"#],
    ),
    (
        "documentation placeholder",
        "{\n  \"auths\": {\n    \"registry.example.com\": {\n      \"auth\": \"base64-encoded-credentials\"\n    },\n    \"quay.io\": {\n      \"auth\": \"base64-encoded-credentials\"\n    }\n  }\n}\n",
        &[
            r#"auths["registry.example.com"].auth: a placeholder, not a credential (line 4, column 15)"#,
            r#"auths["quay.io"].auth: a placeholder, not a credential (line 7, column 15)"#,
        ],
    ),
    (
        "placeholder with email",
        r#"{"auths":{"registry.redhat.io":{"auth":"base64-encoded-credentials","email":"user@redhat.com"},"quay.io":{"auth":"base64-encoded-credentials","email":"user@redhat.com"}}}"#,
        &[
            r#"auths["registry.redhat.io"].auth: a placeholder, not a credential (line 1, column 40)"#,
            r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 114)"#,
        ],
    ),
    (
        "username:password placeholder",
        "{\n\"auths\": {\n\"registry.redhat.io\": {\n\"auth\": \"base64-encoded-username:password\",\n\"email\": \"user@example.com\"\n},\n\"quay.io\": {\n\"auth\": \"base64-encoded-username:password\",\n\"email\": \"user@example.com\"\n}\n}\n}",
        &[
            r#"auths["registry.redhat.io"].auth: a placeholder, not a credential (line 4, column 9)"#,
            r#"auths["quay.io"].auth: a placeholder, not a credential (line 8, column 9)"#,
        ],
    ),
    (
        "three dots",
        r#"{"auths":{"registry.redhat.io":{"auth":"...","email":"..."}}}"#,
        &[r#"auths["registry.redhat.io"].auth: a placeholder, not a credential (line 1, column 40)"#],
    ),
    (
        "three dots for all",
        r#"{"auths": {...}}"#,
        &["document: expected a member name in double quotes (line 1, column 12)"],
    ),
    (
        "angle brackets",
        r#"{"auths": {"quay.io": {"auth": "<base64>"}}}"#,
        &[r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 32)"#],
    ),
    (
        "YOUR_",
        r#"{"auths": {"quay.io": {"auth": "YOUR_AUTH_STRING"}}}"#,
        &[r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 32)"#],
    ),
    (
        "changeme",
        r#"{"auths": {"quay.io": {"auth": "changeme"}}}"#,
        &[r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 32)"#],
    ),
    (
        "template",
        r#"{"auths": {"quay.io": {"auth": "${QUAY_AUTH}"}}}"#,
        &[r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 32)"#],
    ),
    (
        "x's",
        r#"{"auths": {"quay.io": {"auth": "xxxxxxxx"}}}"#,
        &[r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 32)"#],
    ),
    (
        "username alone",
        r#"{"auths": {"quay.io": {"username": "bob"}}}"#,
        &[r#"auths["quay.io"]: has a username but no password (line 1, column 23)"#],
    ),
    (
        "password alone",
        r#"{"auths": {"quay.io": {"password": "hunter2!"}}}"#,
        &[r#"auths["quay.io"]: has a password but no username (line 1, column 23)"#],
    ),
    (
        "empty username",
        r#"{"auths": {"quay.io": {"username": "", "password": "hunter2!"}}}"#,
        &[r#"auths["quay.io"].username: has an empty user (line 1, column 36)"#],
    ),
    (
        "empty password beside username",
        r#"{"auths": {"quay.io": {"username": "bob", "password": ""}}}"#,
        &[r#"auths["quay.io"].password: has an empty password (line 1, column 55)"#],
    ),
    (
        "both empty",
        r#"{"auths": {"quay.io": {"username": "", "password": ""}}}"#,
        &[r#"auths["quay.io"].username: is empty (line 1, column 36)"#],
    ),
    (
        "NUL in a member",
        r#"{"auths": {"quay.io": {"username": "bob", "password": "hun\u0000ter2"}}}"#,
        &[r#"auths["quay.io"].password: has a NUL in the credential (line 1, column 55)"#],
    ),
    (
        "registry token alone",
        r#"{"auths": {"quay.io": {"registrytoken": "abcdefgh"}}}"#,
        &[
            r#"auths["quay.io"].registrytoken: has only a registry token, which neither kubelet nor containers/image can use (line 1, column 41)"#,
        ],
    ),
    (
        "empty identity token",
        r#"{"auths": {"quay.io": {"identitytoken": ""}}}"#,
        &[r#"auths["quay.io"].identitytoken: is empty (line 1, column 41)"#],
    ),
    (
        "Auth alone",
        r#"{"auths": {"quay.io": {"Auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[
            r#"auths["quay.io"]: has no credential (line 1, column 23)"#,
            r#"auths["quay.io"].Auth: looks like a misspelling of "auth" (line 1, column 24)"#,
        ],
    ),
    (
        "auth and Auth",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "Auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io"].Auth: stands beside "auth" and differs only in case (line 1, column 56)"#],
    ),
    (
        "passwd",
        r#"{"auths": {"quay.io": {"username": "bob", "passwd": "hunter2!"}}}"#,
        &[
            r#"auths["quay.io"]: has a username but no password (line 1, column 23)"#,
            r#"auths["quay.io"].passwd: looks like a misspelling of "password" (line 1, column 43)"#,
        ],
    ),
    (
        "token",
        r#"{"auths": {"quay.io": {"token": "abcdefgh"}}}"#,
        &[
            r#"auths["quay.io"]: has no credential (line 1, column 23)"#,
            r#"auths["quay.io"].token: looks like a misspelling of "identitytoken" (line 1, column 24)"#,
        ],
    ),
    (
        "credHelpers array",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}, "credHelpers": []}"#,
        &["credHelpers: must be an object, not an array (line 1, column 73)"],
    ),
    (
        "helper not a string",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}, "credHelpers": {"gcr.io": 1}}"#,
        &[r#"credHelpers["gcr.io"]: must be a string, not a number (line 1, column 84)"#],
    ),
    (
        "credsStore null",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}, "credsStore": null}"#,
        &["credsStore: must be a string, not null (line 1, column 72)"],
    ),
    (
        "HttpHeaders string",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}, "HttpHeaders": ""}"#,
        &["HttpHeaders: must be an object, not a string (line 1, column 73)"],
    ),
    (
        "helper for another registry",
        r#"{"auths": {"quay.io": {}}, "credHelpers": {"gcr.io": "gcr"}}"#,
        &[r#"auths["quay.io"]: has no credential (line 1, column 23)"#],
    ),
];
