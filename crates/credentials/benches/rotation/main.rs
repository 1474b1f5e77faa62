//! Rotates a fleet with the service's own worker and ledger (SQLite) by a virtual clock: a registry that allows fewer calls than it
//! states in every third hour, and is unavailable for an hour; one of a hundred clusters never follows its pull secret, one of twenty an hour
//! late.
//!
//! `CLUSTERS=100000 cargo bench --package credentials --bench rotation` rotates a hundred thousand.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use credentials::credential::{ClusterRef, Evidence, NodesEvidence, Policy, Record, RegistryName, Retire};
use credentials::decide::rotation::{calls, rotation_eta};
use credentials::ledger::schema::COMPONENT;
use credentials::ledger::{Change, Claim, Ledger, NewRotation, Outcome, Password, RotationRequest, Slot, Statement};
use credentials::reason::Reason;
use credentials::rotation::{Candidate, ClusterProgress, GroupCounts, RotationName, RotationPhase, RotationPlan};
use credentials::run::{Served, Sources, StepResult, Worker};
use credentials::state::{Lane, State};
use daemon::environment::{Environment as _, ProcessEnvironment};
use database::sealed::{DigestKey, KeyBytes, Keyring};
use database::{Database, PoolSettings, Source};
use jiff::{SignedDuration, Timestamp};
use registry_account::Image;
use tokio::time::Instant;

use crate::world::{HOST, PER_MINUTE, STRAGGLER, World};

/// Clusters that are rotated at the same time.
const CONCURRENCY: u32 = 500;
/// Interval of the steps of the rotation. That of the service is 5 s; each counts all clusters, which takes 30 ms with 100,000.
const STEP: Duration = Duration::from_secs(30);
/// Virtual time between two lines of progress.
const PROGRESS: Duration = Duration::from_hours(4);
/// Time until the next attempt to claim a row where none is due.
const IDLE: Duration = Duration::from_secs(1);

/// A fleet at work.
struct Fleet {
    world: World,
    worker: Worker<World, World>,
    registry: RegistryName,
    name: RotationName,
    size: u64,
}

/// Counts of a run.
#[derive(Default)]
struct Run {
    steps: u64,
    most: u64,
    resumed: u64,
    /// Time from which the progress is printed again.
    report_due: Timestamp,
}

fn main() {
    let size = ProcessEnvironment.text("CLUSTERS").unwrap().map_or(2_000, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let fleet = Fleet::new(size, Source::Sqlite { path: path.clone() }).await;
        let plan = fleet.start().await;
        let whole = [GroupCounts { waiting: size, ..GroupCounts::default() }];
        let expected = rotation_eta(&plan, &whole, PER_MINUTE, Duration::from_mins(25), fleet.now()).unwrap();
        let (began, clock) = (fleet.now(), Instant::now());
        let mut run = Run::default();
        fleet.rotate(&mut run).await;
        let (rotated, until) = (clock.elapsed(), fleet.now());
        fleet.retire(&mut run).await;
        let hours = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64() / 3600.0;
        println!("{size} clusters, {CONCURRENCY} at the same time, {PER_MINUTE} calls a minute");
        println!("  expected without faults    {:8.1} h", hours(began, expected));
        println!("  rotated after              {:8.1} h", hours(began, until));
        println!("  old accounts gone after    {:8.1} h", hours(began, fleet.now()));
        fleet.report(&run).await;
        let bytes = std::fs::metadata(&path).unwrap().len();
        println!("  ledger                     {:8.1} KB each cluster", bytes as f64 / size as f64 / 1000.0);
        let each = rotated.as_secs_f64() * 1e6 / run.steps as f64;
        println!("  work of this machine       {:8.1} s, {each:.0} µs a step", rotated.as_secs_f64());
    });
}

// === impl Fleet ===

