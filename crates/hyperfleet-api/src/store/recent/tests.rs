//! Positions before, in and behind the changes in memory, and their bounds.

use rstest::rstest;

use super::*;
use crate::store::change::ChangeKind;
use crate::store::recorded::Of;

const ALL: Batch = Batch { items: 1000, bytes: 1_000_000 };

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

/// A change such as `a-4`, whose object has that size.
fn change(text: &str, size: usize) -> Recorded {
    let of = Of { kind: "Cluster".to_owned(), id: text.to_owned(), tenancy: <_>::default() };
    Recorded::new(version(text), ChangeKind::Added, of, &"x".repeat(size))
}

fn read(newest: &str, changes: &[&str]) -> Read {
    Read { newest: version(newest), changes: changes.iter().map(|text| change(text, 10)).collect() }
}

/// The versions of the changes after a position, and the position behind them.
fn after(recent: &Recent, position: &str, batch: Batch) -> Option<String> {
    let (changes, until) = recent.after(&version(position), "Cluster", &Reach::Unlimited, batch)?;
    let changes: Vec<_> = changes.iter().map(|change| change.version.number.to_string()).collect();
    Some(format!("{}|{until}", changes.join(",")))
}

#[rstest]
#[case::before("a-2", None)]
#[case::at_the_edge("a-3", Some("4,5,6|a-6"))]
#[case::within("a-5", Some("6|a-6"))]
#[case::at_the_end("a-6", Some("|a-6"))]
#[case::behind("a-7", None)]
#[case::of_another_epoch("b-4", None)]
fn positions(#[case] position: &str, #[case] expected: Option<&str>) {
    let recent = Recent::new(BOUNDS);
    assert_eq!(after(&recent, position, ALL), None, "nothing is read yet");
    recent.add(read("a-3", &[]));
    recent.add(read("a-6", &["a-4", "a-5", "a-6"]));
    assert_eq!(after(&recent, position, ALL).as_deref(), expected);
    assert_eq!(recent.reaches(&version(position)), expected.is_some());
    recent.clear();
    assert_eq!(after(&recent, position, ALL), None);
}

#[rstest]
#[case::goes_on("a-6", &["a-5", "a-6"], "3", Some("4,5,6|a-6"))]
#[case::in_parts("a-9", &["a-5", "a-6"], "3", Some("4,5,6|a-6"))]
#[case::nothing_new("a-4", &[], "3", Some("4|a-4"))]
#[case::removed_meanwhile("a-8", &["a-7", "a-8"], "3", None)]
#[case::from_the_first_that_is_left("a-8", &["a-7", "a-8"], "6", Some("7,8|a-8"))]
#[case::all_removed_meanwhile("a-8", &[], "3", None)]
#[case::begins_anew_at_the_end("a-8", &[], "8", Some("|a-8"))]
#[case::commits_were_lost("a-2", &[], "3", None)]
#[case::another_epoch("b-4", &[], "3", None)]
fn what_does_not_follow_replaces(
    #[case] newest: &str,
    #[case] changes: &[&str],
    #[case] position: &str,
    #[case] expected: Option<&str>,
) {
    let recent = Recent::new(BOUNDS);
    recent.add(read("a-3", &[]));
    recent.add(read("a-4", &["a-4"]));
    recent.add(read(newest, changes));
    assert_eq!(after(&recent, &format!("a-{position}"), ALL).as_deref(), expected);
}

#[rstest]
#[case::by_items(Bounds { items: 2, bytes: 1_000_000 }, &[10, 10, 10], "a-1")]
#[case::by_bytes(Bounds { items: 10, bytes: 2 * 1024 + 512 }, &[500, 500, 500], "a-1")]
#[case::a_huge_one_displaces_the_others(Bounds { items: 10, bytes: 3000 }, &[10, 10, 2000], "a-2")]
#[case::one_that_is_too_large(Bounds { items: 10, bytes: 3000 }, &[10, 10, 4000], "a-3")]
#[case::until_others_follow(Bounds { items: 10, bytes: 3000 }, &[10, 4000, 10], "a-2")]
fn both_bounds_hold(#[case] bounds: Bounds, #[case] sizes: &[usize], #[case] first: &str) {
    let recent = Recent::new(bounds);
    recent.add(read("a-0", &[]));
    for (number, size) in (1..).zip(sizes) {
        let changes = vec![change(&format!("a-{number}"), *size)];
        recent.add(Read { newest: version(&format!("a-{number}")), changes });
        recent.locked(|held| {
            let held = held.as_ref().unwrap();
            assert!(held.changes.len() <= bounds.items && held.bytes <= bounds.bytes);
            assert_eq!(held.bytes, held.changes.iter().map(|change| change.size()).sum::<usize>());
        });
    }
    assert!(recent.reaches(&version(first)));
    let before = version(first).number - 1;
    assert!(before < 0 || !recent.reaches(&version(&format!("a-{before}"))), "exactly as many as fit");
    assert_eq!(recent.until(), Some(version("a-3")), "the follower goes on behind what is not kept");
}

#[rstest]
#[case::items(Batch { items: 2, bytes: 1_000_000 }, "4,5|a-5")]
#[case::bytes(Batch { items: 10, bytes: 130 }, "4,5|a-5")]
#[case::at_least_one(Batch { items: 10, bytes: 1 }, "4|a-4")]
fn batches_are_bounded(#[case] batch: Batch, #[case] expected: &str) {
    let recent = Recent::new(BOUNDS);
    recent.add(read("a-3", &[]));
    recent.add(read("a-6", &["a-4", "a-5", "a-6"]));
    assert_eq!(after(&recent, "a-3", batch).as_deref(), Some(expected));
}
