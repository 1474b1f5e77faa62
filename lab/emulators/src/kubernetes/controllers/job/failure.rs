//! A Job's `podFailurePolicy`: what a failed Pod means.

use serde::Deserialize;

use super::super::model::{Pod, Terminated};

/// Rules, of which the first that fits a failed Pod decides.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Policy {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    action: String,
    on_exit_codes: Option<OnExitCodes>,
    on_pod_conditions: Vec<OnPodCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OnExitCodes {
    container_name: Option<String>,
    operator: String,
    values: Vec<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct OnPodCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// The effect of a failed Pod on its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The Job has failed, and why.
    Fail(String),
    /// It counts against the limit.
    Count,
    /// It never happened.
    Ignore,
}

impl Policy {
    /// The effect of `pod`. An action that is not served (`FailIndex`) lets the Pod count.
    pub(crate) fn judge(&self, pod: &Pod) -> Verdict {
        let fits = self.rules.iter().enumerate().filter_map(|(index, rule)| Some((index, rule, rule.fit(pod)?)));
        for (index, rule, why) in fits {
            match rule.action.as_str() {
                "Ignore" => return Verdict::Ignore,
                "Count" => return Verdict::Count,
                "FailJob" => return Verdict::Fail(format!("{why} matching FailJob rule at index {index}")),
                _ => {}
            }
        }
        Verdict::Count
    }
}

impl Rule {
    /// The match of this rule with `pod`, in upstream's wording.
    fn fit(&self, pod: &Pod) -> Option<String> {
        let place = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        if let Some(codes) = &self.on_exit_codes {
            let containers = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
            let named =
                containers.filter(|status| codes.container_name.as_ref().is_none_or(|name| *name == status.name));
            let ended = named.filter_map(|status| Some((&status.name, status.state.terminated.as_ref()?)));
            let (name, end) = ended.into_iter().find(|(_, end)| codes.fit(end))?;
            return Some(format!("Container {name} for pod {place} failed with exit code {}", end.exit_code));
        }
        let patterns = &self.on_pod_conditions;
        let fitting = pod.status.conditions.iter().find(|condition| {
            let mut same = patterns.iter().filter(|pattern| pattern.kind == condition.kind);
            same.any(|pattern| {
                pattern.status == condition.status || (pattern.status.is_empty() && condition.status == "True")
            })
        })?;
        Some(format!("Pod {place} has condition {}", fitting.kind))
    }
}

impl OnExitCodes {
    fn fit(&self, end: &Terminated) -> bool {
        let listed = self.values.contains(&end.exit_code);
        end.exit_code != 0
            && match self.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
    }
}
