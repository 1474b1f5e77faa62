//! The settings of a registry's client, of which each kind has some of its own.

use std::time::Duration;

use daemon::connections::ClientCertificate;
use daemon::endpoint::EndpointUrl;
use registry_account::{
    AcrSettings, GarSettings, HarborSettings, IdentitySecret, QuaySettings, RedHatSettings, RobotPrefix,
};
#[cfg(feature = "ecr")]
use registry_account::{EcrSettings, ecr::Region};

use super::checks::Checks;
use super::registry::{RegistryKind, RegistrySettings};
use crate::registry::ClientSettings;

/// Time limit of a call of a registry, all its requests included.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Calls a minute where none are given.
const CALLS_PER_MINUTE: u32 = 60;
/// Life of Harbor's bearer tokens where none is given: Harbor's own default.
const TOKEN_LIFE: Duration = Duration::from_mins(30);
/// Host of Red Hat's images where none is given.
const RED_HAT_HOST: &str = "registry.redhat.io";
/// Calls a minute at Red Hat where none are given.
const RED_HAT_CALLS_PER_MINUTE: u32 = 120;
/// Life of Red Hat's bearer tokens where none is given: more than Red Hat's own, which it does not state.
const RED_HAT_TOKEN_LIFE: Duration = Duration::from_hours(1);
/// Life of the tokens of Google Artifact Registry where none is given.
const GAR_TOKEN_LIFE: Duration = Duration::from_hours(1);
/// The longest life of those.
const LONGEST_GAR_TOKEN: Duration = Duration::from_hours(12);
/// Address of the API that mints them where none is given.
const IAM_URL: &str = "https://iamcredentials.googleapis.com";
/// Address of Microsoft Entra ID where none is given.
const ENTRA_URL: &str = "https://login.microsoftonline.com";
/// A key that registries of some kinds have.
struct OwnKey {
    kinds: &'static [RegistryKind],
    key: &'static str,
    is_given: bool,
}

// === impl RegistrySettings ===

impl RegistrySettings {
    /// Checks the settings of the client, of which each kind has some of its own.
    pub(super) fn client(&self, checks: &mut Checks<'_>) -> Option<ClientSettings> {
        let is_wrong = |own: &OwnKey| own.is_given && !own.kinds.contains(&self.kind);
        for OwnKey { kinds, key, .. } in self.own_keys().into_iter().filter(is_wrong) {
            let kinds: Vec<_> = kinds.iter().map(ToString::to_string).collect();
            let (kinds, name, own) = (kinds.join(" or "), &self.name, self.kind);
            checks.fault(key, format!("a registry of type {kinds} has it; registry {name} is of type {own}"));
        }
        if self.calls_per_minute == Some(0) {
            checks.fault("calls_per_minute", "must be 1 or more");
        }
        let address = checks.parsed("url", &self.url);
        match self.kind {
            RegistryKind::Acr => self.acr(checks, address),
            #[cfg(feature = "ecr")]
            RegistryKind::Ecr => self.ecr(checks, address),
            #[cfg(not(feature = "ecr"))]
            RegistryKind::Ecr => {
                checks.fault("type", "this program was built without the clients of AWS");
                None
            }
            RegistryKind::Gar => self.gar(checks, address),
            RegistryKind::Harbor => self.harbor(checks, address),
            RegistryKind::Quay => self.quay(checks, address),
            RegistryKind::RedHat => self.red_hat(checks, address),
        }
    }

