//! Tests of grants: whom they fit, what they allow, and settings that are refused.

use rstest::rstest;
use serde_json::json;

use super::*;

const ISSUER: &str = "https://issuer";

fn settings(yaml: &str) -> Vec<GrantSettings> {
    serde_saphyr::from_str(yaml).unwrap()
}

fn grants(yaml: &str) -> Grants {
    Grants::new(&settings(yaml), &Registry::standard(), &[ISSUER, "https://other"]).unwrap()
}

fn identity(issuer: &str, subject: &str) -> Identity {
    let claims = json!({ "groups": ["developers", "operators"], "team": "fleet", "level": 5 });
    Identity { issuer: issuer.to_owned(), subject: subject.to_owned(), claims: claims.as_object().unwrap().clone() }
}

#[rstest]
#[case::this_subject("subject: jane", ISSUER, "jane", true)]
#[case::another_subject("subject: jane", ISSUER, "jane2", false)]
#[case::a_pattern_is_no_subject("subject: 'j.*'", ISSUER, "jane", false)]
#[case::the_same_name_of_another_issuer("subject: jane", "https://other", "jane", false)]
#[case::a_member_of_a_list("claim: {name: groups, pattern: operators}", ISSUER, "x", true)]
#[case::the_whole_text_only("claim: {name: groups, pattern: operator}", ISSUER, "x", false)]
#[case::alternatives_stay_anchored("claim: {name: groups, pattern: 'x|oper'}", ISSUER, "x", false)]
#[case::a_text("claim: {name: team, pattern: 'fl.*'}", ISSUER, "x", true)]
#[case::no_text("claim: {name: level, pattern: '5'}", ISSUER, "x", false)]
#[case::no_such_claim("claim: {name: roles, pattern: '.*'}", ISSUER, "x", false)]
fn a_grant_fits_identities_of_its_issuer(
    #[case] whom: &str,
    #[case] issuer: &str,
    #[case] subject: &str,
    #[case] fits: bool,
) {
    let grants = grants(&format!("[{{issuer: '{ISSUER}', {whom}, kinds: [Cluster], verbs: [get]}}]"));
    let permissions = grants.of(&identity(issuer, subject));
    assert_eq!(permissions.allow(Verb::Get, Scope::Kind("Cluster")).is_ok(), fits);
}

#[test]
fn everything_is_denied_that_no_grant_allows() {
    let grants = grants("[]");
    let permissions = grants.of(&identity(ISSUER, "jane"));
    for scope in [Scope::Kind("Cluster"), Scope::Every] {
        assert!(Verb::ALL.iter().all(|verb| permissions.allow(*verb, scope).is_err()));
        assert!(permissions.allow_report("dns", scope).is_err() && permissions.allow_some_report(scope).is_err());
        assert!(permissions.allow_force_delete(scope).is_err() && permissions.allow_pull_secret(scope).is_err());
        let rights = permissions.pull_secrets(scope);
        assert!(!rights.chooses_destination && !rights.reads);
    }
    assert_eq!(permissions.by_kind(), []);
    assert_eq!(
        permissions.allow(Verb::Update, Scope::Kind("Cluster")).unwrap_err().to_string(),
        "no grant of the caller allows update on Cluster"
    );
}

#[test]
fn a_permission_is_for_its_verb_kind_and_adapter() {
    let grants = grants(
        "
- {name: sentinel, issuer: 'https://issuer', subject: jane, kinds: [Cluster, NodePool], verbs: [list, watch]}
- {issuer: 'https://issuer', subject: jane, kinds: [Cluster], verbs: [get], reports_as: [pullsecret]}
",
    );
    let permissions = grants.of(&identity(ISSUER, "jane"));
    let (cluster, node_pool) = (Scope::Kind("Cluster"), Scope::Kind("NodePool"));
    assert_eq!(permissions.allow(Verb::List, node_pool), Ok("sentinel".to_owned()));
    assert_eq!(permissions.allow(Verb::Get, cluster), Ok("authorization.grants[1]".to_owned()));
    assert!(permissions.allow(Verb::Get, node_pool).is_err());
    assert!(permissions.allow(Verb::List, Scope::Every).is_err(), "channels are not granted");
    assert!(permissions.allow_report("pullsecret", cluster).is_ok());
    assert!(permissions.allow_report("placement", cluster).is_err());
    assert!(permissions.allow_report("pullsecret", node_pool).is_err());
    assert!(permissions.allow_pull_secret(cluster).is_err());
}

