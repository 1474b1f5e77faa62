//! The next step for each reason: a hint in the words of a fleet, and the commands.

use fleet_model::ClusterId;
use fleet_model::copy::StoredCopy;
use fleet_model::job::{MIRROR_FAILED, Reason};
use fleet_model::names;
use hyperfleet_client::{Resource, Status};
use serde_json::Value;

use super::message::operation;
use crate::facts::Facts;

/// The next step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) hint: Option<String>,
    pub(super) commands: Vec<String>,
}

/// The objects that a run of a cluster works on.
#[derive(Debug)]
struct Objects {
    id: String,
    project: String,
    secret: String,
    /// The place of the stored secret, if it is not at Google.
    elsewhere: Option<Elsewhere>,
    namespace: String,
    kubernetes_secret: String,
    job_namespace: String,
    job: String,
}

/// A text as one word of a shell, as names in a spec are chosen by others.
fn word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The next step after a run has failed with a reason and a message.
pub(super) fn after(reason: Reason, message: &str, cluster: &Resource, facts: &Facts) -> Step {
    let objects = Objects::of(cluster, facts);
    let is_kubernetes = operation(message)
        .is_some_and(|operation| operation.contains("Kubernetes") && !operation.starts_with(MIRROR_FAILED));
    let mut step = if is_kubernetes { objects.in_kubernetes(reason) } else { objects.in_store(reason, cluster) };
    let needs_retry = matches!(reason.exit_code(), 2 | 4 | 5 | 6) && !cluster.is_deleting();
    if needs_retry && !step.commands.is_empty() {
        step.commands.push(format!("pull-secret retry {} --yes", objects.id));
    }
    step
}

/// The step where another process deletes or changes the Kubernetes Secret.
pub(super) fn after_drift(cluster: &Resource, facts: &Facts) -> Step {
    let Objects { namespace, kubernetes_secret, .. } = Objects::of(cluster, facts);
    let hint =
        "find out who deletes or changes it, such as a GitOps tool that prunes; the cluster's audit log names the user";
    let show = format!(
        "kubectl --namespace {namespace} get secret {kubernetes_secret} --show-managed-fields --output jsonpath='{{.metadata}}'"
    );
    Step {
        hint: Some(hint.to_owned()),
        commands: vec![format!("kubectl events --namespace {namespace} --for secret/{kubernetes_secret}"), show],
    }
}

/// The step where the namespace of the Kubernetes Secret does not exist.
pub(super) fn without_namespace(namespace: &str) -> Step {
    Step {
        hint: Some("placement creates it; if it was deleted by hand, create it again".to_owned()),
        commands: vec![format!("kubectl create namespace {}", word(namespace))],
    }
}

/// The step where the Job does not end.
pub(super) fn while_running(cluster: &Resource, facts: &Facts, is_started: bool) -> Step {
    let Objects { job_namespace, job, .. } = Objects::of(cluster, facts);
    let command = if is_started {
        format!("kubectl --namespace {job_namespace} logs job/{job} --follow")
    } else {
        format!("kubectl --namespace {job_namespace} describe pods --selector job-name={job}")
    };
    Step { hint: None, commands: vec![command] }
}

/// The step where the Secret that `spec.pullSecret.secretRef` names cannot be used.
pub(super) fn for_reference(cluster: &Resource, message: &str) -> Option<Step> {
    let text = |member: &str| {
        let value = cluster.spec.pointer(&format!("/pullSecret/secretRef/{member}"))?;
        value.as_str().filter(|text| !text.is_empty()).map(word)
    };
    let (namespace, name) = (text("namespace")?, text("name")?);
    let key = text("key").unwrap_or_else(|| kubernetes::secret::DOCKER_CONFIG_JSON_KEY.to_owned());
    let kubectl = format!("kubectl --namespace {namespace}");
    let allow = format!("{kubectl} annotate secret {name} {}={}", names::ANNOTATION_CONSENT, cluster.id);
    let (hint, commands) = if message.contains("it does not exist") {
        let create = format!("{kubectl} create secret generic {name} --from-file={key}=FILE");
        ("create the Secret that spec.pullSecret.secretRef names, or correct the reference", vec![create, allow])
    } else if message.contains("it has no key") {
        let show = format!("{kubectl} describe secret {name}");
        ("name one of its keys in spec.pullSecret.secretRef.key, or add the key to the Secret", vec![show])
    } else if message.contains("it does not allow this cluster") {
        ("the Secret's owner allows it; several clusters are separated by commas", vec![allow])
    } else {
        return None;
    };
    Some(Step { hint: Some(hint.to_owned()), commands })
}

