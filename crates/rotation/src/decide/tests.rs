//! Plans, progress, steps, and rotations that are killed after each step.

use std::collections::BTreeMap;

use hyperfleet_client::Generation;
use rstest::rstest;

use super::*;
use crate::digest::ShortDigest;
use crate::fleet::SeenReport;
use crate::plan::{Options, SkipReason, Skipped};

const OLD: &str = "hmac-sha256:00000000000000000000000000000000ffffffffffffffffffffffffffffffff";
const NEW: &str = "hmac-sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0affffffffffffffffffffffffffffffff";

fn options() -> Options {
    Options { first_wave: 1, wave_size: 2, per_minute: 75, max_failures: 1, wave_timeout: 900 }
}

fn new() -> ShortDigest {
    "0a".repeat(16).try_into().unwrap()
}

fn planned_at() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

/// A cluster with the old content, available at generation 3.
fn cluster(id: &str) -> Seen {
    Seen {
        id: id.to_owned(),
        generation: 3_u32.into(),
        created: "2026-01-01T00:00:00Z".parse().ok(),
        is_deleting: false,
        content: Content::Shown(OLD.to_owned()),
        project: Some("p".to_owned()),
        report: Some(report(3, Status::True, "SecretStored")),
    }
}

fn report(generation: u32, available: Status, reason: &str) -> SeenReport {
    let (reason, message) = (reason.to_owned(), "so it is".to_owned());
    SeenReport { generation: generation.into(), available, reason, message }
}

fn written(generation: u32, report: Option<SeenReport>) -> Seen {
    Seen { generation: generation.into(), content: Content::Shown(NEW.to_owned()), report, ..cluster("a") }
}

fn planned(id: &str) -> Planned {
    Planned { id: id.to_owned(), generation: 3_u32.into(), digest: new() }
}

fn candidate(seen: Seen) -> Candidate {
    Candidate { new: Ok(new()), seen }
}

fn planned_with(candidates: Vec<Candidate>, options: Options) -> Plan {
    plan("all".to_owned(), candidates, Vec::new(), options, planned_at())
}

fn of(ids: &[&str]) -> Plan {
    planned_with(ids.iter().map(|id| candidate(cluster(id))).collect(), options())
}

#[rstest]
#[case::none(0, 1, 2, &[])]
#[case::fewer_than_the_first_wave(2, 5, 2, &[2])]
#[case::a_part_at_the_end(6, 1, 2, &[1, 2, 2, 1])]
#[case::full(5, 1, 2, &[1, 2, 2])]
#[case::sizes_of_nothing_are_one(3, 0, 0, &[1, 1, 1])]
fn waves_follow_a_small_first_one(
    #[case] clusters: usize,
    #[case] first_wave: usize,
    #[case] wave_size: usize,
    #[case] expect: &[usize],
) {
    let candidates = (0..clusters).rev().map(|number| candidate(cluster(&format!("c-{number}")))).collect();
    let plan = planned_with(candidates, Options { first_wave, wave_size, ..options() });
    assert_eq!(plan.waves.iter().map(Vec::len).collect::<Vec<_>>(), expect);
    let ids: Vec<String> = plan.waves.iter().flatten().map(|planned| planned.id.clone()).collect();
    assert_eq!(ids, (0..clusters).map(|number| format!("c-{number}")).collect::<Vec<_>>());
    assert_eq!((plan.clusters(), plan.projects.values().sum::<usize>()), (clusters, clusters));
}

#[rstest]
#[case::deleting(Seen { is_deleting: true, ..cluster("a") }, SkipReason::Deleting, "being deleted")]
#[case::referenced(Seen { content: Content::Referenced("n/s".to_owned()), ..cluster("a") }, SkipReason::Referenced, "change that Secret")]
#[case::without(Seen { content: Content::None, ..cluster("a") }, SkipReason::NoPullSecret, "set spec.pullSecret")]
#[case::hidden(Seen { content: Content::Hidden, ..cluster("a") }, SkipReason::DigestHidden, "reads_pull_secrets")]
#[case::same(written(3, Some(report(3, Status::True, "SecretStored"))), SkipReason::SameContent, "already")]
#[case::failed(Seen { report: Some(report(3, Status::False, "JobFailed")), ..cluster("a") }, SkipReason::NotAvailable, "explain cluster a")]
#[case::behind(Seen { report: Some(report(2, Status::True, "SecretStored")), ..cluster("a") }, SkipReason::NotAvailable, "explain")]
#[case::never_reported(Seen { report: None, ..cluster("a") }, SkipReason::NotAvailable, "explain")]
fn what_cannot_be_rotated_is_skipped_with_the_way_out(
    #[case] seen: Seen,
    #[case] reason: SkipReason,
    #[case] words: &str,
) {
    let plan = planned_with(vec![candidate(seen)], options());
    assert!(plan.waves.is_empty());
    let [skipped] = plan.skipped.as_slice() else { panic!("{plan:?}") };
    assert_eq!(skipped.reason, reason);
    assert!(skipped.message.contains(words), "{}", skipped.message);
}

