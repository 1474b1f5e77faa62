//! The story of one cluster's pull secret, told while the fleet plane makes it happen.

mod tell;
mod world;

use hyperfleet_client::{Resource, Status, StatusItem};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fleet::{Hands, Places};
pub(crate) use tell::Teller;
use world::{CLUSTER, NAMESPACE, World};

/// `demo-user` with an invented password, twice.
const FIRST: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;
/// The same with another password for quay.io.
const ROTATED: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTI="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;

/// The adapters that come before the pull secret's, and the one that comes after it.
const BEFORE: [&str; 3] = ["validation", "dns", "placement"];
const AFTER: &str = "hypershift";

/// Tells the whole story; fails with the step that did not happen in time.
pub(crate) async fn tell(places: &Places, hands: &Hands, teller: &mut Teller) -> anyhow::Result<()> {
    teller
        .note(&format!("API {}, Kubernetes {}; all embedded, for development only", places.api, places.kubernetes))?;
    let world = World::of(hands, &places.secret_manager).await?;
    created(&world, teller).await?;
    available(&world, teller).await?;
    rotated(&world, teller).await?;
    unchanged(&world, teller).await?;
    repaired(&world, teller).await?;
    teller.table(&["VERSION", "STATE", "DIGEST"], &world.versions().await?)?;
    deleted(&world, teller).await?;
    teller.summary()
}

async fn created(world: &World<'_>, teller: &mut Teller) -> anyhow::Result<()> {
    teller.chapter("A new cluster: the adapter waits for what comes before it")?;
    let cluster = world.create(&spec(FIRST, "stable")).await?;
    let digest = world.digest(FIRST.as_bytes());
    world.check("the API shows the pull secret's digest and not more", digest_of(&cluster) == Some(&digest))?;
    teller.note(&format!("{CLUSTER} is created, generation 1; of its pull secret the API shows {}", short(&digest)))?;
    let mut report = world.until("the adapter's first report", async |world| world.report().await).await?;
    tell_waiting(&report, teller)?;
    for adapter in ["validation", "dns"] {
        let before = words(&report);
        world.play(adapter, 1).await?;
        teller.note(&format!("{adapter} reports that it is done"))?;
        let news = async |world: &World<'_>| Ok(world.report().await?.filter(|report| words(report) != before));
        report = world.until("the adapter's next report", news).await?;
        tell_waiting(&report, teller)?;
    }
    teller.done("the adapter says what it waits for")
}

async fn available(world: &World<'_>, teller: &mut Teller) -> anyhow::Result<()> {
    teller.chapter("The cluster is ready: stored, read back, applied")?;
    world.place().await?;
    world.play("placement", 1).await?;
    let ready = Instant::now();
    teller.note(&format!("placement reports that it is done, in namespace {NAMESPACE}: the cluster is ready"))?;
    let started = async |world: &World<'_>| Ok(world.report().await?.filter(|report| is(report, "Applied")));
    let report = world.until("the Job", started).await?;
    let job = report.metadata.as_ref().and_then(|run| run.job_name.clone()).unwrap_or_default();
    teller.note(&format!("the adapter has created the Job {job}"))?;
    let report = world.until_available(1).await?;
    teller.ready_to_available(ready.elapsed());
    teller.note(&format!("Available=True: {}", words(&report).join(" ")))?;
    tell_stored(world, &report, FIRST, teller).await?;
    world.play(AFTER, 1).await?;
    let reconciled = async |world: &World<'_>| {
        let cluster = world.cluster().await?;
        Ok(cluster.filter(|cluster| cluster.condition("Reconciled").is_some_and(|found| found.status == Status::True)))
    };
    world.until("the cluster reconciled", reconciled).await?;
    teller.note(&format!("{AFTER} reports too: the cluster is reconciled"))?;
    teller.done("stored, read back, applied")
}

async fn rotated(world: &World<'_>, teller: &mut Teller) -> anyhow::Result<()> {
    teller.chapter("The credential of quay.io is rotated: generation 2")?;
    world.patch(&spec(ROTATED, "stable")).await?;
    world.play_all(2).await?;
    teller.note("the new pull secret is in the API; the others have nothing to do and report at once")?;
    let report = world.until_available(2).await?;
    tell_stored(world, &report, ROTATED, teller).await?;
    world.check("a second version holds the new content", version(&report) == Some(2))?;
    teller.done("a new version, applied")
}