/// The step where the cluster waits for another adapter.
pub(super) fn for_adapter(adapter: &str) -> Step {
    Step {
        hint: Some(format!(
            "look at the adapter {adapter}: its log names this cluster; see how many clusters wait for it"
        )),
        commands: vec!["pull-secret status --why".to_owned()],
    }
}

/// The step where the pull secret itself is invalid.
fn for_invalid(cluster: &Resource) -> Step {
    let reference =
        |member: &str| cluster.spec.pointer(&format!("/pullSecret/secretRef/{member}")).and_then(Value::as_str);
    let (Some(namespace), Some(name)) = (reference("namespace"), reference("name")) else {
        let hint = "correct spec.pullSecret.data of the cluster; check the file first";
        return Step { hint: Some(hint.to_owned()), commands: vec!["pull-secret validate FILE".to_owned()] };
    };
    let key = reference("key").unwrap_or(kubernetes::secret::DOCKER_CONFIG_JSON_KEY);
    let hint = format!("correct the key {key} of Secret {namespace}/{name}; a change starts another Job at once");
    if word(key) != key {
        return Step { hint: Some(hint), commands: Vec::new() };
    }
    let (namespace, name) = (word(namespace), word(name));
    let content = format!("--output go-template='{{{{index .data \"{key}\" | base64decode}}}}'");
    Step {
        hint: Some(hint),
        commands: vec![format!("kubectl --namespace {namespace} get secret {name} {content} | pull-secret validate -")],
    }
}

/// A secret that is not at Google, as the store's own command line takes it.
#[derive(Debug)]
enum Elsewhere {
    /// For `bao kv`.
    Vault(String),
    /// For `aws secretsmanager`.
    Aws(String),
    /// For `az keyvault secret`.
    Azure(String),
}

/// A secret in a folder as one word of a shell.
fn path(folder: &str, name: &str) -> String {
    let parts: Vec<_> = folder.split('/').chain([name]).map(word).collect();
    parts.join("/")
}

/// The step after a failure in OpenBao or Vault, of a secret as `bao kv` takes it.
fn in_vault(reason: Reason, path: &str) -> Step {
    let hinted = |hint: &str, command: String| Step { hint: Some(hint.to_owned()), commands: vec![command] };
    match reason {
        Reason::PermissionDenied => hinted(
            "give the Job's role a policy for this secret; docs/guides/providers/openbao.md has the least one",
            "bao policy list".to_owned(),
        ),
        Reason::Unauthenticated => hinted(
            "let the auth method accept the Job's service account: its role, bound name and namespace, and audience",
            "bao auth list".to_owned(),
        ),
        Reason::NameConflict | Reason::DifferentIncarnation => hinted(
            "the secret is unmanaged or another cluster's: delete it if its owner does not need it, or set \
             spec.pullSecret.secretName of the cluster to another name",
            format!("bao kv metadata get {path}"),
        ),
        Reason::StoreUnavailable | Reason::QuotaExceeded => {
            Step { hint: None, commands: vec!["bao status".to_owned()] }
        }
        _ => Step::default(),
    }
}

/// The step after a failure at AWS, of a secret as `aws secretsmanager` takes it.
fn at_aws(reason: Reason, secret: &str) -> Step {
    let hinted = |hint: &str, command: String| Step { hint: Some(hint.to_owned()), commands: vec![command] };
    match reason {
        Reason::PermissionDenied => hinted(
            "give the Job's role a policy for this secret; docs/guides/providers/aws.md has the least one",
            "aws sts get-caller-identity".to_owned(),
        ),
        Reason::Unauthenticated => hinted(
            "let the role trust the Job's service account: its issuer, subject and audience",
            "aws sts get-caller-identity".to_owned(),
        ),
        Reason::NameConflict | Reason::DifferentIncarnation => hinted(
            "the secret is unmanaged or another cluster's: delete it if its owner does not need it, or set \
             spec.pullSecret.secretName of the cluster to another name",
            format!("aws secretsmanager describe-secret {secret}"),
        ),
        Reason::StoreUnavailable | Reason::QuotaExceeded => {
            Step { hint: None, commands: vec![format!("aws secretsmanager describe-secret {secret}")] }
        }
        _ => Step::default(),
    }
}

