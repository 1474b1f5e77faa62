//! Settings that are accepted, and the faults of others.

use std::collections::BTreeMap;

use rstest::rstest;

use super::*;

fn resolve(flags: &[(&str, &str)], environment: &[(&'static str, &'static str)]) -> Result<Settings, Vec<String>> {
    let flags: BTreeMap<String, String> = flags.iter().map(|(flag, value)| ((*flag).into(), (*value).into())).collect();
    let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
    Values::new(&|flag| flags.get(flag).cloned(), &environment).resolve()
}

const IN_A_POD: &[(&str, &str)] = &[("KUBERNETES_SERVICE_HOST", "fd00::1"), ("KUBERNETES_SERVICE_PORT", "6443")];

#[test]
fn a_pod_needs_no_setting() {
    let settings = resolve(&[], IN_A_POD).unwrap();
    let SourceSettings::Api(api) = settings.source else { panic!("it watches the API") };
    assert_eq!((api.host.as_str(), api.port), ("fd00::1", 6443));
    assert_eq!((api.secret.namespace.as_str(), api.secret.name.as_str()), ("kube-system", "global-pull-secret"));
    assert!(api.authority.is_some());
    assert_eq!(settings.socket, PathBuf::from("/var/lib/kubelet/global-pull-secret/socket"));
    assert_eq!(settings.unit.restart_timeout, Duration::from_secs(90));
    assert_eq!(settings.unit.stable_for, Duration::from_secs(10));
}

#[test]
fn flags_come_before_variables() {
    let environment = &[("SYNC_UNIT", "a.service"), ("SYNC_STABLE_FOR", "1s"), ("SYNC_FROM_FILES", "/files")];
    let settings = resolve(&[("unit", "b.service"), ("stable-for", " ")], environment).unwrap();
    assert_eq!((settings.unit.unit.as_str(), settings.unit.stable_for), ("b.service", Duration::from_secs(1)));
}

#[rstest]
#[case::outside_of_a_pod(&[], "no source: outside of a Pod, set --api-server or --from-files")]
#[case::unencrypted(&[("api-server", "http://10.0.0.1")], "--api-server: must begin with https://; http:// is for loopback only")]
#[case::no_url(&[("api-server", "10.0.0.1:6443")], "--api-server: must be a URL such as https://10.0.0.1:6443")]
#[case::userinfo(&[("api-server", "https://user:pw@host")], "--api-server: must be a URL such as https://10.0.0.1:6443")]
#[case::relative(&[("from-files", "files")], "--from-files: must be a path that begins with /")]
#[case::no_secret(&[("secret", "global")], "--secret: must be a namespace and a name, such as kube-system/global-pull-secret")]
#[case::injected(&[("secret", "a/b&watch=true")], "--secret: must be a namespace and a name, such as kube-system/global-pull-secret")]
#[case::policy(&[("from-files", "/f"), ("restart-policy", "s3cr3t")], "--restart-policy: must be always or never")]
#[case::bus(&[("from-files", "/f"), ("bus", "nowhere")], "--bus: must be a D-Bus address, such as unix:path=FILE")]
fn faults_never_contain_the_value(#[case] flags: &[(&str, &str)], #[case] expected: &str) {
    let faults = resolve(flags, &[]).unwrap_err();
    assert!(faults.iter().any(|fault| fault == expected), "{faults:?}");
    assert!(!faults.iter().any(|fault| fault.contains("s3cr3t") || fault.contains("pw@")), "{faults:?}");
}

#[rstest]
#[case("500ms", Some(500))]
#[case("90s", Some(90_000))]
#[case("1m30s", Some(90_000))]
#[case("2h", Some(7_200_000))]
#[case("0s", None)]
#[case("90", None)]
#[case("s", None)]
#[case("-1s", None)]
#[case("99999999999999999999s", None)]
#[case("9999999999h", None)]
fn durations(#[case] text: &str, #[case] milliseconds: Option<u64>) {
    let settings = resolve(&[("from-files", "/files"), ("stable-for", text)], &[]);
    assert_eq!(settings.ok().map(|settings| settings.unit.stable_for), milliseconds.map(Duration::from_millis));
}

#[test]
fn a_misspelt_variable_is_refused() {
    let faults =
        resolve(&[], &[("SYNC_FROM_FILES", "/files"), ("SYNC_STABEL_FOR", "1s"), ("SYNC_UNIT_PORT", "tcp://a:1")]);
    assert_eq!(faults.unwrap_err(), ["SYNC_STABEL_FOR: unknown variable; did you mean SYNC_STABLE_FOR?"]);
}

#[test]
fn the_log_level_has_the_spelling_of_all_programs() {
    let level = |variable| resolve(&[("from-files", "/files")], &[(variable, "debug")]).unwrap().log.level;
    assert_eq!(level("LOG_LEVEL"), level("SYNC_LOG_LEVEL"));
    assert_eq!(level("LOG_LEVEL").to_string(), "debug");
}

#[rstest]
#[case("https://10.0.0.1:6443", Some((true, "10.0.0.1", 6443)))]
#[case("https://api.example.com/", Some((true, "api.example.com", 443)))]
#[case("https://[fd00::1]:6443", Some((true, "fd00::1", 6443)))]
#[case("https://[fd00::1]", Some((true, "fd00::1", 443)))]
#[case("http://127.0.0.1:8001", Some((false, "127.0.0.1", 8001)))]
#[case("http://localhost", Some((false, "localhost", 80)))]
#[case("ftp://localhost", None)]
#[case("https://", None)]
#[case("https://host:port", None)]
fn servers(#[case] url: &str, #[case] expected: Option<(bool, &str, u16)>) {
    assert_eq!(server(url).ok(), expected.map(|(encrypted, host, port)| (encrypted, host.to_owned(), port)));
}
