//! Whatever anybody writes into a name, label, reason, message or data is shown as it is, and nothing more.

use std::collections::BTreeMap;

use hyperfleet_api::page::Asked;
use hyperfleet_api::resource::{Report, ReportedCondition, Resource, State, Status};
use hyperfleet_api::store::{Stored, Transition};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use crate::document::Node;
use crate::fleet::Fleet;

/// What has broken out of pages before, between anything else.
fn hostile() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</style><style>*{display:none}",
        "</title></pre></code></td></table></details>",
        "--><!--",
        "]]>",
        "&lt;b&gt;",
        "&#60;",
        "javascript:alert(1)",
        "{{7*7}}",
        "\u{202e}gnp.exe",
        "\u{7}\u{1b}[31m",
        "\r\nSet-Cookie: a=b",
    ]);
    let noise = "[^\0]{0,12}";
    (noise, known, noise).prop_map(|(before, known, after)| format!("{before}{known}{after}"))
}

/// The text as it is to be seen: what a terminal or a bidirectional layout would obey has become visible.
fn seen(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() && !['\n', '\t'].contains(&c)
            || ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

fn resource(id: &str, text: &str, now: Timestamp) -> Resource {
    let condition = |kind: &str| ReportedCondition {
        kind: kind.to_owned(),
        status: Status::False,
        reason: Some(text.to_owned()),
        message: Some(text.to_owned()),
        last_transition_time: now,
    };
    let report = |adapter: &str| Report {
        adapter: adapter.to_owned(),
        observed_generation: 1,
        conditions: vec![condition("Available"), condition(text)],
        data: json!({ text: [text, { "x": text }] }).as_object().unwrap().clone(),
        metadata: None,
        created_time: now,
        last_report_time: now,
    };
    let concluded = json!({
        "type": "Reconciled", "status": "False", "reason": text, "message": text, "observed_generation": 1,
        "created_time": now, "last_updated_time": now, "last_transition_time": now,
    });
    Resource {
        id: id.to_owned(),
        kind: "Cluster".to_owned(),
        name: text.to_owned(),
        owner: None,
        spec: json!({ text: text }).as_object().unwrap().clone(),
        href: "/api/hyperfleet/v1/clusters/0197".to_owned(),
        generation: 1,
        created_time: now,
        created_by: text.to_owned(),
        updated_time: now,
        updated_by: text.to_owned(),
        deleted_time: Some(now),
        deleted_by: Some(text.to_owned()),
        state: State {
            labels: BTreeMap::from([(text.to_owned(), text.to_owned())]),
            references: BTreeMap::from([(text.to_owned(), Vec::new())]),
            tenancy: BTreeMap::from([(text.to_owned(), text.to_owned())]),
            conditions: vec![serde_json::from_value(concluded).unwrap()],
            reports: [text, "dns"].map(|adapter| (adapter.to_owned(), report(adapter))).into(),
        },
    }
}

#[test]
fn nothing_breaks_out_of_a_page() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fleet = runtime.block_on(Fleet::new());
    let texts = prop::collection::vec(hostile(), 1..4);
    proptest!(ProptestConfig::with_cases(48), |(texts in texts)| {
        runtime.block_on(async {
            let mut write = fleet.service.store().write().await.unwrap();
            for id in ["a", "b", "c"] {
                write.remove(id).await.unwrap();
            }
            let mut shown = Vec::new();
            for (id, text) in ["a", "b", "c"].iter().zip(&texts) {
                // No two living resources share a name.
                let resource = resource(id, &format!("{id}{text}"), fleet.now);
                let transition = Transition {
                    adapter: text.clone(),
                    kind: text.clone(),
                    from: None,
                    to: Status::True,
                    reason: Some(text.clone()),
                    message: Some(text.clone()),
                    observed_generation: 1,
                    time: fleet.now,
                };
                shown.push((*id, resource.name.clone(), text.clone()));
                write.insert(&Stored { resource, sealed: None }).await.unwrap();
                write.add_transitions(id, &[transition]).await.unwrap();
            }
            let _version = write.commit().await.unwrap();
            // Reading a page takes nothing that does not belong there, so parsing it is the test.
            let overview = fleet.overview(&Asked::default()).await;
            for (id, name, text) in &shown {
                assert!(overview.raw_text().contains(&seen(name)), "{name:?} is not as it was");
                let page = fleet.page(id).await;
                assert_eq!(page.all("h1")[0].raw_text(), seen(name));
                assert!(page.class("timeline")[0].raw_text().contains(&seen(text)));
            }
        });
    });
}

#[test]
fn a_search_is_shown_as_it_was_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fleet = runtime.block_on(Fleet::new());
    proptest!(ProptestConfig::with_cases(64), |(text in hostile())| {
        let page: Node = runtime.block_on(fleet.overview(&Asked { search: Some(&text), host: Some(&text), ..Asked::default() }));
        assert_eq!(page.id("search").attr("value").unwrap(), seen(text.trim()));
        page.check_accessibility();
    });
}
