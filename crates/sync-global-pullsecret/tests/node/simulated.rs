//! A node whose disk and kubelet are simulated: killed, cut off and refused at every single step.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use sync_global_pullsecret::Foreign;
use sync_global_pullsecret::decide::{Delays, Rules};
use sync_global_pullsecret::kubelet_file::KubeletFile;
use sync_global_pullsecret::run::{Ears, RevisionRule, Syncer};
use sync_global_pullsecret::source::{Reader, Said};
use sync_global_pullsecret::status::{Board, Status};
use sync_global_pullsecret::units::{UnitError, Units};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::memory_disk::{End, MemoryDisk};

const FILE: &str = "/var/lib/kubelet/config.json";
const OLD: &str = r#"{"auths":{"old.io":{"auth":"YTph"}}}"#;
const NEW: &str = r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#;
const REFUSED: &str = r#"{"auths":{"refuse.example.com":{"auth":"Yjpi"}}}"#;

/// What a kubelet runs with: nothing where it is down, no file where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Runs {
    Down,
    With(Option<Vec<u8>>),
}

/// A kubelet that refuses content with a certain registry, and keeps in mind with what it runs.
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
        // Killed after the restart and before it was heard of.
        if !self.disk.step() {
            return std::future::pending().await;
        }
        if started { Ok(()) } else { Err(UnitError::Bad("refused".to_owned())) }
    }

    async fn prove(&self) -> Result<(), UnitError> {
        if !self.disk.step() {
            return std::future::pending().await;
        }
        let runs = *self.runs_with.borrow() != Runs::Down;
        if runs { Ok(()) } else { Err(UnitError::Bad("down".to_owned())) }
    }
}

