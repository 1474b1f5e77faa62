//! A fleet whose credentials AMS has made, an emulated AMS, and the phases as functions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use accounts_mgmt::{AmsClient, AmsSettings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use credentials::ams::{
    Back, BackError, ClusterStatus, Content, Import, ImportError, Imported, Issued, Paced, Pacing, PullSecrets,
    Retired, Retirement, Shadow, Shadowed, Target, Waits, back, import, issue, retire, shadow, status,
};
use credentials::credential::ClusterRef;
use credentials::decide::ams::Phase;
use credentials::ledger::{NewRotation, Statement};
use credentials::publish::PullSecret;
use credentials::rotation::{RotationName, RotationPhase, RotationPlan};
use credentials::run::{ClusterError, Sources, Worker};
use credentials::state::State;
use emulators::accounts_mgmt::{AccountsMgmt, Credential, Settings};
use fleet_model::Generation;
use jiff::{SignedDuration, Timestamp};
use registry_account::{AccountName, CredentialId, Login, NewAccount, Registry as _};
use secrecy::ExposeSecret as _;
use serde_json::json;
use tempfile::TempDir;

use crate::database::Kind;
use crate::rig::Rig;
use crate::world::{Outside, World};

/// The host that is taken over.
pub(crate) const HOST: &str = "memory.invalid";
/// A host that stays AMS's.
pub(crate) const OTHER: &str = "registry.redhat.io";
/// Beginning of the tokens at that host.
pub(crate) const OTHER_TOKEN: &str = "token-of-ams-";
/// Time that AMS's credentials must be quiet, and more.
const QUIET: Duration = Duration::from_hours(3);

/// A fleet on its way from AMS.
pub(crate) struct Leaving {
    pub(crate) rig: Rig,
    pub(crate) ams: AccountsMgmt,
    pub(crate) client: AmsClient,
    pub(crate) worker: Worker<Outside, Outside>,
    pub(crate) secrets: Secrets,
    pub(crate) clusters: Vec<ClusterRef>,
    sources: Sources,
    targets: Vec<Target>,
    _folder: TempDir,
}

/// The pull secrets of the world, as texts.
pub(crate) struct Secrets {
    world: Arc<World>,
    /// Clusters that the search does not find.
    pub(crate) unlisted: Mutex<BTreeSet<String>>,
}

/// Time that passes at once.
pub(crate) struct Skip(Arc<World>);

impl Waits for Skip {
    async fn wait(&self, until: Timestamp) {
        let now = self.0.registry.now();
        let delay = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        self.0.registry.advance(delay + Duration::from_millis(1));
    }
}

impl PullSecrets for Secrets {
    async fn clusters(&self) -> Result<Vec<ClusterRef>, ClusterError> {
        let unlisted = self.unlisted.lock().unwrap();
        Ok(self.world.clusters.all().into_iter().filter(|cluster| !unlisted.contains(&cluster.id)).collect())
    }

    async fn exists(&self, id: &str) -> Result<bool, ClusterError> {
        Ok(self.world.clusters.all().iter().any(|cluster| cluster.id == id))
    }

    async fn read(&self, cluster: &ClusterRef) -> Result<Content, ClusterError> {
        let Some(entries) = self.world.clusters.entries(cluster) else { return Ok(Content::Gone) };
        let entry = |login: &Login| {
            let pair = format!("{}:{}", login.username, login.password.expose_secret());
            json!({ "auth": STANDARD.encode(pair) })
        };
        let auths: BTreeMap<&String, _> = entries.iter().map(|(host, login)| (host, entry(login))).collect();
        let secret = PullSecret::of_text(&json!({ "auths": auths }).to_string().into()).unwrap();
        Ok(Content::Here { generation: Generation::FIRST, secret })
    }
}

// === impl Leaving ===

