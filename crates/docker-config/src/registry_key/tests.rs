//! Keys that are equal, keys that are not, and keys that are none.

use rstest::rstest;

use super::RegistryKey;
use crate::problem::ProblemKind;

#[rstest]
#[case("quay.io", "quay.io")]
#[case("QUAY.io", "quay.io")]
#[case("quay.io/", "quay.io")]
#[case("http://quay.io", "quay.io")]
#[case("https://quay.io/", "quay.io")]
#[case("https://quay.io/v1/", "quay.io")]
#[case("quay.io/v2/", "quay.io")]
#[case("quay.io/v2/Org/repo", "quay.io/Org/repo")]
#[case("quay.io/v1", "quay.io/v1")]
#[case("quay.io/v1beta/x", "quay.io/v1beta/x")]
#[case("quay.io/org/repo/", "quay.io/org/repo")]
#[case("quay.io:443", "quay.io:443")]
#[case("quay.io:65535/org", "quay.io:65535/org")]
#[case("docker.io", "docker.io")]
#[case("Index.Docker.io", "docker.io")]
#[case("https://index.docker.io/v1/", "docker.io")]
#[case("https://registry-1.docker.io/v2/", "docker.io")]
#[case("docker.io/library/", "docker.io/library")]
#[case("index.docker.io:443", "index.docker.io:443")]
#[case("localhost", "localhost")]
#[case("my_registry-1", "my_registry-1")]
#[case("10.0.0.1:5000", "10.0.0.1:5000")]
#[case("[2001:DB8::1]", "[2001:db8::1]")]
#[case("[::1]:5000/org", "[::1]:5000/org")]
#[case("*.azurecr.io", "*.azurecr.io")]
fn keys_are_normalised_and_kept(#[case] written: &str, #[case] normalized: &str) {
    let key = RegistryKey::parse(written).unwrap();
    assert_eq!(key.normalized(), normalized);
    assert_eq!(key.as_written(), written);
    assert_eq!(key.to_string(), written);
    assert_eq!(format!("{key:?}"), format!("RegistryKey({written:?})"));
    assert_eq!(key.has_glob(), written.contains('*'));
    let again = RegistryKey::parse(normalized).unwrap();
    assert_eq!(again.normalized(), normalized);
}

#[rstest]
#[case("", ProblemKind::KeyEmpty)]
#[case(" quay.io", ProblemKind::KeySpace)]
#[case("quay.io\u{a0}", ProblemKind::KeySpace)]
#[case("quay\u{7}.io", ProblemKind::KeySpace)]
#[case("me@quay.io", ProblemKind::KeyUserinfo)]
#[case("quay.io/org@sha256:00", ProblemKind::KeyUserinfo)]
#[case("dXNlcjpwYXNz", ProblemKind::KeyUserinfo)]
#[case("quay.io?x", ProblemKind::KeyQuery)]
#[case("quay.io#x", ProblemKind::KeyQuery)]
#[case("docker://quay.io", ProblemKind::KeyScheme)]
#[case("https://https://quay.io", ProblemKind::KeyScheme)]
#[case("/org", ProblemKind::KeyHost)]
#[case(".quay.io", ProblemKind::KeyHost)]
#[case("quay.io.", ProblemKind::KeyHost)]
#[case("quay-.io", ProblemKind::KeyHost)]
#[case("qu%61y.io", ProblemKind::KeyHost)]
#[case("<registry>", ProblemKind::KeyHost)]
#[case("a:b:1", ProblemKind::KeyHost)]
#[case("::1", ProblemKind::KeyHost)]
#[case("[::1", ProblemKind::KeyHost)]
#[case("[]", ProblemKind::KeyHost)]
#[case("[::1]x:80", ProblemKind::KeyHost)]
#[case("quay.io:", ProblemKind::KeyPort)]
#[case("quay.io:+1", ProblemKind::KeyPort)]
#[case("quay.io:080", ProblemKind::KeyPort)]
#[case("quay.io:65536", ProblemKind::KeyPort)]
#[case("quay.io//", ProblemKind::KeyPath)]
#[case("quay.io/v1//", ProblemKind::KeyPath)]
#[case("quay.io/a b", ProblemKind::KeySpace)]
#[case("quay.io/a:tag", ProblemKind::KeyPath)]
#[case("quay.io/*", ProblemKind::KeyPath)]
fn what_is_no_key_is_refused(#[case] written: &str, #[case] expected: ProblemKind) {
    assert_eq!(RegistryKey::parse(written).unwrap_err(), expected);
}

/// Kubelet's `BasicDockerKeyring::Add` and containers/image's `normalizeAuthFileKey`.
#[rstest]
#[case("quay.io", "quay.io", "quay.io")]
#[case("https://quay.io", "quay.io", "quay.io")]
#[case("http://quay.io/v1/", "quay.io", "quay.io")]
#[case("https://quay.io/org/", "quay.io/org/", "quay.io")]
#[case("https://quay.io/v1/org", "quay.io/org", "quay.io")]
#[case("quay.io/", "quay.io", "quay.io/")]
#[case("quay.io/v2/", "quay.io", "quay.io/v2/")]
#[case("quay.io/org", "quay.io/org", "quay.io/org")]
#[case("QUAY.io:443", "QUAY.io:443", "QUAY.io:443")]
#[case("docker.io", "docker.io", "docker.io")]
#[case("index.docker.io", "docker.io", "docker.io")]
#[case("https://index.docker.io/v1/", "docker.io", "docker.io")]
#[case("index.docker.io/v1/", "docker.io", "index.docker.io/v1/")]
#[case("registry-1.docker.io", "registry-1.docker.io", "docker.io")]
#[case("index.docker.io/library", "index.docker.io/library", "index.docker.io/library")]
fn the_two_readers_make_this_of_a_key(#[case] written: &str, #[case] kubelet: &str, #[case] containers_image: &str) {
    assert_eq!(RegistryKey::parse(written).unwrap().as_read(), [kubelet, containers_image]);
}

#[test]
fn hosts_have_a_longest_length() {
    let label = "a".repeat(63);
    let host = [label.as_str(); 4].join(".");
    assert!(RegistryKey::parse(&label).is_ok());
    assert!(RegistryKey::parse(&format!("{label}a")).is_err());
    assert!(RegistryKey::parse(&host[2..]).is_ok());
    assert!(RegistryKey::parse(&host[1..]).is_err());
}

#[rstest]
#[case("quay.io", true)]
#[case("https://quay.io/v2/", true)]
#[case("https://index.docker.io/v1/", true)]
#[case("*.azurecr.io", true)]
#[case("quay.io/org", true)]
#[case("QUAY.io", false)]
#[case("https://QUAY.io/", false)]
#[case("quay.io/", false)]
#[case("quay.io/v2/", false)]
#[case("quay.io/org/", false)]
#[case("index.docker.io/library", false)]
fn a_spelling_that_a_reader_does_not_find_is_known(#[case] key: &str, #[case] is_found: bool) {
    assert_eq!(RegistryKey::parse(key).unwrap().is_found_as_written(), is_found);
}
