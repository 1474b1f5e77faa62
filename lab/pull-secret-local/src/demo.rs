//! The demo: one cluster's pull secret through creation, rotation, repair and deletion, each step verified.

pub(crate) mod credentials;
mod printer;
mod world;

use hyperfleet_client::{Generation, Report, Resource, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fleet::{Clients, Places};
pub(crate) use printer::Printer;
use world::{AFTER, CLUSTER, NAMESPACE, World, is, short};

/// `demo-user` with an invented password, twice.
const FIRST: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;
/// The same with another password for quay.io.
const ROTATED: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTI="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;

/// Runs the whole demo; fails with the step that did not complete in time.
pub(crate) async fn run(places: &Places, clients: &Clients, printer: &mut Printer) -> anyhow::Result<()> {
    printer.note(&format!(
        "API {}, Kubernetes {}, {} {}; for development only",
        places.api,
        places.kubernetes,
        places.store.name(),
        places.store.address()
    ))?;
    let world = World::of(clients, &places.store).await?;
    created(&world, printer).await?;
    available(&world, printer).await?;
    rotated(&world, printer).await?;
    unchanged(&world, printer).await?;
    repaired(&world, printer).await?;
    printer.table(&["VERSION", "STATE", "DIGEST"], &world.versions().await?)?;
    deleted(&world, printer).await?;
    printer.summary()
}

async fn created(world: &World<'_>, printer: &mut Printer) -> anyhow::Result<()> {
    printer.chapter("A new cluster: the adapter waits for what comes before it")?;
    let cluster = world.create(&spec(world, FIRST, "stable")).await?;
    let digest = world.digest(FIRST.as_bytes());
    world.check("the API shows the pull secret's digest and not more", digest_of(&cluster) == Some(&digest))?;
    printer
        .note(&format!("{CLUSTER} is created, generation 1; of its pull secret the API shows {}", short(&digest)))?;
    let mut report = world.until("the adapter's first report", async |world| world.report().await).await?;
    print_waiting(&report, printer)?;
    for adapter in ["validation", "dns"] {
        let before = words(&report);
        world.report_as(adapter, Generation::from(1)).await?;
        printer.note(&format!("{adapter} reports that it is done"))?;
        let news = async |world: &World<'_>| Ok(world.report().await?.filter(|report| words(report) != before));
        report = world.until("the adapter's next report", news).await?;
        print_waiting(&report, printer)?;
    }
    printer.done("the adapter says what it waits for")
}

async fn available(world: &World<'_>, printer: &mut Printer) -> anyhow::Result<()> {
    printer.chapter("The cluster is ready: stored, read back, applied")?;
    world.place().await?;
    world.report_as("placement", Generation::from(1)).await?;
    let ready = Instant::now();
    printer.note(&format!("placement reports that it is done, in namespace {NAMESPACE}: the cluster is ready"))?;
    let started = async |world: &World<'_>| Ok(world.report().await?.filter(|report| is(report, "Applied")));
    let report = world.until("the Job", started).await?;
    let job = report.metadata.as_ref().and_then(|run| run.job_name.clone()).unwrap_or_default();
    printer.note(&format!("the adapter has created the Job {job}"))?;
    let report = world.until_available(Generation::from(1)).await?;
    printer.ready_to_available(ready.elapsed());
    printer.note(&format!("Available=True: {}", words(&report).join("; ")))?;
    print_stored(world, &report, FIRST, printer).await?;
    world.report_as(AFTER, Generation::from(1)).await?;
    let reconciled = async |world: &World<'_>| {
        let cluster = world.cluster().await?;
        Ok(cluster.filter(|cluster| cluster.condition("Reconciled").is_some_and(|found| found.status == Status::True)))
    };
    world.until("the cluster reconciled", reconciled).await?;
    printer.note(&format!("{AFTER} reports too: the cluster is reconciled"))?;
    printer.done("stored, read back, applied")
}

async fn rotated(world: &World<'_>, printer: &mut Printer) -> anyhow::Result<()> {
    printer.chapter("The credential of quay.io is rotated: generation 2")?;
    world.patch(&spec(world, ROTATED, "stable")).await?;
    world.report_all(Generation::from(2)).await?;
    printer.note("the new pull secret is in the API; the others have nothing to do and report at once")?;
    let report = world.until_available(Generation::from(2)).await?;
    print_stored(world, &report, ROTATED, printer).await?;
    world.check("a second version holds the new content", version(&report) == Some(2))?;
    printer.done("a new version, applied")
}

