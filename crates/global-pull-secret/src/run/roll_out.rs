//! The roll-out of a revision as a span: from its decision to the last node's confirmation.
//!
//! The nodes' agents export nothing; what they confirm is what the span is made of.

use daemon::log::SPANS;
use daemon::traces;
use fleet_model::names::{self, trace};
use kubernetes::{Cluster, SecretKey};
use tracing::field::Empty;
use tracing::{Span, debug, info, info_span};

use crate::facts::ObservedSecret;
use crate::plan::Plan;

/// The Secret that the original is copied from, by a program that leaves annotations behind, as HyperShift does.
#[derive(Clone, Debug)]
pub struct Source {
    /// The cluster with the hosted control plane.
    pub cluster: Cluster,
    /// The Secret.
    pub key: SecretKey,
}

/// Follows the revisions of the merged Secret.
pub(super) struct RollOuts {
    source: Option<Source>,
    /// The revision that was decided about last.
    revision: Option<String>,
    /// The last observed version of the original.
    version: Option<String>,
    /// True if the original has changed since that revision.
    has_new_original: bool,
    /// The span of its roll-out, until every node has it.
    span: Option<Span>,
}

// === impl RollOuts ===

impl RollOuts {
    pub(super) fn new(source: Option<Source>) -> Self {
        Self { source, revision: None, version: None, has_new_original: false, span: None }
    }

    /// Begins the span of a new revision, and ends that of one that every node has confirmed.
    pub(super) fn follow(&mut self, plan: &Plan, original: Option<&ObservedSecret>) {
        let version = original.and_then(|original| original.metadata.resource_version.clone());
        self.has_new_original |= self.version.is_some() && version != self.version;
        self.version = version;
        let in_sync = plan.nodes.as_ref().filter(|nodes| nodes.in_sync == nodes.all);
        if self.revision != plan.revision {
            self.revision.clone_from(&plan.revision);
            // A restarted controller finds a revision that was rolled out before.
            self.span = plan.revision.as_deref().filter(|_| in_sync.is_none()).map(begin);
            if std::mem::take(&mut self.has_new_original)
                && let (Some(span), Some(original)) = (&self.span, original)
            {
                self.link(span, original);
            }
        }
        if let Some(nodes) = in_sync.filter(|nodes| nodes.all > 0)
            && let Some(span) = self.span.take()
        {
            span.record(trace::NODES, nodes.all);
            let revision = self.revision.as_deref();
            span.in_scope(|| info!(operation = "roll_out", revision, nodes = nodes.all, "every node has the revision"));
        }
    }

    /// Links the span to the trace of the run that has stored the original. A change of the original is one cause of several, so
    /// that it is no parent.
    fn link(&self, span: &Span, original: &ObservedSecret) {
        if span.is_disabled() {
            return;
        }
        let link = |span: Span, text: Option<&str>| {
            drop(traces::linked(text.and_then(|text| text.parse().ok()).as_ref(), span));
        };
        let own = original.annotation(names::ANNOTATION_TRACE);
        let (Some(Source { cluster, key }), None) = (self.source.clone(), own) else {
            return link(span.clone(), own);
        };
        let span = span.clone();
        // The roll-out does not wait for it.
        tokio::spawn(async move {
            match cluster.find_secret(&key).await {
                Ok(Some(source)) => link(span, source.annotations.get(names::ANNOTATION_TRACE).map(String::as_str)),
                Ok(None) => debug!(operation = "link_trace", secret = %key, "there is no such Secret"),
                Err(error) => debug!(operation = "link_trace", "{error}"),
            }
        });
    }
}

fn begin(revision: &str) -> Span {
    info_span!(target: SPANS, trace::ROLL_OUT, { trace::REVISION } = revision, { trace::NODES } = Empty)
}
