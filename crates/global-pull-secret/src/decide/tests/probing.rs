//! What registries say, and what of it holds entries back.

use jiff::Timestamp;
use rstest::rstest;

use super::super::probe::{Answer, Finding, Mode, Rules, Verdict, is_denied};
use super::world::{ADDITIONAL, World, message, told};

fn world(mode: Mode) -> World {
    let mut world = World::new("q.io=O");
    world.policy.probe = Rules { mode, deny: vec!["denied.io".to_owned()] };
    world
}

impl World {
    /// Answers every question that is asked now by its host; returns the hosts.
    fn answer(&mut self, verdict: impl Fn(&str) -> Verdict) -> Vec<String> {
        let plan = self.settle();
        let hosts = plan.ask.iter().map(|question| question.host.clone()).collect();
        for question in plan.ask {
            let before = self.facts.answers.get(&question.digest);
            let finding = Finding::new(verdict(&question.host), "words");
            let answer = Answer::of(finding, before, self.now);
            self.facts.answers.insert(question.digest, answer);
        }
        hosts
    }

    fn reasons(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.news).into_iter().map(|news| news.reason.as_str()).collect()
    }
}

#[test]
fn nobody_is_asked_unless_that_is_wanted() {
    let mut world = world(Mode::Off);
    world.additional("r.io=V");
    let plan = world.settle();
    assert!(plan.ask.is_empty() && plan.conditions.len() == 4);
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
    assert!(told(&plan).contains(&"CredentialsAccepted=Unknown/AskingRegistries".to_owned()), "{:?}", told(&plan));
    assert!(told(&plan).contains(&"Degraded=False/AsExpected".to_owned()), "{:?}", told(&plan));
    assert_eq!(world.answer(|_| verdict), ["r.io"]);
    let plan = world.settle();
    assert_eq!(world.deployed(), deployed);
    assert!(told(&plan).contains(&condition.to_owned()), "{:?}", told(&plan));
    // Told once, however often it is looked at.
    world.settle();
    let reason = condition.rsplit('/').next().unwrap();
    assert_eq!(world.reasons().into_iter().filter(|told| *told == reason).count(), 1);
}

#[test]
fn what_was_good_stays_in_the_place_of_what_is_refused() {
    let mut world = world(Mode::Block);
    world.additional("r.io=V s.io=V");
    world.answer(|_| Verdict::Accepted);
    world.settle_nodes();
    let revision = world.record().revision;
    world.additional("https://r.io/=W s.io=W t.io=W");
    let refuses_r = |host: &str| if host == "r.io" { Verdict::Refused } else { Verdict::Accepted };
    assert_eq!(world.answer(refuses_r), ["r.io", "s.io", "t.io"]);
    assert_eq!(world.record().revision, revision, "nothing is rolled out before all answers are there");
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V s.io W t.io W");
    let line = "https://r.io/, from additional-pull-secret: words (held back; what was good before stays)";
    assert_eq!(message(&plan, "CredentialsAccepted"), line);
    // The account is mended at the registry: asked again after a while, and taken then.
    world.wait(599);
    assert!(world.settle().ask.is_empty());
    world.wait(1);
    assert_eq!(world.answer(|_| Verdict::Accepted), ["r.io"]);
    world.settle();
    assert_eq!(world.deployed(), "https //r.io/ W q.io O s.io W t.io W");
}

#[test]
fn what_is_rolled_out_is_not_taken_away_by_a_later_refusal() {
    let mut world = world(Mode::Block);
    world.additional("r.io=V");
    world.answer(|_| Verdict::Unreachable);
    world.settle_nodes();
    world.wait(30);
    assert_eq!(world.answer(|_| Verdict::Refused), ["r.io"]);
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V");
    assert_eq!(message(&plan, "CredentialsAccepted"), "r.io, from additional-pull-secret: words");
}

#[test]
fn another_controller_asks_nothing_about_what_is_rolled_out_and_still_tells_it() {
    let mut world = world(Mode::Warn);
    world.additional("r.io=V");
    world.answer(|_| Verdict::Refused);
    world.settle_nodes();
    world.take_done();
    world.facts.answers.clear();
    let plan = world.settle();
    assert!(plan.ask.is_empty() && world.take_done().is_empty());
    assert!(told(&plan).contains(&"CredentialsAccepted=False/CredentialRefused".to_owned()));
    // Changed: the old finding says nothing of it.
    world.additional("r.io=W");
    assert_eq!(world.answer(|_| Verdict::Accepted), ["r.io"]);
    assert!(told(&world.settle()).contains(&"CredentialsAccepted=True/CredentialAccepted".to_owned()));
}

#[test]
fn only_what_would_be_used_can_be_asked_about_and_may_be_is_asked() {
    let mut world = world(Mode::Block).protecting("p.io");
    world.additional("*.r.io=V a.denied.io=V denied.io:444=V notdenied.io=V p.io=V docker.io/team=V q.io=O");
    world.add("b", Some(r#"{"auths":{"i.io":{"identitytoken":"SECRET"}}}"#));
    // The original's own entry is nothing new.
    let mut hosts = world.answer(|_| Verdict::Accepted);
    hosts.sort();
    assert_eq!(hosts, ["notdenied.io", "registry-1.docker.io"]);
    let plan = world.settle();
    assert_eq!(message(&plan, "CredentialsAccepted"), "2 accepted, 4 not asked about");
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
    world.answer(|_| Verdict::Unreachable);
    for seconds in [30, 120, 480, 1920, 3600, 3600] {
        world.wait(seconds - 1);
        assert!(world.settle().ask.is_empty(), "{seconds}");
        world.wait(1);
        assert_eq!(world.answer(|_| Verdict::Unreachable).len(), 1, "{seconds}");
    }
    let since = world.facts.answers.values().next().map(|answer| answer.since);
    assert_eq!(since, Timestamp::from_second(1_000_000).ok());
    assert_eq!(world.reasons().into_iter().filter(|reason| *reason == "RegistryUnreachable").count(), 1);
    world.delete(ADDITIONAL);
    assert!(world.settle().ask.is_empty());
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
