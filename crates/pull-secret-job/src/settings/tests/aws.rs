//! The settings of AWS Secrets Manager.

use super::*;

const COMPLETE: [(&str, &str); 4] = [
    ("CLUSTER_ID", "cls-123"),
    ("PULL_SECRET_FILE", "/run/pull-secret"),
    ("SECRET_STORE", "aws"),
    ("AWS_REGION", "eu-central-1"),
];

fn with(further: &[(&'static str, &'static str)]) -> Result<Settings, Vec<String>> {
    resolved(&[&COMPLETE, further].concat()).map_err(|InvalidSettings(problems)| problems)
}

#[test]
fn a_run_stores_in_aws_with_a_region() {
    let Ok(Settings { store: Some(StoreSettings::Aws(aws)), .. }) = with(&[]) else { panic!("must be AWS") };
    assert_eq!((aws.region.as_str(), aws.folder.as_str(), aws.recovery_days), ("eu-central-1", "pull-secrets", None));
    assert_eq!((aws.endpoint, aws.call_timeout), (None, Duration::from_secs(30)));
}

#[test]
fn each_setting_of_aws_has_its_effect() {
    let given = [
        ("AWS_FOLDER", "fleet/dev"),
        ("AWS_RECOVERY_WINDOW_DAYS", "30"),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://127.0.0.1:5000"),
        ("AWS_API_TIMEOUT", "5s"),
        ("RETAIN_VERSIONS", "8"),
        ("REPLICATION_POLICY", "user-managed:us-east-1=alias/a,eu-central-1=arn:aws:kms:eu-central-1:1:key/b"),
    ];
    let settings = with(&given).unwrap();
    assert_eq!(settings.store.as_ref().and_then(StoreSettings::plain_host), Some("127.0.0.1"));
    let Some(StoreSettings::Aws(aws)) = &settings.store else { panic!("must be AWS") };
    assert_eq!(
        (aws.folder.as_str(), aws.recovery_days, aws.call_timeout),
        ("fleet/dev", Some(30), Duration::from_secs(5))
    );
    let replica =
        |location: &str, key: &str| Replica { location: location.parse().unwrap(), kms_key: Some(key.to_owned()) };
    let (there, here) = (replica("us-east-1", "alias/a"), replica("eu-central-1", "arn:aws:kms:eu-central-1:1:key/b"));
    assert_eq!(store_task(settings).replication, Replication::Locations(vec![there, here]));
    let key = "arn:aws:kms:eu-central-1:1:key/b";
    let settings = with(&[("REPLICATION_POLICY", "automatic=arn:aws:kms:eu-central-1:1:key/b")]).unwrap();
    assert_eq!(store_task(settings).replication, Replication::Automatic { kms_key: Some(key.to_owned()) });
}

#[rstest]
#[case(&[("AWS_FOLDER", "../x")], &["AWS_FOLDER: must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them"])]
#[case(&[("AWS_RECOVERY_WINDOW_DAYS", "6")], &["AWS_RECOVERY_WINDOW_DAYS: must be 0, or 7 to 30"])]
#[case(&[("AWS_RECOVERY_WINDOW_DAYS", "31")], &["AWS_RECOVERY_WINDOW_DAYS: must be 0, or 7 to 30"])]
#[case(&[("RETAIN_VERSIONS", "0")], &["RETAIN_VERSIONS: must be 1 to 8 with SECRET_STORE=aws"])]
#[case(
    &[("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://10.0.0.1"), ("RETAIN_VERSIONS", "9")],
    &[
        "AWS_ENDPOINT_URL_SECRETS_MANAGER: must be an https:// address (or http:// to this machine), without user, query or fragment",
        "RETAIN_VERSIONS: must be 1 to 8 with SECRET_STORE=aws",
    ]
)]
#[case(
    &[("REPLICATION_POLICY", "user-managed:us-east-1,eu-west-1")],
    &["REPLICATION_POLICY: must name the region of AWS_REGION, eu-central-1, too"]
)]
#[case(
    &[("GCP_PROJECT_ID", "my-project-1"), ("VAULT_ADDR", "https://vault.example.com")],
    &[
        "GCP_PROJECT_ID has no effect with SECRET_STORE=aws: leave it out",
        "VAULT_ADDR has no effect with SECRET_STORE=aws: leave it out",
    ]
)]
fn settings_of_aws_that_do_not_fit_are_refused(
    #[case] given: &[(&'static str, &'static str)],
    #[case] problems: &[&str],
) {
    assert_eq!(with(given).err(), Some(problems.iter().map(|problem| (*problem).to_owned()).collect()));
}

#[test]
fn a_region_is_required_and_storing_settings_do_not_matter_to_a_deletion() {
    let InvalidSettings(problems) =
        resolved(&[("CLUSTER_ID", "cls-123"), ("SECRET_STORE", "aws"), ("--delete", "true")]).unwrap_err();
    assert_eq!(problems, ["missing required environment variable: AWS_REGION (or --aws-region)"]);
    let given = [("--delete", "true"), ("RETAIN_VERSIONS", "99"), ("REPLICATION_POLICY", "user-managed:us-east-1")];
    assert!(with(&given).is_ok());
}
