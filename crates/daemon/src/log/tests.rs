//! Lines in every form, levels, and control characters.

use super::buffer::Buffer;
use super::*;

fn logged(format: Format, level: LevelFilter, events: impl FnOnce()) -> String {
    let buffer = Buffer::default();
    let settings = Settings { format, level, crates: &["daemon"] };
    tracing::subscriber::with_default(subscriber(settings, buffer.clone()), events);
    buffer.text()
}

#[test]
fn a_json_line_is_flat_and_alphabetical_and_has_the_fields_of_its_spans() {
    let line = logged(Format::Json, LevelFilter::INFO, || {
        let _run = tracing::info_span!("run", cluster_id = "cls-1", operation = "outer").entered();
        tracing::info!(operation = "create-secret", duration_ms = 12_u64, "Creating {}", "x");
    });
    let (before, after) = line.split_once("\"timestamp\":\"").unwrap();
    assert_eq!(
        before,
        r#"{"cluster_id":"cls-1","duration_ms":12,"level":"info","message":"Creating x","operation":"create-secret","#
    );
    assert!(after.ends_with("Z\"}\n"), "{after}");
}

#[test]
fn numbers_of_every_type_stay_numbers_in_json() {
    let line = logged(Format::Json, LevelFilter::INFO, || {
        let wait = std::time::Duration::from_millis(1500);
        tracing::info!(a = 1_u8, b = -2_i64, c = wait.as_millis(), d = -4_i128, e = wait.as_secs_f64(), f = true, "x");
        tracing::info!(a = u128::MAX, b = f64::NAN, "x");
    });
    let (first, second) = line.split_once('\n').unwrap();
    assert!(first.starts_with(r#"{"a":1,"b":-2,"c":1500,"d":-4,"e":1.5,"f":true,"#), "{first}");
    assert!(second.starts_with(r#"{"a":"340282366920938463463374607431768211455","b":"NaN","#), "{second}");
}

#[test]
fn control_characters_do_not_break_a_text_line() {
    let line = logged(Format::Text, LevelFilter::INFO, || {
        tracing::warn!(operation = "retry", name = "a\nb\u{1b}[2J", "again");
    });
    let (_time, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, "warn  retry              again  name=a\\nb\\u{1b}[2J\n");
}

#[test]
fn colours_are_around_the_time_the_level_and_the_names_of_fields() {
    let events = || tracing::error!(operation = "retry", cluster_id = "cls-1\u{1b}[2J", "again");
    let colored = logged(Format::ColoredText, LevelFilter::INFO, events);
    assert!(colored.ends_with(
        "\u{1b}[0m \u{1b}[1;31merror\u{1b}[0m retry              again  \u{1b}[2mcluster_id=\u{1b}[0mcls-1\\u{1b}[2J\n"
    ));
    let uncolored = [DIM, RED, RESET].iter().fold(colored, |text, code| text.replace(code, ""));
    let plain = logged(Format::Text, LevelFilter::INFO, events);
    assert_eq!(uncolored.split_once(' ').unwrap().1, plain.split_once(' ').unwrap().1);
}

#[test]
fn a_line_names_its_component() {
    let buffer = Buffer::default();
    let settings = Settings { format: Format::Text, level: LevelFilter::INFO, crates: &["daemon"] };
    tracing::subscriber::with_default(subscriber_of(&[("daemon", "shared")], settings, buffer.clone()), || {
        tracing::info!(operation = "a", "one");
        let _span = tracing::info_span!("part", component = "sentinel").entered();
        tracing::info!(operation = "b", "two");
    });
    let text = buffer.text();
    let lines: Vec<_> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(lines, ["shared    info  a                  one", "sentinel  info  b                  two"]);
}

#[test]
fn audit_records_are_written_at_every_level() {
    let buffer = Buffer::default();
    let settings = Settings { format: Format::Json, level: LevelFilter::ERROR, crates: &["daemon", AUDIT] };
    tracing::subscriber::with_default(subscriber(settings, buffer.clone()), || {
        tracing::info!("not this");
        tracing::info!(target: AUDIT, "read");
    });
    let text = buffer.text();
    assert!(text.contains("read") && text.lines().count() == 1, "{text}");
}

#[test]
fn lower_levels_and_other_crates_are_not_logged() {
    let lines = logged(Format::Json, LevelFilter::INFO, || {
        tracing::debug!("too detailed");
        tracing::error!(target: "hyper::client", "authorization: Bearer x");
    });
    assert_eq!(lines, "");
}
