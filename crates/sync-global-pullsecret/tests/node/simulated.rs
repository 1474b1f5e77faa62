//! A node with a simulated disk and kubelet: killed, powered off and refused at every single step.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use sync_global_pullsecret::UnmanagedEntries;
use sync_global_pullsecret::decide::{Delays, Rules};
use sync_global_pullsecret::kubelet_file::KubeletFile;
use sync_global_pullsecret::run::{Inputs, RevisionRule, Syncer};
use sync_global_pullsecret::source::{CredentialsReader, SourceEvent};
use sync_global_pullsecret::status::{SharedStatus, Status};
use sync_global_pullsecret::units::{UnitError, Units};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::memory_disk::{End, MemoryDisk};

const FILE: &str = "/var/lib/kubelet/config.json";
const OLD: &str = r#"{"auths":{"old.io":{"auth":"YTph"}}}"#;
const NEW: &str = r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#;
const REFUSED: &str = r#"{"auths":{"refuse.example.com":{"auth":"Yjpi"}}}"#;

/// The file that a kubelet runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Runs {
    Down,
    With(Option<Vec<u8>>),
}

/// A kubelet that refuses content with a certain registry, and records the file that it runs with.
#[derive(Clone)]
struct Kubelet {
    disk: MemoryDisk,
    runs_with: Rc<RefCell<Runs>>,
}

impl Kubelet {
    fn boot(disk: &MemoryDisk) -> Self {
        let kubelet = Self { disk: disk.clone(), runs_with: Rc::new(RefCell::new(Runs::Down)) };
        kubelet.start();
        kubelet
    }

    fn start(&self) -> bool {
        let file = self.disk.get(Path::new(FILE));
        let refused = file.as_ref().is_some_and(|bytes| String::from_utf8_lossy(bytes).contains("refuse"));
        *self.runs_with.borrow_mut() = if refused { Runs::Down } else { Runs::With(file) };
        !refused
    }
}

impl Units for Kubelet {
    async fn restart(&self) -> Result<(), UnitError> {
        if !self.disk.step() {
            return std::future::pending().await;
        }
        let started = self.start();
        // Killed after the restart and before its result arrived.
        if !self.disk.step() {
            return std::future::pending().await;
        }
        if started { Ok(()) } else { Err(UnitError::Failed("refused".to_owned())) }
    }

    async fn verify(&self) -> Result<(), UnitError> {
        if !self.disk.step() {
            return std::future::pending().await;
        }
        let runs = *self.runs_with.borrow() != Runs::Down;
        if runs { Ok(()) } else { Err(UnitError::Failed("down".to_owned())) }
    }
}

/// Runs a syncer until it has settled, or is dead.
async fn run(disk: &MemoryDisk, kubelet: &Kubelet, desired: &str) -> Option<Status> {
    run_with(disk, kubelet, desired, false).await
}

async fn run_with(disk: &MemoryDisk, kubelet: &Kubelet, desired: &str, is_revert: bool) -> Option<Status> {
    let rules = Rules { restart: true, delays: Delays { failed_content: Duration::from_mins(10) } };
    let Ok(file) = KubeletFile::open(disk.clone(), Path::new(FILE), UnmanagedEntries::Keep) else { return None };
    let reader = CredentialsReader::new(file.key().clone());
    let board = SharedStatus::new(Status::new(None, Timestamp::UNIX_EPOCH));
    let (sender, source_events) = mpsc::channel(4);
    let event = reader.read(Zeroizing::new(desired.as_bytes().to_vec()), None);
    let event = if is_revert { event.as_revert() } else { event };
    assert!(matches!(event, SourceEvent::Credentials(_)));
    sender.send(event).await.unwrap();
    let stop = CancellationToken::new();
    let syncer = Syncer::new(file, kubelet.clone(), rules, RevisionRule::default(), board.clone());
    let settled = async {
        loop {
            // The paused clock advances only while no task can run.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let status = board.read();
            if disk.is_dead() || matches!(status.reason.as_str(), "Applied" | "ContentFailed") {
                return status;
            }
        }
    };
    let inputs = Inputs { source_events, file_events: None, stop: stop.clone() };
    let status = tokio::select! {
        () = syncer.run(inputs) => None,
        status = settled => Some(status),
    };
    drop(sender);
    status.filter(|_status| !disk.is_dead())
}

