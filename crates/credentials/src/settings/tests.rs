//! Settings that are accepted, and the faults of others.

use std::time::Duration;

use registry_account::HarborSettings;
use rstest::rstest;

use super::*;
use crate::credential::{Approval, NodesEvidence, Policy, Retire};
use crate::registry::ClientSettings;

const QUAY: &str = "{name: quay, type: quay, url: https://quay.io, organization: fleet, team: pullers, \
                    token_file: /run/quay/token, image: fleet/release}";

const HARBOR: &str = "{name: harbor, type: harbor, url: https://harbor.example.com, project: fleet, username: pull-secrets, \
                      password_file: /run/harbor/password, image: fleet/release}";

const GAR: &str = "{name: gar, type: gar, url: https://europe-west1-docker.pkg.dev, \
                   service_account: puller@fleet.iam.gserviceaccount.com, image: 'fleet/release/image:4.19'}";

const RED_HAT: &str = "{name: red-hat, type: red_hat, url: https://api.access.redhat.com/management/v1, partner: hyperfleet, \
                       cert_file: /run/red-hat/tls.crt, key_file: /run/red-hat/tls.key, image: ubi9/ubi-minimal}";
/// A description of 200 characters.
const LONG: &str = "description: \
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, image";
const ECR: &str = "{name: ecr, type: ecr, url: https://123456789012.dkr.ecr.eu-central-1.amazonaws.com, region: eu-central-1, \
                   role: 'arn:aws:iam::123456789012:role/puller', image: 'release/image:4.19'}";

const ACR: &str = "{name: acr, type: acr, url: https://fleet.azurecr.io, tenant_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001, \
                   client_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0002, token_file: /run/azure/token, image: 'release/image:4.19'}";

type Variables<'a> = BTreeMap<&'a str, &'a str>;

fn check(file: &str, variables: &Variables<'_>) -> Result<Checked, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    daemon::file::replace(&path, file.as_bytes()).unwrap();
    let mut all: Variables<'_> = [("HYPERFLEET_API_BASE_URL", "http://localhost:8000")].into();
    all.extend(variables);
    Checked::load([("config", path.to_string_lossy().into_owned())].into(), &all)
}

#[test]
fn the_least_is_enough() {
    let checked = check(&format!("registries: [{QUAY}]"), &Variables::new()).unwrap();
    let [quay] = checked.registries.as_slice() else { panic!("{:?}", checked.registries) };
    assert_eq!((quay.name.as_str(), quay.pool, quay.client.calls_per_minute()), ("quay", 0, 60));
    assert_eq!((&quay.policy, &quay.search, &quay.image.reference), (&Policy::default(), &None, &None));
    assert_eq!(checked.settings.database.file().unwrap().to_str(), Some("credentials.db"));
    assert!(!checked.settings.server.enabled);
}

#[test]
fn everything_can_be_set() {
    let given = QUAY.replace(
        "image: fleet/release}",
        "host: 'quay.io:443', image: 'fleet/release:4.19', prefix: fl, pool: 7, calls_per_minute: 30, search: \"labels.a = 'b'\", \
         description: text, policy: {retire: when_adopted, nodes: renounced, revocation: another_person, quiet: 48h, deadline: 1h, interval: 1m, fresh: 2m, \
         resync: 12h, late: 20m}}",
    );
    let variables = Variables::from([
        ("HYPERFLEET_CREDENTIALS_DATABASE_PATH", "/data/c.db"),
        ("HYPERFLEET_CREDENTIALS_CLUSTERS_RESYNC", "1m"),
        ("HYPERFLEET_API_TIMEOUT", "3s"),
    ]);
    let checked = check(&format!("registries: [{given}]"), &variables).unwrap();
    let quay = &checked.registries[0];
    let minutes = Duration::from_mins;
    let expected = Policy {
        retire: Retire::WhenAdopted,
        nodes: NodesEvidence::Renounced,
        revocation: Approval::AnotherPerson,
        quiet: minutes(48 * 60),
        deadline: minutes(60),
        interval: minutes(1),
        fresh: minutes(2),
        resync: minutes(12 * 60),
        late: minutes(20),
        disabled_for: Duration::ZERO,
    };
    assert_eq!(quay.policy, expected);
    assert_eq!(quay.image.reference.as_ref().map(registry_account::Reference::as_str), Some("4.19"));
    assert_eq!((quay.pool, quay.client.calls_per_minute(), quay.search.as_deref()), (7, 30, Some("labels.a = 'b'")));
    assert_eq!(
        (checked.settings.clusters.resync, checked.client.attempt_timeout),
        (minutes(1), Duration::from_secs(3))
    );
    assert_eq!(checked.settings.database.file().unwrap().to_str(), Some("/data/c.db"));
}

