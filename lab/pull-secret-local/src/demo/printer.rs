//! Output of the demo, with times, for people or for programs.

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
}

/// A chapter that has ended well.
#[derive(Debug)]
struct Step {
    title: &'static str,
    took: Duration,
    result: &'static str,
}

// === impl Printer ===

impl Printer {
    /// The story begins now.
    pub(crate) fn new(format: StreamFormat) -> Self {
        let now = Instant::now();
        Self { format, began: now, chapter: "", chapter_began: now, steps: Vec::new(), ready_to_available: None }
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
        let took = self.chapter_began.elapsed();
        self.steps.push(Step { title: self.chapter, took, result });
        match self.format {
            StreamFormat::Text => Ok(()),
            StreamFormat::Json => self.object("done", &json!({ "took_ms": millis(took), "result": result })),
        }
    }

    /// Prints the summary.
    pub(super) fn summary(&self) -> anyhow::Result<()> {
        let ready = self.ready_to_available.unwrap_or_default();
        if self.format == StreamFormat::Json {
            let step =
                |step: &Step| json!({ "chapter": step.title, "took_ms": millis(step.took), "result": step.result });
            let steps: Vec<_> = self.steps.iter().map(step).collect();
            return self.object("summary", &json!({ "steps": steps, "ready_to_available_ms": millis(ready) }));
        }
        let seconds = |duration: Duration| format!("{:.3} s", duration.as_secs_f64());
        let row = |step: &Step| [step.title.to_owned(), seconds(step.took), step.result.to_owned()];
        let rows: Vec<_> = self.steps.iter().map(row).collect();
        print_text(format_args!(
            "\n{}\nFrom a cluster that is ready to Available=True: {} (the specification's timeline has 30 s). All: {}.\n",
            table(["WHAT HAPPENED", "TOOK", "RESULT"], rows),
            seconds(ready),
            seconds(self.began.elapsed()),
        ))
    }

    fn object(&self, event: &str, members: &Value) -> anyhow::Result<()> {
        let mut object = json!({ "event": event, "chapter": self.chapter, "elapsed_ms": millis(self.began.elapsed()) });
        if let (Some(object), Some(members)) = (object.as_object_mut(), members.as_object()) {
            object.extend(members.clone());
        }
        print_text(format_args!("{object}\n"))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn print_text(text: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    daemon::output::print(text)?;
    Ok(())
}