impl Fleet {
    /// A fleet whose clusters use their first credentials.
    async fn new(size: u64, source: Source) -> Self {
        let world = World::new(Timestamp::from_second(1_800_000_000).unwrap());
        let registry: RegistryName = "registry".parse().unwrap();
        let worker = worker(&world, &registry, ledger(&source).await);
        let fleet = Self { world, worker, registry, name: "monthly".parse().unwrap(), size };
        for number in 0..size {
            fleet.add(number).await;
        }
        fleet
    }

    fn now(&self) -> Timestamp {
        self.world.state().now
    }

    /// Adds a cluster with a credential that it uses.
    async fn add(&self, number: u64) {
        let (now, ledger) = (self.now(), &self.worker.ledger);
        let cluster = ClusterRef { id: format!("cls-{number}"), incarnation: 1 };
        let slot = Slot { registry: self.registry.clone(), cluster: cluster.clone(), replaces: None };
        let fresh = self.worker.sources.fresh(&"hf".parse().unwrap()).unwrap();
        let credential = ledger.assign(&slot, &fresh, "bench", now).await.unwrap();
        self.world.add(&cluster, &credential.account);
        let lane = Some(Lane::NewCluster);
        let until = now.saturating_add(SignedDuration::from_mins(2)).unwrap();
        let claim = Claim { worker: "bench", registry: &self.registry, lane, now, until };
        let claimed = ledger.claim(&claim).await.unwrap().unwrap();
        let used = Some(now);
        let record = Record {
            login: Some(credential.account.to_string()),
            generation: 1_u32.into(),
            last_create: used,
            created: used,
            probed: used,
            last_publish: used,
            published: used,
            adopted: used,
            evidence: Evidence::default(),
            ..Record::default()
        };
        let due = now.saturating_add(SignedDuration::from_hours(24)).ok();
        let change = Change {
            action: None,
            outcome: Outcome::Changed,
            state: State::Adopted,
            record,
            reason: Reason::InUse,
            standing: Reason::InUse,
            password: Password::Set("password".to_owned().into()),
            lane: None,
            due,
            instead: None,
            actor: "bench",
            now,
        };
        assert!(ledger.finish(&claimed, &change).await.unwrap());
    }

    /// Starts the rotation of all.
    async fn start(&self) -> RotationPlan {
        let candidates: Vec<Candidate> = self.worker.ledger.candidates(&self.registry).await.unwrap();
        assert_eq!(candidates.len() as u64, self.size);
        let plan = RotationPlan {
            groups: vec!["the rest".to_owned()],
            max_concurrency: CONCURRENCY,
            max_failures: self.size / 50,
            min_success_time: SignedDuration::from_mins(15),
            progress_deadline: SignedDuration::from_hours(4),
            window: None,
            max_calls_per_minute: None,
            from_ams: false,
        };
        let new = NewRotation { name: &self.name, registry: &self.registry, plan: &plan, groups: &[candidates] };
        self.worker.ledger.start_rotation(&new, &self.statement()).await.unwrap();
        plan
    }

