//! Checks the settings of AWS Secrets Manager.

use secret_store::{AwsIdentity, AwsSettings, Location};

use super::parse::Parser;
use super::vault::StoreKind;

/// The days for which AWS can keep a deleted secret.
const RECOVERY_DAYS: std::ops::RangeInclusive<usize> = 7..=30;

impl Parser<'_> {
    /// Returns `None` only when a problem says why.
    pub(super) fn aws(&mut self, choice: &str) -> Option<AwsSettings> {
        let given = &self.given.aws;
        let region = self.required::<Location>("AWS_REGION", "aws-region", given.region.as_deref());
        let folder = self.parsed("AWS_FOLDER", Some(&given.folder));
        let endpoint = self.parsed("AWS_ENDPOINT_URL_SECRETS_MANAGER", given.endpoint_url_secrets_manager.as_deref());
        let days = Some(given.recovery_window_days).filter(|days| *days > 0);
        if days.is_some_and(|days| !RECOVERY_DAYS.contains(&days)) {
            self.problems.push("AWS_RECOVERY_WINDOW_DAYS: must be 0, or 7 to 30".to_owned());
        }
        self.retained_within(choice, AwsSettings::VERSIONS_KEPT);
        // The policy is that of the first store.
        if let Some(region) = region.as_ref().filter(|_| self.given.secret_store == StoreKind::Aws) {
            self.replicated_from(region);
        }
        Some(AwsSettings {
            region: region?,
            endpoint,
            folder: folder?,
            identity: AwsIdentity::Environment,
            recovery_days: days.and_then(|days| u8::try_from(days).ok()),
            call_timeout: given.api_timeout,
            calls: None,
        })
    }

    /// A secret is in its own region, whichever others have a replica.
    fn replicated_from(&mut self, region: &Location) {
        let policy = self.given.replication_policy.as_deref().unwrap_or_default();
        let Some(replicas) = policy.strip_prefix("user-managed:").filter(|_| !self.given.delete) else { return };
        let location = |replica: &str| replica.trim().split('=').next().map(str::to_owned);
        if !replicas.split(',').filter_map(location).any(|location| location == region.as_str()) {
            self.problems.push(format!("REPLICATION_POLICY: must name the region of AWS_REGION, {region}, too"));
        }
    }
}