fn node(before: Option<&str>) -> (MemoryDisk, Kubelet) {
    let disk = MemoryDisk::default();
    if let Some(before) = before {
        disk.put(Path::new(FILE), before.as_bytes());
    }
    let kubelet = Kubelet::boot(&disk);
    (disk, kubelet)
}

/// Asserts the invariants of a settled node.
fn assert_good(disk: &MemoryDisk, kubelet: &Kubelet, before: Option<&str>, desired: &str, context: &str) {
    let file = disk.get(Path::new(FILE)).map(|bytes| String::from_utf8(bytes).unwrap());
    let expected = if desired == REFUSED { before.map(str::to_owned) } else { Some(expected_file(before, desired)) };
    assert_eq!(file, expected, "{context}");
    let runs_with = kubelet.runs_with.borrow().clone();
    assert_eq!(runs_with, Runs::With(file.map(String::into_bytes)), "the kubelet runs with something else: {context}");
    for disk in [disk, &disk.after_power_cut(0)] {
        let is_temporary = |name: &String| name.contains("/.") || name.contains(".tmp");
        let left: Vec<_> = disk.names().into_iter().filter(is_temporary).collect();
        assert_eq!(left, Vec::<String>::new(), "{context}");
    }
    let open: Vec<_> = disk.open_names().into_iter().filter(|name| name != FILE).collect();
    assert_eq!(open, Vec::<String>::new(), "{context}");
}

/// The old file's entry is unmanaged, so it stays.
fn expected_file(before: Option<&str>, desired: &str) -> String {
    if before == Some(OLD) {
        r#"{"auths":{"new.io":{"auth":"Yjpi"},"old.io":{"auth":"YTph"}}}"#.to_owned()
    } else {
        desired.to_owned()
    }
}

#[derive(Clone, Copy, Debug)]
enum Failure {
    Kill,
    PowerCut(u64),
    DiskFull,
}

#[rstest]
#[case::a_good_change(Some(OLD), NEW)]
#[case::a_good_change_without_a_file(None, NEW)]
#[case::a_good_change_of_an_unreadable_file(Some("{"), NEW)]
#[case::a_change_that_fails(Some(OLD), REFUSED)]
#[case::a_change_that_fails_without_a_file(None, REFUSED)]
#[case::a_change_that_fails_of_an_unreadable_file(Some("{"), REFUSED)]
#[case::a_change_that_fails_of_an_empty_file(Some(""), REFUSED)]
#[tokio::test(start_paused = true)]
async fn every_step_may_be_the_last(#[case] before: Option<&str>, #[case] desired: &str) {
    let (disk, kubelet) = node(before);
    assert!(run(&disk, &kubelet, desired).await.is_some());
    assert_good(&disk, &kubelet, before, desired, "undisturbed");
    let steps = disk.steps();
    assert!(steps > 20, "{steps} steps");

    let power_cuts = [0, u64::MAX, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA, 0b1, 0b10, 0b100, 0b1000];
    let failures = power_cuts.map(Failure::PowerCut).into_iter().chain([Failure::Kill, Failure::DiskFull]);
    for failure in failures {
        for step in 0..steps {
            let context = format!("{failure:?} after step {step}");
            let (disk, kubelet) = node(before);
            let end = if matches!(failure, Failure::DiskFull) { End::Full } else { End::Death };
            disk.end_after(Some(step), end);
            let rest = {
                let running = run(&disk, &kubelet, desired);
                // A full disk is retried; there is space again after a while.
                let healing = async {
                    tokio::time::sleep(Duration::from_secs(7)).await;
                    if end == End::Full {
                        disk.end_after(None, end);
                    }
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    rest = running => rest,
                    () = healing => None,
                }
            };
            let (disk, kubelet) = match failure {
                Failure::Kill => {
                    let after = disk.after_kill();
                    (after.clone(), Kubelet { disk: after, ..kubelet })
                }
                Failure::PowerCut(which) => {
                    let after = disk.after_power_cut(which);
                    let kubelet = Kubelet::boot(&after);
                    (after, kubelet)
                }
                Failure::DiskFull => {
                    disk.end_after(None, end);
                    (disk, kubelet)
                }
            };
            if rest.is_none() {
                assert!(run(&disk, &kubelet, desired).await.is_some(), "{context}");
            }
            assert_good(&disk, &kubelet, before, desired, &context);
        }
    }
}

