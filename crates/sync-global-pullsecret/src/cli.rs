//! The commands and their flags.

use clap::{Arg, ArgMatches, Command};

use crate::reason::Reason;
use crate::settings::SETTINGS;

const ABOUT: &str = "Keep the kubelet's credentials on this node as the global pull secret says

Runs on each node, as root. When the credentials change, the kubelet's file is replaced (entries of others stay), the kubelet \
is restarted over D-Bus and watched; if it does not come up three times, the file is put back and the kubelet restarted with \
it. Whatever ends this process at any instruction, the next one finishes or undoes what was begun. Flags come before \
environment variables; a blank value counts as missing. A TIME is written as 500ms, 90s, 1m30s or 2h. The log is on stdout.";

/// The command line, for parsing and for the reference.
pub fn command() -> Command {
    let mut command = Command::new("sync-global-pullsecret")
        .about("Keep the kubelet's credentials on this node as the global pull secret says")
        .long_about(ABOUT)
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
        .after_help(after_help());
    for setting in SETTINGS {
        let variable = setting.variable;
        let default =
            if setting.default.is_empty() { String::new() } else { format!(", default: {}", setting.default) };
        let for_all = matches!(setting.flag, "kubelet-file" | "socket");
        command = command.arg(
            Arg::new(setting.flag)
                .long(setting.flag)
                .value_name(setting.value)
                .global(for_all)
                .help(format!("{} [env: {variable}{default}]", setting.help)),
        );
    }
    let output = Arg::new("output").long("output").value_name("text|json").value_parser(["text", "json"]);
    command
        .subcommand(
            Command::new("ready")
                .about("Succeed if the kubelet runs with the expected credentials: for the pod's readiness probe"),
        )
        .subcommand(
            Command::new("status")
                .about("Say how things are on this node, and why")
                .arg(output.default_value("text").help("How to say it")),
        )
}

/// The value of a flag, if it was given.
pub(crate) fn value(matches: &ArgMatches, flag: &str) -> Option<String> {
    matches.try_get_one::<String>(flag).ok().flatten().cloned()
}

fn after_help() -> String {
    let reasons: String =
        Reason::ALL.iter().map(|reason| format!("  {:<19} {}\n", reason.name(), reason.meaning())).collect();
    format!(
        "How things are is one of these words, in the log, in `status` and in the metric \
         sync_global_pullsecret_reason:\n{reasons}\n\
         Exit codes: 0 told to stop, or ready; 1 not ready, or a defect; 2 wrong settings; 5 another syncer works on \
         this node."
    )
}
