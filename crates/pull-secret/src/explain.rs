//! `pull-secret explain`: why a cluster's pull secret is (not) available, on one page.

mod decide;
mod facts;
mod page;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use adapter::decide::unmet;
use adapter::{Config, Plan};
use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::retry::Budget;
use fleet_model::names;
use hyperfleet_client::{Client, Error, StatusItem, View};
use jiff::Timestamp;
use kubernetes::{Cluster, SecretKey};
use tokio_util::sync::CancellationToken;

use crate::cli::{ExplainArguments, OutputFormat};
use crate::{client, output};
use facts::{Facts, Seen, Sight};

/// All questions together may take so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// A question to Kubernetes may take so long.
const CALL: Duration = Duration::from_secs(5);

/// Explains one cluster.
pub(crate) fn cluster(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    let client = client::client(&arguments.api)?;
    let kubeconfig = match &arguments.kubeconfig {
        Some(path) => Some(path.clone()),
        None => ProcessEnvironment.text("KUBECONFIG")?.map(PathBuf::from),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    let facts = runtime.block_on(async {
        let stop = CancellationToken::new();
        observe(&client, kubeconfig, arguments, &Budget::new(PATIENCE, stop)).await
    });
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return Ok(client::refused(&error)),
    };
    let page = decide::page(&facts);
    match arguments.output {
        OutputFormat::Table => output::print(page::text(&page, Timestamp::now()))?,
        OutputFormat::Json => output::print(serde_json::to_string_pretty(&page)? + "\n")?,
    };
    Ok(if page.verdict.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn observe(
    client: &Client,
    kubeconfig: Option<PathBuf>,
    arguments: &ExplainArguments,
    budget: &Budget,
) -> Result<Facts, Error> {
    let id = arguments.id.as_str();
    let calls = client.within(budget);
    let cluster = calls.get("clusters", id).await?;
    let mut facts = Facts { id: id.to_owned(), cluster, ..Facts::default() };
    let Some(cluster) = &facts.cluster else { return Ok(facts) };
    if let Some(plan) = built_in() {
        facts.preconditions = preconditions(&plan);
        facts.unmet = unmet(&plan, &View::of(cluster)).into_iter().map(|unmet| unmet.line).collect();
    }
    facts.report = calls.statuses("clusters", id).await?.into_iter().find(|report| report.adapter == names::ADAPTER);
    // Today's HyperFleet keeps no history: what is not told is left out.
    facts.history = calls.history("clusters", id).await.unwrap_or_default();
    facts.history.retain(|transition| transition.adapter == names::ADAPTER);
    if let Some(path) = kubeconfig {
        look(path, arguments, &mut facts).await;
    }
    Ok(facts)
}

/// Looks into the cluster that Jobs run in. What cannot be seen there is a line of the page, and no failure.
async fn look(kubeconfig: PathBuf, arguments: &ExplainArguments, facts: &mut Facts) {
    let settings =
        kubernetes::Settings { kubeconfig: Some(kubeconfig), call_timeout: CALL, ..kubernetes::Settings::default() };
    let cluster = match Cluster::connect(&settings).await {
        Ok(cluster) => cluster,
        Err(error) => {
            facts.seen = Seen { job: Sight::Failed(error.to_string()), ..Seen::default() };
            return;
        }
    };
    let generation = facts.cluster.as_ref().map_or(0, |cluster| cluster.generation);
    let run = facts.report.as_ref().and_then(|report| report.metadata.as_ref());
    let namespace = run.and_then(|run| run.job_namespace.clone()).unwrap_or_else(|| arguments.namespace.clone());
    let named = run.and_then(|run| run.job_name.clone());
    let name = named.unwrap_or_else(|| names::run_name(names::ADAPTER, &facts.id, generation));
    let secret = facts.report.as_ref().and_then(secret_key);
    facts.seen = Seen {
        job: cluster.see_job(&namespace, &name).await.into(),
        pods: cluster.see_pods(&namespace, &name).await.into(),
        secret: match &secret {
            Some(key) => cluster.see_secret(key).await.into(),
            None => Sight::NotLookedAt,
        },
        job_key: Some((namespace, name)),
        secret_key: secret,
    };
}

/// Where the Kubernetes Secret is, as it is reported.
fn secret_key(report: &StatusItem) -> Option<SecretKey> {
    let text = |name: &str| report.data.get(name)?.as_str().map(str::to_owned);
    Some(SecretKey { namespace: text("namespace")?, name: text("k8sSecretName")? })
}

/// The adapter as it is built in; what a fleet's own configuration says otherwise is not known here.
fn built_in() -> Option<Plan> {
    let somewhere = BTreeMap::from([("HYPERFLEET_API_BASE_URL", "http://localhost")]);
    Config::read(None, BTreeMap::new(), &somewhere).and_then(Config::plan).ok()
}

/// What the adapter asks before it does anything.
fn preconditions(plan: &Plan) -> Vec<String> {
    let asked = plan.preconditions.iter().map(|precondition| precondition.source().to_owned());
    let available = |name: &String| format!("status.adapters[{name}].available == \"True\"");
    asked.chain(plan.dependencies.iter().map(available)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_adapter_asks_what_the_specification_says() {
        let asked = preconditions(&built_in().unwrap());
        assert_eq!(asked.len(), 6);
        assert!(asked.contains(&r#"status.adapters[dns].available == "True""#.to_owned()), "{asked:?}");
    }
}
