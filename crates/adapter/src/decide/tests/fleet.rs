//! A fleet moves from one store to another by way of a mirror, and each cluster has a readable copy at each moment.

use std::collections::BTreeSet;

use super::mirror::{members, mirrored, result, swapped};
use super::stores::{configured, in_vault};
use super::*;
use crate::decide::{mirror_copy, stored_copy};

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Google,
    Vault,
}

/// A cluster, its adapter, and the stores as they are for it.
struct Moving {
    world: World,
    /// The copies that hold the pull secret.
    held: BTreeSet<StoredCopy>,
    down: Option<Store>,
    job: u32,
}

fn store_of(copy: &StoredCopy) -> Option<Store> {
    match copy {
        StoredCopy::Secret { .. } => Some(Store::Google),
        StoredCopy::VaultSecret { .. } => Some(Store::Vault),
        _ => None,
    }
}

impl Moving {
    fn new(id: &str) -> Self {
        let mut world = world();
        world.resource.id = id.to_owned();
        Self { world, held: BTreeSet::new(), down: None, job: 0 }
    }

    fn is_held_in(&self, store: Store) -> bool {
        self.held.iter().any(|copy| store_of(copy) == Some(store))
    }

    fn is_up(&self, copy: &StoredCopy) -> bool {
        self.down.is_none() || store_of(copy) != self.down
    }

    /// One pass of the adapter, whose Jobs end at once. Returns true if it has done nothing.
    fn pass(&mut self, config: &Checked) -> bool {
        let plan = self.world.decide_with(config);
        let available = plan.condition("Available").unwrap().status;
        let data = Value::Object(plan.data.clone());
        self.world.last_report = report(3, available.as_str(), &data);
        for action in &plan.actions {
            match action {
                Action::DeleteJob(job) => self.delete(&job.name),
                Action::StartRun(run) => {
                    if let Some(replaced) = &run.replaces {
                        self.delete(&replaced.name);
                    }
                    self.run(config, run, &data["copies"]);
                }
                _ => {}
            }
        }
        plan.actions.is_empty()
    }

    fn delete(&mut self, name: &str) {
        self.world.jobs.retain(|(job, ..)| job.name != name);
        self.world.clean_ups.retain(|(job, ..)| job.name != name);
    }

    /// Does what the Job does, with its place at each of its steps.
    fn run(&mut self, config: &Checked, run: &StartRun, recorded: &Value) {
        self.job += 1;
        if let Some(copy) = &run.copy {
            let is_deleted = self.is_up(copy);
            if is_deleted {
                self.held.remove(copy);
            }
            let job = self.ended(is_deleted, run.attempt);
            let outcome = if is_deleted { outcome(0, "SecretDeleted") } else { outcome(75, "StoreUnavailable") };
            self.world.clean_ups.push((job, copy.clone(), Some(outcome)));
            return;
        }
        assert_eq!(run.purpose, Purpose::Apply);
        let places = |facts: &Facts<'_>| (stored_copy(config, facts).unwrap(), mirror_copy(config, facts).unwrap());
        let (first, mirror) = self.world.with_facts(places);
        for copy in [&first].into_iter().chain(&mirror) {
            assert!(recorded.as_array().unwrap().contains(&json!(copy)), "recorded before it is written: {copy}");
        }
        let is_stored = self.write(&first);
        let is_mirrored = is_stored && mirror.as_ref().is_none_or(|mirror| self.write(mirror));
        let version = |is_written: bool| is_written.then_some(1);
        let of_mirror = mirror.as_ref().map(|mirror| members(mirror, version(is_mirrored)));
        let mut details = result(&members(&first, version(is_stored)), of_mirror);
        details["k8sSecretName"] = json!(format!("{}-pull-secret", self.world.resource.id));
        let (status, code) = if is_mirrored { ("success", 0) } else { ("failure", 75) };
        let reason = if is_mirrored { "SecretStored" } else { "StoreUnavailable" };
        let message = json!({"status": status, "reason": reason, "message": "m", "details": details});
        let job = self.ended(is_mirrored, run.attempt);
        self.world.jobs.push((job, Purpose::Apply, Some(Outcome::of(code, &message.to_string()))));
    }

    fn write(&mut self, copy: &StoredCopy) -> bool {
        let is_up = self.is_up(copy);
        if is_up {
            self.held.insert(copy.clone());
        }
        is_up
    }

    /// A Job whose end is so long ago that a back-off is over.
    fn ended(&self, is_complete: bool, attempt: u32) -> ObservedJob {
        let end = if is_complete { JobEnd::Complete } else { broken() };
        ObservedJob { name: format!("job-{}", self.job), ..job(3, Some(end), 10_000, attempt) }
    }
}

/// Reconciles until nothing is left to do, or for so many passes, and checks the copies after each pass.
#[track_caller]
fn reconcile(fleet: &mut [Moving], config: &Checked, passes: usize, step: &str) {
    for cluster in fleet {
        for _ in 0..passes {
            let had_copy = !cluster.held.is_empty();
            let is_done = cluster.pass(config);
            assert!(!had_copy || !cluster.held.is_empty(), "{step}: {} has no copy", cluster.world.resource.id);
            if is_done {
                break;
            }
        }
    }
}

#[rstest]
#[case::nothing_is_down(None, 9)]
#[case::the_new_one_while_it_is_filled(Some(Store::Vault), 1)]
#[case::the_old_one_while_the_new_one_is_filled(Some(Store::Google), 1)]
#[case::the_new_one_when_it_becomes_the_first(Some(Store::Vault), 2)]
#[case::the_old_one_when_it_becomes_the_mirror(Some(Store::Google), 2)]
#[case::the_new_one_when_the_old_one_is_left(Some(Store::Vault), 3)]
#[case::the_old_one_when_it_is_left(Some(Store::Google), 3)]
fn a_fleet_moves_with_a_readable_copy_at_each_moment(#[case] down: Option<Store>, #[case] in_step: usize) {
    let mut fleet: Vec<_> = ["cls-1", "cls-2", "cls-3"].map(Moving::new).into();
    let steps = [
        ("one store", configured("")),
        ("mirrored", mirrored()),
        ("swapped", swapped()),
        ("the new store only", in_vault()),
    ];
    for (index, (step, config)) in steps.iter().enumerate() {
        if index == in_step {
            // Two of three clusters are reconciled in the outage, each several times.
            for cluster in &mut fleet[..2] {
                cluster.down = down;
            }
            reconcile(&mut fleet[..2], config, 6, step);
            for cluster in &mut fleet {
                cluster.down = None;
            }
        }
        reconcile(&mut fleet, config, 20, step);
        for cluster in &fleet {
            let available = cluster.world.decide_with(config);
            let is_available = available.condition("Available").unwrap().status == Status::True;
            assert!(is_available, "{step}: {}", render(&available));
            let (google, vault) = [(true, false), (true, true), (true, true), (false, true)][index];
            assert_eq!(
                (cluster.is_held_in(Store::Google), cluster.is_held_in(Store::Vault)),
                (google, vault),
                "{step}"
            );
        }
    }
    let copies = &fleet[0].world.last_report.as_ref().unwrap().data["copies"];
    assert_eq!(copies.as_array().unwrap().len(), 2, "{copies}");
}
