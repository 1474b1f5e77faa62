//! Hostile text in a name, label, reason, message or data is shown as text and never becomes markup.

use std::collections::BTreeMap;

use fleet_model::{Generation, Report, ReportedCondition, Status, Transition};
use hyperfleet_api::page::OverviewRequest;
use hyperfleet_api::resource::{Resource, State};
use hyperfleet_api::store::Stored;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use crate::document::Node;
use crate::fleet::Fleet;

/// Texts that have broken out of HTML pages before, surrounded by noise.
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

/// The text as the page shows it: control characters and direction marks are replaced.
fn visible(text: &str) -> String {
    let is_replaced = |c: char| {
        c.is_control() && !['\n', '\t'].contains(&c)
            || ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    text.chars().map(|c| if is_replaced(c) { '\u{fffd}' } else { c }).collect()
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
        observed_generation: Generation::FIRST,
        conditions: vec![condition("Available"), condition(text)],
        data: json!({ text: [text, { "x": text }] }).as_object().unwrap().clone(),
        metadata: None,
        created_time: now,
        last_report_time: now,
    };
    let reconciled = json!({
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
        generation: Generation::FIRST,
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
            conditions: vec![serde_json::from_value(reconciled).unwrap()],
            reports: [text, "dns"].map(|adapter| (adapter.to_owned(), report(adapter))).into(),
            trace: None,
        },
    }
}

#[test]
fn hostile_text_never_becomes_markup() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fleet = runtime.block_on(Fleet::new());
    let texts = prop::collection::vec(hostile(), 1..4);
    proptest!(ProptestConfig::with_cases(48), |(texts in texts)| {
        runtime.block_on(async {
            let mut write = fleet.service.store().write().await.unwrap();
            for id in ["a", "b", "c"] {
                write.remove(&resource(id, id, fleet.now), fleet.now).await.unwrap();
            }
            let mut shown = Vec::new();
            for (id, text) in ["a", "b", "c"].iter().zip(&texts) {
                // Names are unique among resources that are not deleted.
                let resource = resource(id, &format!("{id}{text}"), fleet.now);
                let transition = Transition {
                    adapter: text.clone(),
                    kind: text.clone(),
                    from: None,
                    to: Status::True,
                    reason: Some(text.clone()),
                    message: Some(text.clone()),
                    observed_generation: Generation::FIRST,
                    time: fleet.now,
                };
                shown.push((*id, resource.name.clone(), text.clone()));
                write.insert(Stored { resource, sealed: None }, vec![transition], fleet.now);
            }
            let _version = write.commit().await.unwrap();
            // The parser accepts only the elements and attributes of these pages, so parsing is the check.
            let overview = fleet.overview(&OverviewRequest::default()).await;
            for (id, name, text) in &shown {
                assert!(overview.raw_text().contains(&visible(name)), "{name:?} was altered");
                let page = fleet.page(id).await;
                assert_eq!(page.all("h1")[0].raw_text(), visible(name));
                assert!(page.class("timeline")[0].raw_text().contains(&visible(text)));
            }
        });
    });
}

#[test]
fn a_search_is_shown_as_it_was_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fleet = runtime.block_on(Fleet::new());
    proptest!(ProptestConfig::with_cases(64), |(text in hostile())| {
        let page: Node = runtime.block_on(fleet.overview(&OverviewRequest { search: Some(&text), host: Some(&text), ..OverviewRequest::default() }));
        assert_eq!(page.id("search").attr("value").unwrap(), visible(text.trim()));
        page.check_accessibility();
    });
}
