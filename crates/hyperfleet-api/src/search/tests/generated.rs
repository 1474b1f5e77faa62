//! Generated resources and searches, from few values so that searches often match.

use fleet_model::Generation;
use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const TEXTS: &[&str] = &[
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b",
    "é",
    "É",
    "%",
    "_",
    "a_b",
    "a%b",
    "10",
    "9",
    "1.5",
    "0.1",
    "-1",
    "1000",
    "true",
    "it's",
    "x\\y",
    "\u{10ffff}",
    "\u{ffff}",
    "say \"b\"",
    "`",
    "2026-01-02",
    "null",
    "{}",
    "a\nb",
];
const KEYS: &[&str] = &["shard", "cost-center", "hyperfleet.io/cluster-id", "in"];
const CONDITIONS: &[&str] = &["Reconciled", "ProbeSuccessful"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "1.5",
    "0.1",
    "-0.0",
    "1e3",
    "1k",
    "1Ki",
    "123456789.125",
    "9007199254740993",
    "9223372036854775807",
    "0.30000000000000004",
    "5e-324",
];
const PATHS: &[&str] = &["a", "b", "b.c", "b.c.d", "b.0", "0", "0.1", "x_y.z"];
const DAYS: i64 = 86_400_000_000;
const TEXT_COLUMNS: &[&str] =
    &["id", "kind", "name", "created_by", "updated_by", "deleted_by", "owner_id", "owner_kind"];
const TIME_COLUMNS: &[&str] = &["created_time", "updated_time", "deleted_time"];
const COMPARISONS: &[&str] = &["=", "==", "!=", "<>", "<", "<=", ">", ">="];

fn text() -> impl Strategy<Value = String> {
    select(TEXTS).prop_map(str::to_owned)
}

fn time() -> impl Strategy<Value = Timestamp> {
    let days = (0..4_i64, select(&[0, 1, DAYS / 2][..]));
    days.prop_map(|(day, rest)| Timestamp::from_microsecond((20_454 + day) * DAYS + rest).unwrap())
}

fn json_value() -> impl Strategy<Value = Json> {
    let numbers =
        [json!(0), json!(1), json!(-1), json!(1.5), json!(0.1), json!(1000), json!(u64::MAX), json!(i64::MAX)]
            .into_iter()
            .chain([json!(9_007_199_254_740_993_i64), json!(1e300), json!(0.300_000_000_000_000_04), json!(5e-324)])
            .collect::<Vec<_>>();
    let scalar = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        4 => select(numbers),
        4 => text().prop_map(Json::String),
    ];
    scalar.prop_recursive(3, 16, 4, |inner| {
        let key = select(&["a", "b", "c", "d", "0", "1", "z"][..]).prop_map(str::to_owned);
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Json::Array),
            3 => btree_map(key, inner, 0..4).prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

fn condition(kind: &'static str) -> impl Strategy<Value = Condition> {
    let status = select(&[Status::True, Status::False, Status::Unknown][..]);
    let reason = option::of(text());
    (status, reason, (0..4_u32).prop_map(Generation::from), time(), time()).prop_map(
        move |(status, reason, observed_generation, updated, transition)| Condition {
            kind: kind.to_owned(),
            status,
            reason,
            message: None,
            observed_generation,
            created_time: transition,
            last_updated_time: updated,
            last_transition_time: transition,
            reason_since_time: transition,
        },
    )
}

fn state() -> impl Strategy<Value = State> {
    let labels = btree_map(select(KEYS).prop_map(str::to_owned), text(), 0..4);
    let conditions = CONDITIONS.iter().map(|kind| option::of(condition(kind))).collect::<Vec<_>>();
    (labels, conditions).prop_map(|(labels, conditions)| State {
        labels,
        conditions: conditions.into_iter().flatten().collect(),
        ..State::default()
    })
}

/// A resource; the caller sets the id.
pub(super) fn resource() -> impl Strategy<Value = Resource> {
    let spec = btree_map(select(&["a", "b", "0", "x_y"][..]).prop_map(str::to_owned), json_value(), 0..4);
    let texts = (text(), text(), text(), text());
    let deleted = (option::of(time()), option::of(text()));
    let owner = option::of((text(), text()));
    (texts, spec, (0..4_u32).prop_map(Generation::from), time(), time(), deleted, owner, state()).prop_map(
        |(texts, spec, generation, created_time, updated_time, deleted, owner, state)| Resource {
            id: String::new(),
            kind: texts.0,
            name: texts.1,
            owner: owner.map(|(id, kind)| Target { id, kind, href: String::new() }),
            spec: spec.into_iter().collect(),
            href: "/api/hyperfleet/v1/clusters/0197".to_owned(),
            generation,
            created_time,
            created_by: texts.2,
            updated_time,
            updated_by: texts.3,
            deleted_time: deleted.0,
            deleted_by: deleted.1,
            state,
        },
    )
}

/// A literal in one of the three quotes.
fn quoted() -> impl Strategy<Value = String> {
    (text(), select(&['\'', '"', '`'][..])).prop_map(|(text, quote)| {
        let escaped = text.replace('\\', "\\\\").replace(quote, &format!("{quote}{quote}"));
        format!("{quote}{escaped}{quote}")
    })
}

fn number() -> impl Strategy<Value = String> {
    select(NUMBERS).prop_map(str::to_owned)
}

fn whole_number() -> impl Strategy<Value = String> {
    (-1..4_i64).prop_map(|number| number.to_string())
}

fn written_time() -> impl Strategy<Value = String> {
    prop_oneof![
        time().prop_map(|time| time.to_string()),
        time().prop_map(|time| format!("'{time}'")),
        (1..5).prop_map(|day| format!("2026-01-0{day}")),
    ]
}

/// A time of a condition: no date.
fn instant() -> impl Strategy<Value = String> {
    prop_oneof![time().prop_map(|time| time.to_string()), time().prop_map(|time| format!("'{time}'"))]
}

fn pattern() -> impl Strategy<Value = String> {
    let part = select(&["%", "_", "a", "A", "b", "é", "É", "\\\\", "\\%", "\\_", "\\a", "'", "1", "\n"][..]);
    vec(part, 0..5).prop_map(|parts| {
        let pattern: String = parts.concat();
        format!("'{}'", pattern.replace('\\', "\\\\").replace('\'', "''"))
    })
}

/// The tests of a field with such values; without `not` unless `not` is true.
fn tests(value: impl Strategy<Value = String> + 'static, not: bool) -> BoxedStrategy<String> {
    let nulls = select(if not { &["is null", "is not null"][..] } else { &["is null"] });
    let not = select(if not { &["", "not "][..] } else { &[""] });
    let value = value.boxed();
    prop_oneof![
        6 => (select(COMPARISONS), value.clone()).prop_map(|(operator, value)| format!("{operator} {value}")),
        1 => (not.clone(), value.clone(), value.clone())
            .prop_map(|(not, low, high)| format!("{not}between {low} and {high}")),
        2 => (not, vec(value, 1..4)).prop_map(|(not, values)| format!("{not}in [{}]", values.join(", "))),
        1 => nulls.prop_map(str::to_owned),
    ]
    .boxed()
}

fn likes(not: bool) -> BoxedStrategy<String> {
    let operators = if not { &["like", "ilike", "not like", "not ilike"][..] } else { &["like", "ilike"] };
    (select(operators), pattern()).prop_map(|(operator, pattern)| format!("{operator} {pattern}")).boxed()
}

/// Comparisons of a field whose value stands first.
fn reversed(
    fields: &'static [&'static str],
    prefix: &'static str,
    value: BoxedStrategy<String>,
) -> BoxedStrategy<String> {
    let parts = (value, select(COMPARISONS), select(fields));
    parts.prop_map(move |(value, operator, field)| format!("{value} {operator} {prefix}{field}")).boxed()
}

