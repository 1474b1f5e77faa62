//! Clusters get their accounts at an emulated Harbor, and lose them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use credentials::credential::{ClusterRef, Credential, NodesEvidence, Policy, RegistryName, Retire};
use credentials::ledger::Filter;
use credentials::reason::Reason;
use credentials::registry::{AnyRegistry, ClientSettings};
use credentials::run::{MemoryClusters, Served, Sources, StepResult, Worker};
use credentials::state::State;
use emulators::harbor::{Harbor, Pull, Settings};
use registry_account::{HarborSettings, IdentitySecret, Image, Registry as _, RobotPrefix};
use secrecy::ExposeSecret as _;

use crate::database::{Kind, TestDatabase};
use crate::rig::LEASE;

struct Fleet {
    harbor: Arc<Harbor>,
    worker: Worker<AnyRegistry, MemoryClusters>,
    cluster: ClusterRef,
    _database: TestDatabase,
}

// === impl Fleet ===

impl Fleet {
    async fn new(settings: Settings) -> Self {
        let database = TestDatabase::new(Kind::Sqlite).await.unwrap();
        let harbor = Arc::new(Harbor::start(settings).await.unwrap());
        let client = ClientSettings::Harbor(HarborSettings {
            address: harbor.url().parse().unwrap(),
            host: None,
            project: harbor.project().parse().unwrap(),
            robot_prefix: RobotPrefix::default(),
            username: harbor.username().parse().unwrap(),
            password: IdentitySecret::Value(harbor.password().into()),
            token_life: Duration::from_mins(30),
            ca_file: None,
            call_timeout: Duration::from_mins(1),
            calls_per_minute: 6000,
            calls: None,
        });
        let hour = Duration::from_hours(1);
        let policy = Policy {
            retire: Retire::WhenAdopted,
            nodes: NodesEvidence::Required,
            quiet: hour * 2,
            deadline: hour,
            resync: hour,
            ..Policy::default()
        };
        let served = Served {
            registry: client.connect().unwrap(),
            image: Image { repository: "hyperfleet/release".parse().unwrap(), reference: None },
            prefix: "hf".parse().unwrap(),
            description: "a test".to_owned(),
            policy,
            pool: 0,
            per_minute: None,
        };
        let (clock, random) = (Arc::clone(&harbor), AtomicU64::new(1));
        let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        let sources = Sources {
            now: Arc::new(move || clock.now()),
            random: Arc::new(move || spread.wrapping_mul(random.fetch_add(1, Ordering::Relaxed).into())),
        };
        let cluster = ClusterRef { id: "cls-1".to_owned(), incarnation: 7 };
        let clusters = MemoryClusters::new();
        clusters.add(&cluster);
        let registries = [(Self::registry(), served)].into();
        let (name, ledger) = ("one".to_owned(), database.ledger(&[1]));
        let worker = Worker { name, ledger, registries, clusters, sources, lease: LEASE };
        Self { harbor, worker, cluster, _database: database }
    }

    fn registry() -> RegistryName {
        "harbor".parse().unwrap()
    }

    async fn assign(&self, replaces: Option<&Credential>) -> Credential {
        let replaces = replaces.map(|credential| credential.id);
        self.worker.assign(&Self::registry(), self.cluster.clone(), replaces, "tester").await.unwrap()
    }

    /// Works while the cluster lives, until its credentials are in these states, oldest first.
    async fn until(&self, states: &[State]) -> Vec<Credential> {
        for _turn in 0..500 {
            let mut found = self.worker.ledger.list(&Filter::default()).await.unwrap();
            found.sort_by_key(|credential| credential.id);
            if found.iter().map(|credential| credential.state).eq(states.iter().copied()) {
                return found;
            }
            let result = self.worker.run_step(&Self::registry()).await.unwrap();
            let wait = if result == StepResult::Idle { Duration::from_mins(5) } else { Duration::from_secs(1) };
            self.harbor.advance_clock(wait);
            self.live();
        }
        panic!("never {states:?}: {:#?}", self.worker.ledger.list(&Filter::default()).await.unwrap());
    }

    /// The nodes pull with what the pull secret of the cluster has; its adapter reports.
    fn live(&self) {
        self.worker.clusters.report(&self.cluster);
        let host = self.worker.registries[&Self::registry()].registry.host();
        if let Some(login) = self.worker.clusters.login(&self.cluster, host) {
            let robots = self.harbor.robots();
            let robot = robots.iter().find(|robot| robot.name == login.username).unwrap();
            assert_eq!(robot.secret, login.password.expose_secret(), "the nodes cannot pull");
            let resource = "hyperfleet/release:4.20".to_owned();
            self.harbor.record_pull(Pull { username: login.username, resource, at: self.harbor.now() });
        }
    }

    fn robots(&self) -> Vec<String> {
        self.harbor.robots().into_iter().map(|robot| robot.name).collect()
    }
}

#[tokio::test]
async fn a_cluster_gets_an_account_and_another_one_takes_its_place() {
    let fleet = Fleet::new(Settings::default()).await;
    // The password in this answer is lost, so that the robot gets another one.
    fleet.harbor.inject("CreateRobot:commit-then-cut".parse().unwrap());
    let old = fleet.assign(None).await;
    fleet.until(&[State::Adopted]).await;
    assert_eq!(fleet.robots(), [format!("robot$hyperfleet+{}", old.account)]);
    let new = fleet.assign(Some(&old)).await;
    let [gone, _used] = fleet.until(&[State::WaitedOut, State::Adopted]).await.try_into().unwrap();
    assert_eq!(fleet.robots(), [format!("robot$hyperfleet+{}", new.account)]);
    assert!(gone.record.dead.is_some() && !gone.has_password, "{gone:?}");
    let counts = fleet.harbor.counts();
    assert_eq!((counts["RefreshSec"], counts["DeleteRobot"]), (1, 1));
}

/// An identity that may not give a robot another password leaves it, and makes another robot.
#[tokio::test]
async fn a_robot_whose_password_was_lost_is_deleted_and_another_one_is_made() {
    let fleet = Fleet::new(Settings { is_robot: true, ..Settings::default() }).await;
    fleet.harbor.inject("CreateRobot:commit-then-cut".parse().unwrap());
    fleet.assign(None).await;
    let [lost, used] = fleet.until(&[State::WaitedOut, State::Adopted]).await.try_into().unwrap();
    assert_eq!(lost.record.given_up, Some(Reason::PasswordLost));
    assert_eq!(fleet.robots(), [format!("robot$hyperfleet+{}", used.account)]);
}
