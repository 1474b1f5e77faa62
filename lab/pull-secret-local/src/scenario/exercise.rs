//! The text of the exercise: commands and their order, without the answers.

/// The exercise of the scenario `on-call-50`.
pub(super) const TEXT: &str = "
Exercise: you are on call for 52 clusters, and some have no pull secret. Which, why, since when, and what do you do next?
In another terminal, after the `export` lines:
  1. How many clusters, for how many causes?   pull-secret status --why
  2. Which clusters have one of these reasons? pull-secret status --search \"status.conditions.PullsecretSuccessful.reason = 'REASON'\"
  3. Why this one, and what to do next?        pull-secret explain cluster ID
  4. Do what its hint says. Refusals by Google, quota and admission are scripted and stay, as does what deletes a Secret; fix the rest.
  5. Do not wait for the next attempt.         pull-secret retry ID --yes
  6. See the causes go.                        pull-secret status --why --watch
Note a cause for each cluster before you compare: the solution ends docs/guides/on-call-exercise.md.
";
