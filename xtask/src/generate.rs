//! Generates the pages of docs/reference from the code that they describe.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use daemon::settings::{Table, page};
use fleet_model::job::Reason;
use fleet_model::metrics::Catalogue;
use fleet_model::names::{self, Group, Name};

use crate::{dashboards, tree};

/// The folder of the dashboards.
const DASHBOARDS: &str = "charts/pull-secret/monitoring/dashboards";
const NOTE: &str = "<!-- Written by `cargo xtask gen`; change the code instead. -->\n";

/// The section about expressions.
const RATES: &str = "
## Rates

PromQL divides series with the same labels by each other, so a share needs sums on both sides; without them each series is divided by
itself, which is always 1:

    sum(rate(pullsecret_job_total{result=\"success\"}[5m])) / sum(rate(pullsecret_job_total[5m]))

The runs beyond 300 seconds are `pullsecret_job_duration_seconds_count` minus `pullsecret_job_duration_seconds_bucket{le=\"300.0\"}`. Alerts and
dashboards are in `charts/pull-secret/monitoring`; what to do about an alert is in the [runbooks](../operations/runbooks.md).
";

/// Writes the pages and dashboards, or with `check` fails where one is not as it would be written.
pub(crate) fn pages(root: &Path, check: bool) -> anyhow::Result<()> {
    let pages = reference_pages().map(|(name, page)| (format!("docs/reference/{name}"), page));
    let dashboards =
        dashboards::ALL.map(|dashboard| (format!("{DASHBOARDS}/{}.json", dashboard.name), dashboard.render()));
    let mut stale = Vec::new();
    for (name, page) in pages.into_iter().chain(dashboards) {
        let path = root.join(&name);
        if fs::read_to_string(&path).is_ok_and(|current| current == page) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            let folder = path.parent().context("the root is no page")?;
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let mut file = fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            std::io::Write::write_all(&mut file, page.as_bytes())?;
            tree::eprint(format_args!("gen: wrote {name}"));
        }
    }
    if !stale.is_empty() {
        bail!("not as the code has it: {}; run: cargo xtask gen", stale.join(", "));
    }
    Ok(())
}

fn reference_pages() -> [(&'static str, String); 19] {
    [
        ("adapter-config.schema.json", format!("{:#}\n", adapter::config::schema())),
        ("adapter-settings.md", adapter_settings()),
        ("api-problems.md", api_problems()),
        ("api-settings.md", api_settings()),
        ("cli.md", command_line()),
        ("credentials.md", credentials_page()),
        ("credentials-openapi.json", format!("{:#}\n", credentials::http::openapi::document())),
        ("credentials-settings.md", credentials_settings()),
        ("environment.md", job_settings()),
        ("exit-codes.md", exit_codes()),
        ("global-pull-secret-cli.md", global_command_line()),
        ("global-pull-secret-settings.md", global_settings()),
        ("metrics.md", metrics_page()),
        ("names.md", names_page()),
        ("node-syncer.md", sync_global_pullsecret::reference::page(NOTE)),
        ("openapi.json", openapi()),
        ("openapi-core.json", openapi_core()),
        ("sentinel-settings.md", sentinel_settings()),
        ("settings-aliases.md", settings_aliases()),
    ]
}

fn command_line() -> String {
    let page = commands(format!("# Command line\n\n{NOTE}"), pull_secret::cli::Cli::command());
    commands(page, pull_secret_local::cli::Cli::command())
}

fn global_command_line() -> String {
    let page = format!("# Command line of the Global Pull Secret controller\n\n{NOTE}");
    commands(page, global_pull_secret::cli::Cli::command())
}

/// The help of a command and of all below it.
fn commands(mut page: String, root: clap::Command) -> String {
    let mut root = root.term_width(100);
    root.build();
    let mut open = vec![(root.get_name().to_owned(), root)];
    while let Some((name, mut command)) = open.pop() {
        let help = command.render_long_help().to_string();
        let help: String = help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        // Writing to a String cannot fail, here and below.
        let _infallible = write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", help.trim_end());
        let below: Vec<_> = command.get_subcommands().filter(|below| below.get_name() != "help").cloned().collect();
        open.extend(below.into_iter().rev().map(|below| (format!("{name} {}", below.get_name()), below)));
    }
    page
}

/// A page of settings: its title, what has to be known besides, and tables with titles of their own if there are several.
struct SettingsPage<'a> {
    title: &'a str,
    intro: &'a str,
    has_file: bool,
    tables: &'a [(&'a str, Table)],
}