#[rstest]
#[case::none("registries: []", "registries: must name one or more")]
#[case::unknown("{registry: []}", "registry: unknown key")]
#[case::unknown_of_a_registry("image: fleet/release, pol: 1", "registries[0].pol: unknown key")]
#[case::kind("type: quay", "registries[0].type: ")]
#[case::name("name: quay", "registries[0].name: must be 1 to 63 characters")]
#[case::url("url: https://quay.io", "registries[0].url: must be an https:// address")]
#[case::organization("organization: fleet", "registries[0].organization: must be 2 to 200 characters")]
#[case::team("team: pullers", "registries[0].team: must be 2 to 200 characters")]
#[case::image("image: fleet/release", "registries[0].image: must be parts of")]
#[case::prefix("image: fleet/release, prefix: A_", "registries[0].prefix: must be 1 to 22 characters")]
#[case::calls("image: fleet/release, calls_per_minute: 0", "registries[0].calls_per_minute: must be 1 or more")]
#[case::description("image: fleet/release, description: ''", "registries[0].description: must be one line")]
#[case::quiet("image: fleet/release, policy: {quiet: soon}", "registries[0].policy.quiet: must be a duration")]
#[case::zero("image: fleet/release, policy: {interval: 0s}", "registries[0].policy.interval: must be a duration")]
#[case::late("image: fleet/release, policy: {late: 1m}", "registries[0].policy.late: must be 5m or more")]
#[case::policy("image: fleet/release, policy: {quite: 1h}", "registries[0].policy.quite: unknown key")]
#[case::retire("image: fleet/release, policy: {retire: never}", "registries[0].policy.retire: ")]
#[case::database("{database: {password: a, password_file: b}}", "database.password: give either it or")]
#[case::plain("{server: {enabled: true, host: 0.0.0.0}}", "server.host: passwords leave this machine over TLS only")]
#[case::half_a_pair("{server: {tls: {cert_file: a}}}", "server.tls: needs cert_file and key_file")]
#[case::audience("{server: {audience: ' '}}", "server.audience: must not be empty")]
#[case::rate("{server: {requests_per_minute: 0}}", "server.requests_per_minute: ")]
#[case::resync("{clusters: {resync: 1s}}", "clusters.resync: must be a duration of 10s or more")]
fn faults_name_the_key(#[case] change: &str, #[case] fault: &str) {
    let faults = check(&file(change), &Variables::new()).unwrap_err();
    assert!(faults.iter().any(|line| line.starts_with(fault)), "{faults:?}");
}

/// A file with a whole document, or with a registry of which members are added or made invalid.
fn file(change: &str) -> String {
    let registry = match change.split_once(": ") {
        Some(_) if change.starts_with(['{', 'r']) => return change.to_owned(),
        Some(_) if change.contains(", ") => QUAY.replace("image: fleet/release", change),
        Some((key, _)) => QUAY.replace(change, &format!("{key}: 'B A D'")),
        None => panic!("{change}"),
    };
    format!("registries: [{registry}]")
}