/// A second failure while the first is being repaired.
#[rstest]
#[case::a_good_change(Some(OLD), NEW)]
#[case::a_change_that_fails(Some(OLD), REFUSED)]
#[case::a_change_that_fails_without_a_file(None, REFUSED)]
#[tokio::test(start_paused = true)]
async fn two_kills_are_survived_too(#[case] before: Option<&str>, #[case] desired: &str) {
    for first in (0..90).step_by(3) {
        for second in (0..60).step_by(4) {
            let context = format!("killed after step {first}, and then after step {second}");
            let (mut disk, mut kubelet) = node(before);
            for fuel in [first, second] {
                disk.end_after(Some(fuel), End::Death);
                let _dead_or_done = run(&disk, &kubelet, desired).await;
                disk = disk.after_kill();
                kubelet.disk = disk.clone();
            }
            assert!(run(&disk, &kubelet, desired).await.is_some(), "{context}");
            assert_good(&disk, &kubelet, before, desired, &context);
        }
    }
}

/// Malformed files are kept for people to inspect.
#[tokio::test(start_paused = true)]
async fn nothing_is_thrown_away() {
    let (disk, kubelet) = node(Some("not JSON, and maybe precious"));
    run(&disk, &kubelet, NEW).await.unwrap();
    let kept = |name: &str| {
        let names = disk.names();
        let name = names.iter().find(|found| found.contains(name)).unwrap();
        String::from_utf8(disk.get(Path::new(name)).unwrap()).unwrap()
    };
    assert_eq!(kept("set-aside-"), "not JSON, and maybe precious");
    assert_eq!(kept("found.json"), "not JSON, and maybe precious");
    assert_eq!(kept("before.json"), "not JSON, and maybe precious");
    // An unreadable state is kept too, and all entries count as unmanaged.
    disk.put(Path::new("/var/lib/kubelet/global-pull-secret/state.json"), b"{}");
    run(&disk, &kubelet, OLD).await.unwrap();
    assert_eq!(kept("state-unreadable"), "{}");
    let file = String::from_utf8(disk.get(Path::new(FILE)).unwrap()).unwrap();
    assert!(file.contains("old.io") && file.contains("new.io"), "{file}");
}

/// Files that are set aside are few, whatever other programs write.
#[tokio::test(start_paused = true)]
async fn backups_are_bounded() {
    let (disk, kubelet) = node(Some("no JSON 0"));
    for number in 1..8 {
        run(&disk, &kubelet, NEW).await.unwrap();
        disk.put(Path::new(FILE), format!("no JSON {number}").as_bytes());
    }
    // Those of an earlier version too.
    for number in 0..5 {
        let name = format!("/var/lib/kubelet/global-pull-secret/set-aside-{number}.json");
        disk.put(Path::new(&name), b"old");
    }
    run(&disk, &kubelet, NEW).await.unwrap();
    let names = disk.names();
    let set_aside: Vec<_> = names.iter().filter(|name| name.contains("set-aside")).collect();
    assert_eq!(set_aside.len(), 3, "{names:?}");
    let newest = set_aside.iter().any(|name| disk.get(Path::new(name)).unwrap() == b"no JSON 7");
    assert!(newest, "the newest are kept");
    let open: Vec<_> = disk.open_names().into_iter().filter(|name| name != FILE).collect();
    assert_eq!(open, Vec::<String>::new());
}

