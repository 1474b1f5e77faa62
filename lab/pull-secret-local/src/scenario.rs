//! Prepared fleets with planted faults, and the exercise that goes with them.

mod clusters;
mod exercise;
mod play;

use clap::ValueEnum;

use crate::fleet::Clients;
use crate::scripted::Faults;

/// A prepared fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// 52 clusters, of which most are healthy: find out why the others are not
    #[value(name = "on-call-50")]
    OnCall,
}

impl Scenario {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OnCall => "on-call-50",
        }
    }

    /// The faults of the emulators that it needs.
    pub(crate) fn faults(self) -> anyhow::Result<Faults> {
        clusters::faults()
    }

    /// The namespaces whose Secrets its clusters may refer to.
    pub(crate) fn secret_namespaces(self) -> Vec<&'static str> {
        vec![play::REFERENCED]
    }

    /// Creates its clusters and plants the faults that are no answers of the emulators.
    pub(crate) async fn play(self, clients: &Clients, secret_manager: &secret_store::Endpoint) -> anyhow::Result<()> {
        play::all(clients, secret_manager).await
    }

    /// Plays what goes wrong again and again; does not end.
    pub(crate) async fn keep(self, clients: &Clients) -> anyhow::Error {
        play::prune(clients).await
    }

    /// The commands that a person tries, in their order.
    pub(crate) fn exercise(self) -> &'static str {
        exercise::TEXT
    }
}
