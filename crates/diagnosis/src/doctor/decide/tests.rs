//! Tables of the checks: one fact is changed, and the lines that are not ok are compared.

mod credentials;
mod guide;
mod parts;

use std::collections::BTreeSet;

use adapter::rights::{in_namespace, to_grant_access};
use hyperfleet_client::{ConnectionFault, Identity, Probe};
use jiff::{SignedDuration, Timestamp};
use kubernetes::{ErrorKind, KubernetesError, NamespaceSummary, PodSummary, Verb};
use rstest::rstest;

use super::super::facts::{ApiFacts, Facts, KubernetesFacts, Refusal, RightFacts};
use super::super::{Line, State, none_failed, text};
use super::lines;

/// Facts with which every check is ok.
fn sound() -> Facts {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let certificate_end = Some(now + SignedDuration::from_hours(300 * 24));
    let namespaced = in_namespace("pullsecret", "pullsecret-adapter").into_iter().map(|right| (right, true));
    let rights = namespaced.chain(to_grant_access().into_iter().map(|right| (right, false)));
    let rights = rights.map(|(right, is_in_namespace)| RightFacts { right, is_in_namespace, missing: Ok(Vec::new()) });
    Facts {
        now,
        api: Ok(ApiFacts {
            address: "https://api:8000/api/hyperfleet/v1".to_owned(),
            identity: Ok(Identity::Opaque),
            probe: Ok(Probe { date: Some(now), sent: now, received: now, certificate_end }),
            list: Ok(()),
            read: Ok(()),
            report: Ok(()),
        }),
        kubernetes: Some(KubernetesFacts {
            server: "https://kubernetes/".to_owned(),
            namespace: "jobs".to_owned(),
            user: Ok("system:serviceaccount:system:adapter".to_owned()),
            found: Ok(Some(NamespaceSummary { pod_security: Some("restricted".to_owned()), is_terminating: false })),
            rights: rights.collect(),
            pods: Ok(vec![PodSummary { name: "a".to_owned(), image: "quay.io/a".to_owned(), ..PodSummary::default() }]),
            missing_pull_secrets: Vec::new(),
        }),
        broker: Some(Ok(parts::broker())),
        store: Some(Ok(parts::store())),
        credentials: Some(Ok(credentials::facts())),
        files: vec![parts::file()],
    }
}

fn api(facts: &mut Facts) -> &mut ApiFacts {
    facts.api.as_mut().unwrap()
}

fn kubernetes(facts: &mut Facts) -> &mut KubernetesFacts {
    facts.kubernetes.as_mut().unwrap()
}

