//! Questions to registries that are on their way, and the answers that came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use docker_config::Digest;
use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::decide::probe::{Answer, Finding, Question};
use crate::metrics::Metrics;
use crate::probe::Asker;

/// So many answers are kept; whoever has more entries is asked about the oldest again.
const KEPT: usize = 4096;

/// Where questions are asked. What is on its way when it goes is given up.
pub(super) struct Desk {
    asker: Option<Arc<Asker>>,
    answers: BTreeMap<Digest, Answer>,
    asking: JoinSet<(Digest, Finding)>,
    open: BTreeSet<Digest>,
}

impl Desk {
    pub(super) fn new(asker: Option<Asker>) -> Self {
        Self { asker: asker.map(Arc::new), answers: BTreeMap::new(), asking: JoinSet::new(), open: BTreeSet::new() }
    }

    pub(super) fn answers(&self) -> BTreeMap<Digest, Answer> {
        self.answers.clone()
    }

    /// Asks what is not being asked already.
    pub(super) fn ask(&mut self, questions: Vec<Question>) {
        let Some(asker) = &self.asker else { return };
        for question in questions {
            if self.open.insert(question.digest) {
                let asker = Arc::clone(asker);
                self.asking.spawn(async move { (question.digest, asker.ask(&question).await) });
            }
        }
    }

    /// Waits for the next answer; for ever where nothing is being asked.
    pub(super) async fn wait(&mut self, metrics: &Metrics) {
        match self.asking.join_next().await {
            Some(Ok((digest, finding))) => {
                self.open.remove(&digest);
                metrics.probed(finding.verdict);
                tracing::info!(operation = "probe", verdict = finding.verdict.as_str(), "a registry was asked");
                let answer = Answer::of(finding, self.answers.get(&digest), Timestamp::now());
                self.answers.insert(digest, answer);
                self.forget();
            }
            // Whichever it was is asked again.
            Some(Err(_aborted)) => self.open.clear(),
            None => std::future::pending().await,
        }
    }

    fn forget(&mut self) {
        while self.answers.len() > KEPT {
            let oldest = self.answers.iter().min_by_key(|(_, answer)| answer.at).map(|(digest, _)| *digest);
            drop(oldest.and_then(|digest| self.answers.remove(&digest)));
        }
    }
}
