//! A fleet of one registry, and workers on one ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use credentials::credential::{ClusterRef, Credential, NodesEvidence, Policy, RegistryName, Retire};
use credentials::ledger::Ledger;
use credentials::run::{Served, Sources, StepResult, Worker};
use credentials::state::State;
use registry_account::{CredentialId, Image, MemoryRegistry, Registry as _, Visit};

use crate::database::{Kind, TestDatabase};
use crate::world::{Outside, World};

/// The lease of the workers.
pub(crate) const LEASE: Duration = Duration::from_mins(2);

/// A fleet.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) world: Arc<World>,
    pub(crate) database: TestDatabase,
    random: Arc<AtomicU64>,
    pub(crate) policy: Policy,
    pub(crate) pool: u64,
}

// === impl Rig ===

impl Rig {
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        let database = TestDatabase::new(kind).await?;
        let hour = Duration::from_hours(1);
        let policy = Policy {
            retire: Retire::WhenAdopted,
            nodes: NodesEvidence::Required,
            quiet: hour * 2,
            deadline: hour,
            resync: hour,
            ..Policy::default()
        };
        Some(Self { world: Arc::default(), database, random: Arc::default(), policy, pool: 0 })
    }

    /// A fleet at a registry of tokens, which are good for that long.
    pub(crate) async fn of_tokens(kind: Kind, life: Duration) -> Option<Self> {
        let registry = MemoryRegistry::of_tokens(life);
        Some(Self { world: Arc::new(World { registry, ..World::default() }), ..Self::new(kind).await? })
    }

    pub(crate) fn registry() -> RegistryName {
        "memory".parse().unwrap()
    }

    pub(crate) fn cluster(&self, id: &str) -> ClusterRef {
        let cluster = ClusterRef { id: id.to_owned(), incarnation: 7 };
        if self.world.clusters.login(&cluster, "none").is_none() {
            self.world.clusters.add(&cluster);
        }
        cluster
    }

    pub(crate) fn worker(&self, name: &str) -> Worker<Outside, Outside> {
        self.worker_on(name, self.database.ledger(&[1]))
    }

    pub(crate) fn worker_on(&self, name: &str, ledger: Ledger) -> Worker<Outside, Outside> {
        let outside = Outside(Arc::clone(&self.world));
        let served = Served {
            registry: outside.clone(),
            image: Image { repository: "release/image".parse().unwrap(), reference: None },
            prefix: "hf".parse().unwrap(),
            description: "a test".to_owned(),
            policy: self.policy.clone(),
            pool: self.pool,
            per_minute: None,
        };
        Worker {
            name: name.to_owned(),
            ledger,
            registries: [(Self::registry(), served)].into(),
            clusters: outside,
            sources: self.sources(),
            lease: LEASE,
        }
    }

    pub(crate) fn sources(&self) -> Sources {
        let (world, random) = (Arc::clone(&self.world), Arc::clone(&self.random));
        let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        Sources {
            now: Arc::new(move || world.registry.now()),
            random: Arc::new(move || spread.wrapping_mul(u128::from(random.fetch_add(1, Ordering::Relaxed)) + 1)),
        }
    }

    pub(crate) async fn get(&self, id: CredentialId) -> Credential {
        self.database.ledger(&[1]).get(id).await.unwrap().unwrap()
    }

    pub(crate) async fn assign(&self, cluster: &ClusterRef, replaces: Option<CredentialId>) -> Credential {
        self.worker("assigner").assign(&Self::registry(), cluster.clone(), replaces, "tester").await.unwrap()
    }

    /// The nodes of a cluster pull with what its pull secret has; its adapter reports.
    pub(crate) fn live(&self, cluster: &ClusterRef) {
        self.world.clusters.report(cluster);
        if let Some(login) = self.world.clusters.login(cluster, self.world.registry.host()) {
            let (repository, source) = ("release/image".parse().unwrap(), "192.0.2.1".parse().unwrap());
            let visit = Visit { login: &login, repository: &repository, source };
            assert!(self.world.registry.pull(&visit), "the nodes of {cluster} cannot pull with {}", login.username);
        }
    }

    /// One step, and the time that it takes.
    pub(crate) async fn step(&self, worker: &Worker<Outside, Outside>) -> StepResult {
        let result = worker.run_step(&Self::registry()).await.unwrap();
        self.world.registry.advance(if result == StepResult::Idle {
            Duration::from_mins(5)
        } else {
            Duration::from_secs(1)
        });
        result
    }

    /// Works until a credential is in a state or beyond it, while a cluster lives.
    pub(crate) async fn until(
        &self,
        worker: &Worker<Outside, Outside>,
        cluster: &ClusterRef,
        id: CredentialId,
        state: State,
    ) {
        for _turn in 0..500 {
            if self.get(id).await.state >= state {
                return;
            }
            self.step(worker).await;
            self.live(cluster);
        }
        let found = self.get(id).await;
        panic!("{id} is never {state}: {found:#?}");
    }

    /// Checks that exactly these accounts exist, that no name was used twice, and that no call broke a rule.
    pub(crate) async fn check(&self, expected: &[&Credential]) {
        let listed = self.world.registry.list(None).await.unwrap();
        let names: BTreeSet<String> = listed.accounts.iter().map(|listed| listed.name.to_string()).collect();
        let expected: BTreeSet<String> = expected.iter().map(|credential| credential.account.to_string()).collect();
        assert_eq!(names, expected, "accounts at the registry");
        let created = self.world.created.lock().unwrap();
        let accounts: BTreeSet<_> = created.iter().map(|made| &made.account).collect();
        let ids: BTreeSet<_> = created.iter().map(|made| made.credential).collect();
        assert!(accounts.len() == created.len() && ids.len() == created.len(), "used twice: {created:?}");
        assert_eq!(*self.world.violations.lock().unwrap(), [""; 0]);
    }
}