impl Leaving {
    /// A fleet; every credential is one of AMS, each cluster has its own at two hosts.
    pub(crate) async fn new(kind: Kind, size: usize, faults: &[&str]) -> Option<Self> {
        let mut rig = Rig::new(kind).await?;
        // Clusters that are done are left alone, so that a large fleet takes no more steps than it must.
        rig.policy.resync = Duration::from_hours(48);
        let settings =
            Settings { faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(), ..Settings::default() };
        let (folder, secret) = (tempfile::tempdir().unwrap(), settings.client_secret.clone());
        let client_secret_file = folder.path().join("secret");
        daemon::file::replace(&client_secret_file, secret.as_bytes()).unwrap();
        let ams = AccountsMgmt::start(settings).await.unwrap();
        let settings = AmsSettings {
            address: ams.url().parse().unwrap(),
            token_address: ams.token_url().parse().unwrap(),
            client_id: "pull-secret-service".to_owned(),
            client_secret_file,
            ca_file: None,
            call_timeout: Duration::from_secs(20),
        };
        let secrets = Secrets { world: Arc::clone(&rig.world), unlisted: Mutex::default() };
        let worker = rig.worker("one");
        let targets = vec![Target { registry: Rig::registry(), host: HOST.to_owned() }];
        let mut leaving = Self {
            sources: rig.sources(),
            client: AmsClient::new(settings).unwrap(),
            clusters: Vec::new(),
            _folder: folder,
            rig,
            ams,
            worker,
            secrets,
            targets,
        };
        for number in 0..size {
            leaving.add(number).await;
        }
        Some(leaving)
    }

    /// A cluster whose pull secret AMS has made.
    async fn add(&mut self, number: usize) {
        let cluster = self.rig.cluster(&format!("cls-{number:04}"));
        let login = self.account(number).await;
        let password = format!("{OTHER_TOKEN}{number}").into();
        let other = Login { username: format!("|ams-{number}"), password };
        self.put(&cluster, HOST, login, "Quay_quay.io", number);
        self.put(&cluster, OTHER, other, "Redhat_registry.redhat.io", number);
        self.clusters.push(cluster);
    }

    /// An account at the registry that AMS has made.
    async fn account(&self, number: usize) -> Login {
        let registry = &self.rig.world.registry;
        let name: AccountName = format!("ams-{number}").parse().unwrap();
        let credential: CredentialId = format!("01932b5c-9f3e-7c2a-8e1d-{number:012}").parse().unwrap();
        let new = NewAccount { name: name.clone(), credential, description: "of AMS".to_owned() };
        let created = registry.create(&new).await.unwrap();
        registry.permit(&name).await.unwrap();
        Login { username: registry.login(&name), password: created.password }
    }

    /// Gives a cluster a login that AMS has.
    fn put(&self, cluster: &ClusterRef, host: &str, login: Login, registry: &str, number: usize) {
        let (username, token) = (login.username.clone(), login.password.expose_secret().to_owned());
        self.rig.world.clusters.put(cluster, host, login);
        self.ams.add(Credential {
            username,
            token,
            registry: registry.to_owned(),
            account: format!("account-{number}"),
            resource: String::new(),
            created: 1_700_000_000 + i64::try_from(number).unwrap() * 300,
        });
    }

    /// The users of the clusters at the host that is taken over.
    pub(crate) fn named(&self) -> Vec<String> {
        let login = |cluster: &ClusterRef| self.rig.world.clusters.login(cluster, HOST).unwrap().username;
        self.clusters.iter().map(login).collect()
    }