impl SettingsPage<'_> {
    fn render(&self) -> String {
        let Self { title, intro, has_file, tables } = self;
        let sources = if *has_file {
            "Flags take precedence over variables, variables over the file, the file over defaults. The file is YAML, the keys \
             are paths in it. Unknown keys, keys without effect, and variables one letter away from a known one are refused; \
             all faults are listed at once."
        } else {
            "Flags take precedence over variables, variables over defaults; a blank value counts as missing. Variables one \
             letter away from a known one are refused; all faults are listed at once, before anything is done."
        };
        let mut page = format!("# {title}\n\n{NOTE}\n{}\n", format!("{sources} {intro}").trim_end());
        for (name, table) in *tables {
            // Writing to a String cannot fail, here and below.
            let _infallible = match tables.len() {
                1 => write!(page, "\n{}", page::settings(table, *has_file)),
                _ => write!(page, "\n## {name}\n\n{}", page::settings(table, *has_file)),
            };
        }
        let retired = tables.first().map(|(_, table)| table).filter(|table| !table.retired.is_empty());
        if let Some(table) = retired {
            let _infallible = write!(page, "\n## Keys that are refused\n\n{}", page::retired(table));
        }
        page
    }
}

fn job_settings() -> String {
    let tables = &[("", pull_secret_job::settings::TABLE)];
    SettingsPage { title: "Settings of the Pull Secret Job", intro: "", has_file: false, tables }.render()
}

fn api_settings() -> String {
    let intro = "`DATABASE_URL` (`postgresql://user@host:5432/name?sslmode=verify-full`) selects PostgreSQL and takes precedence over \
                 all `database` keys that name a server. Lists: [guide](../guides/api.md#configuration).";
    let tables = &[("", hyperfleet_api::settings::table::TABLE)];
    let page = SettingsPage { title: "Settings of the HyperFleet API", intro, has_file: true, tables }.render();
    let inert = page::inert(hyperfleet_api::settings::table::INERT);
    let intro = "HyperFleet's own server knows these keys. They are accepted here, and a warning at the start says that they have \
                 no effect.";
    format!("{page}\n## Keys without effect\n\n{intro}\n\n{inert}")
}

fn adapter_settings() -> String {
    let intro = "The file is an `AdapterConfig` ([schema](adapter-config.schema.json)). Lists and mappings: \
                 [guide](../guides/adapter.md#configuration).";
    let tables = &[("", adapter::config::table::TABLE)];
    let mut page = SettingsPage { title: "Settings of an adapter", intro, has_file: true, tables }.render();
    page.push_str(
        "\n## Reasons\n\nIn conditions, logs (`decision_reason`), metrics (`reason`) and dry runs; a Job's own ",
    );
    page.push_str("reasons are [here](exit-codes.md).\n\n| reason | meaning |\n|---|---|\n");
    for reason in adapter::Reason::ALL {
        let _infallible = writeln!(page, "| `{reason}` | {} |", reason.meaning());
    }
    page
}

fn credentials_page() -> String {
    use credentials::reason::Reason as CredentialReason;
    use credentials::rotation::{ClusterProgress, RotationPhase, RotationReason};
    use credentials::state::{Action, Lane, State};
    let mut page = format!(
        "# Registry credentials: states and reasons\n\n{NOTE}\nAs the ledger stores them, in rows and events. Each step has at most one \
         outward action.\n\n## States\n\n| state | meaning |\n|---|---|\n"
    );
    for state in State::ALL {
        let _infallible = writeln!(page, "| `{state}` | {} |", state.meaning());
    }
    page.push_str("\n## Outward actions\n\nThose that change something have an event before and after.\n\n");
    page.push_str("| action | calls | meaning |\n|---|---|---|\n");
    for action in Action::ALL {
        let calls = if action.calls_registry() { "the registry" } else { "the API" };
        let _infallible = writeln!(page, "| `{action}` | {calls} | {} |", action.meaning());
    }
    page.push_str(
        "\n## Lanes\n\nMost urgent first; while the calls of a registry are scarce, an upper lane has some left.\n\n",
    );
    page.push_str("| lane | meaning |\n|---|---|\n");
    for lane in Lane::ALL {
        let _infallible = writeln!(page, "| `{lane}` | {} |", lane.meaning());
    }
    page.push_str("\n## Reasons\n\n| reason | needs a person | meaning |\n|---|---|---|\n");
    for reason in CredentialReason::ALL {
        let person = if reason.needs_a_person() { "yes" } else { "no" };
        let _infallible = writeln!(page, "| `{reason}` | {person} | {} |", reason.meaning());
    }
    page.push_str(
        "\n## Rotations\n\n[How to](../guides/credentials.md#replace-many).\n\n| phase | meaning |\n|---|---|\n",
    );
    for phase in RotationPhase::ALL {
        let _infallible = writeln!(page, "| `{phase}` | {} |", phase.meaning());
    }
    page.push_str("\n| reason of a phase | meaning |\n|---|---|\n");
    for reason in RotationReason::ALL {
        let _infallible = writeln!(page, "| `{reason}` | {} |", reason.meaning());
    }
    page.push_str("\n| progress of a cluster | meaning |\n|---|---|\n");
    for progress in ClusterProgress::ALL {
        let _infallible = writeln!(page, "| `{progress}` | {} |", progress.meaning());
    }
    page.push_str(&leaving_ams());
    page
}