/// Removes verbs on a resource, or on the one object of it that the adapter needs.
fn deny(facts: &mut Facts, resource: &str, is_of_one: bool, verbs: &[&'static str]) {
    let mut rights = kubernetes(facts).rights.iter_mut();
    let found = rights.find(|it| it.right.resource == resource && it.right.name.is_some() == is_of_one);
    found.unwrap().missing = Ok(verbs.to_vec());
}

fn probe(facts: &mut Facts) -> &mut Probe {
    api(facts).probe.as_mut().unwrap()
}

fn unconnected(facts: &mut Facts, fault: ConnectionFault) {
    api(facts).probe = Err(Refusal::Unconnected(fault));
}

fn denied() -> Result<(), Refusal> {
    Err(Refusal::Denied("no grant of the caller allows it".to_owned()))
}

fn unauthenticated() -> Result<(), Refusal> {
    Err(Refusal::Unauthenticated("it is of another issuer".to_owned()))
}

fn error(kind: ErrorKind) -> KubernetesError {
    KubernetesError::new(Verb::Get, "something", kind)
}

/// The check, the state, and parts of its message and of its command.
type Expected = (&'static str, State, &'static str, &'static str);

/// The lines that are not as they must be; a check that was skipped for want of an answer is not one of them.
fn faults(facts: &Facts) -> Vec<Line> {
    let is_fault = |line: &Line| line.state != State::Ok && !(line.state == State::Skipped && line.fix.is_none());
    lines(facts).into_iter().filter(is_fault).collect()
}

#[test]
fn everything_is_sound() {
    let lines = lines(&sound());
    assert!(lines.iter().all(|line| line.state == State::Ok && line.fix.is_none()), "{}", text(&lines));
    assert!(none_failed(&lines) && text(&lines).ends_with(" ok, 0 warning, 0 failed, 0 skipped\n"), "{}", text(&lines));
}

#[rstest]
#[case::settings(
    |facts: &mut Facts| facts.api = Err("--api: the API's address must be http://HOST".to_owned()),
    ("settings", State::Failed, "must be http://HOST", "export HYPERFLEET_API_BASE_URL=")
)]
#[case::plain_server(
    |facts: &mut Facts| unconnected(facts, ConnectionFault::NotTls),
    ("reachable", State::Failed, "speaks plain HTTP", "export HYPERFLEET_API_BASE_URL=http://api:8000")
)]
#[case::tls_server(
    |facts: &mut Facts| {
        api(facts).address = "http://api/prefix/api/hyperfleet/v1".to_owned();
        unconnected(facts, ConnectionFault::NotPlain);
    },
    ("reachable", State::Failed, "speaks TLS", "export HYPERFLEET_API_BASE_URL=https://api/prefix")
)]
#[case::authority(
    |facts: &mut Facts| unconnected(facts, ConnectionFault::Certificate("UnknownIssuer".to_owned())),
    ("reachable", State::Failed, "not of an authority that is trusted", "export HYPERFLEET_API_CA_FILE=ca.crt")
)]
#[case::expired(
    |facts: &mut Facts| unconnected(facts, ConnectionFault::Certificate("certificate expired".to_owned())),
    ("reachable", State::Failed, "not accepted: certificate expired", "create secret tls hyperfleet-api-tls")
)]
#[case::name(
    |facts: &mut Facts| unconnected(facts, ConnectionFault::UnknownHost),
    ("reachable", State::Failed, "the name api cannot be resolved", "export HYPERFLEET_API_BASE_URL=")
)]
#[case::down(
    |facts: &mut Facts| unconnected(facts, ConnectionFault::Refused),
    ("reachable", State::Failed, "no process listens", "rollout status deployment/hyperfleet-api")
)]
#[case::not_forwarded(
    |facts: &mut Facts| {
        api(facts).address = "http://localhost:8000/api/hyperfleet/v1".to_owned();
        unconnected(facts, ConnectionFault::Refused);
    },
    ("reachable", State::Failed, "no process listens", "port-forward service/hyperfleet-api")
)]
#[case::silent(
    |facts: &mut Facts| api(facts).probe = Err(Refusal::TimedOut),
    ("reachable", State::Failed, "no answer in time", "curl --verbose")
)]
#[case::other_server(
    |facts: &mut Facts| api(facts).list = Err(Refusal::Stranger(404)),
    ("list clusters", State::Failed, "answers 404, and not as a HyperFleet API does", "export HYPERFLEET_API_BASE_URL=")
)]
#[case::no_token_file(
    |facts: &mut Facts| api(facts).identity = Err("the token file cannot be read: not found".to_owned()),
    ("identity", State::Failed, "cannot be read", "create token pullsecret-adapter --audience hyperfleet-api")
)]
#[case::no_token(
    |facts: &mut Facts| {
        api(facts).identity = Ok(Identity::Anonymous);
        api(facts).list = unauthenticated();
    },
    ("identity", State::Failed, "the API asks for a token", "create token pullsecret-adapter")
)]
#[case::refused_token(
    |facts: &mut Facts| api(facts).list = unauthenticated(),
    ("identity", State::Failed, "does not accept the token: it is of another issuer", "create token pullsecret-adapter")
)]
#[case::listing(
    |facts: &mut Facts| api(facts).list = denied(),
    ("list clusters", State::Failed, "no grant", "reader_token_file")
)]
#[case::reporting(
    |facts: &mut Facts| api(facts).report = denied(),
    ("report as pullsecret", State::Failed, "no grant", "reader_token_file")
)]
#[case::clock_behind(
    |facts: &mut Facts| probe(facts).date = Some("2026-01-01T00:00:31Z".parse().unwrap()),
    ("clock", State::Failed, "clock is 31 s behind the API's", "timedatectl")
)]
#[case::clock_ahead(
    |facts: &mut Facts| probe(facts).date = Some("2025-12-31T23:00:00Z".parse().unwrap()),
    ("clock", State::Failed, "clock is 59 min ahead of the API's", "timedatectl")
)]
#[case::certificate(
    |facts: &mut Facts| probe(facts).certificate_end = Some("2026-01-07T00:00:00Z".parse().unwrap()),
    ("certificate", State::Warning, "in 6 d", "create secret tls hyperfleet-api-tls")
)]
#[case::no_kubeconfig(
    |facts: &mut Facts| facts.kubernetes = None,
    ("reachable", State::Skipped, "no kubeconfig", "export KUBECONFIG=FILE")
)]
#[case::no_cluster(
    |facts: &mut Facts| kubernetes(facts).user = Err(error(ErrorKind::Unavailable)),
    ("reachable", State::Failed, "the API server is unavailable", "kubectl config set-cluster")
)]
#[case::no_login(
    |facts: &mut Facts| kubernetes(facts).user = Err(error(ErrorKind::Unauthenticated)),
    ("reachable", State::Failed, "not authenticated", "kubectl auth whoami")
)]
#[case::no_namespace(
    |facts: &mut Facts| kubernetes(facts).found = Ok(None),
    ("namespace", State::Failed, "jobs, in which Jobs are to run, does not exist", "kubectl create namespace jobs &&")
)]
#[case::terminating(
    |facts: &mut Facts| kubernetes(facts).found.as_mut().unwrap().as_mut().unwrap().is_terminating = true,
    ("namespace", State::Failed, "is being deleted", "kubectl wait --for=delete namespace/jobs")
)]
#[case::privileged(
    |facts: &mut Facts| {
        kubernetes(facts).found.as_mut().unwrap().as_mut().unwrap().pod_security = Some("privileged".to_owned());
    },
    ("Pod Security", State::Warning, "jobs enforces privileged", "pod-security.kubernetes.io/enforce=restricted")
)]
#[case::verb(
    |facts: &mut Facts| deny(facts, "jobs", false, &["watch", "delete"]),
    (
        "jobs", State::Failed, "watch, delete not allowed in jobs",
        "kubectl --namespace jobs create role pullsecret-adapter-jobs --verb=watch,delete --resource=jobs.batch && kubectl --namespace \
         jobs create rolebinding pullsecret-adapter-jobs --role=pullsecret-adapter-jobs --serviceaccount=system:adapter"
    )
)]
#[case::verb_on_one(
    |facts: &mut Facts| deny(facts, "configmaps", true, &["patch"]),
    ("configmaps/pullsecret-store-check", State::Failed, "patch not allowed", "--resource-name=pullsecret-store-check && ")
)]
#[case::verb_of_a_person(
    |facts: &mut Facts| {
        kubernetes(facts).user = Ok("jane".to_owned());
        deny(facts, "pods", false, &["list"]);
    },
    ("pods", State::Failed, "list not allowed", "--role=pullsecret-adapter-pods --user=jane")
)]
#[case::granting(
    |facts: &mut Facts| deny(facts, "roles", false, &["escalate"]),
    ("roles", State::Warning, "escalate not allowed in all namespaces", "kubectl create clusterrolebinding")
)]
#[case::image(
    |facts: &mut Facts| {
        let pod = &mut kubernetes(facts).pods.as_mut().unwrap()[0];
        (pod.reason, pod.message) = ("ImagePullBackOff".to_owned(), "denied".to_owned());
    },
    ("image", State::Failed, "1 of 1 Pods wait for their image quay.io/a: ImagePullBackOff: denied", "describe pod a")
)]
#[case::pull_secret(
    |facts: &mut Facts| kubernetes(facts).missing_pull_secrets = vec!["quay".to_owned()],
    ("image", State::Failed, "the Secret jobs/quay, with which", "create secret generic quay --type=kubernetes.io/dockerconfigjson")
)]
fn a_fault_is_named_with_the_command_that_fixes_it(#[case] change: fn(&mut Facts), #[case] expected: Expected) {
    check(change, expected);
}

