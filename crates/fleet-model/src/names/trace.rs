//! Names in traces: services, spans, and the attributes of spans. No attribute holds a credential, a header or a body.

names! {
    /// Services, unless `OTEL_SERVICE_NAME` sets another name.
    SERVICES:
    /// The API.
    SERVICE_API = "hyperfleet-api";
    /// The Sentinel.
    SERVICE_SENTINEL = "hyperfleet-sentinel";
    /// An adapter.
    SERVICE_ADAPTER = "pullsecret-adapter";
    /// The credentials service.
    SERVICE_CREDENTIALS = "hyperfleet-credentials";
    /// The Job.
    SERVICE_JOB = "pullsecret-job";
    /// The controller of a hosted cluster's global pull secret.
    SERVICE_CONTROLLER = "global-pull-secret";
}

names! {
    /// Spans.
    SPANS:
    /// A request to the API; its method and route are the span's name.
    REQUEST = "{method} {route}";
    /// An event, from its decision to the broker's confirmation.
    PUBLISH = "publish";
    /// A reconcile pass of the adapter.
    RECONCILE = "reconcile";
    /// A run of the Job.
    RUN = "run";
    /// The Job's reading of the stored secret's metadata, or of its versions.
    OBSERVE = "observe";
    /// The Job's creation of the secret in the secret store.
    CREATE_SECRET = "create secret";
    /// The Job's update of the secret's labels and record.
    UPDATE_RECORD = "update record";
    /// The Job's addition of a version to the secret store.
    ADD_VERSION = "add version";
    /// The Job's reading of an added version by its number, and the comparison with what it has written.
    READ_BACK = "read back";
    /// The Job's destruction of an older version.
    DESTROY_VERSION = "destroy version";
    /// The Job's deletion of the secret in the secret store.
    DELETE_SECRET = "delete secret";
    /// The Job's write of the Kubernetes Secret that HyperShift reads.
    APPLY_SECRET = "apply Kubernetes Secret";
    /// The Job's work on the mirror; the spans within it are those of the first store.
    MIRROR = "mirror";
    /// A revision of the global pull secret, from its write to the last node's confirmation.
    ROLL_OUT = "roll out";
}

names! {
    /// Attributes of spans.
    ATTRIBUTES:
    /// Plural of the resource's kind, such as `clusters`.
    RESOURCE_TYPE = "hyperfleet.resource_type";
    /// Id of the resource; of a cluster, the cluster's id.
    RESOURCE_ID = "hyperfleet.resource_id";
    /// Generation of the resource.
    GENERATION = "hyperfleet.generation";
    /// Reason of the decision or of the result: a word of a closed list.
    REASON = "hyperfleet.decision_reason";
    /// Id of the request, as in `X-Request-ID`.
    REQUEST_ID = "hyperfleet.request_id";
    /// Name of the secret in the secret store.
    STORED_SECRET = "hyperfleet.secret_name";
    /// Number of the stored version.
    VERSION = "hyperfleet.secret_version";
    /// Namespace of the Kubernetes Secret.
    NAMESPACE = "k8s.namespace.name";
    /// Name of the Kubernetes Secret.
    KUBERNETES_SECRET = "k8s.secret.name";
    /// Name of the Job.
    JOB = "k8s.job.name";
    /// Revision of the global pull secret.
    REVISION = "global_pull_secret.revision";
    /// Number of nodes that have confirmed the revision.
    NODES = "global_pull_secret.nodes";
    /// Method of a request; `_OTHER` for one that the API does not know.
    METHOD = "http.request.method";
    /// Route of a request, with placeholders for ids.
    ROUTE = "http.route";
    /// Status of a response.
    STATUS = "http.response.status_code";
    /// Topic of an event.
    TOPIC = "messaging.destination.name";
    /// Id of an event.
    MESSAGE = "messaging.message.id";
    /// `send` or `process`.
    OPERATION = "messaging.operation.type";
}
