//! Values that the charts refuse.

use rstest::rstest;

use crate::helm::Helm;

#[rstest]
#[case::unknown("pull-secret", "imgae.tag=1", "additional properties 'imgae' not allowed")]
#[case::unknown_below("pull-secret", "api.replica=1", "at '/api': additional properties 'replica' not allowed")]
#[case::number("pull-secret", "api.replicas=two", "at '/api/replicas': got string, want integer")]
#[case::choice(
    "pull-secret",
    "broker.type=kafka",
    "at '/broker/type': value must be one of 'rabbitmq', 'googlepubsub'"
)]
#[case::digest("pull-secret", "image.digest=sha256:1", "at '/image/digest'")]
#[case::account(
    "pull-secret",
    "jobs.serviceAccount.gcpServiceAccount=someone@example.com",
    "at '/jobs/serviceAccount/gcpServiceAccount'"
)]
#[case::namespace("pull-secret", "jobs.namespace=A_B", "at '/jobs/namespace'")]
#[case::schedule("pull-secret", "sweep.schedule=daily", "at '/sweep/schedule'")]
#[case::no_key("pull-secret", "api.encryptionKeys.ids=null", "at '/api/encryptionKeys': missing property 'ids'")]
#[case::verb(
    "pull-secret",
    "api.grants[0].issuer=https://i,api.grants[0].subject=s,api.grants[0].kinds={Cluster},api.grants[0].verbs={read}",
    "at '/api/grants/0/verbs/0'"
)]
#[case::grant_for_all(
    "pull-secret",
    "api.grants[0].issuer=https://i,api.grants[0].kinds={Cluster}",
    "at '/api/grants/0'"
)]
#[case::plain_http("pull-secret", "api.enabled=false,api.url=http://api.example.com", "at '/api/url'")]
#[case::no_address("pull-secret", "api.enabled=false", "api.url: needed where api.enabled is false")]
#[case::no_project(
    "pull-secret",
    "broker.type=googlepubsub",
    "broker.googleProject: needed where broker.type is googlepubsub"
)]
#[case::no_swept_project(
    "pull-secret",
    "sweep.enabled=true",
    "sweep.project: needed where sweep.enabled is true and sweep.store is google"
)]
#[case::swept_project_elsewhere(
    "pull-secret",
    "sweep.enabled=true,sweep.store=vault,sweep.project=p",
    "sweep.project: has no effect where sweep.store is not google"
)]
#[case::swept_store("pull-secret", "sweep.store=oracle", "at '/sweep/store'")]
#[case::collector("pull-secret", "tracing.endpoint=grpc://collector:4317", "at '/tracing/endpoint'")]
#[case::credential("global-pull-secret", "tracing.endpoint=http://user:word@collector", "at '/tracing/endpoint'")]
#[case::sampler("pull-secret", "tracing.sampler=xray", "at '/tracing/sampler': value must be one of")]
#[case::half_a_source(
    "global-pull-secret",
    "sourceSecret.name=a",
    "sourceSecret.namespace: needed with sourceSecret.name"
)]
#[case::root("pull-secret", "podSecurityContext.runAsNonRoot=false", "at '/podSecurityContext/runAsNonRoot'")]
#[case::part("global-pull-secret", "part=both", "at '/part': value must be one of")]
#[case::place("global-pull-secret", "part=hosted-cluster", "belongs into kube-system of the hosted cluster")]
#[case::unknown_of_global("global-pull-secret", "replicas=2", "additional properties 'replicas' not allowed")]
#[case::variable_without_value("pull-secret", "api.extraEnv[0].name=A", "at '/api/extraEnv/0'")]
#[case::volume_without_source("pull-secret", "sentinel.extraVolumes[0].name=a", "at '/sentinel/extraVolumes/0'")]
#[case::relative_mount(
    "global-pull-secret",
    "extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=a",
    "at '/extraVolumeMounts/0/mountPath'"
)]
#[case::label_of_the_chart(
    "pull-secret",
    "api.service.labels.app\\.kubernetes\\.io/name=a",
    "at '/api/service/labels/"
)]
#[case::key("pull-secret", "tls.caKey=a/b", "at '/tls/caKey'")]
#[case::no_host(
    "pull-secret",
    "api.ingress.enabled=true",
    "api.ingress.hosts: needed where api.ingress.enabled is true"
)]
#[case::ingress_to_nothing(
    "pull-secret",
    "api.enabled=false,api.url=https://a,api.ingress.enabled=true",
    "api.ingress.enabled: there is no API to lead to"
)]
#[case::route_to_nothing(
    "pull-secret",
    "api.enabled=false,api.url=https://a,api.route.enabled=true",
    "api.route.enabled: there is no API to lead to"
)]
#[case::edge("pull-secret", "api.route.termination=edge", "at '/api/route/termination': value must be one of")]
#[case::private_key(
    "pull-secret",
    "api.route.destinationCACertificate=-----BEGIN PRIVATE KEY-----",
    "at '/api/route/destinationCACertificate'"
)]
#[case::certificate_and_private_key(
    "pull-secret",
    "api.route.destinationCACertificate=-----BEGIN CERTIFICATE-----MA==-----END CERTIFICATE----- -----BEGIN PRIVATE KEY-----MA==-----END PRIVATE KEY-----",
    "at '/api/route/destinationCACertificate'"
)]
#[case::half_a_certificate(
    "pull-secret",
    "api.route.destinationCACertificate=-----BEGIN CERTIFICATE-----MA==",
    "at '/api/route/destinationCACertificate'"
)]
#[case::verified_by_none(
    "pull-secret",
    "api.route.enabled=true,api.route.termination=passthrough,api.route.destinationCACertificate=-----BEGIN CERTIFICATE-----MA==-----END CERTIFICATE-----",
    "api.route.destinationCACertificate: has no effect"
)]
#[case::account_without_namespace(
    "pull-secret",
    "rotation.enabled=true,rotation.subjects[0].kind=ServiceAccount,rotation.subjects[0].name=a",
    "at '/rotation/subjects/0': missing property 'namespace'"
)]
#[case::subject_of_nothing(
    "pull-secret",
    "rotation.subjects[0].kind=Group,rotation.subjects[0].name=a",
    "rotation.subjects: have no effect"
)]
#[case::no_registry(
    "pull-secret",
    "credentials.enabled=true",
    "credentials.registries: needed where credentials.enabled is true"
)]
#[case::registry_without_token(
    "pull-secret",
    "credentials.registries[0].name=a",
    "at '/credentials/registries/0': missing properties 'type', 'url', 'image'"
)]
#[case::token_of_a_registry(
    "pull-secret",
    "credentials.registries[0].token=a",
    "at '/credentials/registries/0': additional properties 'token' not allowed"
)]
#[case::quay_without_token(
    "pull-secret",
    "credentials.registries[0].type=quay",
    "at '/credentials/registries/0': missing properties 'organization', 'team', 'tokenSecret'"
)]
#[case::harbor_without_password(
    "pull-secret",
    "credentials.registries[0].type=harbor",
    "at '/credentials/registries/0': missing properties 'project', 'username', 'passwordSecret'"
)]
#[case::team_of_a_harbor(
    "pull-secret",
    "credentials.registries[0].type=harbor,credentials.registries[0].team=a",
    "at '/credentials/registries/0/team'"
)]
#[case::gar_without_service_account(
    "pull-secret",
    "credentials.registries[0].type=gar",
    "at '/credentials/registries/0': missing property 'service_account'"
)]
#[case::ecr_without_role(
    "pull-secret",
    "credentials.registries[0].type=ecr",
    "at '/credentials/registries/0': missing properties 'region', 'role'"
)]
#[case::acr_without_application(
    "pull-secret",
    "credentials.registries[0].type=acr",
    "at '/credentials/registries/0': missing properties 'tenant_id', 'client_id'"
)]
#[case::token_of_an_acr(
    "pull-secret",
    "credentials.registries[0].type=acr,credentials.registries[0].tokenSecret.name=a",
    "at '/credentials/registries/0/tokenSecret'"
)]
#[case::red_hat_without_certificate(
    "pull-secret",
    "credentials.registries[0].type=red_hat",
    "at '/credentials/registries/0': missing properties 'partner', 'certificateSecretName'"
)]
#[case::partner(
    "pull-secret",
    "credentials.registries[0].type=red_hat,credentials.registries[0].partner=hyperfleet/eu",
    "at '/credentials/registries/0/partner'"
)]
#[case::token_of_a_red_hat(
    "pull-secret",
    "credentials.registries[0].type=red_hat,credentials.registries[0].tokenSecret.name=a",
    "at '/credentials/registries/0/tokenSecret'"
)]
#[case::certificate_of_a_quay(
    "pull-secret",
    "credentials.registries[0].type=quay,credentials.registries[0].certificateSecretName=a",
    "at '/credentials/registries/0/certificateSecretName'"
)]
#[case::pool_of_tokens(
    "pull-secret",
    "credentials.registries[0].type=gar,credentials.registries[0].pool=3",
    "at '/credentials/registries/0/pool'"
)]
#[case::plain_registry(
    "pull-secret",
    "credentials.registries[0].url=http://quay.example.com",
    "at '/credentials/registries/0/url'"
)]
#[case::policy_of_a_registry(
    "pull-secret",
    "credentials.registries[0].policy.retire=never",
    "at '/credentials/registries/0/policy/retire': value must be one of 'manual', 'when_adopted'"
)]
#[case::peer("pull-secret", "networkPolicies.apiClients[0].cidr=10.0.0.0/8", "at '/networkPolicies/apiClients/0'")]
#[case::account_by_another_name(
    "pull-secret",
    "rotation.enabled=true,rotation.subjects[0].kind=ServiceAccount,rotation.subjects[0].name=A B,rotation.subjects[0].namespace=a",
    "at '/rotation/subjects/0/name'"
)]
#[case::variable_of_a_job_from_a_source(
    "pull-secret",
    "jobs.extraEnv[0].name=A,jobs.extraEnv[0].valueFrom.fieldRef.fieldPath=metadata.name",
    "at '/jobs/extraEnv/0'"
)]
#[case::variable_of_a_job_without_value("pull-secret", "jobs.extraEnv[0].name=A", "at '/jobs/extraEnv/0'")]
#[case::variable_of_a_job_in_small_letters(
    "pull-secret",
    "jobs.extraEnv[0].name=no_proxy,jobs.extraEnv[0].value=a",
    "at '/jobs/extraEnv/0/name'"
)]
#[case::key_of_cert_manager(
    "pull-secret",
    "tls.certManager.enabled=true,tls.caKey=service-ca.crt",
    "tls.caKey: cert-manager's Secret has the authority as ca.crt"
)]
#[case::pod_monitor_of_the_control_plane(
    "global-pull-secret",
    "monitoring.podMonitor.enabled=true",
    "monitoring.podMonitor.enabled: the node agents are in the hosted cluster"
)]
fn wrong_values_are_refused(#[case] chart: &str, #[case] value: &str, #[case] expected: &str) {
    let Some(helm) = Helm::here() else { return };
    let refusal = helm.template(chart, "some-namespace", &["--set", value]).expect_err(value);
    assert!(refusal.contains(expected), "{refusal}");
}

