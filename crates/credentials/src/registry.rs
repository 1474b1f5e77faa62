//! The registries that the service can be configured for, behind one type.

use daemon::connections::ClientCertificate;
use jiff::Timestamp;
use registry_account::contract::{
    Account, Capabilities, Credential, ListedAccounts, Login, NewAccount, Registry, Usage,
};
use registry_account::error::AccountError;
use registry_account::name::{AccountName, Image};
use registry_account::probe::Finding;
use registry_account::{
    AcrRegistry, AcrSettings, GarRegistry, GarSettings, HarborRegistry, HarborSettings, QuayRegistry, QuaySettings,
    RedHatRegistry, RedHatSettings,
};
#[cfg(feature = "ecr")]
use registry_account::{EcrRegistry, EcrSettings};

/// The settings of a registry's client.
#[derive(Clone, Debug)]
pub enum ClientSettings {
    /// Azure Container Registry.
    Acr(AcrSettings),
    /// Amazon Elastic Container Registry.
    #[cfg(feature = "ecr")]
    Ecr(EcrSettings),
    /// Google Artifact Registry.
    Gar(GarSettings),
    /// Harbor.
    Harbor(HarborSettings),
    /// Quay.
    Quay(QuaySettings),
    /// Red Hat's registries.
    RedHat(RedHatSettings),
}

/// A registry of one of the kinds.
#[derive(Debug)]
pub enum AnyRegistry {
    /// Azure Container Registry.
    Acr(Box<AcrRegistry>),
    /// Amazon Elastic Container Registry.
    #[cfg(feature = "ecr")]
    Ecr(EcrRegistry),
    /// Google Artifact Registry.
    Gar(GarRegistry),
    /// Harbor.
    Harbor(HarborRegistry),
    /// Quay.
    Quay(QuayRegistry),
    /// Red Hat's registries.
    RedHat(RedHatRegistry),
}

// === impl ClientSettings ===

impl ClientSettings {
    /// Returns the key in `auths`.
    pub fn host(&self) -> &str {
        match self {
            Self::Acr(settings) => settings.host(),
            #[cfg(feature = "ecr")]
            Self::Ecr(settings) => settings.host(),
            Self::Gar(settings) => settings.host(),
            Self::Harbor(settings) => settings.host(),
            Self::Quay(settings) => settings.host(),
            Self::RedHat(settings) => &settings.host,
        }
    }

    /// Returns the calls that are made in a minute at most.
    pub fn calls_per_minute(&self) -> u32 {
        match self {
            Self::Acr(settings) => settings.calls_per_minute,
            #[cfg(feature = "ecr")]
            Self::Ecr(settings) => settings.calls_per_minute,
            Self::Gar(settings) => settings.calls_per_minute,
            Self::Harbor(settings) => settings.calls_per_minute,
            Self::Quay(settings) => settings.calls_per_minute,
            Self::RedHat(settings) => settings.calls_per_minute,
        }
    }

    /// Returns the certificate by which the registry knows the client.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        match self {
            Self::RedHat(settings) => Some(&settings.certificate),
            _ => None,
        }
    }

    /// Sets up the client. No request is sent.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(&self) -> Result<AnyRegistry, AccountError> {
        match self {
            Self::Acr(settings) => AcrRegistry::connect(settings.clone()).map(|acr| AnyRegistry::Acr(Box::new(acr))),
            #[cfg(feature = "ecr")]
            Self::Ecr(settings) => EcrRegistry::connect(settings.clone()).map(AnyRegistry::Ecr),
            Self::Gar(settings) => GarRegistry::connect(settings.clone()).map(AnyRegistry::Gar),
            Self::Harbor(settings) => HarborRegistry::connect(settings.clone()).map(AnyRegistry::Harbor),
            Self::Quay(settings) => QuayRegistry::connect(settings.clone()).map(AnyRegistry::Quay),
            Self::RedHat(settings) => RedHatRegistry::connect(settings.clone()).map(AnyRegistry::RedHat),
        }
    }
}

/// Calls a method of the registry.
macro_rules! delegate {
    ($any:expr, $registry:ident => $call:expr) => {
        match $any {
            AnyRegistry::Acr($registry) => $call,
            #[cfg(feature = "ecr")]
            AnyRegistry::Ecr($registry) => $call,
            AnyRegistry::Gar($registry) => $call,
            AnyRegistry::Harbor($registry) => $call,
            AnyRegistry::Quay($registry) => $call,
            AnyRegistry::RedHat($registry) => $call,
        }
    };
}

impl Registry for AnyRegistry {
    fn capabilities(&self) -> Capabilities {
        delegate!(self, registry => registry.capabilities())
    }

    fn host(&self) -> &str {
        delegate!(self, registry => registry.host())
    }

    fn login(&self, name: &AccountName) -> String {
        delegate!(self, registry => registry.login(name))
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        delegate!(self, registry => registry.create(new).await)
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        delegate!(self, registry => registry.find(name).await)
    }

    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        delegate!(self, registry => registry.permit(name).await)
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        delegate!(self, registry => registry.probe(login, image).await)
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        delegate!(self, registry => registry.usage(name, since).await)
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        delegate!(self, registry => registry.disable(name).await)
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        delegate!(self, registry => registry.delete(name).await)
    }

    async fn list(&self, page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        delegate!(self, registry => registry.list(page).await)
    }
}