    fn acr(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let tenant = checks.required("tenant_id", self.tenant_id.as_ref(), "the tenant of the application");
        let application = "the application whose tokens are minted";
        let application = checks.required("client_id", self.client_id.as_ref(), application);
        let token = checks.given("token_file", self.token_file.as_ref(), "the file with the token of the environment");
        let token_address = checks.parsed("token_url", self.token_url.as_deref().unwrap_or(ENTRA_URL));
        self.minted(checks);
        Some(ClientSettings::Acr(AcrSettings {
            address: address?,
            host: self.host.clone(),
            tenant: tenant?,
            application: application?,
            token: IdentitySecret::File(token?.clone()),
            token_address: token_address?,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    #[cfg(feature = "ecr")]
    fn ecr(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let region: Option<Region> = checks.required("region", self.region.as_ref(), "the region of the registry");
        let role = checks.required("role", self.role.as_ref(), "the role whose tokens are minted");
        let own = region.as_ref().and_then(Region::token_address);
        let token_address = match self.token_url.as_ref().or(own.as_ref()) {
            Some(url) => checks.parsed("token_url", url),
            None if region.is_some() => {
                checks.fault(
                    "token_url",
                    "missing: the address of the ECR API, as the region is of another partition of AWS",
                );
                None
            }
            None => None,
        };
        self.minted(checks);
        Some(ClientSettings::Ecr(EcrSettings {
            address: address?,
            host: self.host.clone(),
            region: region?,
            role: role?,
            token_address: token_address?,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn gar(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let meaning = "the service account whose tokens are minted";
        let service_account = checks.required("service_account", self.service_account.as_ref(), meaning);
        let token_address = checks.parsed("token_url", self.token_url.as_deref().unwrap_or(IAM_URL));
        let token_life = checks.duration("token_life", self.token_life.as_ref(), GAR_TOKEN_LIFE);
        if token_life > LONGEST_GAR_TOKEN || token_life.subsec_nanos() != 0 {
            checks.fault("token_life", "must be whole seconds, and 12h at most");
        }
        self.minted(checks);
        Some(ClientSettings::Gar(GarSettings {
            address: address?,
            host: self.host.clone(),
            service_account: service_account?,
            token_life,
            token_address: token_address?,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    /// Checks what tokens that are minted have in common.
    fn minted(&self, checks: &mut Checks<'_>) {
        if self.pool > 0 {
            checks.fault("pool", "tokens expire, so none are pooled: leave it out");
        }
        if !self.image.contains([':', '@']) {
            checks.fault(
                "image",
                "must name a tag or digest, whose manifest is asked for: tokens do not show what they permit",
            );
        }
    }

    fn harbor(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let project = checks.required("project", self.project.as_ref(), "the project that owns the accounts");
        let username = checks.required("username", self.username.as_ref(), "the user who administers the project");
        let password = checks.given("password_file", self.password_file.as_ref(), "the file with the user's password");
        let robot_prefix = match &self.robot_prefix {
            Some(prefix) => checks.parsed("robot_prefix", prefix),
            None => Some(RobotPrefix::default()),
        };
        let token_life = checks.duration("token_life", self.token_life.as_ref(), TOKEN_LIFE);
        Some(ClientSettings::Harbor(HarborSettings {
            address: address?,
            host: self.host.clone(),
            project: project?,
            robot_prefix: robot_prefix?,
            username: username?,
            password: IdentitySecret::File(password?.clone()),
            token_life,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn quay(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let owner = "the organization that owns the accounts";
        let organization = checks.required("organization", self.organization.as_ref(), owner);
        let team = checks.required("team", self.team.as_ref(), "the team that may pull");
        let token = checks.given("token_file", self.token_file.as_ref(), "the file with the token");
        Some(ClientSettings::Quay(QuaySettings {
            address: address?,
            host: self.host.clone(),
            organization: organization?,
            team: team?,
            token: IdentitySecret::File(token?.clone()),
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn red_hat(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let partner = checks.required("partner", self.partner.as_ref(), "the partner that owns the accounts");
        let cert_file = checks.given("cert_file", self.cert_file.as_ref(), "the file with the client's certificate");
        let key_file = checks.given("key_file", self.key_file.as_ref(), "the file with the key of the certificate");
        let token_life = checks.duration("token_life", self.token_life.as_ref(), RED_HAT_TOKEN_LIFE);
        let (longest, length) =
            (RedHatSettings::MAX_DESCRIPTION, self.description.as_ref().map(|it| it.chars().count()));
        if length.is_some_and(|length| length > longest) {
            checks.fault("description", format!("at Red Hat, must be {longest} characters at most"));
        }
        Some(ClientSettings::RedHat(RedHatSettings {
            address: address?,
            host: self.host.clone().unwrap_or_else(|| RED_HAT_HOST.to_owned()),
            partner: partner?,
            certificate: ClientCertificate { cert_file: cert_file?.clone(), key_file: key_file?.clone() },
            token_life,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(RED_HAT_CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn own_keys(&self) -> [OwnKey; 17] {
        use RegistryKind::{Acr, Ecr, Gar, Harbor, Quay, RedHat};
        let own = |kinds, key, is_given| OwnKey { kinds, key, is_given };
        [
            own(&[Acr], "tenant_id", self.tenant_id.is_some()),
            own(&[Acr], "client_id", self.client_id.is_some()),
            own(&[Acr, Ecr, Gar], "token_url", self.token_url.is_some()),
            own(&[Acr, Quay], "token_file", self.token_file.is_some()),
            own(&[Ecr], "region", self.region.is_some()),
            own(&[Ecr], "role", self.role.is_some()),
            own(&[Gar], "service_account", self.service_account.is_some()),
            own(&[Gar, Harbor, RedHat], "token_life", self.token_life.is_some()),
            own(&[Harbor], "project", self.project.is_some()),
            own(&[Harbor], "username", self.username.is_some()),
            own(&[Harbor], "password_file", self.password_file.is_some()),
            own(&[Harbor], "robot_prefix", self.robot_prefix.is_some()),
            own(&[Quay], "organization", self.organization.is_some()),
            own(&[Quay], "team", self.team.is_some()),
            own(&[RedHat], "partner", self.partner.is_some()),
            own(&[RedHat], "cert_file", self.cert_file.is_some()),
            own(&[RedHat], "key_file", self.key_file.is_some()),
        ]
    }
}
