//! Findings of probes, and the entries that they hold back.

use jiff::Timestamp;
use rstest::rstest;

use super::world::{ADDITIONAL, World, message, reported};
use crate::finding::{Finding, Mode, ProbeResult, Rules, Verdict, is_denied};

fn world(mode: Mode) -> World {
    let mut world = World::new("q.io=O");
    world.policy.probe = Rules { mode, deny: vec!["denied.io".to_owned()] };
    world
}

impl World {
    /// Completes every probe that is started now by its host; returns the hosts.
    fn result(&mut self, verdict: impl Fn(&str) -> Verdict) -> Vec<String> {
        let plan = self.settle();
        let hosts = plan.requests.iter().map(|request| request.host.clone()).collect();
        for request in plan.requests {
            let before = self.facts.results.get(&request.digest);
            let finding = Finding::new(verdict(&request.host), "message");
            let result = ProbeResult::of(finding, before, self.now);
            self.facts.results.insert(request.digest, result);
        }
        hosts
    }

    fn reasons(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.events).into_iter().map(|event| event.reason.as_str()).collect()
    }
}

#[test]
fn no_registry_is_probed_by_default() {
    let mut world = world(Mode::Off);
    world.additional("r.io=V");
    let plan = world.settle();
    assert!(plan.requests.is_empty() && plan.conditions.len() == 4);
    assert_eq!(world.deployed(), "q.io O r.io V");
}

#[rstest]
#[case::accepted(Mode::Block, Verdict::Accepted, "q.io O r.io V", "CredentialsAccepted=True/CredentialAccepted")]
#[case::refused(Mode::Block, Verdict::Refused, "-", "CredentialsAccepted=False/CredentialRefused")]
#[case::unreachable(
    Mode::Block,
    Verdict::Unreachable,
    "q.io O r.io V",
    "CredentialsAccepted=Unknown/RegistryUnreachable"
)]
#[case::warned(Mode::Warn, Verdict::Refused, "q.io O r.io V", "CredentialsAccepted=False/CredentialRefused")]
#[case::warned_of_silence(
    Mode::Warn,
    Verdict::Unreachable,
    "q.io O r.io V",
    "CredentialsAccepted=Unknown/RegistryUnreachable"
)]
fn a_first_entry_waits_for_its_answer(
    #[case] mode: Mode,
    #[case] verdict: Verdict,
    #[case] deployed: &str,
    #[case] condition: &str,
) {
    let mut world = world(mode);
    world.additional("r.io=V");
    let plan = world.settle();
    assert_eq!(world.deployed(), "-");
    assert!(
        reported(&plan).contains(&"CredentialsAccepted=Unknown/ProbingRegistries".to_owned()),
        "{:?}",
        reported(&plan)
    );
    assert!(reported(&plan).contains(&"Degraded=False/AsExpected".to_owned()), "{:?}", reported(&plan));
    assert_eq!(world.result(|_| verdict), ["r.io"]);
    let plan = world.settle();
    assert_eq!(world.deployed(), deployed);
    assert!(reported(&plan).contains(&condition.to_owned()), "{:?}", reported(&plan));
    // Reported once, at any number of reconciles.
    world.settle();
    let reason = condition.rsplit('/').next().unwrap();
    assert_eq!(world.reasons().into_iter().filter(|reported| *reported == reason).count(), 1);
}

#[test]
fn the_last_good_entry_replaces_a_refused_one() {
    let mut world = world(Mode::Block);
    world.additional("r.io=V s.io=V");
    world.result(|_| Verdict::Accepted);
    world.settle_nodes();
    let revision = world.record().revision;
    world.additional("https://r.io/=W s.io=W t.io=W");
    let refuses_r = |host: &str| if host == "r.io" { Verdict::Refused } else { Verdict::Accepted };
    assert_eq!(world.result(refuses_r), ["r.io", "s.io", "t.io"]);
    assert_eq!(world.record().revision, revision, "nothing is rolled out before all answers are there");
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V s.io W t.io W");
    let line = "r.io, from additional-pull-secret: message (held back; its last good entry stays)";
    assert_eq!(message(&plan, "CredentialsAccepted"), line);
    // The account is repaired at the registry: probed again after a delay, and accepted then.
    world.wait(599);
    assert!(world.settle().requests.is_empty());
    world.wait(1);
    assert_eq!(world.result(|_| Verdict::Accepted), ["r.io"]);
    world.settle();
    assert_eq!(world.deployed(), "q.io O r.io W s.io W t.io W");
}

