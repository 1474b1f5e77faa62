//! Documents that are accepted, each with its entries and every warning.

/// Name, document, entries (key, normalised key, masked user, label), warnings.
pub(super) const GOOD: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "specification, two registries",
        "{\n  \"auths\": {\n    \"registry.redhat.io\": {\n      \"auth\": \"dXNlcjpwYXNzd29yZA==\",\n      \"email\": \"user@example.com\"\n    },\n    \"quay.io\": {\n      \"auth\": \"dXNlcjpwYXNzd29yZA==\",\n      \"email\": \"user@example.com\"\n    }\n  }\n}\n",
        &[
            "quay.io | quay.io | u*** | user and password in auth",
            "registry.redhat.io | registry.redhat.io | u*** | user and password in auth",
        ],
        &[],
    ),
    (
        "specification, one registry",
        r#"{"auths":{"registry.redhat.io":{"auth":"dGVzdDp0ZXN0","email":"test@example.com"}}}"#,
        &["registry.redhat.io | registry.redhat.io | t*** | user and password in auth"],
        &[],
    ),
    (
        "unpadded",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzd29yZA"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[r#"auths["quay.io"].auth: unpadded base64: kubelet reads it, containers/image does not (line 1, column 32)"#],
    ),
    (
        "no padding needed",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "password with colons",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjphOmI6Yw=="}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "bytes that are no text",
        r#"{"auths": {"quay.io": {"auth": "dXPDOv/+"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "multi-byte user",
        r#"{"auths": {"quay.io": {"auth": "w7xuw69jb2RlOnBhc3Mtd29yZA=="}}}"#,
        &["quay.io | quay.io | ü*** | user and password in auth"],
        &[],
    ),
    (
        "robot",
        r#"{"auths": {"quay.io": {"auth": "b3JnK3JvYm90OnBhc3Mtd29yZA=="}}}"#,
        &["quay.io | quay.io | o*** | user and password in auth"],
        &[],
    ),
    (
        "escaped solidus",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzL3dvcmQ\u003d"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "username and password",
        r#"{"auths": {"quay.io": {"username": "bob", "password": "hunter2!"}}}"#,
        &["quay.io | quay.io | b*** | user and password"],
        &[
            r#"auths["quay.io"]: only kubelet reads username and password, containers/image needs auth (line 1, column 23)"#,
        ],
    ),
    (
        "both, agreeing",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "username": "user", "password": "pass-word"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "both, disagreeing",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "username": "bob", "password": "hunter2!"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[
            r#"auths["quay.io"].username: differs from auth, which every reader uses (line 1, column 68)"#,
            r#"auths["quay.io"].password: differs from auth, which every reader uses (line 1, column 87)"#,
        ],
    ),
    (
        "empty auth, username and password",
        r#"{"auths": {"quay.io": {"auth": "", "username": "bob", "password": "hunter2!"}}}"#,
        &["quay.io | quay.io | b*** | user and password"],
        &[
            r#"auths["quay.io"]: only kubelet reads username and password, containers/image needs auth (line 1, column 23)"#,
        ],
    ),
    (
        "empty username beside auth",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "username": "", "password": ""}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "identity token as docker writes it",
        r#"{"auths": {"quay.io": {"auth": "MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwOg==", "identitytoken": "abcdefgh"}}}"#,
        &["quay.io | quay.io | - | identity token"],
        &[
            r#"auths["quay.io"].identitytoken: only containers/image and docker use an identity token, kubelet ignores it (line 1, column 105)"#,
        ],
    ),
    (
        "identity token alone",
        r#"{"auths": {"quay.io": {"identitytoken": "abcdefgh"}}}"#,
        &["quay.io | quay.io | - | identity token"],
        &[
            r#"auths["quay.io"].identitytoken: an identity token without auth: only docker uses it, kubelet and containers/image do not (line 1, column 41)"#,
        ],
    ),
    (
        "identity token beside a password",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "identitytoken": "abcdefgh"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[
            r#"auths["quay.io"].identitytoken: only containers/image and docker use an identity token, kubelet ignores it (line 1, column 73)"#,
        ],
    ),
    (
        "registry token beside auth",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "registrytoken": "abcdefgh"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[
            r#"auths["quay.io"].registrytoken: only docker uses a registry token, kubelet and containers/image ignore it (line 1, column 73)"#,
        ],
    ),
    (
        "helper",
        r#"{"auths": {"https://gcr.io": {}}, "credHelpers": {"gcr.io": "gcr"}}"#,
        &["https://gcr.io | gcr.io | - | credential helper"],
        &[
            r#"auths["https://gcr.io"]: has only a credential helper: containers/image asks it, kubelet does not (line 1, column 30)"#,
            "credHelpers: only containers/image and docker use credential helpers, kubelet ignores them (line 1, column 35)",
        ],
    ),
    (
        "helper and registry token",
        r#"{"auths": {"gcr.io": {"registrytoken": "abcdefgh"}}, "credHelpers": {"gcr.io": "gcr"}}"#,
        &["gcr.io | gcr.io | - | registry token"],
        &[
            r#"auths["gcr.io"]: has only a credential helper: containers/image asks it, kubelet does not (line 1, column 22)"#,
            r#"auths["gcr.io"].registrytoken: only docker uses a registry token, kubelet and containers/image ignore it (line 1, column 40)"#,
            "credHelpers: only containers/image and docker use credential helpers, kubelet ignores them (line 1, column 54)",
        ],
    ),
    (
        "helper and password",
        r#"{"auths": {"gcr.io": {"username": "bob", "password": "hunter2!"}}, "credHelpers": {"gcr.io": "gcr"}}"#,
        &["gcr.io | gcr.io | b*** | user and password"],
        &[
            "credHelpers: only containers/image and docker use credential helpers, kubelet ignores them (line 1, column 68)",
        ],
    ),
    (
        "other members",
        "{\"auths\": {\"quay.io\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"}},\n \"credsStore\": \"desktop\",\n \"HttpHeaders\": {\"User-Agent\": \"Docker\"},\n \"currentContext\": \"default\",\n \"CREDHELPERS\": {}}",
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[
            "credsStore: only docker uses a credential store, kubelet and containers/image ignore it (line 2, column 2)",
            "HttpHeaders: kubelet and containers/image ignore it (line 3, column 2)",
            "currentContext: kubelet and containers/image ignore it (line 4, column 2)",
            r#"CREDHELPERS: looks like a misspelling of "credHelpers" (line 5, column 2)"#,
        ],
    ),
    (
        "unknown member of an entry",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "serveraddress": "quay.io"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[],
    ),
    (
        "near misses beside auth",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ=", "Username": "bob", "passwd": "x", "token": "y"}}}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[
            r#"auths["quay.io"].Username: looks like a misspelling of "username" (line 1, column 56)"#,
            r#"auths["quay.io"].passwd: looks like a misspelling of "password" (line 1, column 75)"#,
            r#"auths["quay.io"].token: looks like a misspelling of "identitytoken" (line 1, column 90)"#,
        ],
    ),
    (
        "Docker Hub, three spellings",
        "{\"auths\": {\n  \"https://index.docker.io/v1/\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"},\n  \"docker.io\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"},\n  \"registry-1.docker.io\": {\"auth\": \"dXNlcjpwYXNzLXdvcmQ=\"}\n}}",
        &[
            "docker.io | docker.io | u*** | user and password in auth",
            "https://index.docker.io/v1/ | docker.io | u*** | user and password in auth",
            "registry-1.docker.io | docker.io | u*** | user and password in auth",
        ],
        &[
            r#"auths["docker.io"]: is the same registry as an earlier key, auths["https://index.docker.io/v1/"] (line 3, column 3)"#,
            r#"auths["registry-1.docker.io"]: is the same registry as an earlier key, auths["https://index.docker.io/v1/"] (line 4, column 3)"#,
        ],
    ),
    (
        "ports are kept apart",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}, "quay.io:443": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &[
            "quay.io | quay.io | u*** | user and password in auth",
            "quay.io:443 | quay.io:443 | u*** | user and password in auth",
        ],
        &[],
    ),
    (
        "glob",
        r#"{"auths": {"*.azurecr.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &["*.azurecr.io | *.azurecr.io | u*** | user and password in auth"],
        &[r#"auths["*.azurecr.io"]: only kubelet knows globs, containers/image does not (line 1, column 12)"#],
    ),
    (
        "namespace",
        r#"{"auths": {"quay.io/openshift-release-dev": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &["quay.io/openshift-release-dev | quay.io/openshift-release-dev | u*** | user and password in auth"],
        &[],
    ),
    (
        "address",
        r#"{"auths": {"[2001:db8::1]:5000": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &["[2001:db8::1]:5000 | [2001:db8::1]:5000 | u*** | user and password in auth"],
        &[],
    ),
    (
        "localhost",
        r#"{"auths": {"localhost:5000/": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &["localhost:5000/ | localhost:5000 | u*** | user and password in auth"],
        &[
            r#"auths["localhost:5000/"]: is spelled so that not every reader on a node finds images by it (line 1, column 12)"#,
        ],
    ),
    (
        "upper case",
        r#"{"auths": {"QUAY.IO": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}}"#,
        &["QUAY.IO | quay.io | u*** | user and password in auth"],
        &[r#"auths["QUAY.IO"]: is spelled so that not every reader on a node finds images by it (line 1, column 12)"#],
    ),
    (
        "CRLF",
        "{\"auths\":\r\n {\"quay.io\": {\"auth\": \"dXNlcjpwYXNzd29yZA\"}}}\r\n",
        &["quay.io | quay.io | u*** | user and password in auth"],
        &[r#"auths["quay.io"].auth: unpadded base64: kubelet reads it, containers/image does not (line 2, column 23)"#],
    ),
    (
        "deep but allowed",
        r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzLXdvcmQ="}}, "x": [[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}"#,
        &["quay.io | quay.io | u*** | user and password in auth"],
        &["x: kubelet and containers/image ignore it (line 1, column 58)"],
    ),
];