/// Makes the change, and compares the one line that is not ok.
fn check(change: fn(&mut Facts), expected: Expected) {
    let mut facts = sound();
    change(&mut facts);
    let found = faults(&facts);
    let [line] = found.as_slice() else { panic!("{}", text(&found)) };
    let (check, state, message, fix) = expected;
    assert_eq!((line.check.as_str(), line.state), (check, state), "{line:?}");
    assert!(line.message.contains(message) && line.fix.as_deref().unwrap().contains(fix), "{line:?}");
    assert_eq!(none_failed(&found), state != State::Failed);
}

#[rstest]
#[case::namespaces(|facts: &mut Facts| kubernetes(facts).found = Err(error(ErrorKind::Forbidden)), &["namespace", "Pod Security"])]
#[case::no_jobs(|facts: &mut Facts| kubernetes(facts).pods = Ok(Vec::new()), &["image"])]
#[case::pods(|facts: &mut Facts| kubernetes(facts).pods = Err(error(ErrorKind::Forbidden)), &["image"])]
#[case::plain(|facts: &mut Facts| probe(facts).certificate_end = None, &["certificate"])]
#[case::no_date(|facts: &mut Facts| probe(facts).date = None, &["clock"])]
fn what_cannot_be_checked_is_skipped(#[case] change: fn(&mut Facts), #[case] expected: &[&str]) {
    let mut facts = sound();
    change(&mut facts);
    let lines = lines(&facts);
    let skipped: Vec<&str> =
        lines.iter().filter(|line| line.state != State::Ok).map(|line| line.check.as_str()).collect();
    assert_eq!(skipped, expected);
    assert!(none_failed(&lines));
}

