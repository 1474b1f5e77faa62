//! Prepared fleets with planted faults, and the exercise that goes with them.

pub(crate) mod clusters;
mod exercise;

use clap::ValueEnum;

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
        match self {
            Self::OnCall => clusters::faults(),
        }
    }

    /// The namespaces whose Secrets its clusters may refer to.
    pub(crate) fn secret_namespaces(self) -> Vec<&'static str> {
        match self {
            Self::OnCall => vec![clusters::REFERENCED],
        }
    }

    /// The commands that a person tries, in their order.
    pub(crate) fn exercise(self) -> &'static str {
        match self {
            Self::OnCall => exercise::TEXT,
        }
    }
}