#[test]
fn a_harbor_has_settings_of_its_own() {
    let more = HARBOR.replace("image:", "robot_prefix: bot-, token_life: 2h, calls_per_minute: 30, image:");
    let [least, all] = [HARBOR, &more].map(|registry| {
        let checked = check(&format!("registries: [{QUAY}, {registry}]"), &Variables::new()).unwrap();
        match (checked.registries[1].kind, checked.registries[1].client.clone()) {
            (RegistryKind::Harbor, ClientSettings::Harbor(settings)) => settings,
            other => panic!("{other:?}"),
        }
    });
    let shown = |settings: &HarborSettings| {
        let HarborSettings { robot_prefix, token_life, calls_per_minute, .. } = settings;
        (robot_prefix.to_string(), *token_life, *calls_per_minute)
    };
    assert_eq!(shown(&least), ("robot$".to_owned(), Duration::from_mins(30), 60));
    assert_eq!(shown(&all), ("bot-".to_owned(), Duration::from_hours(2), 30));
    let names = (least.host(), least.project.as_str(), least.username.as_str());
    assert_eq!(names, ("harbor.example.com", "fleet", "pull-secrets"));
}

#[test]
fn a_gar_has_settings_of_its_own() {
    let more = GAR.replace("image: '", "token_url: 'http://localhost:1', token_life: 12h, image: '");
    let [least, all] = [GAR, &more].map(|registry| {
        let checked = check(&format!("registries: [{registry}]"), &Variables::new()).unwrap();
        match (checked.registries[0].kind, checked.registries[0].client.clone()) {
            (RegistryKind::Gar, ClientSettings::Gar(settings)) => settings,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!((least.host(), least.token_life), ("europe-west1-docker.pkg.dev", Duration::from_hours(1)));
    assert_eq!(least.token_address.as_str(), "https://iamcredentials.googleapis.com");
    assert_eq!((all.token_address.as_str(), all.token_life), ("http://localhost:1", Duration::from_hours(12)));
    assert_eq!(all.service_account.to_string(), "puller@fleet.iam.gserviceaccount.com");
}

#[test]
fn a_red_hat_has_settings_of_its_own() {
    let ClientSettings::RedHat(least) = client(RED_HAT) else { panic!("{RED_HAT}") };
    assert_eq!(least.address.as_str(), "https://api.access.redhat.com/management/v1");
    assert_eq!((least.host.as_str(), least.partner.as_str()), ("registry.redhat.io", "hyperfleet"));
    assert_eq!((least.token_life, least.calls_per_minute), (Duration::from_hours(1), 120));
    let more =
        RED_HAT.replace("image:", "host: registry.connect.redhat.com, token_life: 5m, calls_per_minute: 60, image:");
    let ClientSettings::RedHat(all) = client(&more) else { panic!("{more}") };
    assert_eq!(
        (all.host.as_str(), all.token_life, all.calls_per_minute),
        ("registry.connect.redhat.com", Duration::from_mins(5), 60)
    );
    let certificate = client(RED_HAT).certificate().unwrap().clone();
    assert_eq!(
        (certificate.cert_file, certificate.key_file),
        ("/run/red-hat/tls.crt".into(), "/run/red-hat/tls.key".into())
    );
    assert!(client(QUAY).certificate().is_none());
}

/// The settings of the client of the only registry.
fn client(registry: &str) -> ClientSettings {
    check(&format!("registries: [{registry}]"), &Variables::new()).unwrap().registries[0].client.clone()
}

#[rstest]
#[case::own("", "https://api.ecr.eu-central-1.amazonaws.com")]
#[case::china("region: cn-north-1, ", "https://api.ecr.cn-north-1.amazonaws.com.cn")]
#[case::given("token_url: 'https://vpce-1.example', region: cn-north-1, ", "https://vpce-1.example")]
fn an_ecr_has_settings_of_its_own(#[case] given: &str, #[case] token_address: &str) {
    let registry = if given.is_empty() { ECR.to_owned() } else { ECR.replace("region: eu-central-1, ", given) };
    let ClientSettings::Ecr(settings) = client(&registry) else { panic!("{registry}") };
    assert_eq!(settings.host(), "123456789012.dkr.ecr.eu-central-1.amazonaws.com");
    assert_eq!(settings.token_address.as_str(), token_address);
    assert_eq!(settings.role.to_string(), "arn:aws:iam::123456789012:role/puller");
}

#[rstest]
#[case::own("", "https://login.microsoftonline.com")]
#[case::given("token_url: 'https://login.microsoftonline.us', ", "https://login.microsoftonline.us")]
fn an_acr_has_settings_of_its_own(#[case] given: &str, #[case] token_address: &str) {
    let ClientSettings::Acr(settings) = client(&ACR.replacen("image", &format!("{given}image"), 1)) else {
        panic!("{given}")
    };
    assert_eq!((settings.host(), settings.token_address.as_str()), ("fleet.azurecr.io", token_address));
    assert_eq!(settings.tenant.to_string(), "5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001");
}

#[rstest]
#[case::partner(RED_HAT, "partner: hyperfleet, ", "", "partner: missing: the partner that owns the accounts")]
#[case::bad_partner(RED_HAT, "partner: hyperfleet", "partner: 'a/b'", "partner: must be 1 to 64 characters")]
#[case::certificate(RED_HAT, "cert_file: /run/red-hat/tls.crt, ", "", "cert_file: missing: the file with the client's")]
#[case::key(RED_HAT, "key_file: /run/red-hat/tls.key, ", "", "key_file: missing: the file with the key")]
#[case::long(RED_HAT, "image", LONG, "description: at Red Hat, must be 194 characters at most")]
#[case::red_hats_partner(QUAY, "team", "partner: a, team", "partner: a registry of type red_hat has it")]
#[case::red_hats_certificate(QUAY, "team", "cert_file: a, team", "cert_file: a registry of type red_hat has it")]
#[case::red_hats_key(QUAY, "team", "key_file: a, team", "key_file: a registry of type red_hat has it")]
#[case::region(ECR, "region: eu-central-1, ", "", "region: missing: the region of the registry")]
#[case::bad_region(ECR, "region: eu-central-1", "region: a/b-c", "region: must be a region")]
#[case::role(
    ECR,
    "role: 'arn:aws:iam::123456789012:role/puller', ",
    "",
    "role: missing: the role whose tokens are minted"
)]
#[case::bad_role(ECR, "role/puller", "user/puller", "role: must be the ARN of a role")]
#[case::ecrs_pool(ECR, "image", "pool: 3, image", "pool: tokens expire, so none are pooled")]
#[case::ecrs_life(
    ECR,
    "image",
    "token_life: 1h, image",
    "token_life: a registry of type gar or harbor or red_hat has it"
)]
#[case::ecrs_role(QUAY, "team", "role: a, team", "role: a registry of type ecr has it")]
#[case::ecrs_region(QUAY, "team", "region: a, team", "region: a registry of type ecr has it")]
#[case::tenant(ACR, "tenant_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001, ", "", "tenant_id: missing: ")]
#[case::bad_tenant(ACR, "tenant_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001", "tenant_id: a/b", "tenant_id: ")]
#[case::application(
    ACR,
    "client_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0002, ",
    "",
    "client_id: missing: the application"
)]
#[case::acrs_token(ACR, "token_file: /run/azure/token, ", "", "token_file: missing: the file with the token")]
#[case::acrs_tag(ACR, "'release/image:4.19'", "release/image", "image: must name a tag or digest")]
#[case::acrs_tenant(QUAY, "team", "tenant_id: a, team", "tenant_id: a registry of type acr has it")]
#[case::acrs_application(QUAY, "team", "client_id: a, team", "client_id: a registry of type acr has it")]
#[case::service_account(
    GAR,
    "service_account: puller@fleet.iam.gserviceaccount.com, ",
    "",
    "service_account: missing: "
)]
#[case::bad_account(GAR, "puller@fleet", "puller/fleet", "service_account: must be the address of a service account")]
#[case::plain_iam(GAR, "image", "token_url: 'http://example.com', image", "token_url: must be an https:// address")]
#[case::long_life(GAR, "image", "token_life: 13h, image", "token_life: must be whole seconds, and 12h at most")]
#[case::half_a_second(GAR, "image", "token_life: 1500ms, image", "token_life: must be whole seconds")]
#[case::no_tag(GAR, "'fleet/release/image:4.19'", "fleet/release/image", "image: must name a tag or digest")]
#[case::pool(GAR, "image", "pool: 3, image", "pool: tokens expire, so none are pooled")]
#[case::gars_account(
    HARBOR,
    "project",
    "service_account: a@b, project",
    "service_account: a registry of type gar has it"
)]
#[case::tokens(QUAY, "team", "token_url: https://a, team", "token_url: a registry of type acr or ecr or gar has it")]
#[case::project(HARBOR, "project: fleet, ", "", "project: missing: the project that owns the accounts")]
#[case::username(HARBOR, "username: pull-secrets, ", "", "username: missing: the user who administers the project")]
#[case::password(HARBOR, "password_file: /run/harbor/password, ", "", "password_file: missing: the file with")]
#[case::organization(
    QUAY,
    "organization: fleet, ",
    "",
    "organization: missing: the organization that owns the accounts"
)]
#[case::team(QUAY, "team: pullers, ", "", "team: missing: the team that may pull")]
#[case::token(QUAY, "token_file: /run/quay/token, ", "", "token_file: missing: the file with the token")]
#[case::bad_project(HARBOR, "project: fleet", "project: Fleet", "project: must be 1 to 200 characters")]
#[case::bad_username(HARBOR, "username: pull-secrets", "username: 'a:b'", "username: must be 1 to 255 visible")]
#[case::bad_prefix(HARBOR, "project", "robot_prefix: 'a+', project", "robot_prefix: must be 1 to 32 visible")]
#[case::bad_life(HARBOR, "project", "token_life: soon, project", "token_life: must be a duration")]
#[case::no_calls(HARBOR, "project", "calls_per_minute: 0, project", "calls_per_minute: must be 1 or more")]
#[case::quays_team(
    HARBOR,
    "project",
    "team: a, project",
    "team: a registry of type quay has it; registry harbor is of type harbor"
)]
#[case::quays_organization(
    HARBOR,
    "project",
    "organization: a, project",
    "organization: a registry of type quay has it"
)]
#[case::quays_token(HARBOR, "project", "token_file: /a, project", "token_file: a registry of type acr or quay has it")]
#[case::harbors_project(
    QUAY,
    "team",
    "project: a, team",
    "project: a registry of type harbor has it; registry quay is of type quay"
)]
#[case::harbors_username(QUAY, "team", "username: a, team", "username: a registry of type harbor has it")]
#[case::harbors_password(QUAY, "team", "password_file: /a, team", "password_file: a registry of type harbor has it")]
#[case::harbors_prefix(QUAY, "team", "robot_prefix: a, team", "robot_prefix: a registry of type harbor has it")]
#[case::harbors_life(
    QUAY,
    "team",
    "token_life: 1h, team",
    "token_life: a registry of type gar or harbor or red_hat has it"
)]
fn each_type_has_its_keys(#[case] registry: &str, #[case] from: &str, #[case] to: &str, #[case] fault: &str) {
    let changed = registry.replacen(from, to, 1);
    let faults = check(&format!("registries: [{changed}]"), &Variables::new()).unwrap_err();
    let [found] = faults.as_slice() else { panic!("{faults:?}") };
    assert!(found.starts_with(&format!("registries[0].{fault}")), "{found}");
}

