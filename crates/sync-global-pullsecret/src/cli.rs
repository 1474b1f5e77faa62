//! The command line, parsed by the table of settings; no library, because every page of this program is on every node.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::reason::Reason;
use crate::settings::{SETTINGS, TABLE};

/// Width of the help in characters.
const WIDTH: usize = 100;

/// The command of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Keep the kubelet's file in sync.
    Sync,
    /// Exit successfully if the running syncer is ready.
    Ready,
    /// Print the status of the running syncer.
    Status,
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

// === impl Command ===

impl Command {
    /// Returns true for a command whose result has a form for programs.
    fn has_output(self) -> bool {
        matches!(self, Self::Ready | Self::Status | Self::Version)
    }

    /// Returns true for a command that asks the running syncer.
    fn is_of_the_running_syncer(self) -> bool {
        matches!(self, Self::Ready | Self::Status)
    }
}

/// A command and its flags, by their names without the dashes.
pub type CommandLine = (Command, BTreeMap<&'static str, String>);

/// The flag that only commands with a result take.
pub(crate) const OUTPUT: &str = "output";

/// The flags that every command takes.
const FOR_ALL: &[&str] = &["kubelet-file", "socket"];

/// Parses the arguments. Of a flag that is given twice, the last one counts.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<CommandLine, String> {
    let mut arguments = arguments.into_iter();
    let mut command = None;
    let mut flags = BTreeMap::new();
    while let Some(argument) = arguments.next() {
        let Some(flag) =
            argument.strip_prefix("--").or_else(|| argument.strip_prefix('-').filter(|flag| flag.len() == 1))
        else {
            let named = match argument.as_str() {
                "ready" => Command::Ready,
                "status" => Command::Status,
                "help" => Command::Help,
                "version" => Command::Version,
                // It is not quoted: it may be a misplaced credential.
                _ => return Err("there are the commands ready, status, help and version".to_owned()),
            };
            if command.replace(named).is_some() {
                return Err("one command is enough".to_owned());
            }
            continue;
        };
        match flag {
            "help" | "h" => return Ok((Command::Help, flags)),
            "version" | "V" => return Ok((Command::Version, flags)),
            _ => {}
        }
        let (flag, value) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (flag, None),
        };
        let known = SETTINGS.iter().filter_map(|setting| setting.flag).chain([OUTPUT]).find(|known| *known == flag);
        let known = known.ok_or_else(|| "there is no such flag; --help lists them".to_owned())?;
        let value = value.or_else(|| arguments.next()).ok_or_else(|| format!("--{known}: needs a value"))?;
        flags.insert(known, value);
    }
    let command = command.unwrap_or(Command::Sync);
    for flag in flags.keys() {
        let applies = if *flag == OUTPUT { command.has_output() } else { command == Command::Sync };
        let is_for_all = command.is_of_the_running_syncer() && FOR_ALL.contains(flag);
        if !(applies || is_for_all) {
            return Err(format!("--{flag}: has no effect with this command"));
        }
    }
    if flags.get(OUTPUT).is_some_and(|format| format != "text" && format != "json") {
        return Err(format!("--{OUTPUT}: must be text or json"));
    }
    Ok((command, flags))
}

/// Returns the help text.
pub fn help() -> String {
    let mut help = String::new();
    for paragraph in [
        "Keep the kubelet's credentials on this node in sync with the global pull secret",
        "Runs on each node, as root. When the credentials change, the kubelet's file is replaced (unmanaged entries stay), \
         the kubelet is restarted over D-Bus and verified; if it does not come up three times, the change is rolled back and \
         the kubelet restarted. A change that is interrupted at any instruction is finished or undone by the next process. \
         Flags take precedence over environment variables; a blank value counts as missing. A DURATION is written as 500ms, 90s, \
         1m30s or 2h. The log is on stdout.",
    ] {
        wrap(&mut help, "", paragraph);
        help.push('\n');
    }
    help += "Usage: sync-global-pullsecret [FLAG VALUE]...\n       \
             sync-global-pullsecret ready [--socket FILE | --kubelet-file FILE] [--output text|json]\n       \
             sync-global-pullsecret status [--socket FILE | --kubelet-file FILE] [--output text|json]\n       \
             sync-global-pullsecret version [--output text|json]\n\n\
             Commands:\n  ready    Succeed if the kubelet runs with the expected credentials, for the readiness probe\n  \
             status   Print the state of this node and its reason\n  help     Print this help\n  version  Print version, commit and build date\n\nFlags:\n";
    for setting in SETTINGS {
        let default = match (setting.default, setting.unset) {
            ("", "") => String::new(),
            ("", default) | (default, _) => format!(", default: {default}"),
        };
        let (flag, variable) = (setting.flag.unwrap_or_default(), TABLE.variable_of(setting).unwrap_or_default());
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(help, "  --{flag} {}", setting.synopsis());
        wrap(&mut help, "        ", &format!("{} [env: {variable}{default}]", setting.help));
    }
    help += "\nReasons, in the log, in `status` and in the metric sync_global_pullsecret_reason:\n";
    for reason in Reason::ALL {
        let _infallible = writeln!(help, "  {reason}");
        wrap(&mut help, "        ", reason.meaning());
    }
    help += "\nExit codes: 0 stopped, or ready; 1 not ready, or a defect; 2 invalid settings; 5 another syncer runs on \
             this node\n";
    help
}

fn wrap(page: &mut String, indent: &str, text: &str) {
    let mut length = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if length > 0 && indent.len() + length + 1 + width > WIDTH {
            page.push('\n');
            length = 0;
        }
        let before = if length == 0 { indent } else { " " };
        page.push_str(before);
        page.push_str(word);
        length += width + usize::from(length > 0);
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn line(text: &str) -> Result<CommandLine, String> {
        parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_are_read_in_both_spellings_and_the_last_one_counts() {
        let (command, flags) = line("--unit a.service --unit=b.service --revision r=1").unwrap();
        assert_eq!(command, Command::Sync);
        assert_eq!(flags, BTreeMap::from([("unit", "b.service".to_owned()), ("revision", "r=1".to_owned())]));
        assert_eq!(line("status --output json --socket /s").unwrap().0, Command::Status);
        assert_eq!(line("--socket /s ready").unwrap().0, Command::Ready);
        assert_eq!(line("-h").unwrap().0, Command::Help);
    }

    #[rstest]
    #[case("s3cr3t", "there are the commands ready, status, help and version")]
    #[case("--s3cr3t 1", "there is no such flag; --help lists them")]
    #[case("--unit", "--unit: needs a value")]
    #[case("ready status", "one command is enough")]
    #[case("ready --unit a.service", "--unit: has no effect with this command")]
    #[case("--output json", "--output: has no effect with this command")]
    #[case("status --output yaml", "--output: must be text or json")]
    #[case("version --output yaml", "--output: must be text or json")]
    #[case("version --socket /s", "--socket: has no effect with this command")]
    #[case("help --output json", "--output: has no effect with this command")]
    fn invalid_arguments_are_refused(#[case] arguments: &str, #[case] error: &str) {
        assert_eq!(line(arguments).unwrap_err(), error);
    }

    #[test]
    fn the_help_lists_every_setting_and_reason_within_its_width() {
        let help = help();
        assert!(SETTINGS.iter().all(|setting| help.contains(&format!("  --{} ", setting.flag.unwrap()))));
        assert!(Reason::ALL.iter().all(|reason| help.contains(&format!("  {reason}\n"))));
        let longest = help.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 120, "{longest}");
    }
}
