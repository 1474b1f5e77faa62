//! Searches that match the example, and searches that do not.

use rstest::rstest;

use super::*;

#[rstest]
#[case::nothing("", true)]
#[case::blank(" \n\t ", true)]
#[case::text("name = 'workers'", true)]
#[case::double_equals("name == \"workers\"", true)]
#[case::backticks("name=`workers`", true)]
#[case::unequal("name != 'x' and name <> 'y'", true)]
#[case::capitals("name = 'x' OR NOT name = 'x' AND name LIKE 'w%'", true)]
#[case::doubled_quote("updated_by = 'O''Hara \\\\ Söhne'", true)]
#[case::escaped_quote("updated_by = 'O\\'Hara \\\\ Söhne'", true)]
#[case::other_quote("updated_by = \"O'Hara \\\\ Söhne\"", true)]
#[case::empty_text("spec.empty = '' and name != ''", true)]
#[case::bytewise("name > 'Zebra' and name < 'workerz'", true)]
#[case::precedence("name = 'workers' or name = 'x' and name = 'y'", true)]
#[case::parentheses("(name = 'workers' or name = 'x') and name = 'y'", false)]
#[case::not_binds_to_the_comparison("not name = 'x' and name = 'workers'", true)]
#[case::not_twice("not not name = 'workers'", true)]
#[case::not_of_both("not (name = 'x' or generation < 4)", true)]
#[case::numbers("generation = 4 and generation >= 4 and generation < 5 and generation > -1", true)]
#[case::suffixes("generation < 1Ki and generation < 0.001M and generation = 0.004k", true)]
#[case::exponents("generation = 4e0 and generation = 40e-1", true)]
#[case::between("generation between 4 and 5 and generation not between 5 and 9", true)]
#[case::list("generation in [1, 4] and kind in ('NodePool') and kind not in ['Cluster']", true)]
#[case::like("name like 'w_rk%' and name not like 'W%' and name ilike 'WORK%'", true)]
#[case::like_escape("name like 'work\\%'", false)]
#[case::like_backslash("updated_by like '%\\\\\\\\%'", true)]
#[case::dates("created_time = 2026-01-01 and created_time = '2026-01-01' and updated_time > 2026-01-02", true)]
#[case::times("updated_time = 2026-01-02T12:00:00Z and updated_time = '2026-01-02T13:00:00+01:00'", true)]
#[case::null("deleted_time is null and name is not null and not deleted_by is not null", true)]
#[case::null_is_not_compared("deleted_by = 'x' or not deleted_by = 'x' or deleted_time not in [2026-01-01]", false)]
#[case::owner("owner_id = '0197' and owner_kind = 'Cluster'", true)]
#[case::label("labels.shard = '1' and labels.shard != '2' and labels.shard in ['1', '2']", true)]
#[case::label_hyphen("labels.cost-center = 'cc-7' and labels.cost-center like 'cc-%'", true)]
#[case::label_domain("labels.hyperfleet.io/cluster-id ilike 'C_'", true)]
#[case::label_order("labels.shard > '0' and labels.shard between '0' and '2'", true)]
#[case::label_absent("labels.none is null and status.conditions.Other is null", true)]
#[case::label_absent_is_not_another("labels.none != 'x'", false)]
#[case::condition("status.conditions.Reconciled = 'True' and status.conditions.ProbeSuccessful='False'", true)]
#[case::condition_absent("status.conditions.Other = 'Unknown'", false)]
#[case::condition_parts("status.conditions.Reconciled.observed_generation < 4", true)]
#[case::condition_times(
    "status.conditions.Reconciled.last_updated_time >= '2026-01-03T00:00:00.5Z' and \
     status.conditions.Reconciled.last_transition_time < 2026-01-03T00:00:00Z",
    true
)]
#[case::condition_absent_part("status.conditions.Other.observed_generation != 1", false)]
#[case::spec("spec.platform.gcp.project_id = 'p-1' and spec.platform.type != 'aws'", true)]
#[case::spec_digits("spec.platform.gcp.0 = 'zero' and spec.platform.gcp.zones.0 is null", true)]
#[case::spec_number("spec.replicas = 3 and spec.replicas > 2.5 and spec.share = 0.5 and spec.share in [1, 0.5]", true)]
#[case::spec_bool("spec.spot = true and spec.spot != FALSE and spec.spot in [true, false]", true)]
#[case::spec_text_is_no_number("spec.text = 3 or spec.text != 3", false)]
#[case::spec_number_as_text(
    "spec.replicas = '3' and spec.share = '0.5' and spec.replicas like '%' and spec.replicas < '4'",
    true
)]
#[case::spec_number_is_its_own_text("spec.replicas = '3.0' or spec.replicas = '03' or spec.replicas != '3'", false)]
#[case::spec_number_with_exponent("spec.tiny = '1e-9' or spec.tiny != 'x' or spec.tiny = '0.000000001'", false)]
#[case::spec_bool_as_text("spec.spot = 'true' and spec.spot != 'false' and spec.spot in ['true', 'x']", true)]
#[case::spec_text_of_digits("spec.text = '3'", true)]
#[case::literal_first("'workers' = name and 'x' != name and 'w' < name and 'x' >= name", true)]
#[case::literal_first_numbers("3 = generation or 5 > generation and -1 <= generation and 2.5 < spec.replicas", true)]
#[case::literal_first_times("2026-01-01 = created_time and '2026-01-02T12:00:00Z' = updated_time", true)]
#[case::literal_first_conditions("'True' = status.conditions.Reconciled and not 'x' = name", true)]
#[case::literal_first_labels("'1' = labels.shard and true = spec.spot and 'true' = spec.spot", true)]
#[case::literal_first_not("not (5 <= generation) and not 'workers' != name", true)]
#[case::condition_is_there("status.conditions.Reconciled is null", false)]
#[case::reason(
    "status.conditions.Reconciled.reason = 'ReconciledAll' and 'x' != status.conditions.Reconciled.reason",
    true
)]
#[case::reason_absent(
    "status.conditions.ProbeSuccessful.reason is null and status.conditions.Other.reason is null",
    true
)]
#[case::reason_absent_is_not_another("status.conditions.ProbeSuccessful.reason != 'x'", false)]
#[case::part_of_an_absent_condition("status.conditions.Other.last_updated_time is null", true)]
#[case::spec_object("spec.platform = 'x' or spec.platform != 'x' or spec.list != 1", false)]
#[case::spec_null("spec.none is null and spec.nowhere.at.all is null and spec.platform is not null", true)]
#[case::spec_absent_is_not_another("spec.none != 'x' or not spec.nowhere = 'x'", false)]
#[case::spec_like("spec.platform.type ilike 'G%' and spec.platform.type not like 'G%'", true)]
fn a_search_matches_the_example(#[case] search: &str, #[case] expected: bool) {
    assert_eq!(Search::parse(search).unwrap().matches(&example()), expected);
}
