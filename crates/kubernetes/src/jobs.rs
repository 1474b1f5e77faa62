//! Operations on Jobs: create once by name, list, read termination messages, delete.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions, PropagationPolicy};

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::job::{ObservedJob, Termination, termination};
use crate::verb::Verb;

impl Cluster {
    /// The Jobs with these labels.
    pub async fn jobs(&self, namespace: &str, selector: &str) -> Result<Vec<ObservedJob>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("jobs in {namespace}");
        let parameters = ListParams::default().labels(selector);
        let found = self.call(Verb::List, &object, api.list(&parameters)).await?;
        Ok(found.items.into_iter().map(ObservedJob::from).collect())
    }

    /// Reads at most one Job with these labels; an error says that the server does not answer, or not to this identity.
    pub async fn check_jobs(&self, namespace: &str, selector: &str) -> Result<(), KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("jobs in {namespace}");
        let parameters = ListParams::default().labels(selector).limit(1);
        self.call(Verb::List, &object, api.list_metadata(&parameters)).await.map(drop)
    }

    /// The Job of that name, with any labels.
    pub async fn find_job(&self, namespace: &str, name: &str) -> Result<Option<ObservedJob>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{name}");
        Ok(self.call(Verb::Get, &object, api.get_opt(name)).await?.map(ObservedJob::from))
    }

    /// Creates the Job unless there is one of its name; returns the one that was created.
    pub async fn create_job_once(&self, namespace: &str, job: &Job) -> Result<Option<ObservedJob>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{}", job.metadata.name.as_deref().unwrap_or_default());
        let parameters = self.creation();
        match self.call(Verb::Create, &object, api.create(&parameters, job)).await {
            Ok(created) => Ok(Some(created.into())),
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the Job that was observed. It stays, as a terminating one, until its Pods have gone. A Job that does not exist
    /// any more, or has another uid now, is a success.
    pub async fn delete_job(&self, namespace: &str, job: &ObservedJob) -> Result<(), KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{}", job.name);
        let preconditions = Preconditions { uid: Some(job.uid.clone()), resource_version: None };
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.call(Verb::Delete, &object, api.delete(&job.name, &parameters)).await {
            Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::Changed) => Err(error),
            _ => Ok(()),
        }
    }

    /// The terminations of the container `container` of the Job's Pods, the last one first; Kubernetes stores these times in
    /// whole seconds.
    pub async fn terminations(
        &self,
        namespace: &str,
        job: &str,
        container: &str,
    ) -> Result<Vec<Termination>, KubernetesError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let object = format!("pods of job {namespace}/{job}");
        let parameters = ListParams::default().labels(&format!("job-name={job}"));
        let pods = self.call(Verb::List, &object, api.list(&parameters)).await?;
        let mut ends: Vec<_> = pods.items.iter().filter_map(|pod| termination(pod, container)).collect();
        ends.sort_by_key(|end| std::cmp::Reverse(end.0));
        Ok(ends.into_iter().map(|(_, termination)| termination).collect())
    }
}
