//! The journal of the broker in memory, over a kill -9.

use std::collections::BTreeSet;
use std::process::Stdio;

use message_broker::memory::Memory;
use message_broker::{Broker, ErrorKind, Subscription};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::rig::{eager, id, next, publish, subscribe, variable, within};

const FILE: &str = "TEST_JOURNAL_OF_THE_DOOMED";
const MANY: usize = 10_000;

fn subscription() -> Subscription {
    Subscription::new("topic", "subscription").unwrap()
}

async fn open(path: &str) -> Broker {
    Broker::Memory(Memory::open(path.as_ref()).await.unwrap())
}

/// Run by the test below in a process of its own: publishes and consumes, and prints what was confirmed and what it has
/// acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doomed() {
    let Some(path) = variable(FILE) else { return };
    let broker = open(&path).await;
    let mut deliveries = subscribe(&broker, &subscription(), eager(10)).await.unwrap();
    let publishing = async {
        for number in 0..MANY {
            publish(&broker, &subscription().topic, &number.to_string()).await;
            println!("\nconfirmed {number}");
        }
        std::future::pending::<()>().await;
    };
    let consuming = async {
        loop {
            let delivery = next(&mut deliveries).await;
            let id = id(&delivery);
            // Printed first: an event whose consumer is killed between the two is delivered again, not lost.
            println!("\nacknowledging {id}");
            delivery.ack().await.unwrap();
        }
    };
    tokio::join!(publishing, consuming);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_nothing_that_was_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.db").display().to_string();
    let mut doomed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal::the_doomed", "--nocapture"])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(doomed.stdout.take().unwrap()).lines();
    let (mut confirmed, mut acknowledged) = (BTreeSet::new(), BTreeSet::new());
    while let Some(line) = within("a line", lines.next_line()).await.unwrap() {
        if let Some(number) = line.strip_prefix("confirmed ") {
            confirmed.insert(number.to_owned());
        } else if let Some(number) = line.strip_prefix("acknowledging ") {
            acknowledged.insert(number.to_owned());
        }
        if confirmed.len() == MANY / 3 {
            doomed.start_kill().unwrap();
        }
    }
    doomed.wait().await.unwrap();
    assert!(confirmed.len() >= MANY / 3, "it died too soon");

    let broker = open(&path).await;
    let mut deliveries = subscribe(&broker, &subscription(), eager(10)).await.unwrap();
    let mut missing: BTreeSet<String> = confirmed.difference(&acknowledged).cloned().collect();
    while !missing.is_empty() {
        let delivery = next(&mut deliveries).await;
        missing.remove(&id(&delivery));
        delivery.ack().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_has_one_user() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.db");
    let _first = Memory::open(&path).await.unwrap();
    let error = Memory::open(&path).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}