/// Runs a syncer until it is at rest, or dead.
async fn run(disk: &MemoryDisk, kubelet: &Kubelet, wanted: &str) -> Option<Status> {
    let rules = Rules { restart: true, delays: Delays { held: Duration::from_mins(10) } };
    let Ok(file) = KubeletFile::open(disk.clone(), Path::new(FILE), Foreign::Keep) else { return None };
    let reader = Reader::new(file.key().clone());
    let board = Board::new(Status::new(None, Timestamp::UNIX_EPOCH));
    let (sender, sayings) = mpsc::channel(4);
    let said = reader.read(Zeroizing::new(wanted.as_bytes().to_vec()), None);
    assert!(matches!(said, Said::Content(_)));
    sender.send(said).await.unwrap();
    let stop = CancellationToken::new();
    let syncer = Syncer::new(file, kubelet.clone(), rules, RevisionRule::default(), board.clone());
    let at_rest = async {
        loop {
            // The clock stands still while anybody has something to do.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let status = board.read();
            if disk.is_dead() || matches!(status.reason.as_str(), "Applied" | "ContentFailed") {
                return status;
            }
        }
    };
    let ears = Ears { sayings, touches: None, stop: stop.clone() };
    let status = tokio::select! {
        () = syncer.run(ears) => None,
        status = at_rest => Some(status),
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

/// What is to be true whenever a node is at rest.
fn assert_good(disk: &MemoryDisk, kubelet: &Kubelet, before: Option<&str>, wanted: &str, context: &str) {
    let file = disk.get(Path::new(FILE)).map(|bytes| String::from_utf8(bytes).unwrap());
    let expected = if wanted == REFUSED { before.map(str::to_owned) } else { Some(expected_file(before, wanted)) };
    assert_eq!(file, expected, "{context}");
    let runs_with = kubelet.runs_with.borrow().clone();
    assert_eq!(runs_with, Runs::With(file.map(String::into_bytes)), "the kubelet runs with something else: {context}");
    let left: Vec<_> = disk.names().into_iter().filter(|name| name.contains("/.") || name.contains(".tmp")).collect();
    assert_eq!(left, Vec::<String>::new(), "{context}");
}

/// The old file's entry is nobody's but a stranger's, so it stays.
fn expected_file(before: Option<&str>, wanted: &str) -> String {
    if before == Some(OLD) {
        r#"{"auths":{"new.io":{"auth":"Yjpi"},"old.io":{"auth":"YTph"}}}"#.to_owned()
    } else {
        wanted.to_owned()
    }
}

#[derive(Clone, Copy, Debug)]
enum Blow {
    Kill,
    PowerCut(u64),
    DiskFull,
}

#[rstest]
#[case::a_good_change(Some(OLD), NEW)]
#[case::a_good_change_where_nothing_was(None, NEW)]
#[case::a_good_change_of_a_file_that_nobody_can_read(Some("{"), NEW)]
#[case::a_change_that_fails(Some(OLD), REFUSED)]
#[case::a_change_that_fails_where_nothing_was(None, REFUSED)]
#[case::a_change_that_fails_of_a_file_that_nobody_can_read(Some("{"), REFUSED)]
#[case::a_change_that_fails_of_an_empty_file(Some(""), REFUSED)]
#[tokio::test(start_paused = true)]
async fn every_step_may_be_the_last(#[case] before: Option<&str>, #[case] wanted: &str) {
    let (disk, kubelet) = node(before);
    assert!(run(&disk, &kubelet, wanted).await.is_some());
    assert_good(&disk, &kubelet, before, wanted, "undisturbed");
    let steps = disk.steps();
    assert!(steps > 20, "{steps} steps");

    let power_cuts = [0, u64::MAX, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA, 0b1, 0b10, 0b100, 0b1000];
    let blows = power_cuts.map(Blow::PowerCut).into_iter().chain([Blow::Kill, Blow::DiskFull]);
    for blow in blows {
        for step in 0..steps {
            let context = format!("{blow:?} after step {step}");
            let (disk, kubelet) = node(before);
            let end = if matches!(blow, Blow::DiskFull) { End::Full } else { End::Death };
            disk.end_after(Some(step), end);
            let rest = {
                let running = run(&disk, &kubelet, wanted);
                // A full disk is waited for; somebody makes room after a while.
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
            let (disk, kubelet) = match blow {
                Blow::Kill => {
                    let after = disk.after_kill();
                    (after.clone(), Kubelet { disk: after, ..kubelet })
                }
                Blow::PowerCut(which) => {
                    let after = disk.after_power_cut(which);
                    let kubelet = Kubelet::boot(&after);
                    (after, kubelet)
                }
                Blow::DiskFull => {
                    disk.end_after(None, end);
                    (disk, kubelet)
                }
            };
            if rest.is_none() {
                assert!(run(&disk, &kubelet, wanted).await.is_some(), "{context}");
            }
            assert_good(&disk, &kubelet, before, wanted, &context);
        }
    }
}

/// A second blow while the first is being mended.
#[rstest]
#[case::a_good_change(Some(OLD), NEW)]
#[case::a_change_that_fails(Some(OLD), REFUSED)]
#[case::a_change_that_fails_where_nothing_was(None, REFUSED)]
#[tokio::test(start_paused = true)]
async fn two_kills_are_survived_too(#[case] before: Option<&str>, #[case] wanted: &str) {
    for first in (0..90).step_by(3) {
        for second in (0..60).step_by(4) {
            let context = format!("killed after step {first}, and then after step {second}");
            let (mut disk, mut kubelet) = node(before);
            for fuel in [first, second] {
                disk.end_after(Some(fuel), End::Death);
                let _dead_or_done = run(&disk, &kubelet, wanted).await;
                disk = disk.after_kill();
                kubelet.disk = disk.clone();
            }
            assert!(run(&disk, &kubelet, wanted).await.is_some(), "{context}");
            assert_good(&disk, &kubelet, before, wanted, &context);
        }
    }
}

/// What was malformed is kept for people to look at.
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
    // A state that nobody can read is kept too, and what was ours counts as foreign.
    disk.put(Path::new("/var/lib/kubelet/global-pull-secret/state.json"), b"{}");
    run(&disk, &kubelet, OLD).await.unwrap();
    assert_eq!(kept("state-unreadable"), "{}");
    let file = String::from_utf8(disk.get(Path::new(FILE)).unwrap()).unwrap();
    assert!(file.contains("old.io") && file.contains("new.io"), "{file}");
}

/// The peer's rows (globalps §5.2): initial file, wanted, whether the kubelet comes up, and the file and the restarts then.
#[rstest]
#[case::absent_and_valid(None, NEW, Some(NEW), 1)]
#[case::absent_and_refused_is_absent_again(None, REFUSED, None, 4)]
#[case::same(Some(NEW), NEW, Some(NEW), 0)]
#[case::same_but_for_the_last_newline(Some(concat!(r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#, "\n")), NEW,
    Some(concat!(r#"{"auths":{"new.io":{"auth":"Yjpi"}}}"#, "\n")), 0)]
#[case::same_but_written_otherwise(
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
async fn rows_of_the_peer(
    #[case] before: Option<&str>,
    #[case] wanted: &str,
    #[case] after: Option<&str>,
    #[case] restarts: u64,
) {
    let (disk, kubelet) = node(before);
    let status = run(&disk, &kubelet, wanted).await.unwrap();
    let file = disk.get(Path::new(FILE)).map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(file.as_deref(), after);
    assert_eq!(status.counts.restarts, restarts);
}
