//! Mapped conditions, valid only for the state of a resource that they were evaluated on.

use super::failure::Failure;
use crate::decide::mapped::MappedCondition;
use crate::mapping::MappingError;
use crate::resource::{Resource, State};

/// Mapped conditions, each with the state of the resource that they were evaluated on.
#[derive(Clone, Debug, Default)]
pub(super) struct MappedFacts(Vec<Evaluated>);

#[derive(Clone, Debug)]
struct Evaluated {
    /// The resource without conditions, which expressions do not read.
    input: Resource,
    result: Result<Vec<MappedCondition>, MappingError>,
}

// === impl MappedFacts ===

impl MappedFacts {
    /// Returns the mapped conditions of a resource; fails if they were evaluated on another state of it, or not at all.
    pub(super) fn of(&self, resource: &Resource) -> Result<&Result<Vec<MappedCondition>, MappingError>, Failure> {
        let input = input(resource);
        let found = self.0.iter().find(|evaluated| evaluated.input == input);
        found.map(|evaluated| &evaluated.result).ok_or_else(|| Failure::Unevaluated(vec![input]))
    }

    /// Adds the result of an evaluation on this input.
    pub(super) fn add(&mut self, input: Resource, result: Result<Vec<MappedCondition>, MappingError>) {
        self.0.push(Evaluated { input, result });
    }

    /// Replaces the facts of the resources that `newer` has, and keeps those of all others.
    pub(super) fn update(&mut self, newer: Self) {
        self.0.retain(|old| newer.0.iter().all(|new| new.input.id != old.input.id));
        self.0.extend(newer.0);
    }
}

/// Returns all of a resource that expressions can read.
pub(super) fn input(resource: &Resource) -> Resource {
    let state = State {
        conditions: Vec::new(),
        labels: resource.state.labels.clone(),
        references: resource.state.references.clone(),
        tenancy: resource.state.tenancy.clone(),
        reports: resource.state.reports.clone(),
        trace: None,
    };
    Resource { state, ..resource.clone() }
}
