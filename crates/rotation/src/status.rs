//! The page of `pull-secret rotate status`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use daemon::output::plain;
use diagnosis::decide::age;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::event::bar;
use crate::record::Recorded;
use crate::state::{Counts, Phase, Request, State};

/// A rotation for people and for programs.
#[derive(Debug, Serialize)]
pub struct Page {
    /// Its name.
    pub rotation: String,
    /// The phase, in one word.
    pub phase: Phase,
    /// The request that no run has obeyed yet.
    pub request: Option<Request>,
    /// The process that works on it.
    pub worked_on_by: Option<String>,
    /// True if it is to run, and no process works on it.
    pub is_interrupted: bool,
    /// The cause of the phase, and what to do next.
    pub because: String,
    /// The identity that started it.
    pub started_by: String,
    /// Time of the start.
    pub started: Timestamp,
    /// The identity of the last run.
    pub run_by: String,
    /// Time of the last change of the state.
    pub updated: Timestamp,
    /// The selection of clusters.
    pub selection: String,
    /// Number of planned clusters.
    pub clusters: usize,
    /// Numbers of clusters.
    pub counts: Counts,
    /// Finished clusters in a minute.
    pub per_minute: u64,
    /// Seconds until the end at this rate.
    pub remaining_seconds: Option<u64>,
    /// The waves.
    pub waves: Vec<Wave>,
    /// Failed clusters by reason.
    pub failures: BTreeMap<String, Vec<String>>,
    /// Clusters that are left as they were changed since the plan, with the cause.
    pub left: BTreeMap<String, String>,
    #[serde(skip)]
    bar: String,
}

/// A wave at a glance.
#[derive(Debug, Serialize)]
pub struct Wave {
    /// Number of its clusters.
    pub clusters: usize,
    /// `done`, `current` or `pending`.
    pub state: &'static str,
}

// === impl Page ===

impl Page {
    /// The page about a rotation.
    pub fn of(recorded: Recorded) -> Self {
        let Recorded { name, plan, state, holder } = recorded;
        let bar = bar(&plan, &state);
        let (per_minute, remaining_seconds, counts) =
            (state.per_minute(), state.remaining_seconds(&plan), state.counts());
        let State { phase, request, wave, failures, left, started_by, started, run_by, updated, because, .. } = state;
        let waves = plan.waves.iter().enumerate().map(|(index, clusters)| Wave {
            clusters: clusters.len(),
            state: match index.cmp(&wave) {
                std::cmp::Ordering::Less => "done",
                std::cmp::Ordering::Equal => "current",
                std::cmp::Ordering::Greater => "pending",
            },
        });
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for failure in failures {
            by_reason.entry(failure.reason).or_default().push(failure.cluster);
        }
        let is_interrupted = phase == Phase::Running && holder.is_none();
        let is_over = matches!(phase, Phase::Done | Phase::Aborted);
        let is_open = |request: &Request| phase == Phase::Running || (*request == Request::Abort && !is_over);
        Self {
            rotation: name,
            phase,
            request: request.filter(is_open),
            worked_on_by: holder,
            is_interrupted,
            because,
            started_by,
            started,
            run_by,
            updated,
            clusters: plan.clusters(),
            selection: plan.selection,
            counts,
            per_minute,
            remaining_seconds,
            waves: waves.collect(),
            failures: by_reason,
            left,
            bar,
        }
    }

