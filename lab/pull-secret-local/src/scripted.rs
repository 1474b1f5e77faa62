//! Faults of one's own: the scripted faults of both emulators behind one flag.

use std::str::FromStr;

use emulators::{kubernetes, secret_manager};

/// A fault of one of the emulators, in its notation. A slash in the target tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    SecretManager(secret_manager::Fault),
    Kubernetes(kubernetes::Fault),
}

/// The faults of each emulator, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) secret_manager: Vec<secret_manager::Fault>,
    pub(crate) kubernetes: Vec<kubernetes::Fault>,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let target = text.split(':').next().unwrap_or_default();
        if target.contains('/') {
            text.parse().map(Self::Kubernetes).map_err(|error: kubernetes::ParseFaultError| error.to_string())
        } else {
            text.parse().map(Self::SecretManager).map_err(|error: secret_manager::ParseFaultError| error.to_string())
        }
    }
}

impl Extend<Fault> for Faults {
    fn extend<I: IntoIterator<Item = Fault>>(&mut self, faults: I) {
        for fault in faults {
            match fault {
                Fault::SecretManager(fault) => self.secret_manager.push(fault),
                Fault::Kubernetes(fault) => self.kubernetes.push(fault),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("addVersion in my-project-1:quota-exceeded*0", true)]
    #[case("create/secrets in clusters-a:403(message=no)", false)]
    fn a_slash_in_the_target_means_kubernetes(#[case] text: &str, #[case] is_store: bool) {
        let fault: Fault = text.parse().unwrap();
        assert_eq!(matches!(fault, Fault::SecretManager(_)), is_store);
    }

    #[rstest]
    #[case("add:cut", "there is no method \"add\"")]
    #[case("make/secrets:500", "there is no verb \"make\"")]
    fn a_wrong_fault_is_explained_by_its_emulator(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault>().unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
}