async fn unchanged(world: &World<'_>, printer: &mut Printer) -> anyhow::Result<()> {
    printer.chapter("Something else of the cluster changes: generation 3")?;
    world.patch(&spec(world, ROTATED, "fast")).await?;
    world.report_all(Generation::from(3)).await?;
    let report = world.until_available(Generation::from(3)).await?;
    printer.note(&format!("Available=True: {}", words(&report).join("; ")))?;
    let live = world.versions_with(ROTATED.as_bytes()).await?;
    world.check(
        "one version holds the content, the reported one",
        live == version(&report).into_iter().collect::<Vec<_>>(),
    )?;
    if world.has_record_in_versions() {
        world.check("a version of the new generation was added", live == [3])?;
        return printer.done("a version of the same content, which names the new generation; the older one is gone");
    }
    world.check("no version was added", live == [2] && world.versions().await?.len() == 2)?;
    printer.done("no version added")
}

async fn repaired(world: &World<'_>, printer: &mut Printer) -> anyhow::Result<()> {
    printer.chapter("The Kubernetes Secret is deleted by hand")?;
    let before = world.versions().await?;
    world.delete_secret().await?;
    printer.note("deleted; the Sentinel's slow resync would trigger the adapter, and so does this event now")?;
    world.publish(Generation::from(3)).await?;
    let there = async |world: &World<'_>| world.applied_secret().await;
    let digest = world.until("the Kubernetes Secret again", there).await?;
    world.check("the Kubernetes Secret is as it was", digest == world.digest(ROTATED.as_bytes()))?;
    printer.note(&format!("it is there again, with {}", short(&digest)))?;
    world.check("no version was added", world.versions().await? == before)?;
    printer.done("repaired, no version added")
}

async fn deleted(world: &World<'_>, printer: &mut Printer) -> anyhow::Result<()> {
    printer.chapter("The cluster is deleted")?;
    let cluster = world.delete().await?;
    printer.note(&format!("deletion is asked for, generation {}", cluster.generation))?;
    world.finalize_all(cluster.generation).await?;
    let gone = async |world: &World<'_>| Ok(world.cluster().await?.is_none().then_some(()));
    world.until("the cluster gone", gone).await?;
    printer.note("all adapters have reported Finalized; the cluster is gone from the API")?;
    let left = world.versions().await?.len();
    let store = world.store_name();
    world.check(&format!("nothing is left in {store}"), left == 0)?;
    world.check("the Kubernetes Secret is gone", world.applied_secret().await?.is_none())?;
    printer.note(&format!("nothing is left of its pull secret in {store} and Kubernetes"))?;
    printer.done("nothing is left")
}

/// Checks by digest that store and Kubernetes hold the desired content.
async fn print_stored(world: &World<'_>, report: &Report, wanted: &str, printer: &mut Printer) -> anyhow::Result<()> {
    let text = |name: &str| report.data.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let number = version(report).unwrap_or_default();
    let wanted = world.digest(wanted.as_bytes());
    let stored = world.stored(number).await?;
    let store = world.store_name();
    world.check(&format!("{store} holds what is wanted"), stored.as_ref() == Some(&wanted))?;
    printer.note(&format!("{store}: {}, version {number}, {}", text("secretPath"), short(&wanted)))?;
    let applied_secret = world.applied_secret().await?;
    world.check("the Kubernetes Secret holds the same", applied_secret.as_ref() == Some(&wanted))?;
    printer.note(&format!("Kubernetes: Secret {}/{}, {}", text("namespace"), text("k8sSecretName"), short(&wanted)))?;
    world.check("the report has the same digest", text("digest") == wanted)
}

fn print_waiting(report: &Report, printer: &mut Printer) -> anyhow::Result<()> {
    printer.note("the adapter does not start yet, and says why:")?;
    words(report).iter().try_for_each(|line| printer.quote(line))
}

/// Reason and message of the adapter's condition `Available`.
fn words(report: &Report) -> Vec<String> {
    let message = report.condition("Available").and_then(|condition| condition.message.as_deref()).unwrap_or_default();
    message.lines().flat_map(|line| line.split("; ")).map(str::to_owned).collect()
}

fn version(report: &Report) -> Option<u64> {
    let version = report.data.get("secretVersion")?;
    version.as_u64().or_else(|| version.as_str()?.parse().ok())
}

fn digest_of(cluster: &Resource) -> Option<&String> {
    match cluster.spec.pointer("/pullSecret/data/digest")? {
        Value::String(digest) => Some(digest),
        _ => None,
    }
}

/// A cluster as the specification has it.
fn spec(world: &World<'_>, pull_secret: &str, channel: &str) -> Value {
    json!({
        "provider": world.provider(),
        "gcp": { "projectId": world::PROJECT, "region": "us-east1" },
        "channel": channel,
        "pullSecret": { "data": pull_secret },
    })
}
