//! The table of cases and stores in `docs/reference/stores.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use testkit::environment::variable;

use super::places::{PLACES, Reason};
use super::{CASES, TESTS};

const BEGIN: &str = "## The suite of all stores\n";
const END: &str = "\n## ";
const COMMAND: &str = "UPDATE_STORES=1 cargo test --package secret-store --test store -- conformance::page";

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/stores.md"))
}

/// The reasons in the order of the list below the table.
fn reasons() -> Vec<Reason> {
    let all: BTreeSet<_> = PLACES.iter().flat_map(|place| place.left_out).map(|(_, reason)| *reason).collect();
    all.into_iter().collect()
}

fn section() -> String {
    let reasons = reasons();
    let mut section = format!(
        "{BEGIN}
<!-- Written by `{COMMAND}`; change the suite instead. -->

One suite of {} cases runs on every store (`crates/secret-store/tests/store/conformance.rs`). `yes`: the case runs there and has to
pass; what it expects may depend on the store's stated capabilities. A letter: it does not apply, for the reason below the table.

| case |",
        CASES.len()
    );
    // Writing to a String cannot fail, here and below.
    for place in &PLACES {
        let _infallible = write!(section, " {} ({}) |", place.store, place.part);
    }
    section.push_str("\n|---|");
    section.push_str(&"---|".repeat(PLACES.len()));
    for case in CASES {
        let _infallible = write!(section, "\n| {} |", case.replace('_', " "));
        for place in &PLACES {
            let reason = place.reason(case).and_then(|reason| reasons.iter().position(|listed| *listed == reason));
            let _infallible = match reason {
                Some(index) => write!(section, " {} |", letter(index)),
                None => write!(section, " yes |"),
            };
        }
    }
    section.push_str("\n\n| | reason | stated in |\n|---|---|---|\n");
    for (index, reason) in reasons.iter().enumerate() {
        let _infallible = writeln!(section, "| {} | {} | {} |", letter(index), reason.text(), reason.stated());
    }
    section
}

fn letter(index: usize) -> char {
    "abcdefgh".chars().nth(index).unwrap()
}

#[test]
fn the_page_shows_which_case_runs_on_which_store() {
    let tests: Vec<_> = PLACES.iter().map(|place| place.test).collect();
    assert_eq!(tests, TESTS, "each place has its tests");
    for place in &PLACES {
        for (case, _) in place.left_out {
            assert!(CASES.contains(case), "{}: no case is called {case}", place.test);
        }
    }
    let page = std::fs::read_to_string(path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let after = rest.find(END).map_or("", |at| &rest[at..]);
    let written = format!("{before}{}{after}", section());
    if variable("UPDATE_STORES").is_some() {
        daemon::file::replace(&path(), written.as_bytes()).unwrap();
    }
    let page = std::fs::read_to_string(path()).unwrap();
    assert!(page == written, "docs/reference/stores.md is not as it would be written: {COMMAND}");
}