fn leaving_ams() -> String {
    use credentials::ams::Finding;
    use credentials::decide::ams::{Difference, Obstacle, Phase};
    let mut page =
        "\n## Leaving AMS\n\n[How to](../operations/leave-ams.md).\n\n| phase | meaning |\n|---|---|\n".to_owned();
    for phase in Phase::ALL {
        let _infallible = writeln!(page, "| `{phase}` | {} |", phase.meaning());
    }
    page.push_str("\n| finding about an entry | meaning |\n|---|---|\n");
    for finding in Finding::ALL {
        let _infallible = writeln!(page, "| `{finding}` | {} |", finding.meaning());
    }
    page.push_str("\n| difference | meaning |\n|---|---|\n");
    for difference in Difference::ALL {
        let _infallible = writeln!(page, "| `{difference}` | {} |", difference.meaning());
    }
    page.push_str("\n| obstacle to a retirement | meaning |\n|---|---|\n");
    for obstacle in Obstacle::ALL {
        let _infallible = writeln!(page, "| `{obstacle}` | {} |", obstacle.meaning());
    }
    page
}

fn credentials_settings() -> String {
    let intro =
        "`DATABASE_URL` selects PostgreSQL, as at the API. Lists: [guide](../guides/credentials.md#configuration).";
    let tables = &[("", credentials::settings::table::TABLE)];
    SettingsPage { title: "Settings of the credentials service", intro, has_file: true, tables }.render()
}

fn sentinel_settings() -> String {
    use sentinel::settings::table::{EVENTS, TABLE};
    let intro = "The keys are those of HyperFleet's Sentinel. Lists and mappings: \
                 [guide](../guides/sentinel.md#configuration).";
    let tables = &[("`pull-secret sentinel`", TABLE), ("`pull-secret events tail`", EVENTS)];
    let mut page = SettingsPage { title: "Settings of the Sentinel", intro, has_file: true, tables }.render();
    page.push_str("\n## Reasons\n\nIn logs (`decision_reason`), in metrics (`reason`) and in `--dry-run`.\n\n");
    page.push_str("| reason | event | meaning |\n|---|---|---|\n");
    for reason in sentinel::Reason::ALL {
        let event = if reason.publishes() { "yes" } else { "no" };
        let _infallible = writeln!(page, "| `{reason}` | {event} | {} |", reason.meaning());
    }
    page
}

fn global_settings() -> String {
    let intro = "Guide: [guide](../guides/global-pull-secret.md).";
    let tables = &[("", global_pull_secret::settings::table::TABLE)];
    let title = "Settings of the Global Pull Secret controller";
    let mut page = SettingsPage { title, intro, has_file: true, tables }.render();
    page.push_str("\n## Reasons\n\nIn conditions, Events, logs and metrics. A warning needs someone's attention.\n\n");
    page.push_str("| reason | warning | meaning |\n|---|---|---|\n");
    for reason in global_pull_secret::reason::Reason::ALL {
        let warning = if reason.is_warning() { "yes" } else { "no" };
        let _infallible = writeln!(page, "| `{reason}` | {warning} | {} |", reason.meaning());
    }
    page
}

