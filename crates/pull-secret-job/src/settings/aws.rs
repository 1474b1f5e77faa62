//! Declares the settings of AWS Secrets Manager.

use std::time::Duration;

use daemon::settings::Row;

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