#[test]
fn a_cluster_without_usable_content_is_skipped_and_one_that_is_named_twice_is_planned_once() {
    let cause = Skipped { cluster: "b".to_owned(), reason: SkipReason::NoFile, message: "no file".to_owned() };
    let without = Candidate { seen: cluster("b"), new: Err(cause.clone()) };
    let plan = planned_with(vec![candidate(cluster("a")), candidate(cluster("a")), without], options());
    assert_eq!((plan.clusters(), plan.projects["p"], plan.skipped), (1, 1, vec![cause]));
}

#[test]
fn a_cluster_of_a_server_whose_clock_is_ahead_is_not_a_later_one() {
    let ahead: Timestamp = "2026-01-01T02:00:00Z".parse().unwrap();
    let seen = Seen { created: Some(ahead), ..cluster("a") };
    let plan = planned_with(vec![candidate(seen.clone())], options());
    assert_eq!(plan.planned, ahead);
    assert_eq!(progress(&plan.waves[0][0], plan.planned, Some(&seen)), ClusterProgress::ToWrite);
}

#[rstest]
#[case(0, 75, 0)]
#[case(1, 75, 61)]
#[case(75, 75, 60 + 60 * 38)]
#[case(76, 75, 61 + 60 * 39)]
#[case(3, 0, 180 + 60 * 2)]
fn the_end_is_estimated_from_rate_and_waves(#[case] clusters: u32, #[case] per_minute: u16, #[case] seconds: u64) {
    let candidates = (0..clusters).map(|number| candidate(cluster(&format!("c-{number}")))).collect();
    let estimate = estimate(&planned_with(candidates, Options { per_minute, ..options() }));
    assert_eq!(estimate.seconds, seconds);
    assert_eq!((estimate.store_writes, estimate.store_calls), (u64::from(clusters) * 4, u64::from(clusters) * 9));
}

#[rstest]
#[case::as_planned(Some(cluster("a")), ClusterProgress::ToWrite)]
#[case::written(Some(written(4, Some(report(3, Status::True, "SecretStored")))), ClusterProgress::Waiting)]
#[case::its_job_runs(Some(written(4, Some(report(4, Status::False, "WorkloadInProgress")))), ClusterProgress::Waiting)]
#[case::its_job_waits(Some(written(4, Some(report(4, Status::False, "WaitingForQuota")))), ClusterProgress::Waiting)]
#[case::available(Some(written(4, Some(report(4, Status::True, "SecretStored")))), ClusterProgress::Available)]
#[case::changed_after_us(Some(written(5, Some(report(5, Status::True, "SecretStored")))), ClusterProgress::Available)]
#[case::failed(
    Some(written(4, Some(report(4, Status::False, "PermissionDenied")))),
    ClusterProgress::Failed(Failure { cluster: "a".to_owned(), reason: "PermissionDenied".to_owned(), message: "so it is".to_owned() })
)]
#[case::failed_before(Some(written(4, Some(report(3, Status::False, "PermissionDenied")))), ClusterProgress::Waiting)]
#[case::changed_by_another(
    Some(Seen { generation: 4_u32.into(), ..cluster("a") }),
    ClusterProgress::Left("it was changed since the plan: generation 4 instead of 3".to_owned())
)]
#[case::deleting(Some(Seen { is_deleting: true, ..cluster("a") }), ClusterProgress::Left("it is being deleted".to_owned()))]
#[case::gone(None, ClusterProgress::Left("it was deleted".to_owned()))]
#[case::another_incarnation(
    Some(Seen { created: "2026-01-01T01:00:01Z".parse().ok(), ..cluster("a") }),
    ClusterProgress::Left("it was deleted and created again since the plan".to_owned())
)]
fn progress_follows_from_the_api_alone(#[case] seen: Option<Seen>, #[case] expect: ClusterProgress) {
    assert_eq!(progress(&planned("a"), planned_at(), seen.as_ref()), expect);
}

fn failed(id: &str) -> ClusterProgress {
    ClusterProgress::Failed(failure(id, "JobFailed", "it has failed"))
}

fn failure(id: &str, reason: &str, message: &str) -> Failure {
    Failure { cluster: id.to_owned(), reason: reason.to_owned(), message: message.to_owned() }
}

fn late(id: &str) -> Failure {
    failure(id, NOT_IN_TIME, "it is not available 900 s after the last write of its wave")
}