#[test]
fn all_faults_are_listed_at_once() {
    let bad = QUAY.replace("organization: fleet", "organization: F").replace("team: pullers", "team: '1'");
    let file = format!("{{registries: [{QUAY}, {QUAY}, {bad}], database: {{password: a, password_file: b}}}}");
    let faults = check(&file, &[("HYPERFLEET_API_BASE_URL", "nowhere")].into()).unwrap_err();
    let keys: Vec<&str> = faults.iter().filter_map(|fault| fault.split(": ").next()).collect();
    let expected = [
        "database.password",
        "clients.hyperfleet_api.base_url",
        "registries[1].name",
        "registries[1].search",
        "registries[2].name",
        "registries[2].organization",
        "registries[2].team",
    ];
    assert_eq!(keys, expected, "{faults:?}");
}

#[rstest]
#[case::both_have_a_search("search: \"labels.a = '1'\"", "search: \"labels.a = '2'\"", true)]
#[case::one_has_none("search: \"labels.a = '1'\"", "prefix: fl", false)]
#[case::other_host("prefix: fl", "host: images.example", true)]
fn registries_share_a_host_only_if_each_has_a_search(#[case] one: &str, #[case] other: &str, #[case] accepted: bool) {
    let registry = |name: &str, more: &str| {
        let more = format!("image: fleet/release, {more}");
        QUAY.replace("name: quay", name).replace("image: fleet/release", &more)
    };
    let file = format!("registries: [{}, {}]", registry("name: one", one), registry("name: two", other));
    let faults = check(&file, &Variables::new()).err().unwrap_or_default();
    let expected = "registries[1].search: registry one has the host quay.io too, and a pull secret has one entry for a host: \
                    give both a search, so that no cluster is in both";
    assert_eq!(faults.first().map(String::as_str), (!accepted).then_some(expected));
}