async fn unchanged(world: &World<'_>, teller: &mut Teller) -> anyhow::Result<()> {
    teller.chapter("Something else of the cluster changes: generation 3")?;
    world.patch(&spec(ROTATED, "fast")).await?;
    world.play_all(3).await?;
    let report = world.until_available(3).await?;
    teller.note(&format!("Available=True: {}", words(&report).join(" ")))?;
    world.check("no version was added", version(&report) == Some(2) && world.versions().await?.len() == 2)?;
    teller.done("no version added")
}

async fn repaired(world: &World<'_>, teller: &mut Teller) -> anyhow::Result<()> {
    teller.chapter("Somebody deletes the Kubernetes Secret")?;
    world.delete_secret().await?;
    teller.note("deleted; the Sentinel's slow resync would tell the adapter, and so does this event now")?;
    world.announce(3).await?;
    let there = async |world: &World<'_>| world.applied_secret().await;
    let digest = world.until("the Kubernetes Secret again", there).await?;
    world.check("the Kubernetes Secret is as it was", digest == world.digest(ROTATED.as_bytes()))?;
    teller.note(&format!("it is there again, with {}", short(&digest)))?;
    world.check("no version was added", world.versions().await?.len() == 2)?;
    teller.done("repaired, no version added")
}

async fn deleted(world: &World<'_>, teller: &mut Teller) -> anyhow::Result<()> {
    teller.chapter("The cluster is deleted")?;
    let cluster = world.delete().await?;
    teller.note(&format!("deletion is asked for, generation {}", cluster.generation))?;
    world.finalize_all(cluster.generation).await?;
    let gone = async |world: &World<'_>| Ok(world.cluster().await?.is_none().then_some(()));
    world.until("the cluster gone", gone).await?;
    teller.note("all adapters have reported Finalized; the cluster is gone from the API")?;
    let left = world.versions().await?.len();
    world.check("nothing is left in Secret Manager", left == 0)?;
    world.check("the Kubernetes Secret is gone", world.applied_secret().await?.is_none())?;
    teller.note("nothing is left of its pull secret in Secret Manager and Kubernetes")?;
    teller.done("nothing is left")
}

/// What is in both places must be what is wanted; told as digests.
async fn tell_stored(world: &World<'_>, report: &StatusItem, wanted: &str, teller: &mut Teller) -> anyhow::Result<()> {
    let text = |name: &str| report.data.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let number = version(report).unwrap_or_default();
    let wanted = world.digest(wanted.as_bytes());
    let stored = world.stored(number).await?;
    world.check("Secret Manager holds what is wanted", stored.as_ref() == Some(&wanted))?;
    teller.note(&format!("Secret Manager: {}, version {number}, {}", text("secretPath"), short(&wanted)))?;
    let applied_secret = world.applied_secret().await?;
    world.check("the Kubernetes Secret holds the same", applied_secret.as_ref() == Some(&wanted))?;
    teller.note(&format!("Kubernetes: Secret {}/{}, {}", text("namespace"), text("k8sSecretName"), short(&wanted)))?;
    world.check("the report tells the same digest", text("digest") == wanted)
}

fn tell_waiting(report: &StatusItem, teller: &mut Teller) -> anyhow::Result<()> {
    teller.note("the adapter does not start yet, and says why:")?;
    words(report).iter().try_for_each(|line| teller.quote(line))
}

/// What the adapter says about the availability.
fn words(report: &StatusItem) -> Vec<String> {
    let message = report.condition("Available").and_then(|condition| condition.message.as_deref()).unwrap_or_default();
    message.lines().flat_map(|line| line.split("; ")).map(str::to_owned).collect()
}

fn is(report: &StatusItem, condition: &str) -> bool {
    report.condition(condition).is_some_and(|condition| condition.status == Status::True)
}

fn version(report: &StatusItem) -> Option<u64> {
    let version = report.data.get("secretVersion")?;
    version.as_u64().or_else(|| version.as_str()?.parse().ok())
}

fn digest_of(cluster: &Resource) -> Option<&String> {
    match cluster.spec.pointer("/pullSecret/data/digest")? {
        Value::String(digest) => Some(digest),
        _ => None,
    }
}

/// A digest's beginning: enough to tell contents apart.
fn short(digest: &str) -> String {
    let end = digest.len().min(24);
    format!("{}…", digest.get(..end).unwrap_or(digest))
}

/// A cluster as the specification has it.
fn spec(pull_secret: &str, channel: &str) -> Value {
    json!({
        "provider": "gcp",
        "gcp": { "projectId": world::PROJECT, "region": "us-east1" },
        "channel": channel,
        "pullSecret": { "data": pull_secret },
    })
}