/// Waves `a`, then `b` and `c`.
#[rstest]
#[case::first(0, vec![ClusterProgress::ToWrite], 0, None, Step::Write(0))]
#[case::waits(0, vec![ClusterProgress::Waiting], 899, None, Step::Wait)]
#[case::next(0, vec![ClusterProgress::Available], 0, None, Step::NextWave(vec![]))]
#[case::none_may_fail_in_the_first(0, vec![failed("a")], 0, None, Step::Stop(vec![failure("a", "JobFailed", "it has failed")]))]
#[case::nor_be_late(0, vec![ClusterProgress::Waiting], 900, None, Step::Stop(vec![late("a")]))]
#[case::left_is_no_failure(0, vec![ClusterProgress::Left("x".to_owned())], 0, None, Step::NextWave(vec![]))]
#[case::second_write(1, vec![ClusterProgress::Waiting, ClusterProgress::ToWrite], 0, None, Step::Write(1))]
#[case::not_late_before_all_are_written(1, vec![ClusterProgress::Waiting, ClusterProgress::ToWrite], 10_000, None, Step::Write(1))]
#[case::tolerated(1, vec![failed("b"), ClusterProgress::ToWrite], 0, None, Step::Write(1))]
#[case::too_many(1, vec![failed("b"), failed("c")], 0, None, Step::Stop(vec![failure("b", "JobFailed", "it has failed"), failure("c", "JobFailed", "it has failed")]))]
#[case::tolerated_and_late(1, vec![ClusterProgress::Available, ClusterProgress::Waiting], 900, None, Step::NextWave(vec![late("c")]))]
#[case::failed_and_late(1, vec![failed("b"), ClusterProgress::Waiting], 900, None, Step::Stop(vec![failure("b", "JobFailed", "it has failed"), late("c")]))]
#[case::waits_beside_a_tolerated_one(1, vec![failed("b"), ClusterProgress::Waiting], 0, None, Step::Wait)]
#[case::done(2, vec![], 0, None, Step::Finish)]
#[case::paused(0, vec![ClusterProgress::ToWrite], 0, Some(Request::Pause), Step::Pause)]
#[case::aborted(0, vec![failed("a")], 0, Some(Request::Abort), Step::Abort)]
fn steps(
    #[case] wave: usize,
    #[case] progress: Vec<ClusterProgress>,
    #[case] waited: u64,
    #[case] request: Option<Request>,
    #[case] expect: Step,
) {
    let plan = of(&["a", "b", "c"]);
    assert_eq!(step(&Facts { plan: &plan, wave, progress: &progress, waited, request }), expect);
}

/// A fleet whose Jobs end at the second observation.
struct Fleet {
    clusters: BTreeMap<String, Seen>,
    writes: BTreeMap<String, u32>,
}

impl Fleet {
    fn observe(&mut self, plan: &Plan, wave: usize) -> Vec<ClusterProgress> {
        let clusters = plan.waves.get(wave).map_or(&[][..], Vec::as_slice);
        let progress = clusters.iter().map(|planned| progress(planned, plan.planned, self.clusters.get(&planned.id)));
        let progress = progress.collect();
        for seen in self.clusters.values_mut() {
            seen.report = Some(report(u32::try_from(seen.generation.get()).unwrap(), Status::True, "SecretStored"));
        }
        progress
    }

    /// Writes as the API does with `If-Match`.
    fn write(&mut self, planned: &Planned) {
        let seen = self.clusters.get_mut(&planned.id).unwrap();
        if seen.generation == planned.generation {
            seen.generation = seen.generation.next();
            seen.content = Content::Shown(NEW.to_owned());
            *self.writes.entry(planned.id.clone()).or_default() += 1;
        }
    }
}

/// The process is killed after every number of steps, before and after it has recorded the wave, again and again.
#[rstest]
fn a_run_that_is_killed_after_any_step_goes_on(
    #[values(1, 2, 3, 4, 5, 7, 11, 100)] steps: usize,
    #[values(true, false)] records: bool,
) {
    let ids = ["a", "b", "c", "d", "e", "f"];
    let plan = of(&ids);
    let clusters = ids.map(|id| (id.to_owned(), cluster(id))).into();
    let (mut fleet, mut recorded) = (Fleet { clusters, writes: BTreeMap::new() }, 0);
    let mut is_done = false;
    for _process in 0..1_000 {
        let mut wave = recorded;
        let mut taken = 0;
        // A process that never gets further than its first step would never end where no wave is recorded.
        let limit = if records { steps } else { steps + 6 * ids.len() };
        while taken < limit && !is_done {
            let progress = fleet.observe(&plan, wave);
            match step(&Facts { plan: &plan, wave, progress: &progress, waited: 0, request: None }) {
                Step::Write(index) => fleet.write(&plan.waves[wave][index]),
                Step::Wait => {}
                Step::NextWave(failures) => {
                    assert_eq!(failures, []);
                    wave += 1;
                    recorded = if records { wave } else { recorded };
                }
                Step::Finish => is_done = true,
                other => panic!("{other:?}"),
            }
            taken += 1;
        }
    }
    assert!(is_done);
    assert_eq!(fleet.writes, ids.map(|id| (id.to_owned(), 1)).into());
    assert!(fleet.clusters.values().all(|seen| seen.is_available() && seen.generation == Generation::from(4_u32)));
}
