//! Events, results of Jobs and configurations that are damaged at random: none panics, none is accepted as something else.
//!
//! The corpus is `tests/corpus`. The variable `FUZZ_INPUTS` has the number of inputs of a long run.

use std::collections::BTreeMap;

use damage::{Random, inputs};
use message_broker::{Data, Event, Format, Message};
use serde::Deserialize;
use serde_json::Value;

use crate::config::Config;
use crate::outcome::Outcome;
use crate::run::trigger;

/// Inputs of an ordinary run.
const INPUTS: u64 = 3_000;

/// Words that mean something here, and pieces of YAML.
const WORDS: &[&[u8]] = &[
    b"&a",
    b"*a",
    b"!!",
    b"- ",
    b"\n",
    b"\t",
    b"  ",
    b"%",
    b"../",
    b"\xe2\x80\xae",
    b"99999999999999999999",
    b"application/json",
    b"1.0",
];

const EVENTS: &str = include_str!("../tests/corpus/events.json");
const RESULTS: &str = include_str!("../tests/corpus/results.json");
const CONFIGURATION: &str = include_str!("../tests/corpus/configuration.yaml");

/// A value in the corpus that errors must not quote.
const CANARY: &str = "Hunter2";

/// Names of attributes, and values that they do not expect.
const NAMES: [&str; 9] = [
    "content-type",
    "_watermill_message_uuid",
    "ce-specversion",
    "ce-id",
    "ce-time",
    "ce-datacontenttype",
    "CE-subject",
    "cloudEvents_id",
    "ce-",
];
const VALUES: [&str; 8] = [
    "",
    "1.0",
    "2.0",
    "yesterday",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "text/plain",
    "clusters/../x",
];

/// Attributes of `CloudEvents` itself, which are no extensions.
const RESERVED: [&str; 4] = ["data", "data_base64", "datacontenttype", "specversion"];

#[derive(Deserialize)]
struct Sample {
    attributes: BTreeMap<String, String>,
    body: String,
}

/// Numbers of results: a generator that only makes nonsense proves nothing.
#[derive(Debug, Default)]
struct Counts {
    refused: u64,
    of_resource: u64,
    of_another_kind: u64,
    without_id: u64,
}

fn damaged_text(random: &mut Random, text: &str) -> String {
    String::from_utf8_lossy(&random.damaged(text.as_bytes(), WORDS)).into_owned()
}

fn damaged_message(random: &mut Random, corpus: &[Sample]) -> Message {
    let sample = random.pick(corpus);
    let mut attributes = sample.attributes.clone();
    for _ in 0..random.roll(3) {
        let name = (*random.pick(&NAMES)).to_owned();
        match random.roll(3) {
            0 => drop(attributes.remove(&name)),
            1 => drop(attributes.insert(name, (*random.pick(&VALUES)).to_owned())),
            _ => {
                let value = attributes.get(&name).cloned().unwrap_or_default();
                attributes.insert(name, damaged_text(random, &value));
            }
        }
    }
    Message { body: random.damaged(sample.body.as_bytes(), WORDS), attributes }
}

/// An event that was read is written and read again as the same one.
fn check_round_trip(event: &Event, seed: u64) {
    let is_extension = |name: &String| {
        !RESERVED.contains(&name.as_str())
            && !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    if !event.extensions.keys().all(is_extension) {
        return;
    }
    let again = Event::decode(&event.encode(Format::Structured)).unwrap();
    // A float may lose its last digit on the way.
    let without_data = |event: &Event| Event { data: None, ..event.clone() };
    assert_eq!(without_data(&again), without_data(event), "seed {seed}");
    let kind = |data: &Option<Data>| data.as_ref().map(std::mem::discriminant);
    assert_eq!(
        kind(&again.data),
        kind(&event.data.clone().filter(|data| *data != Data::Json(Value::Null))),
        "seed {seed}"
    );
}

#[test]
fn damaged_events_name_a_resource_or_none() {
    let corpus: Vec<Sample> = serde_json::from_str(EVENTS).unwrap();
    let mut counts = Counts::default();
    for seed in 0..inputs(INPUTS) {
        let message = damaged_message(&mut Random::new(seed), &corpus);
        let event = match Event::decode(&message) {
            Ok(event) => event,
            Err(error) => {
                counts.refused += 1;
                assert!(!error.to_string().contains(CANARY), "seed {seed}: {error}");
                continue;
            }
        };
        assert!(!event.id.is_empty(), "seed {seed}");
        check_round_trip(&event, seed);
        match trigger::of(&event, "clusters") {
            Ok(Some((id, _))) => {
                counts.of_resource += 1;
                assert!(id.len() <= 63 && fleet_model::id::is_dns_label(&id), "seed {seed}: {id}");
            }
            Ok(None) => counts.of_another_kind += 1,
            Err(_static_text) => counts.without_id += 1,
        }
    }
    let Counts { refused, of_resource, of_another_kind, without_id } = counts;
    let least = [refused, of_resource, of_another_kind, without_id].into_iter().min();
    assert!(least > Some(inputs(INPUTS) / 100), "{counts:?}");
}

#[test]
fn damaged_results_are_no_more_than_results() {
    let corpus: Vec<Value> = serde_json::from_str(RESULTS).unwrap();
    let mut successes = 0;
    for seed in 0..inputs(INPUTS) {
        let mut random = Random::new(seed);
        let text = random.pick(&corpus).to_string();
        let exit_code = *random.pick(&[0, 1, 2, 4, 75, 143]);
        let outcome = Outcome::of(exit_code, &damaged_text(&mut random, &text));
        successes += u64::from(outcome.is_success);
        assert!(outcome.message.len() <= 1024, "seed {seed}");
        let is_word = |reason: &String| {
            reason.len() <= 128 && reason.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        assert!(outcome.reason.as_ref().is_none_or(is_word), "seed {seed}: {outcome:?}");
        assert!(!outcome.data().contains_key("durationMs"), "seed {seed}");
    }
    assert!(successes > inputs(INPUTS) / 100 && successes < inputs(INPUTS), "{successes}");
}

#[test]
fn damaged_configurations_are_refused_with_a_reason_or_valid() {
    let (mut valid, all) = (0, inputs(INPUTS).div_ceil(30));
    for seed in 0..all {
        let text = damaged_text(&mut Random::new(seed), CONFIGURATION);
        let read = Config::read(Some(text), BTreeMap::new(), &BTreeMap::<&str, &str>::new());
        match read.and_then(Config::check) {
            Ok(_) => valid += 1,
            Err(faults) => assert!(faults.iter().all(|fault| !fault.is_empty()) && !faults.is_empty(), "seed {seed}"),
        }
    }
    assert!(valid > all / 20 && valid < all, "{valid} of {all}");
}
