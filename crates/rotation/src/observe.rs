//! Plans: reads the selected clusters, and the digests of their new pull secrets.

use diagnosis::retry::{Found, Selection, find};
use hyperfleet_client::{Calls, Error};
use jiff::Timestamp;

use crate::decide::{self, Candidate};
use crate::fleet;
use crate::plan::{Options, Plan, SkipReason, Skipped};
use crate::source::Sources;

/// Reads the selected clusters and plans their rotation. Changes nothing.
pub async fn plan(
    calls: &Calls<'_>,
    selection: &Selection,
    sources: &Sources,
    options: Options,
) -> Result<Plan, Error> {
    let now = Timestamp::now();
    let mut skipped = Vec::new();
    let (text, found) = match selection {
        Selection::Search(search) => (search.clone(), fleet::search(calls, search).await?),
        Selection::Named(named) => {
            let mut ids = Vec::new();
            for text in named {
                match find(calls, text).await? {
                    Found::One(cluster) => ids.push(cluster.id),
                    Found::None => {
                        skipped.push(not_found(text, "there is no such cluster, by id or by name".to_owned()));
                    }
                    Found::Several(examples) => {
                        let ids: Vec<&str> = examples.iter().map(|example| example.id.as_str()).collect();
                        let message = format!("several clusters have this name, give an id: {}", ids.join(", "));
                        skipped.push(not_found(text, message));
                    }
                }
            }
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            (named.join(" "), fleet::with_ids(calls, &ids).await?)
        }
    };
    let candidate = |seen: fleet::Seen| Candidate { new: sources.digest(&seen.id), seen };
    let candidates = found.into_iter().map(candidate).collect();
    Ok(decide::plan(text, candidates, skipped, options, now))
}

fn not_found(text: &str, message: String) -> Skipped {
    Skipped { cluster: text.to_owned(), reason: SkipReason::NotFound, message }
}