    /// The page as text; ages are counted from `now`.
    pub fn text(&self, now: Timestamp) -> String {
        let Self { rotation, phase, clusters, counts, .. } = self;
        let ago = |time: Timestamp| age(now.duration_since(time));
        let mut text = format!("ROTATION  {rotation}: {phase:?}");
        if self.is_interrupted {
            let command = match self.request {
                Some(Request::Abort) => format!("abort {rotation} --yes"),
                _ => format!("resume {rotation}"),
            };
            let _infallible = write!(text, ", but no process works on it: `pull-secret rotate {command}`");
        }
        if let Some(request) = self.request {
            let _infallible = write!(text, " ({request:?} is requested)");
        }
        if !self.because.is_empty() {
            let _infallible = write!(text, "\nBECAUSE   {}", plain(&self.because));
        }
        let holder = self.worked_on_by.as_deref().unwrap_or("no process");
        let _infallible = write!(
            text,
            "\nSTARTED   {} ago by {}; last run by {}\nWORKED ON by {}; last change {} ago\nSELECTION {}\nPROGRESS  {}\n\
             CLUSTERS  {clusters}: {} available, {} waiting, {} failed, {} left as they are; {} a minute",
            ago(self.started),
            plain(&self.started_by),
            plain(&self.run_by),
            plain(holder),
            ago(self.updated),
            plain(&self.selection),
            self.bar,
            counts.available,
            counts.waiting,
            counts.failed,
            counts.left,
            self.per_minute,
        );
        if let Some(seconds) = self.remaining_seconds.filter(|_| *phase == Phase::Running) {
            let left = age(SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)));
            let _infallible = write!(text, "; {left} left");
        }
        text.push_str("\nWAVES    ");
        for Wave { clusters, state } in &self.waves {
            let _infallible = write!(text, " {clusters} {state},");
        }
        text.truncate(text.trim_end_matches(',').len());
        text.push('\n');
        for (reason, clusters) in &self.failures {
            let _infallible = writeln!(text, "FAILED    {}: {}", plain(reason), clusters.join(", "));
        }
        for (cluster, because) in &self.left {
            let _infallible = writeln!(text, "LEFT      {cluster}: {}", plain(because));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::plan::{Options, Plan};
    use crate::state::Failure;

    /// Three waves of one cluster, of which the first is done, the second has failed.
    fn recorded() -> Recorded {
        let planned = |id: &str| vec![format!("{id} 1 {}", "0a".repeat(16)).parse().unwrap()];
        let plan = Plan {
            planned: Timestamp::UNIX_EPOCH,
            selection: "all".to_owned(),
            options: Options { first_wave: 1, wave_size: 1, per_minute: 75, max_failures: 0, wave_timeout: 900 },
            waves: ["a", "b", "c"].map(planned).to_vec(),
            skipped: Vec::new(),
            projects: BTreeMap::new(),
        };
        let state = State {
            wave: 1,
            done: Counts { available: 1, ..Counts::default() },
            current: Counts { failed: 1, ..Counts::default() },
            failures: ["b"]
                .map(|id| Failure { cluster: id.to_owned(), reason: "JobFailed".to_owned(), message: String::new() })
                .into(),
            left: [("c".to_owned(), "changed".to_owned())].into(),
            worked: 120,
            ..State::new("jane", Timestamp::UNIX_EPOCH)
        };
        Recorded { name: "r".to_owned(), plan, state, holder: Some("jane (process 1)".to_owned()) }
    }

    #[test]
    fn a_page_has_progress_rate_time_and_causes() {
        let text = Page::of(recorded()).text("1970-01-01T00:02:00Z".parse().unwrap());
        assert_eq!(
            text,
            "ROTATION  r: Running\nSTARTED   2 min ago by jane; last run by jane\nWORKED ON by jane (process 1); last change 2 min ago\n\
             SELECTION all\nPROGRESS  [####################----------] 2/3  wave 2/3  0 waiting, 1 failed  60 s left\n\
             CLUSTERS  3: 1 available, 0 waiting, 1 failed, 0 left as they are; 1 a minute; 60 s left\n\
             WAVES     1 done, 1 current, 1 pending\nFAILED    JobFailed: b\nLEFT      c: changed\n"
        );
    }

    #[rstest]
    #[case::interrupted(
        Phase::Running,
        None,
        None,
        "Running, but no process works on it: `pull-secret rotate resume r`\n"
    )]
    #[case::asked(Phase::Running, Some("jane"), Some(Request::Pause), "Running (Pause is requested)\n")]
    #[case::without_a_process_that_aborts(
        Phase::Running,
        None,
        Some(Request::Abort),
        "Running, but no process works on it: `pull-secret rotate abort r --yes` (Abort is requested)\n"
    )]
    #[case::ended_before_it_was_aborted(Phase::Stopped, None, Some(Request::Abort), "Stopped (Abort is requested)\n")]
    #[case::over(Phase::Aborted, None, Some(Request::Abort), "Aborted\n")]
    fn the_first_line_says_what_to_do(
        #[case] phase: Phase,
        #[case] holder: Option<&str>,
        #[case] request: Option<Request>,
        #[case] expect: &str,
    ) {
        let mut recorded = recorded();
        (recorded.state.phase, recorded.state.request) = (phase, request);
        recorded.holder = holder.map(str::to_owned);
        let text = Page::of(recorded).text(Timestamp::UNIX_EPOCH);
        assert!(text.starts_with(&format!("ROTATION  r: {expect}")), "{text}");
    }

    #[test]
    fn a_page_does_not_move_the_cursor() {
        let mut recorded = recorded();
        recorded.state.because = "\u{1b}[2Jgone".to_owned();
        assert!(!Page::of(recorded).text(Timestamp::UNIX_EPOCH).contains('\u{1b}'));
    }
}
