//! The pages of docs/reference, written from the code that they describe.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use fleet_model::job::Reason;
use fleet_model::names::{self, Group, Name};
use pull_secret_job::settings::SETTINGS;

use crate::tree;

const NOTE: &str = "<!-- Written by `cargo xtask gen`; change the code instead. -->\n";

/// Writes the pages, or with `check` fails where one is not as it would be written.
pub(crate) fn pages(root: &Path, check: bool) -> anyhow::Result<()> {
    let folder = root.join("docs/reference");
    let mut stale = Vec::new();
    for (name, page) in [
        ("adapter-config.schema.json", format!("{:#}\n", adapter::config::schema())),
        ("adapter-settings.md", adapter_settings()),
        ("api-problems.md", api_problems()),
        ("api-settings.md", api_settings()),
        ("cli.md", command_line()),
        ("environment.md", environment()),
        ("exit-codes.md", exit_codes()),
        ("global-pull-secret-cli.md", global_command_line()),
        ("global-pull-secret-settings.md", global_settings()),
        ("names.md", names_page()),
        ("node-syncer.md", sync_global_pullsecret::reference::page(NOTE)),
        ("openapi.json", openapi()),
        ("sentinel-settings.md", sentinel_settings()),
    ] {
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|current| current == page) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let mut file = fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            std::io::Write::write_all(&mut file, page.as_bytes())?;
            tree::tell(format_args!("gen: wrote docs/reference/{name}"));
        }
    }
    if !stale.is_empty() {
        bail!("docs/reference is not as the code has it: {}; run: cargo xtask gen", stale.join(", "));
    }
    Ok(())
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

fn environment() -> String {
    let mut page = format!(
        "# Settings of the Pull Secret Job\n\n{NOTE}\nFlags come before environment variables; a blank value counts as \
         missing. Everything that is wrong is named at once, before anything is done.\n\n\
         | variable | flag | value | default | meaning |\n|---|---|---|---|---|\n"
    );
    for setting in SETTINGS {
        let code = |name: Option<String>| name.map_or("none".to_owned(), |name| format!("`{name}`"));
        let variable = code(setting.variable.map(str::to_owned));
        let flag = code(setting.flag.map(|flag| format!("--{flag}")));
        let value = code(Some(setting.value.to_owned()).filter(|value| !value.is_empty()));
        let default = if setting.default.is_empty() { "none" } else { setting.default };
        let help = setting.help;
        let _infallible = writeln!(page, "| {variable} | {flag} | {value} | {default} | {help} |");
    }
    page
}

fn api_settings() -> String {
    let table = hyperfleet_api::settings::table::TABLE;
    let mut page = format!(
        "# Settings of the HyperFleet API\n\n{NOTE}\nFlags come before variables, variables before the file, the file \
         before defaults. The file is YAML, the keys are its paths; a key that is not known is refused. `DATABASE_URL` \
         (`postgresql://user@host:5432/name`) takes PostgreSQL and comes before all `database` keys that say where it is. \
         What is a list is in the file only: [docs/api.md](../api.md#configuration).\n\n\
         | key | variable | flag | value | default | meaning |\n|---|---|---|---|---|---|\n"
    );
    for row in table.rows {
        let variable = (table.variable)(row.path);
        let flag = row.flag.map_or("none".to_owned(), |flag| format!("`--{flag}`"));
        let default = if row.default.is_empty() { "none".to_owned() } else { format!("`{}`", row.default) };
        let (path, value, help) = (row.path, row.kind.placeholder().replace('|', "\\|"), row.help);
        let _infallible = writeln!(page, "| `{path}` | `{variable}` | {flag} | `{value}` | {default} | {help} |");
    }
    page.push_str("\n## Keys of HyperFleet's own server that are refused\n\n| key | instead |\n|---|---|\n");
    for (path, instead) in table.retired {
        let _infallible = writeln!(page, "| `{path}` | {instead} |");
    }
    page
}