    pub(crate) fn statement(&self) -> Statement<'static> {
        Statement { actor: "ann", reason: "leaving AMS", now: self.rig.world.registry.now() }
    }

    fn skip(&self) -> Skip {
        Skip(Arc::clone(&self.rig.world))
    }

    fn paced<'a>(&'a self, waits: &'a Skip) -> Paced<'a, AmsClient, Skip> {
        let pacing = Pacing { ledger: &self.worker.ledger, sources: &self.sources, waits, per_minute: 300 };
        Paced { accounts: &self.client, pacing }
    }

    fn parts(&self) -> Shadow<'_, Secrets> {
        let (ledger, secrets) = (&self.worker.ledger, &self.secrets);
        Shadow { ledger, secrets, targets: &self.targets, sources: &self.sources }
    }

    pub(crate) async fn import(&self) -> Result<Imported, ImportError> {
        let waits = self.skip();
        import(&Import { accounts: self.paced(&waits), shadow: self.parts() }).await
    }

    pub(crate) async fn shadow(&self) -> Shadowed {
        shadow(&self.parts()).await.unwrap()
    }

    pub(crate) async fn status(&self) -> BTreeMap<String, ClusterStatus> {
        let (ledger, now) = (&self.worker.ledger, self.rig.world.registry.now());
        let found = status(ledger, &self.targets, Duration::from_hours(72), None, now).await.unwrap();
        found.into_iter().map(|one| (one.compared.cluster.id.clone(), one)).collect()
    }

    /// Counts the clusters by their phases.
    pub(crate) async fn phases(&self) -> BTreeMap<Phase, usize> {
        let mut phases = BTreeMap::new();
        for one in self.status().await.into_values() {
            *phases.entry(one.phase).or_default() += 1;
        }
        phases
    }

    /// Compares once a day until the demanded time is over.
    pub(crate) async fn compare_for_days(&self) {
        for _day in 0..3 {
            self.rig.world.registry.advance(Duration::from_hours(24));
            self.shadow().await;
        }
    }

    pub(crate) async fn issue(&self) -> Issued {
        let clusters: Vec<ClusterStatus> = self.status().await.into_values().collect();
        let prefix = "hf".parse().unwrap();
        let (ledger, target) = (&self.worker.ledger, &self.targets[0]);
        issue(ledger, target, &prefix, &self.sources, &clusters, &self.statement()).await.unwrap()
    }

    /// Works until so many credentials wait beside those of AMS.
    pub(crate) async fn until_held(&self, number: usize) {
        for _turn in 0..number * 40 + 100 {
            if self.worker.ledger.held(&Rig::registry()).await.unwrap().len() == number {
                return;
            }
            for _each in 0..number.max(4) {
                self.rig.step(&self.worker).await;
            }
        }
        panic!("they are never all there: {:?}", self.phases().await);
    }

    /// Starts the waves.
    pub(crate) async fn begin_to_move(&self, concurrency: u32) -> RotationName {
        let ledger = &self.worker.ledger;
        let held = ledger.held(&Rig::registry()).await.unwrap();
        let plan = RotationPlan {
            groups: vec!["the rest".to_owned()],
            max_concurrency: concurrency,
            max_failures: 10,
            min_success_time: SignedDuration::from_mins(10),
            progress_deadline: SignedDuration::from_hours(4),
            window: None,
            max_calls_per_minute: None,
            from_ams: true,
        };
        let name: RotationName = "leave-ams".parse().unwrap();
        let new = NewRotation { name: &name, registry: &Rig::registry(), plan: &plan, groups: &[held] };
        ledger.start_rotation(&new, &self.statement()).await.unwrap();
        name
    }

    /// Works on the waves until they are over, while all clusters live except some.
    pub(crate) async fn move_all(&self, name: &RotationName, silent: &[&str]) {
        let ledger = &self.worker.ledger;
        for _pass in 0..3000 {
            self.worker.rotate(&Rig::registry()).await.unwrap();
            if ledger.rotation(name).await.unwrap().phase != RotationPhase::Running {
                return;
            }
            for _turn in 0..40 {
                self.rig.step(&self.worker).await;
            }
            let filter = credentials::ledger::Filter { state: Some(State::Published), ..Default::default() };
            for published in ledger.list(&filter).await.unwrap() {
                let cluster = published.cluster.unwrap();
                if !silent.contains(&cluster.id.as_str()) {
                    self.rig.live(&cluster);
                }
            }
        }
        panic!("it never ends: {:?}", ledger.rotation(name).await);
    }

    /// Lets the quiet time pass.
    pub(crate) fn be_quiet(&self) {
        self.rig.world.registry.advance(QUIET);
    }

    pub(crate) async fn retire(&self, id: &str, is_attested: bool) -> Result<Vec<Retired>, ImportError> {
        self.retire_of(&self.status().await, id, is_attested).await
    }

    /// Retires what a cluster had, after the status of the whole fleet was read.
    pub(crate) async fn retire_of(
        &self,
        clusters: &BTreeMap<String, ClusterStatus>,
        id: &str,
        is_attested: bool,
    ) -> Result<Vec<Retired>, ImportError> {
        let waits = self.skip();
        let parts = Retirement {
            accounts: self.paced(&waits),
            secrets: &self.secrets,
            registries: &self.worker.registries,
            targets: &self.targets,
            clusters,
            is_attested,
            deletes: true,
        };
        retire(&parts, &clusters[id], &self.statement()).await
    }

    pub(crate) async fn back(&self, id: &str) -> Result<(), BackError> {
        let (clusters, outside) = (self.status().await, Outside(Arc::clone(&self.rig.world)));
        let parts = Back { ledger: &self.worker.ledger, clusters: &outside, targets: &self.targets };
        back(&parts, &clusters[id], &self.statement()).await
    }
}
