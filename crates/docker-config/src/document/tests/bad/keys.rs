//! Documents with a bad registry key.

use super::Bad;

pub(super) const KEYS: &[Bad] = &[
    (
        "key empty",
        r#"{"auths": {"": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths[""]: is an empty registry key (line 1, column 12)"#],
    ),
    (
        "key blank",
        r#"{"auths": {"quay. io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay. io"]: has white space or a control character in the registry key (line 1, column 12)"#],
    ),
    (
        "key with line feed",
        r#"{"auths": {"quay.io\n": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io\u000a"]: has white space or a control character in the registry key (line 1, column 12)"#],
    ),
    (
        "key userinfo",
        r#"{"auths": {"bob:hunter2@quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…@quay.io"]: has a user or a credential in the registry key (line 1, column 12)"#],
    ),
    (
        "key userinfo in URL",
        r#"{"auths": {"https://bob:hunter2@quay.io/v1/": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…@quay.io/v1/"]: has a user or a credential in the registry key (line 1, column 12)"#],
    ),
    (
        "key query",
        r#"{"auths": {"quay.io?token=abcd": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a query or fragment in the registry key (line 1, column 12)"#],
    ),
    (
        "key fragment",
        r#"{"auths": {"quay.io#top": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io#top"]: has a query or fragment in the registry key (line 1, column 12)"#],
    ),
    (
        "key ftp",
        r#"{"auths": {"ftp://quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[
            r#"auths["ftp://quay.io"]: has a scheme in the registry key that is neither http:// nor https:// (line 1, column 12)"#,
        ],
    ),
    (
        "key HTTPS",
        r#"{"auths": {"HTTPS://quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[
            r#"auths["HTTPS://quay.io"]: has a scheme in the registry key that is neither http:// nor https:// (line 1, column 12)"#,
        ],
    ),
    (
        "key bad host",
        r#"{"auths": {"quay!.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay!.io"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key bad label",
        r#"{"auths": {"-quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["-quay.io"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key two dots",
        r#"{"auths": {"quay..io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay..io"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key umlaut",
        r#"{"auths": {"qüay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["qüay.io"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key no host",
        r#"{"auths": {"https:///v1/": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["https:///v1/"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key port zero",
        r#"{"auths": {"quay.io:0": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io:0"]: has a bad port in the registry key (line 1, column 12)"#],
    ),
    (
        "key port too high",
        r#"{"auths": {"quay.io:65536": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io:65536"]: has a bad port in the registry key (line 1, column 12)"#],
    ),
    (
        "key port word",
        r#"{"auths": {"quay.io:https": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a bad port in the registry key (line 1, column 12)"#],
    ),
    (
        "key port empty",
        r#"{"auths": {"quay.io:": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io:"]: has a bad port in the registry key (line 1, column 12)"#],
    ),
    (
        "key bad path",
        r#"{"auths": {"quay.io/org//repo": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io/org//repo"]: has a bad path in the registry key (line 1, column 12)"#],
    ),
    (
        "key path with tag",
        r#"{"auths": {"quay.io/org/repo:latest": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["quay.io/org/repo:latest"]: has a bad path in the registry key (line 1, column 12)"#],
    ),
    (
        "key bad address",
        r#"{"auths": {"[::g]:5000": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["[::g]:5000"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key is a credential",
        r#"{"auths": {"bob:hunter2": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a bad port in the registry key (line 1, column 12)"#],
    ),
    (
        "key is an encoded credential",
        r#"{"auths": {"dXNlcjpwYXNzLXdvcmQ=": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a user or a credential in the registry key (line 1, column 12)"#],
    ),
    (
        "key with quote",
        r#"{"auths": {"qu\"ay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["qu\"ay.io"]: has a bad host in the registry key (line 1, column 12)"#],
    ),
    (
        "key very long",
        r#"{"auths": {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[
            r#"auths["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"]: has a bad host in the registry key (line 1, column 12)"#,
        ],
    ),
    (
        "all at once",
        "{\"auths\": {\n  \"quay.io\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\", \"auth\": 1},\n  \"bad host\": {},\n  \"a.io\": {\"auth\": \"AAAA\"},\n  \"b.io\": null\n},\n \"credHelpers\": 7}",
        &[
            r#"auths["quay.io"].auth: stands there twice (line 2, column 47)"#,
            r#"auths["quay.io"].auth: must be a string, not a number (line 2, column 55)"#,
            r#"auths["bad host"]: has white space or a control character in the registry key (line 3, column 3)"#,
            r#"auths["bad host"]: has no credential (line 3, column 15)"#,
            r#"auths["a.io"].auth: no colon in the decoded credential (line 4, column 20)"#,
            r#"auths["b.io"]: must be an object, not null (line 5, column 11)"#,
            "credHelpers: must be an object, not a number (line 7, column 17)",
        ],
    ),
    (
        "key is an address and a password",
        r#"{"auths": {"bob@corp.example:hunter2": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a user or a credential in the registry key (line 1, column 12)"#],
    ),
    (
        "key is a user and a long number",
        r#"{"auths": {"bob:12345678": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a bad port in the registry key (line 1, column 12)"#],
    ),
    (
        "key hides a credential behind an @",
        r#"{"auths": {"x@dXNlcjpwYXNzLXdvcmQ=": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[r#"auths["…"]: has a user or a credential in the registry key (line 1, column 12)"#],
    ),
];
