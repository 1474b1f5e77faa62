//! The demo of registry accounts: made, published, replaced, retired, revoked; a real registry says which of them pull.

mod scene;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use credentials::credential::Credential;
use credentials::reason::Reason;
use credentials::state::State;
use jiff::Timestamp;
use registry_account::CredentialId;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::printer::Printer;
use super::world::{CLUSTER, NAMESPACE, PROJECT, World};
use crate::credentials::QUIET;
use crate::fleet::{Clients, Places};

pub(crate) use scene::Scene;

/// The entry that the cluster has of its own: `demo-user` with an invented password.
const OWN: &str = r#"{"auths":{"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;

/// The world with its registry.
struct Story<'a> {
    world: World<'a>,
    scene: &'a Scene,
}

/// A credential that nodes use, and the pull secret that they have it from.
struct InUse {
    id: CredentialId,
    login: String,
    pull_secret: SecretSlice<u8>,
}

/// Runs the whole demo; fails with the step that did not complete in time.
pub(crate) async fn run(
    scene: &Scene,
    places: &Places,
    clients: &Clients,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let (quay, registry, image) = (scene.quay.url(), scene.registry.address(), scene.image());
    printer.note(&format!("API {}, Quay emulator {quay}; for development only", places.api))?;
    printer.note(&format!("distribution's registry {registry} takes Quay's tokens and has the image {image}"))?;
    printer.note(&format!("times are short here: an account counts as quiet {QUIET} after its last pull"))?;
    printer.leave_out(scene.calls());
    let story = Story { world: World::of(clients, &places.store).await?, scene };
    let first = story.given(printer).await?;
    let first = story.used(first, printer).await?;
    let second = story.replaced(&first, printer).await?;
    story.retired(&first, &second, printer).await?;
    story.revoked(&second, printer).await?;
    story.given_again(&second, printer).await?;
    printer.summary()
}

// === impl Story ===