/// The step after a failure at Azure, of a secret as `az keyvault secret` takes it.
fn at_azure(reason: Reason, secret: &str) -> Step {
    let hinted = |hint: &str, command: String| Step { hint: Some(hint.to_owned()), commands: vec![command] };
    match reason {
        Reason::PermissionDenied => hinted(
            "give the Job's identity a role for the vault; docs/guides/providers/azure.md has the least one",
            "az role assignment list --all --assignee CLIENT_ID".to_owned(),
        ),
        Reason::Unauthenticated => hinted(
            "let the identity trust the Job's service account: a federated credential with its issuer, subject and audience",
            "az identity federated-credential list --identity-name NAME --resource-group GROUP".to_owned(),
        ),
        Reason::NameConflict | Reason::DifferentIncarnation => hinted(
            "the secret is unmanaged or another cluster's: delete it if its owner does not need it, or set \
             spec.pullSecret.secretName of the cluster to another name",
            format!("az keyvault secret show {secret} --query tags"),
        ),
        Reason::StoreUnavailable | Reason::QuotaExceeded => {
            Step { hint: None, commands: vec![format!("az keyvault secret show {secret} --query attributes")] }
        }
        _ => Step::default(),
    }
}

// === impl Objects ===

impl Objects {
    /// As the report lists them, or else as a run of the cluster would name them.
    fn of(cluster: &Resource, facts: &Facts) -> Self {
        let id = cluster.id.clone();
        let project = cluster.spec.pointer("/gcp/projectId").and_then(Value::as_str).unwrap_or("PROJECT").to_owned();
        let (job_namespace, job) = facts.observed.job_key.clone().unwrap_or_else(|| {
            let run = facts.report.as_ref().and_then(|report| report.metadata.as_ref());
            let namespace = run.and_then(|run| run.job_namespace.clone());
            let job = run.and_then(|run| run.job_name.clone());
            let name = || names::run_name(names::ADAPTER, &id, cluster.generation);
            (namespace.unwrap_or_else(|| "NAMESPACE".to_owned()), job.unwrap_or_else(name))
        });
        let named = |name: fn(&ClusterId) -> String| id.parse().map(|id| name(&id)).unwrap_or_default();
        let mut objects = Self {
            secret: named(names::secret_name),
            elsewhere: None,
            namespace: "NAMESPACE".to_owned(),
            kubernetes_secret: named(names::kubernetes_secret_name),
            id,
            project,
            job_namespace,
            job,
        };
        let mut copies = facts.copies();
        // The last one counts: the one that the report names as stored, or after a failure the one to which it has not come. The
        // mirror's counts if it is the mirror that has failed.
        let report = facts.report.as_ref();
        let available = report.and_then(|report| report.condition(names::condition::AVAILABLE));
        let has_failed = available.is_some_and(|available| available.status == Status::False);
        let message = available.and_then(|available| available.message.as_deref()).unwrap_or_default();
        let is_of_mirror = message.contains(MIRROR_FAILED);
        let mirror = report.and_then(|report| StoredCopy::of_mirror(&report.data));
        copies.sort_by_key(|copy| {
            ((mirror.as_ref() == Some(copy)) == is_of_mirror, facts.names_as_stored(copy) != has_failed)
        });
        for copy in copies {
            match copy {
                StoredCopy::Secret { project, name, .. } => {
                    (objects.project, objects.secret, objects.elsewhere) = (project, name, None);
                }
                StoredCopy::VaultSecret { namespace, mount, folder, name, .. } => {
                    let namespace = namespace.map(|namespace| format!("-namespace={} ", word(&namespace)));
                    let path =
                        format!("{}-mount={} {}", namespace.unwrap_or_default(), word(&mount), path(&folder, &name));
                    (objects.elsewhere, objects.secret) = (Some(Elsewhere::Vault(path)), name);
                }
                StoredCopy::AwsSecret { region, folder, name } => {
                    let secret = format!("--secret-id {} --region {}", path(&folder, &name), word(&region));
                    (objects.elsewhere, objects.secret) = (Some(Elsewhere::Aws(secret)), name);
                }
                StoredCopy::AzureSecret { vault, name } => {
                    let secret = format!("--id {}", word(&format!("{vault}/secrets/{name}")));
                    (objects.elsewhere, objects.secret) = (Some(Elsewhere::Azure(secret)), name);
                }
                StoredCopy::KubernetesSecret { namespace, name } => {
                    (objects.namespace, objects.kubernetes_secret) = (namespace, name);
                }
            }
        }
        let Self { id, project, secret, elsewhere, namespace, kubernetes_secret, job_namespace, job } = objects;
        let [id, project, secret, namespace, kubernetes_secret, job_namespace, job] =
            [id, project, secret, namespace, kubernetes_secret, job_namespace, job].map(|name| word(&name));
        Self { id, project, secret, elsewhere, namespace, kubernetes_secret, job_namespace, job }
    }