/// The tables of settings of all programs.
fn tables() -> [(&'static str, Table); 8] {
    [
        ("API", hyperfleet_api::settings::table::TABLE),
        ("Sentinel", sentinel::settings::table::TABLE),
        ("`events tail`", sentinel::settings::table::EVENTS),
        ("adapter", adapter::config::table::TABLE),
        ("credentials", credentials::settings::table::TABLE),
        ("Job", pull_secret_job::settings::TABLE),
        ("controller", global_pull_secret::settings::table::TABLE),
        ("node syncer", sync_global_pullsecret::settings::TABLE),
    ]
}

fn settings_aliases() -> String {
    let mut page = format!(
        "# Other spellings of settings\n\n{NOTE}\nEvery setting has one spelling, the same in every program. The spellings of \
         HyperFleet's own programs and of the specification are accepted too. A variable in its own spelling takes precedence \
         over its other spellings; a key that is given in two spellings is refused.\n\n\
         | program | setting | other keys | other variables | other values |\n|---|---|---|---|---|\n"
    );
    for (program, table) in tables() {
        page.push_str(&page::spellings(program, &table));
    }
    page
}

fn api_problems() -> String {
    let mut page = format!(
        "# Problems that the HyperFleet API answers\n\n{NOTE}\nEvery refusal is `application/problem+json` (RFC 9457) with \
         `type`, `title`, `status`, `detail`, `instance`, `code`, `timestamp`, `trace_id` (the `X-Request-ID` of the answer \
         and of the log line) and, where a place can be named, `errors[]`. Key on `code`.\n\n\
         | code | status | title | when |\n|---|---|---|---|\n"
    );
    for code in hyperfleet_api::problem::Code::ALL {
        let (name, status, title, meaning) = (code.as_str(), code.status().as_u16(), code.title(), code.meaning());
        let _infallible = writeln!(page, "| `{name}` | {status} | {title} | {meaning} |");
    }
    page
}

fn exit_codes() -> String {
    let mut page = format!(
        "# How a Pull Secret Job ends\n\n{NOTE}\nThe reason stands in the last log line, in the result file and in the \
         termination message. Codes 2 to 6 are permanent: running again without a change cannot help. 75 is worth \
         another try.\n\n| exit code | reason | meaning |\n|---|---|---|\n"
    );
    let mut reasons = Reason::ALL;
    reasons.sort_by_key(|reason| reason.exit_code());
    for reason in reasons {
        let _infallible = writeln!(page, "| {} | `{reason}` | {} |", reason.exit_code(), reason.meaning());
    }
    page
}

/// The API's document for the kinds that it serves when its configuration names none.
fn openapi() -> String {
    let registry = hyperfleet_api::entity::Registry::standard();
    format!("{:#}\n", hyperfleet_api::openapi::document(&registry, hyperfleet_api::openapi::VERSION))
}

fn openapi_core() -> String {
    let registry = hyperfleet_api::entity::Registry::standard();
    let document = hyperfleet_api::openapi::document(&registry, hyperfleet_api::openapi::VERSION);
    format!("{:#}\n", hyperfleet_api::openapi::core(&document))
}

fn names_page() -> String {
    let mut page = format!("# Names written to the world\n\n{NOTE}");
    for Group { title, names } in names::GROUPS {
        let _infallible = write!(page, "\n## {title}\n\n| name | meaning |\n|---|---|\n");
        for Name { name, meaning } in *names {
            let _infallible = writeln!(page, "| `{name}` | {meaning} |");
        }
    }
    page
}

fn metrics_page() -> String {
    let mut page = format!(
        "# Metrics\n\n{NOTE}\nEvery daemon serves its metrics on `/metrics`, in the OpenMetrics text format. A histogram has the series \
         `NAME_bucket`, `NAME_sum` and `NAME_count`.\n"
    );
    for Catalogue { component, metrics } in fleet_model::metrics::all::ALL {
        // Writing to a String cannot fail, here and below.
        let _infallible = write!(page, "\n## {component}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n");
        for metric in metrics {
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (series, kind, help) = (metric.series(), metric.kind.as_str(), metric.help());
            let _infallible = writeln!(page, "| `{series}` | {kind} | {} | {help} |", labels.join(", "));
        }
    }
    page.push_str(RATES);
    let (placeholder, example) = (fleet_model::metrics::ADAPTER_TYPE, "pullsecret");
    let _infallible =
        write!(page, "\n`{placeholder}` stands for the adapter's type with `_` for `-`, such as `{example}`.\n");
    page
}

#[cfg(test)]
mod tests {
    use daemon::settings::hint;

    use super::*;

    /// A variable that one program knows must not look like a misspelling of another program's.
    #[test]
    fn no_variable_is_one_edit_away_from_another() {
        let mut names: Vec<String> = tables().iter().flat_map(|(_, table)| table.variables()).collect();
        names.sort();
        names.dedup();
        for name in &names {
            let others = names.iter().map(String::as_str).filter(|other| other != name);
            assert_eq!(hint::one_edit(name, others), None, "{name}");
        }
    }
}