#[test]
fn a_key_is_needed_on_postgresql_and_made_beside_sqlite() {
    let variables = Variables::from([("DATABASE_URL", "postgresql://user:hunter2@localhost/credentials")]);
    let postgres = check(&format!("registries: [{QUAY}]"), &variables).unwrap();
    assert_eq!(postgres.keyring().err().as_deref(), Some("keys: no key is configured: passwords cannot be sealed"));
    assert!(!format!("{postgres:?}").contains("hunter2"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.db").to_string_lossy().into_owned();
    let variables = Variables::from([("HYPERFLEET_CREDENTIALS_DATABASE_PATH", path.as_str())]);
    let sqlite = check(&format!("registries: [{QUAY}]"), &variables).unwrap();
    assert!(sqlite.keyring().is_ok() && folder.path().join("c.db.key").exists());
}

#[test]
fn the_example_of_the_guide_is_right() {
    let guide = include_str!("../../../../docs/guides/credentials.md");
    let example = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let checked = check(example, &Variables::new()).unwrap();
    assert_eq!(checked.registries.len(), 1);
}

#[test]
fn a_host_leaves_ams_for_one_registry() {
    let registry = |name: &str| {
        let more = format!("search: \"labels.at = '{name}'\", image:");
        QUAY.replace("name: quay", &format!("name: {name}")).replace("image:", &more)
    };
    let with = |keep_hosts: &str| {
        let ams = "url: 'https://ams.example.com', client_id: a, client_secret_file: b";
        let registries = format!("[{}, {}]", registry("quay"), registry("other"));
        let file = format!("{{registries: {registries}, ams: {{{ams}, keep_hosts: '{keep_hosts}'}}}}");
        check(&file, &Variables::new()).map(|checked| checked.ams.unwrap().targets)
    };
    assert_eq!(with("QUAY.IO"), Ok(Vec::new()));
    let faults = with("cloud.openshift.com").unwrap_err();
    assert!(faults[0].starts_with("ams.keep_hosts: quay.io would leave AMS for both quay and other"), "{faults:?}");
}