    /// The step after a failure in the secret store, or before it.
    fn in_store(&self, reason: Reason, cluster: &Resource) -> Step {
        match (&self.elsewhere, reason) {
            (_, Reason::InvalidPullSecret) => for_invalid(cluster),
            (Some(Elsewhere::Vault(path)), reason) => in_vault(reason, path),
            (Some(Elsewhere::Aws(secret)), reason) => at_aws(reason, secret),
            (Some(Elsewhere::Azure(secret)), reason) => at_azure(reason, secret),
            (None, reason) => self.at_google(reason),
        }
    }

    /// The step after a failure at Google.
    fn at_google(&self, reason: Reason) -> Step {
        let Self { project, secret, .. } = self;
        let hinted = |hint: &str, command: String| Step { hint: Some(hint.to_owned()), commands: vec![command] };
        let command = |command: String| Step { hint: None, commands: vec![command] };
        match reason {
            Reason::PermissionDenied => command(format!(
                "gcloud projects add-iam-policy-binding {project} --role roles/secretmanager.admin --member serviceAccount:ACCOUNT"
            )),
            Reason::ApiDisabled => {
                command(format!("gcloud services enable secretmanager.googleapis.com --project {project}"))
            }
            Reason::QuotaExceeded => command(format!(
                "gcloud alpha services quota list --service secretmanager.googleapis.com --consumer projects/{project}"
            )),
            Reason::NameConflict | Reason::DifferentIncarnation => hinted(
                &format!(
                    "secret {secret} of project {project} is unmanaged or another cluster's: delete it if its owner does not \
                     need it, or set spec.pullSecret.secretName of the cluster to another name"
                ),
                format!("gcloud secrets describe {secret} --project {project}"),
            ),
            Reason::InvalidConfiguration => Step {
                hint: Some(format!("correct the cluster's spec in the API; spec.gcp.projectId is {project}")),
                commands: Vec::new(),
            },
            Reason::Unauthenticated => command(format!(
                "kubectl --namespace {} describe serviceaccount pullsecret-adapter-job",
                self.job_namespace
            )),
            Reason::StoreUnavailable => command(format!("gcloud secrets list --project {project} --limit 1")),
            _ => Step::default(),
        }
    }

    /// The step after a failure in Kubernetes.
    fn in_kubernetes(&self, reason: Reason) -> Step {
        let Self { namespace, kubernetes_secret, .. } = self;
        let kubectl = format!("kubectl --namespace {namespace}");
        let command = |command: String| Step { hint: None, commands: vec![command] };
        match reason {
            Reason::PermissionDenied => command(format!(
                "{kubectl} auth can-i create secrets --as system:serviceaccount:{}:pullsecret-adapter-job",
                self.job_namespace
            )),
            Reason::NameConflict | Reason::DifferentIncarnation => Step {
                hint: Some(format!(
                    "Kubernetes Secret {namespace}/{kubernetes_secret} is unmanaged or another cluster's: delete it if its owner \
                     does not need it, or set spec.pullSecret.k8sSecretName of the cluster to another name"
                )),
                commands: vec![format!("{kubectl} describe secret {kubernetes_secret}")],
            },
            Reason::SecretImmutable => command(format!("{kubectl} delete secret {kubernetes_secret}")),
            Reason::NamespaceMissing => without_namespace(namespace),
            Reason::NamespaceTerminating => command(format!("kubectl get namespace {namespace} --output yaml")),
            Reason::NamespaceQuotaExceeded => command(format!("{kubectl} describe resourcequotas")),
            Reason::AdmissionDenied => command(
                "kubectl get validatingwebhookconfigurations,validatingadmissionpolicies,mutatingwebhookconfigurations"
                    .to_owned(),
            ),
            _ => Step::default(),
        }
    }
}
