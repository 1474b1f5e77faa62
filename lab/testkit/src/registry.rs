//! A real registry that takes the tokens of a Quay emulator and reports its pulls to it, and skopeo, which pushes and pulls.

use daemon::environment::ProcessEnvironment;
use emulators::quay::Quay;
use emulators::real_registry::{Programs, RealRegistry};

use crate::environment::missing;

/// The programs; `None`, with a line that says how to get them, if they are missing; in CI that is a failure.
pub fn programs() -> Option<Programs> {
    let found = Programs::of(&ProcessEnvironment).unwrap();
    found.or_else(|| {
        missing("a registry is missing; run the test by `hack/real-parts/with.sh registry -- cargo test …`")
    })
}

/// Starts a registry; `None` as [`programs`] returns it.
pub async fn start(quay: &Quay) -> Option<RealRegistry> {
    Some(RealRegistry::start(programs()?, quay).await.unwrap())
}
