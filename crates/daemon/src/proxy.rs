//! Detection of proxies for plain HTTP: its operator could read tokens and pull secrets.

use crate::environment::Environment;

/// The variables that name a proxy for plain HTTP.
pub const VARIABLES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// The variable by which requests to `host` would go through a proxy.
pub fn applying_to(environment: &dyn Environment, host: &str) -> Option<&'static str> {
    let text = |name: &str| environment.text(name).ok().flatten();
    let exceptions = text("no_proxy").or_else(|| text("NO_PROXY")).unwrap_or_default();
    let is_exception = exceptions.split(',').map(str::trim).any(|exception| exception == "*" || exception == host);
    VARIABLES.into_iter().find(|name| text(name).is_some()).filter(|_| !is_exception)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_proxy_is_applying_to_unless_the_host_is_an_exception() {
        let proxy = BTreeMap::from([("http_proxy", "http://proxy:3128")]);
        assert_eq!(applying_to(&proxy, "127.0.0.1"), Some("http_proxy"));
        assert_eq!(applying_to(&BTreeMap::new(), "127.0.0.1"), None);
        let excepted = BTreeMap::from([("ALL_PROXY", "http://proxy:3128"), ("NO_PROXY", "example.com, 127.0.0.1")]);
        assert_eq!(applying_to(&excepted, "127.0.0.1"), None);
        assert_eq!(applying_to(&excepted, "localhost"), Some("ALL_PROXY"));
    }
}