    fn statement(&self) -> Statement<'static> {
        Statement { actor: "bench", reason: "bench", now: self.now() }
    }

    async fn counts(&self) -> GroupCounts {
        let rotation = self.worker.ledger.rotation(&self.name).await.unwrap();
        let counts = self.worker.ledger.rotation_counts(&rotation).await.unwrap();
        counts.into_iter().next().unwrap()
    }

    /// Works until the rotation is done; an operator resumes one that has stopped.
    async fn rotate(&self, run: &mut Run) {
        let mut next = self.now();
        loop {
            if self.now() >= next {
                next = self.now().saturating_add(SignedDuration::try_from(STEP).unwrap()).unwrap();
                self.worker.rotate(&self.registry).await.unwrap();
                let ledger = &self.worker.ledger;
                let rotation = ledger.rotation(&self.name).await.unwrap();
                if rotation.phase == RotationPhase::Stopped {
                    ledger.ask(&self.name, RotationRequest::Resume, &self.statement()).await.unwrap();
                    run.resumed += 1;
                }
                if rotation.phase == RotationPhase::Done {
                    return;
                }
                let begun =
                    ledger.rotation_members(&self.name, ClusterProgress::InProgress, CONCURRENCY + 1).await.unwrap();
                run.most = run.most.max(begun.len() as u64);
                self.progress(run).await;
            }
            self.step(run).await;
        }
    }

    /// Works until the old accounts of all clusters that use their new ones are deleted.
    async fn retire(&self, run: &mut Run) {
        let stragglers = self.size / STRAGGLER;
        while self.world.accounts() as u64 > self.size + stragglers {
            self.step(run).await;
        }
    }

    async fn step(&self, run: &mut Run) {
        run.steps += 1;
        if self.worker.run_step(&self.registry).await.unwrap() == StepResult::Idle {
            self.world.advance(IDLE);
        }
    }

    /// Prints now and then how far the rotation is.
    async fn progress(&self, run: &mut Run) {
        let now = self.now();
        if now >= run.report_due {
            run.report_due = now.saturating_add(SignedDuration::try_from(PROGRESS).unwrap()).unwrap();
            let counts = self.counts().await;
            eprintln!("{now}: {} succeeded, {} failed of {}", counts.succeeded, counts.failed, self.size);
        }
    }

    async fn report(&self, run: &Run) {
        let counts = self.counts().await;
        let planned = calls(&self.worker.ledger.rotation(&self.name).await.unwrap().plan);
        let state = self.world.state();
        let made: u64 = state.calls.values().sum();
        let useful = made - state.too_many - state.in_outage;
        println!("  succeeded, failed          {:>8} {}", counts.succeeded, counts.failed);
        println!("  most at the same time      {:>8}, resumed {} times", run.most, run.resumed);
        println!("  calls each cluster         {:>8.1} (planned with {planned})", useful as f64 / self.size as f64);
        println!("  calls refused              {:>8} as too many, {} in the outage", state.too_many, state.in_outage);
        for (operation, number) in &state.calls {
            println!("    {operation:<25}{number:>8}");
        }
        assert_eq!((counts.failed, state.violations), (self.size / STRAGGLER, 0), "{counts:?}");
        assert!(run.most <= u64::from(CONCURRENCY));
    }
}

async fn ledger(source: &Source) -> Ledger {
    let minute = Duration::from_mins(1);
    let pool = PoolSettings { max_connections: 4, acquire_timeout: minute, max_lifetime: minute, idle_timeout: minute };
    let database = Database::open(source, pool, &COMPONENT).unwrap();
    let key = KeyBytes { id: "one".to_owned(), bytes: vec![1; 32].into() };
    let keyring = Keyring::new(vec![key], DigestKey::Derived("bench")).unwrap();
    let ledger = Ledger::new(database, Arc::new(keyring));
    ledger.migrate(minute, Timestamp::UNIX_EPOCH).await.unwrap();
    ledger
}

fn worker(world: &World, registry: &RegistryName, ledger: Ledger) -> Worker<World, World> {
    let (clock, random) = (world.clone(), AtomicU64::new(1));
    let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    let sources = Sources {
        now: Arc::new(move || clock.state().now),
        random: Arc::new(move || spread.wrapping_mul(u128::from(random.fetch_add(1, Ordering::Relaxed)))),
    };
    let policy = Policy {
        retire: Retire::WhenAdopted,
        nodes: NodesEvidence::Required,
        quiet: Duration::from_hours(2),
        deadline: Duration::from_hours(2),
        ..Policy::default()
    };
    let served = Served {
        registry: world.clone(),
        image: Image { repository: "release/image".parse().unwrap(), reference: None },
        prefix: "hf".parse().unwrap(),
        description: format!("bench at {HOST}"),
        policy,
        pool: 0,
        per_minute: None,
    };
    Worker {
        name: "bench".to_owned(),
        ledger,
        registries: [(registry.clone(), served)].into(),
        clusters: world.clone(),
        sources,
        lease: Duration::from_mins(2),
    }
}