/// After the clean-up no earlier credential is on the node, under any name; killed at any step, the next run completes it.
#[tokio::test(start_paused = true)]
async fn a_revert_leaves_no_backup() {
    let started = async || {
        let (disk, kubelet) = node(Some(OLD));
        run(&disk, &kubelet, NEW).await.unwrap();
        disk.put(Path::new(FILE), b"no JSON");
        run(&disk, &kubelet, NEW).await.unwrap();
        assert!(disk.names().iter().any(|name| name.contains("set-aside")));
        (disk, kubelet)
    };
    let (disk, kubelet) = started().await;
    let before = disk.steps();
    run_with(&disk, &kubelet, OLD, true).await.unwrap();
    let steps = disk.steps() - before;
    assert_no_backup(&disk, "undisturbed");
    for step in 0..steps {
        for is_power_cut in [false, true] {
            let (disk, mut kubelet) = started().await;
            disk.end_after(Some(step), End::Death);
            let _dead_or_done = run_with(&disk, &kubelet, OLD, true).await;
            let disk = if is_power_cut { disk.after_power_cut(0) } else { disk.after_kill() };
            kubelet.disk = disk.clone();
            if is_power_cut {
                kubelet = Kubelet::boot(&disk);
            }
            run_with(&disk, &kubelet, OLD, true).await.unwrap();
            assert_no_backup(&disk, &format!("ended after step {step}"));
        }
    }
}

fn assert_no_backup(disk: &MemoryDisk, context: &str) {
    for disk in [disk, &disk.after_power_cut(0)] {
        let names = disk.names();
        let is_backup = |name: &&String| {
            ["before", "found", "set-aside", "unreadable", "tmp", "/."].iter().any(|part| name.contains(part))
        };
        assert_eq!(names.iter().find(is_backup), None, "{context}");
    }
    let file = String::from_utf8(disk.get(Path::new(FILE)).unwrap()).unwrap();
    assert!(file.contains("old.io") && !file.contains("new.io"), "{context}: {file}");
}

/// The cases of HyperShift's own syncer: initial file, desired content, and the file and the restarts afterwards.
#[rstest]
#[case::absent_and_valid(None, NEW, Some(NEW), 1)]
#[case::absent_and_refused_is_absent_again(None, REFUSED, None, 4)]
#[case::same(Some(NEW), NEW, Some(NEW), 0)]
#[case::same_but_for_the_last_newline(Some(concat!(r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#, "\n")), NEW,
    Some(concat!(r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#, "\n")), 0)]
#[case::same_with_other_white_space(
    Some("{ \"auths\" : {\r\n\"new.io\": {\"auth\":\"Yjpi\"} } } "),
    NEW,
    Some("{ \"auths\" : {\r\n\"new.io\": {\"auth\":\"Yjpi\"} } } "),
    0
)]
#[case::same_with_other_escapes(
    Some(r#"{"auths":{"new.i\u006f":{"auth":"Yjpi"}}}"#),
    NEW,
    Some(r#"{"auths":{"new.i\u006f":{"auth":"Yjpi"}}}"#),
    0
)]
#[case::other_credentials(Some(r#"{"auths":{"new.io":{"auth":"YTph"}}}"#), NEW, Some(NEW), 1)]
#[case::written_as_given(Some(r#"{"auths":{"new.io":{"auth":"YTph"}}}"#),
    concat!(r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#, "\n"),
    Some(concat!(r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#, "\n")), 1)]
#[case::refused_is_put_back(Some(OLD), REFUSED, Some(OLD), 4)]
#[case::empty_is_put_back(Some(""), REFUSED, Some(""), 4)]
#[tokio::test(start_paused = true)]
async fn cases_of_hypershifts_syncer(
    #[case] before: Option<&str>,
    #[case] desired: &str,
    #[case] after: Option<&str>,
    #[case] restarts: u64,
) {
    let (disk, kubelet) = node(before);
    let status = run(&disk, &kubelet, desired).await.unwrap();
    let file = disk.get(Path::new(FILE)).map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(file.as_deref(), after);
    assert_eq!(status.counts.restarts, restarts);
}