#[test]
fn every_kind_is_allowed_by_a_star_or_by_grants_for_all() {
    let star = grants("[{issuer: 'https://issuer', subject: jane, kinds: ['*'], verbs: ['*'], reports_as: ['*']}]");
    let permissions = star.of(&identity(ISSUER, "jane"));
    assert!(permissions.allow(Verb::Delete, Scope::Every).is_ok());
    assert!(permissions.allow_report("anything", Scope::Kind("Cluster")).is_ok());
    assert!(permissions.allow_force_delete(Scope::Every).is_err(), "verbs do not include it");
    let listed = grants(
        "[{issuer: 'https://issuer', subject: jane, kinds: [Cluster, NodePool, Channel, Version, WifConfig], verbs: [get]}]",
    );
    assert!(listed.of(&identity(ISSUER, "jane")).allow(Verb::Get, Scope::Every).is_ok());
}

#[test]
fn without_authentication_only_the_token_reads_pull_secrets() {
    for (token, reads) in [(false, false), (true, true)] {
        let permissions = Permissions::unauthenticated(token);
        assert!(permissions.allow(Verb::Delete, Scope::Every).is_ok());
        assert!(permissions.pull_secrets(Scope::Every).chooses_destination);
        assert_eq!(permissions.allow_pull_secret(Scope::Kind("Cluster")).is_ok(), reads);
    }
}

#[rstest]
#[case("issuer: x, subject: a, kinds: [Cluster], verbs: [get]", "issuer: is the issuer_url of no item")]
#[case("issuer: 'https://issuer', kinds: [Cluster], verbs: [get]", "subject: give either it or claim")]
#[case("issuer: 'https://issuer', subject: '', kinds: [Cluster], verbs: [get]", "subject: give either")]
#[case(
    "issuer: 'https://issuer', subject: a, claim: {name: b, pattern: c}, kinds: [Cluster], verbs: [get]",
    "subject: give either"
)]
#[case(
    "issuer: 'https://issuer', claim: {name: b, pattern: '('}, kinds: [Cluster], verbs: [get]",
    "claim.pattern: is not a regular expression"
)]
#[case("issuer: 'https://issuer', subject: a, kinds: [], verbs: [get]", "kinds: name at least one")]
#[case("issuer: 'https://issuer', subject: a, kinds: [Clusters], verbs: [get]", "kinds: `Clusters` is not a kind")]
#[case("issuer: 'https://issuer', subject: a, kinds: [Cluster], verbs: [read]", "verbs: `read` is none of get")]
#[case("issuer: 'https://issuer', subject: a, kinds: [Cluster]", "verbs: the grant allows nothing")]
#[case(
    "issuer: 'https://issuer', subject: a, kinds: [Cluster], verbs: [list], reads_pull_secrets: true",
    "reads_pull_secrets: has no effect without the verb get"
)]
#[case(
    "issuer: 'https://issuer', subject: a, kinds: [Cluster], verbs: [get], chooses_destination: true",
    "chooses_destination: has no effect"
)]
fn grants_that_cannot_be_meant_are_refused(#[case] grant: &str, #[case] fault: &str) {
    let refused = Grants::new(&settings(&format!("[{{{grant}}}]")), &Registry::standard(), &[ISSUER]);
    let faults = refused.unwrap_err();
    assert!(faults[0].starts_with(&format!("authorization.grants[0].{fault}")), "{faults:?}");
}
