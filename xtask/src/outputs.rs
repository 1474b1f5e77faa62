//! Every command that prints a result prints it for programs too.

use clap::{Command, CommandFactory as _};

/// Commands without `--output json`, each with the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("pull-secret api", "serves"),
    ("pull-secret api serve", "serves"),
    ("pull-secret api openapi", "prints JSON"),
    ("pull-secret adapter", "serves"),
    ("pull-secret adapter serve", "serves"),
    ("pull-secret adapter schema", "prints JSON"),
    ("pull-secret run-job pull-secret", "writes its result as JSON to RESULTS_PATH, and a log of JSON lines"),
    ("pull-secret local", "runs another program"),
    ("pull-secret completion", "prints a script"),
    ("pull-secret-local completion", "prints a script"),
    ("pull-secret-local emulator secret-manager", "serves"),
    ("pull-secret-local emulator key-vault", "serves"),
    ("pull-secret-local emulator kubernetes", "serves"),
    ("global-pull-secret run", "serves"),
    ("pull-secret credentials serve", "serves"),
    ("pull-secret-local emulator quay", "serves"),
    ("global-pull-secret completion", "prints a script"),
];

/// The commands of a program that do something, by their names.
fn commands(root: Command) -> Vec<(String, Command)> {
    let mut root = root;
    root.build();
    let (mut open, mut all) = (vec![(root.get_name().to_owned(), root)], Vec::new());
    while let Some((name, command)) = open.pop() {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        open.extend(below.cloned().map(|below| (format!("{name} {}", below.get_name()), below)));
        // A group only shows its help.
        if !command.is_subcommand_required_set() {
            all.push((name, command));
        }
    }
    all
}

fn has_json(command: &Command) -> bool {
    let output = command.get_arguments().find(|argument| argument.get_long() == Some("output"));
    output.is_some_and(|output| output.get_possible_values().iter().any(|value| value.get_name() == "json"))
}

#[test]
fn every_command_with_a_result_has_an_output_for_programs() {
    let roots = [
        pull_secret::cli::Cli::command(),
        pull_secret_local::cli::Cli::command(),
        global_pull_secret::cli::Cli::command(),
    ];
    let all: Vec<(String, Command)> = roots.into_iter().flat_map(commands).collect();
    assert!(all.len() > 30, "{}", all.len());
    let without: Vec<&str> =
        all.iter().filter(|(_, command)| !has_json(command)).map(|(name, _)| name.as_str()).collect();
    let excepted = |name: &str| WITHOUT.iter().any(|(excepted, _)| *excepted == name);
    let missing: Vec<&&str> = without.iter().filter(|name| !excepted(name)).collect();
    assert!(missing.is_empty(), "without --output json: {missing:?}");
    let needless: Vec<_> = WITHOUT.iter().filter(|(name, _)| !without.contains(name)).collect();
    assert!(needless.is_empty(), "not without it, or no command: {needless:?}");
}
