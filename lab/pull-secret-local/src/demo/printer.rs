//! Output of the demo, with times, for people or for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::StreamFormat;
use daemon::output::{plain, table};

/// Prints the steps and collects the summary.
#[derive(Debug)]
pub(crate) struct Printer {
    format: StreamFormat,
    began: Instant,
    chapter: &'static str,
    chapter_began: Instant,
    steps: Vec<Step>,
    ready_to_available: Option<Duration>,
    /// The calls at Quay until the end of the last chapter.
    called: Calls,
}

/// Numbers of calls, by their operation.
type Calls = BTreeMap<&'static str, usize>;

/// A chapter that has ended well.
#[derive(Debug)]
struct Step {
    title: &'static str,
    took: Duration,
    result: &'static str,
    /// The calls at Quay; `None` where they are not counted.
    calls: Option<Calls>,
}

// === impl Printer ===

impl Printer {
    /// The story begins now.
    pub(crate) fn new(format: StreamFormat) -> Self {
        let now = Instant::now();
        Self {
            format,
            began: now,
            chapter: "",
            chapter_began: now,
            steps: Vec::new(),
            ready_to_available: None,
            called: Calls::new(),
        }
    }

    /// Begins a chapter.
    pub(super) fn chapter(&mut self, title: &'static str) -> anyhow::Result<()> {
        self.chapter = title;
        self.chapter_began = Instant::now();
        match self.format {
            StreamFormat::Text => print_text(format_args!("\n{}. {title}\n", self.steps.len() + 1)),
            StreamFormat::Json => Ok(()),
        }
    }

    /// Prints an event of the current step.
    pub(super) fn note(&self, what: &str) -> anyhow::Result<()> {
        let elapsed = self.began.elapsed();
        match self.format {
            StreamFormat::Text => print_text(format_args!("   {:>7.3} s  {}\n", elapsed.as_secs_f64(), plain(what))),
            StreamFormat::Json => self.object("note", &json!({ "message": what })),
        }
    }

    /// Prints another part's message.
    pub(super) fn quote(&self, words: &str) -> anyhow::Result<()> {
        match self.format {
            StreamFormat::Text => print_text(format_args!("                {}\n", plain(words))),
            StreamFormat::Json => self.object("quote", &json!({ "message": words })),
        }
    }

    /// Shows rows in columns.
    pub(super) fn table<const COLUMNS: usize>(
        &self,
        header: &[&str; COLUMNS],
        rows: &[[String; COLUMNS]],
    ) -> anyhow::Result<()> {
        match self.format {
            StreamFormat::Text => print_text(format_args!("\n{}", table(*header, rows.to_vec()))),
            StreamFormat::Json => {
                let named = |row: &[String; COLUMNS]| -> serde_json::Map<String, Value> {
                    header.iter().map(|name| name.to_lowercase()).zip(row.iter().cloned().map(Value::from)).collect()
                };
                self.object("table", &json!({ "rows": rows.iter().map(named).collect::<Vec<_>>() }))
            }
        }
    }

    /// Notes the time from the cluster's being ready to its pull secret's being available.
    pub(super) fn ready_to_available(&mut self, took: Duration) {
        self.ready_to_available = Some(took);
    }

    /// Ends a chapter well.
    pub(super) fn done(&mut self, result: &'static str) -> anyhow::Result<()> {
        self.end(result, None)
    }

    /// Leaves out the calls so far, which belong to no chapter.
    pub(super) fn leave_out(&mut self, so_far: Calls) {
        self.called = so_far;
    }

    /// Ends a chapter well, and shows the calls at Quay in it; `so_far` are those since the start.
    pub(super) fn done_with_calls(&mut self, result: &'static str, so_far: Calls) -> anyhow::Result<()> {
        let before = |name: &str| self.called.get(name).copied().unwrap_or_default();
        let calls = so_far.iter().map(|(name, count)| (*name, count.saturating_sub(before(name))));
        let calls: Calls = calls.filter(|(_, count)| *count > 0).collect();
        self.called = so_far;
        if self.format == StreamFormat::Text {
            let each: Vec<String> = calls.iter().map(|(name, count)| format!("{name} {count}")).collect();
            self.note(&format!("calls at Quay: {}", each.join(", ")))?;
        }
        self.end(result, Some(calls))
    }

    fn end(&mut self, result: &'static str, calls: Option<Calls>) -> anyhow::Result<()> {
        let step = Step { title: self.chapter, took: self.chapter_began.elapsed(), result, calls };
        let shown = step.object();
        self.steps.push(step);
        match self.format {
            StreamFormat::Text => Ok(()),
            StreamFormat::Json => self.object("done", &shown),
        }
    }

    /// Prints the summary.
    pub(super) fn summary(&self) -> anyhow::Result<()> {
        if self.format == StreamFormat::Json {
            let mut summary = json!({ "steps": self.steps.iter().map(Step::object).collect::<Vec<_>>() });
            if let (Some(ready), Some(members)) = (self.ready_to_available, summary.as_object_mut()) {
                members.insert("ready_to_available_ms".to_owned(), json!(millis(ready)));
            }
            return self.object("summary", &summary);
        }
        let ready = self.ready_to_available.map(|ready| {
            format!(
                "From a cluster that is ready to Available=True: {} (the specification's timeline has 30 s). ",
                seconds(ready)
            )
        });
        let steps = if self.steps.iter().any(|step| step.calls.is_some()) {
            table(["WHAT HAPPENED", "TOOK", "CALLS AT QUAY", "RESULT"], self.steps.iter().map(Step::row_with_calls))
        } else {
            table(["WHAT HAPPENED", "TOOK", "RESULT"], self.steps.iter().map(Step::row))
        };
        let all = seconds(self.began.elapsed());
        print_text(format_args!("\n{steps}\n{}All: {all}.\n", ready.unwrap_or_default()))
    }

    fn object(&self, event: &str, members: &Value) -> anyhow::Result<()> {
        let mut object = json!({ "event": event, "chapter": self.chapter, "elapsed_ms": millis(self.began.elapsed()) });
        if let (Some(object), Some(members)) = (object.as_object_mut(), members.as_object()) {
            object.extend(members.clone());
        }
        print_text(format_args!("{object}\n"))
    }
}

// === impl Step ===

impl Step {
    fn object(&self) -> Value {
        let mut object = json!({ "chapter": self.title, "took_ms": millis(self.took), "result": self.result });
        if let (Some(calls), Some(members)) = (&self.calls, object.as_object_mut()) {
            members.insert("calls".to_owned(), json!(calls));
        }
        object
    }

    fn row(&self) -> [String; 3] {
        [self.title.to_owned(), seconds(self.took), self.result.to_owned()]
    }

    fn row_with_calls(&self) -> [String; 4] {
        let [title, took, result] = self.row();
        let calls: usize = self.calls.iter().flat_map(BTreeMap::values).sum();
        [title, took, calls.to_string(), result]
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn print_text(text: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    daemon::output::print(text)?;
    Ok(())
}
