//! Names, label keys and label values.

/// The longest DNS name.
const SUBDOMAIN_MAXIMUM: usize = 253;

/// The longest part of a DNS name, and the longest label value.
const LABEL_MAXIMUM: usize = 63;

fn is_dns_label(name: &str) -> bool {
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ends(name.bytes().next()) && ends(name.bytes().last()) && name.bytes().all(inner)
}

fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_MAXIMUM && name.split('.').all(is_dns_label)
}

/// The fault of a name of most objects.
pub(crate) fn subdomain(name: &str) -> Option<String> {
    if name.len() > SUBDOMAIN_MAXIMUM {
        return Some(format!("must be no more than {SUBDOMAIN_MAXIMUM} characters"));
    }
    (!is_dns_subdomain(name)).then(|| {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end \
         with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned()
    })
}

/// The fault of a name that must be a DNS label, such as a namespace's.
pub(crate) fn dotless(name: &str) -> Option<String> {
    if name.contains('.') { Some("must not contain dots".to_owned()) } else { label(name) }
}

/// The fault of a DNS label.
pub(crate) fn label(name: &str) -> Option<String> {
    if name.len() > LABEL_MAXIMUM {
        return Some(format!("must be no more than {LABEL_MAXIMUM} characters"));
    }
    (!is_dns_label(name)).then(|| {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
         alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

/// The fault of a name of a role or a binding, which may hold colons.
pub(crate) fn path_segment(name: &str) -> Option<String> {
    if matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    let wrong = ['/', '%'].into_iter().find(|character| name.contains(*character));
    wrong.map(|character| format!("may not contain '{character}'"))
}

/// The fault of a label's key: a name, perhaps with a DNS name and a slash before it.
pub(crate) fn label_key(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix == Some("") {
        return Some("prefix part must be non-empty".to_owned());
    }
    if let Some(message) = prefix.and_then(subdomain) {
        return Some(format!("prefix part {message}"));
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > LABEL_MAXIMUM {
        return Some(format!("name part must be no more than {LABEL_MAXIMUM} bytes"));
    }
    if name.contains('/') {
        return Some(
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
                .to_owned(),
        );
    }
    (!is_qualified(name)).then(|| {
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            .to_owned()
    })
}

pub(crate) fn label_value(value: &str) -> Option<String> {
    if value.len() > LABEL_MAXIMUM {
        return Some(format!("must be no more than {LABEL_MAXIMUM} bytes"));
    }
    (!value.is_empty() && !is_qualified(value)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end \
         with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned()
    })
}

fn is_qualified(name: &str) -> bool {
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ends(name.bytes().next()) && ends(name.bytes().last()) && name.bytes().all(inner)
}
