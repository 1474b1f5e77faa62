//! `status`: the fleet as a table, whatever its size.

use hyperfleet_client::Status;
use rstest::rstest;
use serde_json::{Value, json};

use testkit::api;
use testkit::fleet::{Player, document, folder, run};
use testkit::program;

/// Every third cluster is available, every third has failed, the others were not reported on.
async fn fleet(player: &Player, clusters: usize) {
    for number in 0..clusters {
        let id = format!("cls-{number:03}");
        player.create(&id, &document("a")).await;
        let available = match number % 3 {
            0 => ("Available", Status::True, "SecretStored"),
            1 => ("Available", Status::False, "PermissionDenied"),
            _ => continue,
        };
        let conditions = [("Applied", Status::True, "ResourcesExist"), available, ("Health", Status::True, "NoErrors")];
        player.report(("pullsecret", &id), 1, &conditions, json!({"secretVersion": 4})).await;
    }
}

#[rstest]
#[case::none(0, "there is no cluster\n")]
#[case::few(3, "\n3 clusters: 1 available, 1 not available, 0 behind, 1 not reported yet, 0 stalled, 0 terminating; ")]
#[case::several_pages(
    250,
    "\n250 clusters: 84 available, 83 not available, 0 behind, 83 not reported yet, 0 stalled, 0 terminating; "
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_of_any_size_is_listed(#[case] clusters: usize, #[case] summary: &str) {
    let folder = folder();
    let (_api, address) = api::server(folder.path()).await;
    let address = format!("http://{address}");
    fleet(&Player::of(&address), clusters).await;
    let (code, table, stderr) = run(&mut program::pull_secret(&["status", "--api", &address])).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(table.contains(summary), "{table}");
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("cls-")).collect();
    assert_eq!(rows.len(), clusters);
    let heads = table.lines().filter(|line| line.starts_with("CLUSTER")).count();
    assert_eq!(heads, usize::from(clusters > 0));
    let (code, lines, _) = run(&mut program::pull_secret(&["status", "--api", &address, "--output", "json"])).await;
    assert_eq!(code, Some(0));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), clusters + 1);
    assert_eq!(lines[clusters]["summary"]["clusters"], clusters);
    if clusters > 0 {
        assert!(rows[0].contains("True") && rows[0].ends_with("SecretStored"), "{table}");
        assert_eq!((&lines[0]["available"], &lines[0]["version"]), (&json!("True"), &json!(4)));
        assert_eq!((&lines[1]["reason"], &lines[2]["available"]), (&json!("PermissionDenied"), &Value::Null));
        let one = ["status", "--api", &address, "--search", "id = 'cls-001'"];
        let (code, table, _) = run(&mut program::pull_secret(&one)).await;
        assert_eq!(code, Some(0));
        assert!(table.contains("\n1 cluster: 0 available, 1 not available"), "{table}");
    }
}