/// A second variable of a name would replace the first.
#[rstest]
#[case::api("pull-secret", "api.extraEnv", "DATABASE_URL")]
#[case::sentinel("pull-secret", "sentinel.extraEnv", "BROKER_RABBITMQ_URL")]
#[case::adapter("pull-secret", "adapter.extraEnv", "HYPERFLEET_KUBERNETES_IDENTITY")]
#[case::credentials("pull-secret", "credentials.extraEnv", "DATABASE_URL")]
#[case::sweep("pull-secret", "sweep.extraEnv", "HYPERFLEET_API_BASE_URL")]
#[case::jobs("pull-secret", "jobs.extraEnv", "OTEL_TRACES_SAMPLER")]
#[case::controller("global-pull-secret", "extraEnv", "OTEL_TRACES_SAMPLER")]
fn a_variable_of_the_chart_is_not_replaced(#[case] chart: &str, #[case] list: &str, #[case] name: &str) {
    let Some(helm) = Helm::here() else { return };
    let further = if chart == "pull-secret" { ",sweep.enabled=true,sweep.project=my-project-1" } else { "" };
    let value = format!("{list}[0].name={name},{list}[0].value=a,tracing.endpoint=http://collector:4318{further}");
    let credentials = crate::helm::values("credentials");
    let values: &[&str] = if chart == "pull-secret" { &["--values", &credentials] } else { &[] };
    let options = [values, &["--set", &value]].concat();
    let refusal = helm.template(chart, "some-namespace", &options).expect_err(list);
    assert!(refusal.contains(list) && refusal.contains(&format!("the variable {name} is there already")), "{refusal}");
}
