//! `pull-secret credentials ams`: clusters leave AMS.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use accounts_mgmt::{AmsClient, Ksuid};
use anyhow::{Context as _, bail, ensure};
use credentials::ams::{
    Back, ClusterStatus, Import, Paced, Pacing, Retired, Retirement, Shadow, Target, Waits, back, import, issue,
    retire, shadow, status,
};
use credentials::decide::ams::Phase;
use credentials::ledger::{Ledger, Statement};
use credentials::publish::{ApiClusters, ApiPullSecrets};
use credentials::run::Sources;
use credentials::settings::{Checked, CheckedAms};
use daemon::output;
use hyperfleet_client::Client;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{ams_page as page, common, rotation};
use crate::cli::{
    AmsArguments, AmsBackArguments, AmsCommand, AmsIssueArguments, AmsRetireArguments, AmsStatusArguments,
    CredentialsFlags,
};

/// Maximum time of one look at a cluster, or of one publication.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings, ledger and clock of a command.
struct Opened {
    settings: Checked,
    ams: CheckedAms,
    ledger: Ledger,
    sources: Sources,
}

/// The time of this host.
struct Sleep;

impl Waits for Sleep {
    async fn wait(&self, until: Timestamp) {
        let delay = until.duration_since(Timestamp::now());
        tokio::time::sleep(Duration::try_from(delay).unwrap_or_default()).await;
    }
}

// === impl Opened ===

impl Opened {
    async fn new(flags: CredentialsFlags) -> anyhow::Result<Self> {
        let settings = common::checked(flags)?;
        let ams = settings.ams.clone().context("ams.url: missing: no AMS is configured that clusters could leave")?;
        let ledger = common::ledger(&settings).await?;
        Ok(Self { settings, ams, ledger, sources: common::sources() })
    }

    fn secrets(&self) -> anyhow::Result<ApiPullSecrets> {
        Ok(ApiPullSecrets::new(Client::new(self.settings.client.clone())?, self.ams.search.clone()))
    }

    fn shadow<'a>(&'a self, secrets: &'a ApiPullSecrets) -> Shadow<'a, ApiPullSecrets> {
        Shadow { ledger: &self.ledger, secrets, targets: &self.ams.targets, sources: &self.sources }
    }

    fn paced<'a>(&'a self, accounts: &'a AmsClient) -> Paced<'a, AmsClient, Sleep> {
        let pacing =
            Pacing { ledger: &self.ledger, sources: &self.sources, waits: &Sleep, per_minute: self.ams.per_minute };
        Paced { accounts, pacing }
    }

    async fn status(&self, cluster: Option<&str>) -> anyhow::Result<Vec<ClusterStatus>> {
        let (ledger, ams) = (&self.ledger, &self.ams);
        let found = status(ledger, &ams.targets, ams.compare_for, cluster, self.sources.now()).await?;
        if let Some(cluster) = cluster {
            ensure!(!found.is_empty(), "cluster {cluster} was not compared with AMS: run `credentials ams shadow`");
        }
        Ok(found)
    }
}

/// Runs a command of `credentials ams`.
pub(super) async fn ams(command: AmsCommand) -> anyhow::Result<ExitCode> {
    match command {
        AmsCommand::Import(arguments) => imported(arguments).await,
        AmsCommand::Shadow(arguments) => shadowed(arguments).await,
        AmsCommand::Status(arguments) => print_status(arguments).await,
        AmsCommand::Issue(arguments) => issued(arguments).await,
        AmsCommand::Move(arguments) => {
            let opened = Opened::new(CredentialsFlags(arguments.flags.0.clone())).await?;
            target(&opened.ams, &arguments.rules.registry)?;
            rotation::start(*arguments, true).await
        }
        AmsCommand::Retire(arguments) => retired(arguments).await,
        AmsCommand::Back(arguments) => taken_back(arguments).await,
    }
}