#[test]
fn a_later_refusal_keeps_what_is_rolled_out() {
    let mut world = world(Mode::Block);
    world.additional("r.io=V");
    world.result(|_| Verdict::Unreachable);
    world.settle_nodes();
    world.wait(30);
    assert_eq!(world.result(|_| Verdict::Refused), ["r.io"]);
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V");
    assert_eq!(message(&plan, "CredentialsAccepted"), "r.io, from additional-pull-secret: message");
}

#[test]
fn a_restarted_controller_keeps_findings_without_probing() {
    let mut world = world(Mode::Warn);
    world.additional("r.io=V");
    world.result(|_| Verdict::Refused);
    world.settle_nodes();
    world.take_done();
    world.facts.results.clear();
    let plan = world.settle();
    assert!(plan.requests.is_empty() && world.take_done().is_empty());
    assert!(reported(&plan).contains(&"CredentialsAccepted=False/CredentialRefused".to_owned()));
    // Changed: the old finding says nothing of it.
    world.additional("r.io=W");
    assert_eq!(world.result(|_| Verdict::Accepted), ["r.io"]);
    assert!(reported(&world.settle()).contains(&"CredentialsAccepted=True/CredentialAccepted".to_owned()));
}

#[test]
fn only_entries_that_are_used_and_allowed_are_probed() {
    let mut world = world(Mode::Block).protecting("p.io");
    world.additional("*.r.io=V a.denied.io=V denied.io:444=V notdenied.io=V p.io=V docker.io/team=V q.io=O");
    world.add("b", Some(r#"{"auths":{"i.io":{"identitytoken":"SECRET"}}}"#));
    // The original's own entry is nothing new.
    let mut hosts = world.result(|_| Verdict::Accepted);
    hosts.sort();
    assert_eq!(hosts, ["notdenied.io", "registry-1.docker.io"]);
    let plan = world.settle();
    assert_eq!(message(&plan, "CredentialsAccepted"), "2 accepted, 4 not probed");
    assert!(world.deployed().contains("a.denied.io V") && world.deployed().contains("i.io"));
    let version = world.facts.status.as_ref().unwrap().metadata.resource_version.clone();
    world.wait(100);
    world.settle();
    world.take_done();
    world.wait(100);
    world.settle();
    assert!(world.take_done().is_empty() && version.is_some());
}

#[test]
fn waits_become_longer_with_every_failure() {
    let mut world = world(Mode::Warn);
    world.additional("r.io=V");
    world.result(|_| Verdict::Unreachable);
    for seconds in [30, 120, 480, 1920, 3600, 3600] {
        world.wait(seconds - 1);
        assert!(world.settle().requests.is_empty(), "{seconds}");
        world.wait(1);
        assert_eq!(world.result(|_| Verdict::Unreachable).len(), 1, "{seconds}");
    }
    let since = world.facts.results.values().next().map(|result| result.since);
    assert_eq!(since, Timestamp::from_second(1_000_000).ok());
    assert_eq!(world.reasons().into_iter().filter(|reason| *reason == "RegistryUnreachable").count(), 1);
    world.delete(ADDITIONAL);
    assert!(world.settle().requests.is_empty());
}

#[rstest]
#[case("a.io", true)]
#[case("b.a.io", true)]
#[case("B.A.IO.", true)]
#[case("ba.io", false)]
#[case("a.io.evil.io", false)]
#[case("io", false)]
fn a_denied_host_is_denied_with_all_below_it(#[case] host: &str, #[case] expected: bool) {
    assert_eq!(is_denied(host, &["a.io".to_owned()]), expected);
}
