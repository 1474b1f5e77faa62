//! Tables of `kubectl get`.

use rstest::rstest;
use serde_json::{Value, json};

use super::client::{CONFIG_MAPS, JOBS, PODS, SECRETS, Server, config_map, job, pod, secret};

const ACCEPT: &str = "accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n";

/// Columns and first row as one text, those of `-o wide` in parentheses; times are dots.
async fn row(server: &Server, path: &str) -> String {
    let table = server.raw("GET", path, "", ACCEPT).await.unwrap().expect(200);
    assert_eq!(table["kind"], "Table");
    let columns = table["columnDefinitions"].as_array().unwrap();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(columns.len(), cells.len());
    let shown = columns.iter().zip(cells).map(|(column, cell)| {
        let name = column["name"].as_str().unwrap();
        let cell = cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
        let cell = if matches!(name, "Age" | "Last Seen" | "First Seen") { "…".to_owned() } else { cell };
        if column["priority"] == 1 { format!("({name}={cell})") } else { format!("{name}={cell}") }
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[rstest]
#[case(SECRETS, secret("s"), "Name=s Type=Opaque Data=1 Age=…")]
#[case(CONFIG_MAPS, config_map("c", &json!({"a": "1", "b": "2"})), "Name=c Data=2 Age=…")]
#[case(
    PODS,
    pod("p"),
    "Name=p Ready=0/1 Status=Pending Restarts=0 Age=… (IP=<none>) (Node=<none>) (Nominated Node=<none>) (Readiness Gates=<none>)"
)]
#[case(
    "/api/v1/namespaces/default/events",
    json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Secret", "name": "s"}, "reason": "Stored", "message": "version 3",
           "type": "Normal", "source": {"component": "pull-secret"}, "count": 2}),
    "Last Seen=… Type=Normal Reason=Stored Object=secret/s (Subobject=) (Source=pull-secret) Message=version 3 (First Seen=…) \
     (Count=2) (Name=e)"
)]
#[case(
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}),
    "Name=l Holder=me Age=…"
)]
#[tokio::test]
async fn rows_have_the_usual_columns(#[case] path: &str, #[case] object: Value, #[case] wanted: &str) {
    let server = Server::plain().await;
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    server.post(path, &object).await.expect(201);
    assert_eq!(row(&server, path).await, wanted);
    assert_eq!(row(&server, &format!("{path}/{name}")).await, wanted);
}

#[tokio::test]
async fn a_job_shows_how_far_it_is() {
    let server = Server::plain().await;
    server.post(JOBS, &job("j")).await.expect(201);
    let row = row(&server, JOBS).await;
    assert!(row.starts_with("Name=j Status=Running Completions=0/1 Duration="), "{row}");
    assert!(row.contains(" Age=… (Containers=main) (Images=registry/job:1) (Selector=batch.kubernetes.io/c"), "{row}");
}

#[tokio::test]
async fn a_pod_shows_its_containers_state() {
    let server = Server::plain().await;
    server.post(PODS, &pod("p")).await.expect(201);
    let ended = json!({"exitCode": 75, "reason": "Error"});
    let container = json!({"name": "main", "ready": false, "restartCount": 2, "state": {"terminated": ended}});
    let status = json!({"status": {"phase": "Failed", "containerStatuses": [container]}});
    server.merge(&format!("{PODS}/p/status"), &status).await.expect(200);
    assert!(row(&server, PODS).await.starts_with("Name=p Ready=0/1 Status=Error Restarts=2 Age=…"));
}