/// Each missing right of the adapter has a role of its own, so that all commands can be run one after the other.
#[test]
fn roles_of_missing_rights_have_distinct_names() {
    let mut facts = sound();
    for right in &mut kubernetes(&mut facts).rights {
        right.missing = Ok(right.right.verbs.to_vec());
    }
    let found = faults(&facts);
    let name = |line: &Line| {
        let fix = line.fix.clone().unwrap();
        let words: Vec<&str> = fix.split(' ').collect();
        let kind = words.iter().position(|word| ["role", "clusterrole"].contains(word)).unwrap();
        format!("{} {}", words[kind], words[kind + 1])
    };
    let names: BTreeSet<String> = found.iter().map(name).collect();
    assert_eq!((found.len(), names.len()), (10, 10), "{names:?}");
}

fn claimed(facts: &mut Facts, claims: &str) {
    api(facts).identity = Ok(Identity::Claimed(serde_json::from_str(claims).unwrap()));
}

/// A token of any age, and clocks of any difference.
#[rstest]
#[case::expires_last(r#"{"exp": 253402207200}"#, Timestamp::MIN, None)]
#[case::expired_first(r#"{"exp": -377705023201}"#, Timestamp::MAX, Some("expired 7304481 d ago"))]
#[case::beyond(r#"{"exp": 9223372036854775807}"#, Timestamp::MAX, None)]
fn extreme_times_have_lines_too(#[case] claims: &str, #[case] now: Timestamp, #[case] expected: Option<&str>) {
    let mut facts = sound();
    facts.now = now;
    claimed(&mut facts, claims);
    for (date, clock) in [(Timestamp::MIN, Timestamp::MAX), (Timestamp::MAX, Timestamp::MIN), (now, now)] {
        (probe(&mut facts).date, probe(&mut facts).certificate_end) = (Some(date), Some(date));
        (probe(&mut facts).sent, probe(&mut facts).received) = (clock, clock);
        facts.files[0].certificate_end = Ok(Some(date));
        let lines = lines(&facts);
        let state = |check| lines.iter().find(|line| line.check == check).map(|line| line.state);
        assert_eq!(state("clock"), Some(if date == clock { State::Ok } else { State::Failed }), "{}", text(&lines));
        let identity = lines.iter().find(|line| line.check == "identity").unwrap();
        assert_eq!(identity.state == State::Failed, expected.is_some(), "{identity:?}");
        assert!(identity.message.ends_with(expected.unwrap_or_default()), "{identity:?}");
    }
}

/// A claim of a token is named where it must be granted; of a person's token the one that is the name by default.
#[test]
fn a_grant_names_the_identity() {
    let mut facts = sound();
    let all =
        "kinds: [Cluster], verbs: [get, list], reports_as: [pullsecret], reads_pull_secrets: true, all_tenants: true}";
    api(&mut facts).read = denied();
    for (more, claim, subject) in [
        ("", "sub", r#""jane""#),
        (r#", "email": "jane@example.com""#, "email", r#""jane@example.com""#),
        (r#", "email": "\"}, {*""#, "email", r#""\"}, {*""#),
    ] {
        claimed(&mut facts, &format!(r#"{{"iss": "https://issuer", "sub": "jane", "exp": 1767225600{more}}}"#));
        let found = faults(&facts);
        let fix = found[0].fix.as_deref().unwrap();
        let grant = format!(r#"{{issuer: "https://issuer", subject: {subject}, {all}"#);
        assert!(found.len() == 1 && fix.ends_with(&grant), "{found:?}");
        assert!(fix.contains(&format!("identity_claim names (default email), here {claim};")), "{fix}");
    }
    facts.now += SignedDuration::from_secs(3_600);
    let found = faults(&facts);
    assert!(found[0].message.starts_with("the token of jane of https://issuer expired 60 min ago"), "{found:?}");
}