fn of(fields: &'static [&'static str], prefix: &'static str, tests: BoxedStrategy<String>) -> BoxedStrategy<String> {
    (select(fields), tests).prop_map(move |(field, test)| format!("{prefix}{field} {test}")).boxed()
}

/// Tests that may be negated.
fn free() -> BoxedStrategy<String> {
    let booleans = || select(&["true", "FALSE"][..]);
    prop_oneof![
        of(TEXT_COLUMNS, "", prop_oneof![3 => tests(quoted(), true), 1 => likes(true)].boxed()),
        of(TIME_COLUMNS, "", tests(written_time(), true)),
        of(&["generation"], "", tests(whole_number(), true)),
        of(PATHS, "spec.", prop_oneof![3 => tests(quoted(), true), 1 => likes(true)].boxed()),
        of(PATHS, "spec.", tests(number(), true)),
        reversed(TEXT_COLUMNS, "", quoted().boxed()),
        reversed(PATHS, "spec.", prop_oneof![quoted(), number()].boxed()),
        of(PATHS, "spec.", (select(&["=", "!="][..]), booleans()).prop_map(|(o, v)| format!("{o} {v}")).boxed()),
    ]
    .boxed()
}

/// Tests that may not.
fn bound() -> BoxedStrategy<String> {
    let compared = |value: BoxedStrategy<String>| {
        (select(COMPARISONS), value).prop_map(|(operator, value)| format!("{operator} {value}")).boxed()
    };
    let part = |name: &'static str, test: BoxedStrategy<String>| {
        (select(CONDITIONS), test).prop_map(move |(kind, test)| format!("status.conditions.{kind}.{name} {test}"))
    };
    let statuses = select(&["= 'True'", "= \"False\"", "== `Unknown`", "is null"][..]).prop_map(str::to_owned);
    prop_oneof![
        3 => of(KEYS, "labels.", prop_oneof![3 => tests(quoted(), false), 1 => likes(false)].boxed()),
        1 => of(CONDITIONS, "status.conditions.", statuses.boxed()),
        1 => part("reason", prop_oneof![3 => compared(quoted().boxed()), 1 => Just("is null".to_owned())].boxed()),
        1 => part("observed_generation", compared(whole_number().boxed())),
        1 => part("last_updated_time", compared(instant().boxed())),
        1 => part("last_transition_time", compared(instant().boxed())),
    ]
    .boxed()
}

/// Any search that the language allows.
pub(super) fn search() -> impl Strategy<Value = String> {
    combined(prop_oneof![2 => negatable(), 1 => bound()].boxed(), false)
}

/// Any that `not` may stand before.
pub(super) fn negatable() -> BoxedStrategy<String> {
    combined(free(), true)
}

fn combined(leaf: BoxedStrategy<String>, not: bool) -> BoxedStrategy<String> {
    leaf.prop_recursive(3, 8, 3, move |inner| {
        let joined = (vec(inner.clone(), 2..4), select(&[" and ", " or ", " OR "][..]))
            .prop_map(|(parts, word)| format!("({})", parts.join(word)));
        let negated = inner.prop_map(move |inner| if not { format!("not {inner}") } else { format!("({inner})") });
        prop_oneof![2 => joined, 1 => negated]
    })
    .boxed()
}

/// Up to three columns, some twice.
pub(super) fn order() -> impl Strategy<Value = Vec<String>> {
    let columns = [TEXT_COLUMNS, TIME_COLUMNS, &["generation"]].concat();
    let key = (select(columns), select(&["", " asc", " desc"][..]));
    vec(key.prop_map(|(column, direction)| format!("{column}{direction}")), 0..3)
}