fn adapter_settings() -> String {
    let table = adapter::config::table::TABLE;
    let mut page = format!(
        "# Settings of an adapter\n\n{NOTE}\nFlags come before variables, variables before the file, the file before \
         defaults. The file is an `AdapterConfig` ([schema](adapter-config.schema.json)), the keys are its paths; a key that is \
         not known or has no effect is refused. What is a list or a mapping is in the file only: \
         [docs/adapter.md](../adapter.md#configuration).\n\n\
         | key | variable | flag | value | default | meaning |\n|---|---|---|---|---|---|\n"
    );
    for row in table.rows {
        let variable = (table.variable)(row.path);
        let flag = row.flag.map_or("none".to_owned(), |flag| format!("`--{flag}`"));
        let default = if row.default.is_empty() { "none".to_owned() } else { format!("`{}`", row.default) };
        let (path, value, help) = (row.path, row.kind.placeholder().replace('|', "\\|"), row.help);
        let _infallible = writeln!(page, "| `{path}` | `{variable}` | {flag} | `{value}` | {default} | {help} |");
    }
    page.push_str("\n## Keys of other editions that are refused\n\n| key | instead |\n|---|---|\n");
    for (path, instead) in table.retired {
        let _infallible = writeln!(page, "| `{path}` | {instead} |");
    }
    page.push_str(
        "\n## Reasons\n\nIn conditions, logs (`decision_reason`), metrics (`reason`) and dry runs; a Job's own ",
    );
    page.push_str("reasons are [here](exit-codes.md).\n\n| reason | meaning |\n|---|---|\n");
    for reason in adapter::Reason::ALL {
        let _infallible = writeln!(page, "| `{reason}` | {} |", reason.meaning());
    }
    page
}

fn sentinel_settings() -> String {
    use sentinel::settings::table::{EVENTS, TABLE, variable};
    let mut page = format!(
        "# Settings of the Sentinel\n\n{NOTE}\nFlags come before variables, variables before the file, the file before \
         defaults. The file is YAML, the keys are its paths, as HyperFleet's Sentinel has them; a key that is not known or has no \
         effect is refused. `resource_selector`, `message_data` and `publish_when` are in the file only: \
         [docs/sentinel.md](../sentinel.md#configuration).\n"
    );
    let names = [("`pull-secret sentinel`", TABLE), ("`pull-secret events tail`", EVENTS)];
    for (name, table) in names {
        let head = "| key | variable | flag | value | default | meaning |\n|---|---|---|---|---|---|\n";
        let _infallible = write!(page, "\n## {name}\n\n{head}");
        for row in table.rows {
            let flag = row.flag.map_or("none".to_owned(), |flag| format!("`--{flag}`"));
            let default = if row.default.is_empty() { "none".to_owned() } else { format!("`{}`", row.default) };
            let (path, value, help) = (row.path, row.kind.placeholder().replace('|', "\\|"), row.help);
            let variable = variable(row.path);
            let _infallible = writeln!(page, "| `{path}` | `{variable}` | {flag} | `{value}` | {default} | {help} |");
        }
    }
    page.push_str("\n## Keys of HyperFleet's own Sentinel that are refused\n\n| key | instead |\n|---|---|\n");
    for (path, instead) in TABLE.retired {
        let _infallible = writeln!(page, "| `{path}` | {instead} |");
    }
    page.push_str("\n## Reasons\n\nIn logs (`decision_reason`), in metrics (`reason`) and in `--dry-run`.\n\n");
    page.push_str("| reason | event | meaning |\n|---|---|---|\n");
    for reason in sentinel::Reason::ALL {
        let event = if reason.publishes() { "yes" } else { "no" };
        let _infallible = writeln!(page, "| `{reason}` | {event} | {} |", reason.meaning());
    }
    page
}

fn global_settings() -> String {
    use global_pull_secret::settings::table::{TABLE, variable};
    let mut page = format!(
        "# Settings of the Global Pull Secret controller\n\n{NOTE}\nFlags come before variables, variables before the file, the \
         file before defaults. The file is YAML, the keys are its paths; a key that is not known is refused. How it is used: \
         [docs/global-pull-secret.md](../global-pull-secret.md).\n\n\
         | key | variable | flag | value | default | meaning |\n|---|---|---|---|---|---|\n"
    );
    for row in TABLE.rows {
        let flag = row.flag.map_or("none".to_owned(), |flag| format!("`--{flag}`"));
        let default = if row.default.is_empty() { "none".to_owned() } else { format!("`{}`", row.default) };
        let (path, value, help) = (row.path, row.kind.placeholder().replace('|', "\\|"), row.help);
        let variable = variable(row.path);
        let _infallible = writeln!(page, "| `{path}` | `{variable}` | {flag} | `{value}` | {default} | {help} |");
    }
    page.push_str("\n## Reasons\n\nIn conditions, in Events, in logs and in metrics. A warning is one where somebody should look.\n\n");
    page.push_str("| reason | warning | meaning |\n|---|---|---|\n");
    for reason in global_pull_secret::reason::Reason::ALL {
        let warning = if reason.is_warning() { "yes" } else { "no" };
        let _infallible = writeln!(page, "| `{reason}` | {warning} | {} |", reason.meaning());
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
