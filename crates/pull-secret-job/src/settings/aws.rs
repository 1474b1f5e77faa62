//! Declares and checks the settings of AWS Secrets Manager.

use std::time::Duration;

use daemon::settings::Row;
use secret_store::{AwsIdentity, AwsSettings, Location};

use super::parse::Parser;

/// The days for which AWS can keep a deleted secret.
const RECOVERY_DAYS: std::ops::RangeInclusive<usize> = 7..=30;

daemon::settings! {
    /// AWS Secrets Manager, as given.
    pub struct Aws {
        /// Region of AWS Secrets Manager
        pub region: Option<String> = Row::at("aws.region")
            .flag("aws-region")
            .placeholder("REGION")
            .unset("required with SECRET_STORE=aws"),
        /// The part of the secrets' names before the last '/'
        pub folder: String = Row::at("aws.folder").flag("aws-folder").placeholder("PATH").default("pull-secrets"),
        /// Number of days, 7 to 30, for which a deleted secret can be restored, and its name is taken; 0 deletes at once
        pub recovery_window_days: usize = Row::at("aws.recovery_window_days")
            .flag("aws-recovery-window-days")
            .placeholder("DAYS")
            .default("0"),
        /// Another address of AWS Secrets Manager (a private endpoint); https, or http to this machine
        pub endpoint_url_secrets_manager: Option<String> = Row::at("aws.endpoint_url_secrets_manager")
            .flag("aws-endpoint-url-secrets-manager")
            .placeholder("URL")
            .unset("the region's"),
        /// Maximum time of a call to AWS Secrets Manager, credentials included
        pub api_timeout: Duration =
            Row::at("aws.api_timeout").flag("aws-api-timeout").default("30s").within("1ms", "24h"),
    }
}

impl Parser<'_> {
    /// Returns `None` only when a problem says why.
    pub(super) fn aws(&mut self) -> Option<AwsSettings> {
        let given = &self.given.aws;
        self.refuse_settings_of_others("SECRET_STORE=aws", self.given.vault.addr.is_some());
        let region = self.required::<Location>("AWS_REGION", "aws-region", given.region.as_deref());
        let folder = self.path("AWS_FOLDER", &given.folder);
        let endpoint = self.parsed("AWS_ENDPOINT_URL_SECRETS_MANAGER", given.endpoint_url_secrets_manager.as_deref());
        let days = Some(given.recovery_window_days).filter(|days| *days > 0);
        if days.is_some_and(|days| !RECOVERY_DAYS.contains(&days)) {
            self.problems.push("AWS_RECOVERY_WINDOW_DAYS: must be 0, or 7 to 30".to_owned());
        }
        self.retained_within("SECRET_STORE=aws", AwsSettings::VERSIONS_KEPT);
        if let Some(region) = &region {
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