async fn imported(arguments: AmsArguments) -> anyhow::Result<ExitCode> {
    let opened = Opened::new(arguments.flags).await?;
    let (client, secrets) = (AmsClient::new(opened.ams.client.clone())?, opened.secrets()?);
    let parts = Import { accounts: opened.paced(&client), shadow: opened.shadow(&secrets) };
    let imported = import(&parts).await?;
    output::print(page::imported(&imported, arguments.output))?;
    output::note(if imported.is_proven() {
        "proven: the numbers agree, and every entry of every pull secret is known"
    } else {
        "not proven: see what is listed, then run the same command again"
    });
    Ok(if imported.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn shadowed(arguments: AmsArguments) -> anyhow::Result<ExitCode> {
    let opened = Opened::new(arguments.flags).await?;
    let secrets = opened.secrets()?;
    let compared = shadow(&opened.shadow(&secrets)).await?;
    output::print(page::shadowed(&compared, arguments.output))?;
    output::note(format_args!("{} clusters compared, {} differ", compared.clusters, compared.different.len()));
    Ok(if compared.different.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn print_status(arguments: AmsStatusArguments) -> anyhow::Result<ExitCode> {
    let opened = Opened::new(arguments.flags).await?;
    let mut found = opened.status(arguments.cluster.as_deref()).await?;
    found.retain(|one| arguments.phase.is_none_or(|phase| phase == one.phase));
    let import = opened.ledger.ams_import().await?;
    let has_details = arguments.cluster.is_some() || arguments.phase.is_some();
    Ok(output::print(page::status(&found, import.as_ref(), has_details, arguments.output))?)
}

async fn issued(arguments: AmsIssueArguments) -> anyhow::Result<ExitCode> {
    let AmsIssueArguments { registry, cluster, order, yes, output: format, flags } = arguments;
    let actor = common::actor(&order)?;
    let opened = Opened::new(flags).await?;
    let target = target(&opened.ams, &registry)?;
    let configured = opened.settings.registries.iter().find(|configured| configured.name == registry);
    let configured =
        configured.with_context(|| format!("registry {registry} is not configured: add it to `registries`"))?;
    let found = opened.status(cluster.as_deref()).await?;
    let ready = found.iter().filter(|one| one.phase >= Phase::Compared).count();
    if !yes {
        output::print(page::ready(ready, found.len(), format))?;
        output::note("nothing was changed: add --yes");
        return Ok(ExitCode::SUCCESS);
    }
    let statement = Statement { actor: &actor, reason: &order.reason, now: opened.sources.now() };
    let issued = issue(&opened.ledger, target, &configured.prefix, &opened.sources, &found, &statement).await?;
    output::print(page::issued(&issued, format))?;
    output::note("recorded: the service makes and probes them; nothing is published before `credentials ams move`");
    Ok(ExitCode::SUCCESS)
}

async fn retired(arguments: AmsRetireArguments) -> anyhow::Result<ExitCode> {
    let AmsRetireArguments { cluster, all: _all, attest_quiet, confirm, order, output: format, flags } = arguments;
    let actor = common::actor(&order)?;
    let opened = Opened::new(flags).await?;
    let (client, secrets) = (AmsClient::new(opened.ams.client.clone())?, opened.secrets()?);
    // A cluster that is new may have a credential of the account, too.
    shadow(&opened.shadow(&secrets)).await?;
    let clusters: BTreeMap<String, ClusterStatus> =
        opened.status(None).await?.into_iter().map(|one| (one.compared.cluster.id.clone(), one)).collect();
    let chosen: Vec<&ClusterStatus> = match &cluster {
        Some(id) => vec![clusters.get(id).with_context(|| format!("cluster {id} was not compared with AMS"))?],
        None => clusters.values().filter(|one| one.phase == Phase::Moved).collect(),
    };
    let mut registries = BTreeMap::new();
    for configured in &opened.settings.registries {
        registries.insert(configured.name.clone(), configured.connect()?);
    }
    let mut parts = Retirement {
        accounts: opened.paced(&client),
        secrets: &secrets,
        registries: &registries,
        targets: &opened.ams.targets,
        clusters: &clusters,
        is_attested: attest_quiet,
        deletes: false,
    };
    let statement = Statement { actor: &actor, reason: &order.reason, now: opened.sources.now() };
    let mut found = Vec::new();
    for one in &chosen {
        found.extend(retire(&parts, one, &statement).await?);
    }
    let number = deletable(&found);
    let expected = cluster.unwrap_or_else(|| format!("delete {number}"));
    let Some(confirm) = confirm else {
        output::print(page::retired(&found, format))?;
        output::note(format_args!(
            "nothing was deleted: {number} can be, for good, with --confirm '{expected}'; there is no way back"
        ));
        return Ok(ExitCode::SUCCESS);
    };
    if confirm.trim() != expected {
        bail!("--confirm: must be '{expected}': look at what would be deleted without it, then type that");
    }
    parts.deletes = true;
    let mut done = Vec::new();
    for one in &chosen {
        done.extend(retire(&parts, one, &statement).await?);
    }
    output::print(page::retired(&done, format))?;
    let is_all_deleted = done.iter().all(|one| one.is_deleted);
    Ok(if is_all_deleted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the number of credentials that nothing keeps from deletion.
fn deletable(found: &[Retired]) -> usize {
    let free = found.iter().filter(|one| one.obstacle.is_none() && !one.is_deleted);
    free.map(|one| &one.credential.id).collect::<BTreeSet<&Ksuid>>().len()
}

async fn taken_back(arguments: AmsBackArguments) -> anyhow::Result<ExitCode> {
    let AmsBackArguments { cluster, import: _import, yes, order, output: format, flags } = arguments;
    let actor = common::actor(&order)?;
    let opened = Opened::new(flags).await?;
    let statement = Statement { actor: &actor, reason: &order.reason, now: opened.sources.now() };
    let Some(cluster) = cluster else {
        let found = opened.status(None).await?;
        let own = found.iter().filter(|one| !one.own.is_empty()).count();
        ensure!(own == 0, "{own} clusters have a credential of our own: take each back first (`--cluster`)");
        if !yes {
            output::note(
                "nothing was changed: with --yes, clusters of AMS that the `search` of a registry finds get an account of the service \
                 at once; see first that each `search` finds none of them",
            );
            return Ok(output::print(page::status(&found, None, false, format))?);
        }
        opened.ledger.forget_ams().await?;
        output::note(
            "everything that was imported from AMS is forgotten: clusters that the `search` of a registry finds get an account \
             of the service from now on",
        );
        return Ok(output::print(page::status(&[], None, false, format))?);
    };
    let found = opened.status(Some(&cluster)).await?;
    let client = Client::new(opened.settings.client.clone())?;
    let clusters = ApiClusters::new(client, CLUSTER_TIMEOUT, CancellationToken::new());
    let parts = Back { ledger: &opened.ledger, clusters: &clusters, targets: &opened.ams.targets };
    for one in &found {
        back(&parts, one, &statement).await?;
    }
    let found = opened.status(Some(&cluster)).await?;
    Ok(output::print(page::status(&found, None, true, format))?)
}

fn target<'a>(ams: &'a CheckedAms, registry: &credentials::credential::RegistryName) -> anyhow::Result<&'a Target> {
    let found = ams.targets.iter().find(|target| target.registry == *registry);
    found.with_context(|| {
        format!("--registry: {registry} is not configured, or its host stays AMS's by `ams.keep_hosts`")
    })
}
