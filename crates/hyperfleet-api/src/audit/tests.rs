//! Chains that are whole, and chains of which a line was changed, removed, replaced or added.

use rstest::rstest;
use serde_json::json;

use super::*;

/// The log lines of a chain: its beginning, that many reads, its end.
fn lines(reads: usize) -> Vec<String> {
    let chain = Chain::new();
    let mut last = Last { sequence: 0, hash: NONE.to_owned() };
    let mut operations = vec![Operation::BeginAudit];
    operations.extend(vec![Operation::ReadPullSecret; reads]);
    operations.push(Operation::EndAudit);
    let line = |operation| {
        let mut record = Record::of_process(operation);
        record.subject = "jane \"the admin\"\n".to_owned();
        let link = chain.link(&record, &last, Timestamp::UNIX_EPOCH);
        let mut line = serde_json::to_value(Covered { record: &record, link: &link }).unwrap();
        line["hash"] = json!(link.hash);
        // What the log adds.
        (line["level"], line["message"]) = (json!("info"), json!("pull secret read"));
        last = Last { sequence: link.sequence, hash: link.hash };
        line.to_string()
    };
    operations.into_iter().map(line).collect()
}

fn verified(lines: &[String]) -> Vec<Verified> {
    // As two logs, the first of which ends without the end of its line, as a log that is cut off.
    let (first, second) = lines.split_at(lines.len() / 2);
    let mut verification = Verification::default();
    verification.read("a", first.join("\n").as_bytes()).unwrap();
    verification.read("b", [b"\xff\n", second.join("\n").as_bytes()].concat().as_slice()).unwrap();
    verification.chains()
}

fn fault(lines: &[String]) -> Option<String> {
    verified(lines)[0].fault.as_ref().map(ToString::to_string)
}

#[test]
fn a_whole_chain_is_verified_in_any_order_and_among_other_lines() {
    let mut log = lines(3);
    let (records, ended) = (5, true);
    let epoch = Timestamp::UNIX_EPOCH.to_string();
    let expected = |chain: &Verified| (chain.records, chain.ended, chain.first_time == epoch, chain.fault.is_none());
    assert_eq!(expected(&verified(&log)[0]), (records, ended, true, true));
    log.swap(1, 3);
    let repeated = log[2].clone();
    log.push(repeated);
    log.insert(2, r#"{"message":"served","level":"info"}"#.to_owned());
    log.insert(3, "no JSON {".to_owned());
    log = log.into_iter().map(|line| format!("2026-11-24T10:00:00Z stdout F {line}")).collect();
    assert_eq!(expected(&verified(&log)[0]), (records, ended, true, true));
    log.extend(lines(1));
    assert_eq!(verified(&log).iter().map(|chain| chain.records).sum::<u64>(), 8, "two processes, two chains");
    log.pop();
    assert!(verified(&log).iter().any(|chain| !chain.ended && chain.fault.is_none()));
}

#[rstest]
#[case::subject(2, "jane", "joan", "record 3 in b:2 was changed")]
#[case::time(1, "1970", "1971", "record 2 in a:2 was changed")]
#[case::allowed(0, "true", "false", "record 1 in a:1 was changed")]
#[case::number(3, "\"sequence\":4", "\"sequence\":9", "record 4 is missing")]
fn a_changed_line_is_found(#[case] index: usize, #[case] from: &str, #[case] to: &str, #[case] expected: &str) {
    let mut log = lines(3);
    assert!(log[index].contains(from), "{}", log[index]);
    log[index] = log[index].replace(from, to);
    assert_eq!(fault(&log).as_deref(), Some(expected));
}

#[test]
fn missing_and_replaced_lines_are_found() {
    let whole = lines(4);
    let without = |range: std::ops::Range<usize>| [&whole[..range.start], &whole[range.end..]].concat();
    assert_eq!(fault(&without(2..4)).as_deref(), Some("records 3 to 4 are missing"));
    assert_eq!(fault(&without(0..1)).as_deref(), Some("record 1 is missing"));
    let cut = verified(&without(5..6));
    assert_eq!((cut[0].ended, &cut[0].fault), (false, &None), "the end alone shows that the last lines are missing");

    // A record with a right hash of its own, in the place of another.
    let mut forged: Map<String, Value> = serde_json::from_str(&whole[2]).unwrap();
    forged.insert("subject".to_owned(), json!("joan"));
    let names = covered_names();
    let covered =
        forged.iter().filter(|(name, _)| names.contains(name)).map(|(name, value)| (name.clone(), value.clone()));
    let hash = hash(&covered.collect());
    forged.insert("hash".to_owned(), json!(hash));
    let mut replaced = whole.clone();
    replaced[2] = Value::Object(forged).to_string();
    assert_eq!(fault(&replaced).as_deref(), Some("record 4 in b:2 does not belong to the records before it"));
    let both = [whole, vec![replaced[2].clone()]].concat();
    assert_eq!(fault(&both).as_deref(), Some("record 3 in b:5 does not belong to the records before it"));
}
