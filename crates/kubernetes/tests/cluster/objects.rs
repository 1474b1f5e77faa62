//! Objects of any kind: written as they were observed, and watched through outages.

use futures_util::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::ownership::is_shared;
use kubernetes::{Cache, ErrorKind, FIELD_MANAGER, JobEvent, Selection};
use rstest::rstest;
use serde_json::json;
use tokio::sync::watch;

use crate::rig::{Kind, Rig, TIMEOUT};

impl Rig {
    fn map(&self, value: &str) -> ConfigMap {
        let metadata = json!({"name": "map", "namespace": self.namespace, "labels": {"a": "b"}});
        serde_json::from_value(json!({"metadata": metadata, "data": {"key": value}})).unwrap()
    }

    /// The map over an observed one.
    fn over(&self, observed: &ConfigMap, value: &str) -> ConfigMap {
        let ObjectMeta { uid, resource_version, managed_fields, .. } = observed.metadata.clone();
        let mut map = self.map(value);
        map.metadata = ObjectMeta { uid, resource_version, managed_fields, ..map.metadata };
        map
    }
}

fn value(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["key"]
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_written_as_they_were_observed(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, namespace) = (&rig.cluster, rig.namespace.as_str());
    assert!(cluster.find::<ConfigMap>(namespace, "map").await.unwrap().is_none());
    let first = cluster.create(&rig.map("1")).await.unwrap();
    assert_eq!(cluster.create(&rig.map("2")).await.unwrap_err().kind, ErrorKind::AlreadyExists);
    let second = cluster.apply(&rig.over(&first, "2"), &[]).await.unwrap();
    assert_eq!(value(&second), "2");
    let again = cluster.apply(&rig.over(&second, "2"), &[]).await.unwrap();
    assert_eq!(again.metadata.resource_version, second.metadata.resource_version, "nothing has changed");
    assert_eq!(cluster.apply(&rig.over(&first, "3"), &[]).await.unwrap_err().kind, ErrorKind::Changed);
    assert_eq!(cluster.list::<ConfigMap>(namespace, "a=b").await.unwrap().len(), 1);
    assert!(cluster.list::<ConfigMap>(namespace, "a=c").await.unwrap().is_empty());
    cluster.delete(&second).await.unwrap();
    cluster.delete(&second).await.unwrap();
    assert_eq!(cluster.apply(&rig.over(&second, "3"), &[]).await.unwrap_err().kind, ErrorKind::Changed);
    drop(cluster.apply(&rig.map("3"), &[]).await.unwrap());
    assert_eq!(cluster.apply(&rig.map("4"), &[]).await.unwrap_err().kind, ErrorKind::AlreadyExists);
    assert_eq!(
        cluster.apply(&rig.over(&second, "4"), &[]).await.unwrap_err().kind,
        ErrorKind::Changed,
        "it is another one"
    );
    assert_eq!(cluster.delete(&second).await.unwrap_err().kind, ErrorKind::Changed, "it is another one");
}