impl Story<'_> {
    async fn given(&self, printer: &mut Printer) -> anyhow::Result<Credential> {
        printer.chapter("A new cluster gets an account of its own")?;
        let spec = json!({
            "provider": self.world.provider(),
            "gcp": { "projectId": PROJECT, "region": "us-east1" },
            "pullSecret": { "data": OWN },
        });
        self.world.create(&spec).await?;
        printer.note(&format!("{CLUSTER} is created; its pull secret has an entry for registry.redhat.io"))?;
        let credential = self.published(None, printer).await?;
        printer.done_with_calls("an account, permitted, tried, published", self.scene.calls())?;
        Ok(credential)
    }

    async fn used(&self, credential: Credential, printer: &mut Printer) -> anyhow::Result<InUse> {
        printer.chapter("Nodes pull with it")?;
        self.world.place().await?;
        printer.note(
            "evidence of adoption: the adapter's report and a pull; what nodes have is renounced (policy.nodes)",
        )?;
        let used = self.adopted(&credential, printer).await?;
        printer.done_with_calls("the registry serves it; adopted by evidence", self.scene.calls())?;
        Ok(used)
    }

    async fn replaced(&self, old: &InUse, printer: &mut Printer) -> anyhow::Result<InUse> {
        printer.chapter("It is replaced: two are good at a time")?;
        self.scene.order(printer, &["replace", &old.id.to_string(), "--reason", "yearly"]).await?;
        let credential = self.published(Some(old.id), printer).await?;
        self.pulls(&old.login, &old.pull_secret, "nodes that have the old pull secret still pull", printer).await?;
        let new = self.adopted(&credential, printer).await?;
        self.pulls(&old.login, &old.pull_secret, "the old one is good until it is retired", printer).await?;
        printer.done_with_calls("another account, adopted by evidence", self.scene.calls())?;
        Ok(new)
    }

    async fn retired(&self, old: &InUse, new: &InUse, printer: &mut Printer) -> anyhow::Result<()> {
        printer.chapter("The old one is retired")?;
        let asks = |found: &Credential| found.id == old.id && found.reason == Reason::AwaitingApproval;
        let Credential { reason, .. } = self.scene.until("the request for approval", asks).await?;
        printer.note(&format!("no pull as {} for {QUIET}; {reason}:", old.login))?;
        printer.quote(reason.meaning())?;
        self.scene.order(printer, &["retire", &old.id.to_string(), "--reason", "yearly"]).await?;
        let gone = self.until_dead(old).await?;
        let ordered = gone.record.order.as_ref().map(|order| order.at);
        printer.note(&format!(
            "{}: deleted {} after the order, its password refused {} after it",
            old.login,
            after(ordered, gone.record.deleted),
            after(ordered, gone.record.dead),
        ))?;
        self.is_refused(old, printer).await?;
        self.pulls(&new.login, &new.pull_secret, "nodes pull", printer).await?;
        printer.done_with_calls("the old password is refused, the new one pulls", self.scene.calls())
    }

    async fn revoked(&self, leaked: &InUse, printer: &mut Printer) -> anyhow::Result<()> {
        printer.chapter("A password has leaked: revoked at once, whatever uses it")?;
        let order = ["revoke", "--cluster", CLUSTER, "--reason", "token leaked"];
        self.scene.order(printer, &[&order[..], &["--yes"]].concat()).await?;
        self.until_dead(leaked).await?;
        let shown = self.scene.order(printer, &[&order[..], &["--output", "json"]].concat()).await?;
        let shown: Value = serde_json::from_str(&shown).context("pull-secret credentials revoke --output json")?;
        let id = leaked.id.to_string();
        let found = shown.as_array().into_iter().flatten().find(|one| one.get("id").is_some_and(|found| *found == *id));
        let time = |pointer: &str| -> Option<Timestamp> { found?.pointer(pointer)?.as_str()?.parse().ok() };
        let (ordered, deleted, refused) = (time("/record/order/at"), time("/record/deleted"), time("/refusedAt"));
        let until = time("/tokensGoodUntil").context("there is no time until which tokens are good")?;
        let is_measured = ordered < deleted && deleted <= refused;
        self.world.check("order, deletion and refusal follow each other", ordered.is_some() && is_measured)?;
        printer.note(&format!(
            "{} of {}: deleted {} after the order",
            leaked.login,
            CLUSTER,
            after(ordered, deleted)
        ))?;
        printer.note(&format!("its password: refused {} after the order", after(ordered, refused)))?;
        printer.note(&format!("tokens that Quay issued before: good until {until:.0} at most"))?;
        self.is_refused(leaked, printer).await?;
        printer.done_with_calls("deleted and refused; no node pulls", self.scene.calls())
    }

    async fn given_again(&self, revoked: &InUse, printer: &mut Printer) -> anyhow::Result<()> {
        printer.chapter("The cluster gets another one")?;
        self.scene.order(printer, &["replace", &revoked.id.to_string(), "--reason", "token leaked"]).await?;
        let credential = self.published(Some(revoked.id), printer).await?;
        self.adopted(&credential, printer).await?;
        printer.done_with_calls("nodes pull again", self.scene.calls())
    }

    /// Waits until the account of the cluster that replaces another one is published.
    async fn published(&self, replaces: Option<CredentialId>, printer: &Printer) -> anyhow::Result<Credential> {
        let is_published = |found: &Credential| found.replaces == replaces && found.state == State::Published;
        let credential = self.scene.until("the publication", is_published).await?;
        let record = &credential.record;
        let login = login(&credential)?;
        printer
            .note(&format!("{login} is made at Quay, a member of the team that may pull, and tried as a node would"))?;
        printer.note(&format!("it is in the pull secret of {CLUSTER}: generation {}", record.generation))?;
        Ok(credential)
    }

    /// Has the fleet plane apply the pull secret, pulls with it as a node, and waits for the evidence of adoption.
    async fn adopted(&self, credential: &Credential, printer: &Printer) -> anyhow::Result<InUse> {
        let (id, generation) = (credential.id, credential.record.generation);
        self.world.report_all(generation).await?;
        self.world.until_available(generation).await?;
        printer.note(&format!(
            "the adapter reports Available=True: its Job has stored and applied generation {generation}"
        ))?;
        let pull_secret = self.world.applied_content().await?.context("the Kubernetes Secret is not there")?;
        self.check_entries(pull_secret.expose_secret())?;
        let used = InUse { id, login: login(credential)?, pull_secret };
        let place = format!("the Kubernetes Secret in {NAMESPACE} has it beside the cluster's own entry");
        self.pulls(&used.login, &used.pull_secret, &place, printer).await?;
        let is_adopted = |found: &Credential| found.id == id && found.state == State::Adopted;
        self.scene.until("the evidence of adoption", is_adopted).await?;
        let page = self.scene.order(printer, &["show", &id.to_string()]).await?;
        let mut evidence = page.lines().filter(|line| line.starts_with("STATE") || line.starts_with("EVIDENCE"));
        evidence.try_for_each(|line| printer.quote(line))?;
        Ok(used)
    }

    /// Checks that the pull secret has the registry's entry and the cluster's own, unchanged.
    fn check_entries(&self, pull_secret: &[u8]) -> anyhow::Result<()> {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let own = parse(OWN.as_bytes());
        let entry = |document: &Value| document.pointer("/auths/registry.redhat.io").cloned();
        let applied = parse(pull_secret);
        let hosts: Vec<&String> =
            applied.get("auths").and_then(Value::as_object).into_iter().flat_map(|auths| auths.keys()).collect();
        self.world.check("the cluster's own entry is as it was", entry(&applied) == entry(&own))?;
        let host = self.scene.registry.address().to_string();
        self.world.check("there is one entry beside it", hosts.len() == 2 && hosts.contains(&&host))
    }

    /// Pulls, which must succeed.
    async fn pulls(
        &self,
        login: &str,
        pull_secret: &SecretSlice<u8>,
        what: &str,
        printer: &Printer,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        let refusal = self.scene.pull(pull_secret.expose_secret()).await?;
        ensure!(refusal.is_none(), "{login} cannot pull: {}", refusal.unwrap_or_default());
        printer.note(&format!("{what}: skopeo pulls as {login} in {}", seconds(began.elapsed())))
    }

    /// Pulls, which must be refused; shows the registry's words.
    async fn is_refused(&self, old: &InUse, printer: &Printer) -> anyhow::Result<()> {
        let refusal = self.scene.pull(old.pull_secret.expose_secret()).await?;
        let refusal = refusal.with_context(|| format!("the registry still serves {}", old.login))?;
        printer.note(&format!("skopeo cannot pull as {}:", old.login))?;
        printer.quote(&refusal)?;
        self.world.check("the password is refused, and nothing else is wrong", refusal.contains("unauthorized"))
    }

    async fn until_dead(&self, used: &InUse) -> anyhow::Result<Credential> {
        let is_dead = |found: &Credential| found.id == used.id && found.state == State::Dead;
        self.scene.until("the refusal of the password", is_dead).await
    }
}

fn login(credential: &Credential) -> anyhow::Result<String> {
    credential.record.login.clone().context("the account has no login")
}

/// The time from an order to what it has led to.
fn after(ordered: Option<Timestamp>, at: Option<Timestamp>) -> String {
    let took = ordered.zip(at).map(|(ordered, at)| at.duration_since(ordered).try_into().unwrap_or_default());
    took.map_or_else(|| "at an unknown time".to_owned(), seconds)
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}
