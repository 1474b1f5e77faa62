//! The syncer against a real systemd: a kubelet that restarts, refuses, hangs, flaps, is masked or unreachable.

use rstest::rstest;

use crate::real::{Node, node};

const OLD: &str = r#"{"auths":{"old.io":{"auth":"YTph"}}}"#;
const NEW: &str = r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#;
const BOTH: &str = r#"{"auths":{"new.io":{"auth":"Yjpi"},"old.io":{"auth":"YTph"}}}"#;

/// For a kubelet that never gets ready. The restart of the rollback has no more time than that either.
const IMPATIENT: [&str; 2] = ["--restart-timeout", "10s"];
/// For a kubelet that runs for a moment, which takes longer on a busy machine.
const SUSPICIOUS: [&str; 2] = ["--stable-for", "5s"];

fn bad(how: &str) -> String {
    format!(r#"{{"auths":{{"{how}.example.com":{{"auth":"Yjpi"}}}}}}"#)
}

fn assert_runs_with(node: &Node, file: Option<&str>) {
    assert_eq!(node.file().as_deref(), file);
    assert_eq!(node.loaded_file().as_deref(), file, "the kubelet runs with something else");
    assert_eq!(node.state(), "active");
}

#[test]
fn a_change_reaches_the_kubelet_and_what_is_no_change_does_not() {
    let Some(node) = node() else { return };
    node.put_file(OLD);
    node.publish(NEW);
    let mut syncer = node.sync(&[]);
    syncer.until("Applied");
    assert_runs_with(&node, Some(BOTH));
    let status = node.status();
    assert!(status.ready, "{status:?}");
    assert_eq!((status.counts.writes, status.counts.restarts), (1, 1));
    let starts = node.starts();
    // The same with other white space; then other content.
    node.publish("{ \"auths\": {\"new.io\" : {\"auth\":\"Yjpi\"}} }\r\n");
    node.publish(r#"{"auths":{"newer.io":{"auth":"Yjpi"}}}"#);
    syncer.until("Applied");
    assert_runs_with(&node, Some(r#"{"auths":{"newer.io":{"auth":"Yjpi"},"old.io":{"auth":"YTph"}}}"#));
    assert_eq!(node.starts(), starts + 1);
    assert!(syncer.terminate().success());
}

#[rstest]
#[case::refuses("refuse", Some(OLD))]
#[case::refuses_without_a_file("refuse", None)]
#[case::flaps("flap", Some(OLD))]
#[case::hangs("hang", Some(OLD))]
fn a_change_with_which_the_kubelet_does_not_come_up_is_rolled_back(#[case] how: &str, #[case] before: Option<&str>) {
    let Some(node) = node() else { return };
    if let Some(before) = before {
        node.put_file(before);
    }
    node.publish(&bad(how));
    let mut syncer = node.sync(match how {
        "hang" => &IMPATIENT,
        "flap" => &SUSPICIOUS,
        _ => &[],
    });
    syncer.until("ContentFailed");
    assert_runs_with(&node, before);
    let status = node.status();
    assert!(!status.ready);
    assert_eq!((status.counts.restarts, status.counts.rollbacks), (4, 1), "{status:?}");
    // The next process reads it from the journal, and other content is applied at once.
    assert!(syncer.terminate().success());
    let starts = node.starts();
    let mut syncer = node.sync(&[]);
    syncer.until("ContentFailed");
    assert_eq!(node.starts(), starts);
    node.publish(NEW);
    syncer.until("Applied");
    assert_runs_with(&node, Some(if before.is_some() { BOTH } else { NEW }));
}

/// systemd allows five starts in ten seconds, requested restarts included.
#[test]
fn the_start_limit_is_never_in_the_way() {
    let Some(node) = node() else { return };
    let mut syncer = node.sync(&["--stable-for", "1ms"]);
    for number in 0..8 {
        node.publish(&format!(r#"{{"auths":{{"r{number}.io":{{"auth":"Yjpi"}}}}}}"#));
        syncer.until("Applied");
    }
    assert_eq!(node.status().counts.failed_restarts, 0);
    assert_runs_with(&node, Some(r#"{"auths":{"r7.io":{"auth":"Yjpi"}}}"#));
}

#[test]
fn a_masked_kubelet_gets_its_file_back_and_the_change_once_it_may_run() {
    let Some(node) = node() else { return };
    node.put_file(OLD);
    node.inside(&["systemctl", "mask", "--runtime", "--now", "kubelet.service"]);
    node.publish(NEW);
    let mut syncer = node.sync(&["--retry-failed-after", "1s"]);
    syncer.until("RollbackUnverified");
    assert_eq!(node.file().as_deref(), Some(OLD));
    assert!(syncer.log.iter().any(|line| line.contains("masked")), "{}", syncer.log.join("\n"));
    node.inside(&["systemctl", "unmask", "--runtime", "kubelet.service"]);
    syncer.until("Applied");
    assert_runs_with(&node, Some(BOTH));
}

#[test]
fn without_the_bus_the_change_is_written_and_finished_once_it_is_back() {
    let Some(node) = node() else { return };
    node.put_file(OLD);
    node.script("bus-stop");
    node.publish(NEW);
    let mut syncer = node.sync(&[]);
    syncer.until("SystemdUnreachable");
    assert_eq!(node.file().as_deref(), Some(BOTH));
    assert_eq!(node.loaded_file().as_deref(), Some(OLD));
    node.script("bus-start");
    syncer.until("Applied");
    assert_runs_with(&node, Some(BOTH));
    assert_eq!(node.status().counts.rollbacks, 0);
}

/// The bus restarts while it is not used.
#[test]
fn a_restarted_bus_has_no_effect() {
    let Some(node) = node() else { return };
    node.publish(OLD);
    let mut syncer = node.sync(&[]);
    syncer.until("Applied");
    node.script("bus-stop");
    node.script("bus-start");
    node.publish(NEW);
    syncer.until("Applied");
    assert_runs_with(&node, Some(NEW));
    assert_eq!(node.status().counts.systemd_unreachable, 0);
}

/// Another job for the kubelet is under way, and does not end.
#[test]
fn a_busy_systemd_restarts_the_kubelet_nevertheless() {
    let Some(node) = node() else { return };
    node.put_file(&bad("hang"));
    node.publish(NEW);
    let mut syncer = node.sync(&["--unmanaged-entries", "remove"]);
    syncer.until("Applied");
    assert_runs_with(&node, Some(NEW));
}

/// SIGTERM while the kubelet hangs: the process ends at once, and the next one goes on.
#[test]
fn a_stop_in_the_middle_is_prompt_and_harmless() {
    let Some(node) = node() else { return };
    node.put_file(OLD);
    node.publish(&bad("hang"));
    let mut syncer = node.sync(&["--restart-timeout", "50m"]);
    syncer.until("Restarting");
    assert!(syncer.terminate().success());
    let mut syncer = node.sync(&IMPATIENT);
    syncer.until("Resuming");
    syncer.until("ContentFailed");
    assert_runs_with(&node, Some(OLD));
}

/// kill -9 after the first log line, after the second, and so on, until it gets through undisturbed.
#[rstest]
fn a_kill_at_any_line_is_recovered_from(
    #[values((NEW.to_owned(), "Applied", BOTH), (bad("refuse"), "ContentFailed", OLD))] change: (String, &str, &str),
    #[values(1, 2)] first: usize,
) {
    let Some(node) = node() else { return };
    let (desired, end, file) = change;
    let mut lines = first;
    loop {
        node.put_file(OLD);
        let _state_of_the_round_before = std::fs::remove_dir_all(node.kubelet.join("global-pull-secret"));
        node.publish(&desired);
        let mut syncer = node.sync(&["--stable-for", "200ms"]);
        let is_over = (0..lines).any(|_line| syncer.line().unwrap().contains(end));
        syncer.kill();
        let mut syncer = node.sync(&["--stable-for", "200ms"]);
        syncer.until(end);
        assert_runs_with(&node, Some(file));
        if is_over {
            return;
        }
        lines += 2;
    }
}

#[rstest]
#[case::before_the_change("Starting")]
#[case::while_the_file_is_replaced("Applying")]
#[case::while_the_kubelet_restarts("Restarting")]
#[case::after_the_change("Applied")]
fn a_node_that_reboots_during_a_change_comes_up_with_it(#[case] phase: &str) {
    let Some(mut node) = node() else { return };
    node.put_file(OLD);
    node.publish(NEW);
    let mut syncer = node.sync(&[]);
    syncer.until(phase);
    node.reboot(syncer);
    let mut syncer = node.sync(&[]);
    syncer.until("Applied");
    assert_runs_with(&node, Some(BOTH));
    assert_eq!(node.status().counts.rollbacks, 0);
}

/// With the file that the syncer was about to roll back, the kubelet does not come up by itself.
#[rstest]
#[case::while_the_kubelet_restarts("Restarting")]
#[case::while_it_fails("RestartFailed")]
#[case::while_the_change_is_rolled_back("RollingBack")]
#[case::after_the_roll_back("ContentFailed")]
fn a_node_that_reboots_with_credentials_that_fail_is_rolled_back(#[case] phase: &str) {
    let Some(mut node) = node() else { return };
    node.put_file(OLD);
    node.publish(&bad("refuse"));
    let mut syncer = node.sync(&[]);
    syncer.until(phase);
    node.reboot(syncer);
    let mut syncer = node.sync(&[]);
    syncer.until("ContentFailed");
    assert_runs_with(&node, Some(OLD));
    node.publish(NEW);
    syncer.until("Applied");
    assert_runs_with(&node, Some(BOTH));
}