/// Also what was set at the creation, which is no apply.
#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_no_longer_applied_goes(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let mut more = rig.map("1");
    more.metadata.labels.get_or_insert_default().insert("c".to_owned(), "d".to_owned());
    let created = rig.cluster.apply(&more, &[]).await.unwrap();
    let labels = |map: &ConfigMap| json!(map.metadata.labels);
    assert_eq!(labels(&created), json!({"a": "b", "c": "d"}));
    let applied = rig.cluster.apply(&rig.over(&created, "1"), &[]).await.unwrap();
    assert_eq!(labels(&applied), json!({"a": "b"}));
    let again = rig.cluster.apply(&rig.over(&applied, "1"), &[]).await.unwrap();
    assert_eq!(again.metadata.resource_version, applied.metadata.resource_version, "nothing has changed");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_leaves_the_fields_of_others(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    drop(rig.cluster.apply(&rig.map("1"), &[]).await.unwrap());
    let theirs = json!({
        "metadata": {"labels": {"a": "x", "c": "d"}, "finalizers": ["example.com/theirs"]},
        "data": {"key": "x", "more": "y"},
    });
    let changed: ConfigMap = rig.merge("map", theirs).await;
    let applied = rig.cluster.apply(&rig.over(&changed, "1"), &[]).await.unwrap();
    assert_eq!(json!(applied.metadata.labels), json!({"a": "b", "c": "d"}));
    assert_eq!(json!(applied.data), json!({"key": "1", "more": "y"}));
    assert_eq!(json!(applied.metadata.finalizers), json!(["example.com/theirs"]));
    drop(rig.merge::<ConfigMap>("map", json!({"metadata": {"finalizers": null}})).await);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_field_has_no_other_manager(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    drop(rig.cluster.apply(&rig.map("1"), &["data"]).await.unwrap());
    let changed: ConfigMap = rig.merge("map", json!({"metadata": {"labels": {"c": "d"}}, "data": {"more": "y"}})).await;
    assert!(is_shared(&changed.metadata, FIELD_MANAGER, &["data"]));
    let applied = rig.cluster.apply(&rig.over(&changed, "1"), &["data"]).await.unwrap();
    assert_eq!(
        (json!(applied.data), json!(applied.metadata.labels)),
        (json!({"key": "1"}), json!({"a": "b", "c": "d"}))
    );
    assert!(!is_shared(&applied.metadata, FIELD_MANAGER, &["data"]));
    // A client may reset the bookkeeping: the server then gives all fields to another manager of its own.
    let reset = json!({"metadata": {"managedFields": [{}]}, "data": {"more": "z"}});
    drop(rig.merge::<ConfigMap>("map", reset).await);
    let reset: ConfigMap = rig.merge("map", json!({"metadata": {"managedFields": [{}]}})).await;
    let first = rig.cluster.apply(&rig.over(&reset, "1"), &["data"]).await.unwrap();
    assert!(is_shared(&first.metadata, FIELD_MANAGER, &["data"]));
    let second = rig.cluster.apply(&rig.over(&first, "1"), &["data"]).await.unwrap();
    assert_eq!(json!(second.data), json!({"key": "1"}));
}

/// Waits until the cache is as expected.
async fn shows(cache: &mut watch::Receiver<Cache<String>>, expected: impl Fn(&Cache<String>) -> bool) {
    let observed = tokio::time::timeout(TIMEOUT, cache.wait_for(|cache| expected(cache))).await;
    drop(observed.unwrap_or_else(|_| panic!("it has not happened")).unwrap());
}

#[rstest]
#[case::named(Kind::Emulator, Selection::Named("map".to_owned()), &[])]
#[case::labelled(Kind::Emulator, Selection::Labelled("a=b".to_owned()), &[])]
#[case::named_really(Kind::Real, Selection::Named("map".to_owned()), &[])]
#[case::labelled_really(Kind::Real, Selection::Labelled("a=b".to_owned()), &[])]
#[case::cut(Kind::Emulator, Selection::Named("map".to_owned()), &["watch/configmaps:cut(after=1)*2", "watch/configmaps:cut"])]
#[case::too_old(Kind::Emulator, Selection::Named("map".to_owned()), &["watch/configmaps:gone(after=1)*2"])]
#[case::refused_as_too_old(Kind::Emulator, Selection::Named("map".to_owned()), &["watch/configmaps:410(reason=Gone)*2"])]
#[case::unavailable(Kind::Emulator, Selection::Named("map".to_owned()), &["list/configmaps:503*2", "watch/configmaps:500*2"])]
#[tokio::test(flavor = "multi_thread")]
async fn a_cache_follows_through_outages(#[case] kind: Kind, #[case] selection: Selection, #[case] faults: &[&str]) {
    let Some(rig) = Rig::new(kind).await else { return };
    for fault in faults {
        rig.emulator().inject(fault.parse().unwrap());
    }
    let (sender, mut cache) = watch::channel(Cache::default());
    let convert = |map: ConfigMap| value(&map).to_owned();
    let story = async {
        shows(&mut cache, |cache| cache.has_synced && cache.objects.is_empty()).await;
        for _ in 0..3 {
            let made = rig.cluster.create(&rig.map("1")).await.unwrap();
            shows(&mut cache, |cache| cache.objects.get("map").map(String::as_str) == Some("1")).await;
            let changed = rig.cluster.apply(&rig.over(&made, "2"), &[]).await.unwrap();
            shows(&mut cache, |cache| cache.objects.get("map").map(String::as_str) == Some("2")).await;
            rig.cluster.delete(&changed).await.unwrap();
            shows(&mut cache, |cache| cache.objects.is_empty()).await;
        }
        shows(&mut cache, |cache| cache.failure.is_none()).await;
    };
    tokio::select! {
        () = rig.cluster.reflect(&rig.namespace, &selection, convert, &sender) => {}
        () = story => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_reports_why_it_is_incomplete() {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    rig.emulator().inject("list/configmaps:403*2".parse().unwrap());
    let (sender, mut cache) = watch::channel(Cache::default());
    let selection = Selection::Named("map".to_owned());
    let story = async {
        shows(&mut cache, |cache| {
            let failure = cache.failure.as_deref().unwrap_or_default();
            !cache.has_synced && failure.starts_with("cannot list configmap ") && failure.contains("permission denied")
        })
        .await;
        shows(&mut cache, |cache| cache.has_synced && cache.failure.is_none()).await;
    };
    tokio::select! {
        () = rig.cluster.reflect(&rig.namespace, &selection, |_: ConfigMap| String::new(), &sender) => {}
        () = story => {}
    }
}

impl Rig {
    async fn create_job(&self, name: &str) {
        let container = json!({"name": "main", "image": "none"});
        let pod = json!({"restartPolicy": "Never", "automountServiceAccountToken": false, "containers": [container]});
        let metadata = json!({"name": name, "labels": {"run": "yes", "resource": name}});
        drop(
            self.create::<Job>(json!({"metadata": metadata, "spec": {"suspend": true, "template": {"spec": pod}}}))
                .await,
        );
    }
}

#[rstest]
#[case::emulator(Kind::Emulator, &[])]
#[case::real(Kind::Real, &[])]
#[case::cut(Kind::Emulator, &["watch/jobs:cut(after=1)*2", "watch/jobs:cut"])]
#[case::too_old(Kind::Emulator, &["watch/jobs:gone(after=1)*2"])]
#[case::unavailable(Kind::Emulator, &["list/jobs:503*2", "watch/jobs:500*2"])]
#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_cached_as_their_events_come(#[case] kind: Kind, #[case] faults: &[&str]) {
    let Some(rig) = Rig::new(kind).await else { return };
    rig.create_job("old").await;
    for fault in faults {
        rig.emulator().inject(fault.parse().unwrap());
    }
    let mut watch = rig.cluster.watch_jobs(&rig.namespace, "run=yes", "resource");
    let cache = watch.cache();
    assert!(!cache.has_synced());
    let story = async {
        let mut until = async |expected: &str| {
            loop {
                match watch.next().await.unwrap() {
                    Ok(JobEvent::Applied(job)) => {
                        assert!(cache.group(&job.name).contains(&job), "the cache has the event");
                        if expected == format!("+{}", job.name) {
                            break;
                        }
                    }
                    Ok(JobEvent::Deleted(job)) => {
                        assert!(cache.group(&job.name).is_empty(), "the cache has the event");
                        if expected == format!("-{}", job.name) {
                            break;
                        }
                    }
                    Err(error) => assert!(!faults.is_empty(), "{error}"),
                }
            }
        };
        until("+old").await;
        for name in ["a", "b", "c"] {
            rig.create_job(name).await;
            until(&format!("+{name}")).await;
            assert_eq!(cache.group("old").len(), 1);
            let job = cache.group(name).pop().unwrap();
            assert_eq!(rig.cluster.find_job(&rig.namespace, name).await.unwrap().unwrap().uid, job.uid);
            rig.cluster.delete_job(&rig.namespace, &job).await.unwrap();
            until(&format!("-{name}")).await;
        }
        assert!(cache.has_synced());
    };
    tokio::time::timeout(TIMEOUT, story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_shows_as_a_failure_within_the_call_timeout() {
    let (_listener, address) = crate::network::listen().await;
    let cluster = crate::connection::connect(&address, std::time::Duration::from_secs(10)).await;
    let (sender, mut cache) = watch::channel(Cache::default());
    let selection = Selection::Named("map".to_owned());
    let begin = tokio::time::Instant::now();
    tokio::select! {
        () = cluster.reflect("n", &selection, |_: ConfigMap| String::new(), &sender) => {}
        () = shows(&mut cache, |cache| cache.failure.as_deref().is_some_and(|failure| failure.contains("no answer in time"))) => {}
    }
    assert_eq!(begin.elapsed().as_secs(), 10);
}
