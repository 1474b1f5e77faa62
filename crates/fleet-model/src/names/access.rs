//! Names in Kubernetes' authorization of the callers of the credentials service.

names! {
    /// The permissions of callers of the credentials service.
    PERMISSIONS:
    /// The API group.
    GROUP = "hyperfleet.io";
    /// The resource, which belongs to no namespace; its name is the id of a cluster.
    CLUSTERS = "clusters";
    /// Subresource: the credentials of a cluster without passwords (`get`), their creation (`create`) and their end (`delete`).
    PULL_SECRETS = "pull-secrets";
    /// Subresource: the passwords (`get`).
    CONTENT = "pull-secrets/content";
    /// Subresource: the rotations of a cluster's credentials (`get`, `list`, `create`).
    ROTATIONS = "pull-secrets/rotations";
}
