//! The messages that kubectl's `create` commands and client-go's leader election send, by the field numbers of Kubernetes' own `generated.proto` files.

use Form::{Bytes, Group, IntOrString, Json, Map, Message, MicroTime, Number, Quantity, Text, Time, Truth};

/// The wire type of a field.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Text,
    /// A text that counts also where it is empty, as the name of the core group is.
    Group,
    Bytes,
    Number,
    Truth,
    Time,
    /// A time with microseconds.
    MicroTime,
    /// A message whose field 1 is JSON.
    Json,
    /// A message whose field 1 is a text, such as `2Gi`.
    Quantity,
    /// A message of a type, a number and a text, of which the type chooses one.
    IntOrString,
    /// A map from text to one of the other forms.
    Map(&'static Self),
    Message(&'static [Field]),
}

/// A message's field: its number, its name in JSON, its form, and whether it is a list.
#[derive(Clone, Copy)]
pub(crate) struct Field(pub(crate) u64, pub(crate) &'static str, pub(crate) Form, pub(crate) bool);

const fn one(number: u64, name: &'static str, form: Form) -> Field {
    Field(number, name, form, false)
}

const fn many(number: u64, name: &'static str, form: Form) -> Field {
    Field(number, name, form, true)
}

/// The kind of a body.
pub(crate) const TYPE: &[Field] = &[one(1, "apiVersion", Text), one(2, "kind", Text)];

/// The fields of a kind; none if it is not known here.
pub(crate) fn of(kind: &str) -> Option<&'static [Field]> {
    KINDS.iter().find(|row| row.0 == kind).map(|row| row.1)
}

const KINDS: [(&str, &[Field]); 18] = [
    ("Secret", SECRET),
    ("ConfigMap", CONFIG_MAP),
    ("Namespace", NAMESPACE),
    ("ServiceAccount", SERVICE_ACCOUNT),
    ("Role", ROLE),
    ("ClusterRole", ROLE),
    ("RoleBinding", BINDING),
    ("ClusterRoleBinding", BINDING),
    ("Job", JOB),
    ("Deployment", DEPLOYMENT),
    ("Service", SERVICE),
    ("ResourceQuota", RESOURCE_QUOTA),
    ("Lease", LEASE),
    ("SelfSubjectAccessReview", ACCESS_REVIEW),
    ("SelfSubjectRulesReview", RULES_REVIEW),
    ("SelfSubjectReview", PLAIN),
    ("TokenRequest", TOKEN_REQUEST),
    ("DeleteOptions", DELETE_OPTIONS),
];

const METADATA: Field = one(1, "metadata", Message(OBJECT_META));

const PLAIN: &[Field] = &[METADATA];

const OBJECT_META: &[Field] = &[
    one(1, "name", Text),
    one(2, "generateName", Text),
    one(3, "namespace", Text),
    one(4, "selfLink", Text),
    one(5, "uid", Text),
    one(6, "resourceVersion", Text),
    one(7, "generation", Number),
    one(8, "creationTimestamp", Time),
    one(9, "deletionTimestamp", Time),
    one(10, "deletionGracePeriodSeconds", Number),
    one(11, "labels", Map(&Text)),
    one(12, "annotations", Map(&Text)),
    many(13, "ownerReferences", Message(OWNER)),
    many(14, "finalizers", Text),
    many(17, "managedFields", Message(MANAGED_FIELDS)),
];

const MANAGED_FIELDS: &[Field] = &[
    one(1, "manager", Text),
    one(2, "operation", Text),
    one(3, "apiVersion", Text),
    one(4, "time", Time),
    one(6, "fieldsType", Text),
    one(7, "fieldsV1", Json),
    one(8, "subresource", Text),
];

const OWNER: &[Field] = &[
    one(1, "kind", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    one(6, "controller", Truth),
    one(7, "blockOwnerDeletion", Truth),
];

const SECRET: &[Field] = &[
    METADATA,
    one(2, "data", Map(&Bytes)),
    one(3, "type", Text),
    one(4, "stringData", Map(&Text)),
    one(5, "immutable", Truth),
];

const CONFIG_MAP: &[Field] =
    &[METADATA, one(2, "data", Map(&Text)), one(3, "binaryData", Map(&Bytes)), one(4, "immutable", Truth)];

const NAMESPACE: &[Field] = &[METADATA, one(2, "spec", Message(&[many(1, "finalizers", Text)]))];

const NAMED: &[Field] = &[one(1, "name", Text)];

const SERVICE_ACCOUNT: &[Field] =
    &[METADATA, many(3, "imagePullSecrets", Message(NAMED)), one(4, "automountServiceAccountToken", Truth)];

const ROLE: &[Field] = &[METADATA, many(2, "rules", Message(RULE))];

const RULE: &[Field] = &[
    many(1, "verbs", Text),
    many(2, "apiGroups", Group),
    many(3, "resources", Text),
    many(4, "resourceNames", Text),
    many(5, "nonResourceURLs", Text),
];

const BINDING: &[Field] = &[METADATA, many(2, "subjects", Message(SUBJECT)), one(3, "roleRef", Message(ROLE_REF))];

const SUBJECT: &[Field] =
    &[one(1, "kind", Text), one(2, "apiGroup", Text), one(3, "name", Text), one(4, "namespace", Text)];

const ROLE_REF: &[Field] = &[one(1, "apiGroup", Text), one(2, "kind", Text), one(3, "name", Text)];

const JOB: &[Field] = &[METADATA, one(2, "spec", Message(JOB_SPEC))];

const JOB_SPEC: &[Field] = &[
    one(1, "parallelism", Number),
    one(2, "completions", Number),
    one(3, "activeDeadlineSeconds", Number),
    one(5, "manualSelector", Truth),
    one(6, "template", Message(TEMPLATE)),
    one(7, "backoffLimit", Number),
    one(8, "ttlSecondsAfterFinished", Number),
    one(9, "completionMode", Text),
    one(10, "suspend", Truth),
];

const PORT: &[Field] = &[
    one(1, "name", Text),
    one(2, "hostPort", Number),
    one(3, "containerPort", Number),
    one(4, "protocol", Text),
    one(5, "hostIP", Text),
];

const DEPLOYMENT: &[Field] = &[METADATA, one(2, "spec", Message(DEPLOYMENT_SPEC))];

const DEPLOYMENT_SPEC: &[Field] = &[
    one(1, "replicas", Number),
    one(2, "selector", Message(SELECTOR)),
    one(3, "template", Message(TEMPLATE)),
    one(
        4,
        "strategy",
        Message(&[
            one(1, "type", Text),
            one(2, "rollingUpdate", Message(&[one(1, "maxUnavailable", IntOrString), one(2, "maxSurge", IntOrString)])),
        ]),
    ),
    one(5, "minReadySeconds", Number),
    one(6, "revisionHistoryLimit", Number),
    one(7, "paused", Truth),
    one(9, "progressDeadlineSeconds", Number),
];

const SELECTOR: &[Field] = &[
    one(1, "matchLabels", Map(&Text)),
    many(2, "matchExpressions", Message(&[one(1, "key", Text), one(2, "operator", Text), many(3, "values", Text)])),
];

const TEMPLATE: &[Field] = &[METADATA, one(2, "spec", Message(POD_SPEC))];

const POD_SPEC: &[Field] = &[
    many(2, "containers", Message(CONTAINER)),
    one(3, "restartPolicy", Text),
    one(4, "terminationGracePeriodSeconds", Number),
    one(6, "dnsPolicy", Text),
    one(7, "nodeSelector", Map(&Text)),
    one(8, "serviceAccountName", Text),
    one(9, "serviceAccount", Text),
    one(10, "nodeName", Text),
    one(11, "hostNetwork", Truth),
    one(12, "hostPID", Truth),
    one(13, "hostIPC", Truth),
];

const CONTAINER: &[Field] = &[
    one(1, "name", Text),
    one(2, "image", Text),
    many(3, "command", Text),
    many(4, "args", Text),
    one(5, "workingDir", Text),
    many(6, "ports", Message(PORT)),
    many(7, "env", Message(&[one(1, "name", Text), one(2, "value", Text)])),
    one(8, "resources", Message(&[one(1, "limits", Map(&Quantity)), one(2, "requests", Map(&Quantity))])),
    one(13, "terminationMessagePath", Text),
    one(14, "imagePullPolicy", Text),
    one(20, "terminationMessagePolicy", Text),
];

const SERVICE: &[Field] = &[METADATA, one(2, "spec", Message(SERVICE_SPEC))];

const SERVICE_SPEC: &[Field] = &[
    many(
        1,
        "ports",
        Message(&[
            one(1, "name", Text),
            one(2, "protocol", Text),
            one(3, "port", Number),
            one(4, "targetPort", IntOrString),
            one(5, "nodePort", Number),
            one(6, "appProtocol", Text),
        ]),
    ),
    one(2, "selector", Map(&Text)),
    one(3, "clusterIP", Text),
    one(4, "type", Text),
    many(5, "externalIPs", Text),
    one(7, "sessionAffinity", Text),
    one(10, "externalName", Text),
    one(17, "ipFamilyPolicy", Text),
    many(18, "clusterIPs", Text),
    many(19, "ipFamilies", Text),
    one(22, "internalTrafficPolicy", Text),
];

const RESOURCE_QUOTA: &[Field] =
    &[METADATA, one(2, "spec", Message(&[one(1, "hard", Map(&Quantity)), many(2, "scopes", Text)]))];

const LEASE: &[Field] = &[METADATA, one(2, "spec", Message(LEASE_SPEC))];

const LEASE_SPEC: &[Field] = &[
    one(1, "holderIdentity", Text),
    one(2, "leaseDurationSeconds", Number),
    one(3, "acquireTime", MicroTime),
    one(4, "renewTime", MicroTime),
    one(5, "leaseTransitions", Number),
    one(6, "strategy", Text),
    one(7, "preferredHolder", Text),
];

const ACCESS_REVIEW: &[Field] = &[METADATA, one(2, "spec", Message(ACCESS_SPEC))];

const ACCESS_SPEC: &[Field] = &[
    one(
        1,
        "resourceAttributes",
        Message(&[
            one(1, "namespace", Text),
            one(2, "verb", Text),
            one(3, "group", Text),
            one(4, "version", Text),
            one(5, "resource", Text),
            one(6, "subresource", Text),
            one(7, "name", Text),
        ]),
    ),
    one(2, "nonResourceAttributes", Message(&[one(1, "path", Text), one(2, "verb", Text)])),
];

const RULES_REVIEW: &[Field] = &[METADATA, one(2, "spec", Message(&[one(1, "namespace", Text)]))];

const TOKEN_REQUEST: &[Field] =
    &[METADATA, one(2, "spec", Message(&[many(1, "audiences", Text), one(4, "expirationSeconds", Number)]))];

const DELETE_OPTIONS: &[Field] = &[
    one(1, "gracePeriodSeconds", Number),
    one(2, "preconditions", Message(&[one(1, "uid", Text), one(2, "resourceVersion", Text)])),
    one(3, "orphanDependents", Truth),
    one(4, "propagationPolicy", Text),
    many(5, "dryRun", Text),
];
