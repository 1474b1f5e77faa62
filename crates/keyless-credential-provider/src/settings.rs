//! The command line. Each pull starts this program anew, so it has no other source of settings.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use fleet_model::names::ANNOTATION_ROBOT;

use crate::endpoint::{Endpoint, host_and_port};
use crate::proxy::Proxy;
use crate::robot::Robot;

/// The path of Quay's exchange.
const FEDERATION_PATH: &str = "/oauth2/federation/robot/token";
/// The time limit of an exchange in seconds. The kubelet ends this program after 60.
const TIMEOUT: u64 = 20;
/// The longest time limit in seconds.
const LONGEST_TIMEOUT: u64 = 50;

/// The command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Answer the kubelet's request.
    Provide(Settings),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// Settings of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The host of the images that get a password, in lower case, with a port if it is not the usual one.
    pub(crate) registry: String,
    /// The address of the exchange.
    pub(crate) endpoint: Endpoint,
    /// The robot of service accounts without the annotation.
    pub(crate) robot: Option<Robot>,
    /// A file with the authorities to trust instead of the node's.
    pub(crate) ca_file: Option<PathBuf>,
    /// The proxy before the address of the exchange.
    pub(crate) proxy: Option<Proxy>,
    /// The time limit of the exchange.
    pub(crate) timeout: Duration,
}

/// A flag, its value and its meaning.
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) default: &'static str,
}

/// Every flag that takes a value.
pub(crate) const FLAGS: &[Flag] = &[
    Flag {
        name: "registry",
        value: "HOST[:PORT]",
        meaning: "The registry: its images alone get a password",
        default: "none, required",
    },
    Flag {
        name: "federation-url",
        value: "URL",
        meaning: "Address of the exchange; https, or http to this machine",
        default: "https://REGISTRY/oauth2/federation/robot/token",
    },
    Flag {
        name: "robot",
        value: "ORGANIZATION+ROBOT",
        meaning: "Robot of service accounts without the annotation",
        default: "none: they are refused",
    },
    Flag {
        name: "ca-file",
        value: "FILE",
        meaning: "Certificates of the authorities to trust, in PEM",
        default: "those of the node",
    },
    Flag {
        name: "proxy",
        value: "HOST:PORT",
        meaning: "HTTP proxy that forwards the connection to an https address",
        default: "none; HTTPS_PROXY is not read",
    },
    Flag {
        name: "timeout",
        value: "SECONDS",
        meaning: "Time limit of the exchange, 1 to 50; the kubelet ends a provider after 60",
        default: "20",
    },
];

/// Parses the arguments. Values are not quoted in errors: one may be a misplaced credential.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut arguments = arguments.into_iter();
    let mut values = [const { None }; FLAGS.len()];
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" | "help" => return Ok(Command::Help),
            "--version" | "-V" | "version" => return Ok(Command::Version),
            _ => {}
        }
        let flag = argument.strip_prefix("--").ok_or("there are only flags")?;
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
        let (flag, slot) =
            FLAGS.iter().zip(&mut values).find(|(flag, _)| flag.name == name).ok_or("there is no such flag")?;
        let value = value.or_else(|| arguments.next()).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("--{} needs a value", flag.name))?;
        if slot.replace(value).is_some() {
            return Err(format!("--{} is given twice", flag.name));
        }
    }
    let [registry, endpoint, robot, ca_file, proxy, timeout] = values;
    let registry = registry.ok_or("--registry is missing")?.to_ascii_lowercase();
    if host_and_port(&registry).is_none() {
        return Err("--registry must be HOST or HOST:PORT, as images begin with it".to_owned());
    }
    let endpoint = endpoint.unwrap_or_else(|| format!("https://{registry}{FEDERATION_PATH}"));
    let endpoint: Endpoint = endpoint.parse().map_err(|error| format!("--federation-url {error}"))?;
    if proxy.is_some() && !endpoint.is_encrypted {
        return Err("--proxy has no effect with an http:// address".to_owned());
    }
    Ok(Command::Provide(Settings {
        endpoint,
        registry,
        robot: robot.map(|robot| robot.parse()).transpose().map_err(|error| format!("--robot {error}"))?,
        ca_file: ca_file.map(PathBuf::from),
        proxy: proxy.map(|proxy| proxy.parse()).transpose().map_err(|error| format!("--proxy {error}"))?,
        timeout: timeout.map_or(Ok(Duration::from_secs(TIMEOUT)), |timeout| seconds(&timeout))?,
    }))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=LONGEST_TIMEOUT).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| format!("--timeout must be 1 to {LONGEST_TIMEOUT} (seconds)"))
}

/// Returns the help text.
pub fn help() -> String {
    let mut help = format!(
        "The kubelet's image credential provider for a Quay registry: exchanges a Pod's service-account\n\
         token for a password of a robot, which lasts an hour. The kubelet starts it for a pull; it reads\n\
         a CredentialProviderRequest from stdin and writes a CredentialProviderResponse to stdout.\n\n\
         The robot is the one that the service account's annotation {ANNOTATION_ROBOT}\n\
         names, else that of --robot.\n\n\
         Usage: keyless-credential-provider --registry HOST[:PORT] [FLAG VALUE]...\n       \
         keyless-credential-provider --help | --version\n\nFlags:\n"
    );
    for Flag { name, value, meaning, default } in FLAGS {
        // Writing to a String cannot fail.
        let _infallible = writeln!(help, "  --{name} {value}\n        {meaning}\n        [default: {default}]");
    }
    help += "\nExit codes: 0 answered; 1 a defect; 2 invalid arguments, or a request that is not for this provider;\n\
             4 refused by the registry; 75 the registry is unreachable, failing or slow\n";
    help
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn line(text: &str) -> Result<Command, String> {
        parse(text.split_whitespace().map(str::to_owned))
    }

    fn settings(text: &str) -> Settings {
        let Command::Provide(settings) = line(text).unwrap() else { panic!("{text}") };
        settings
    }

    #[test]
    fn flags_are_read_in_both_spellings() {
        let plain = settings("--registry Quay.io");
        assert_eq!(plain.registry, "quay.io");
        assert_eq!(plain.endpoint.to_string(), "https://quay.io/oauth2/federation/robot/token");
        assert_eq!((plain.robot, plain.ca_file, plain.timeout), (None, None, Duration::from_secs(20)));
        let all = settings(
            "--registry=a.io:5000 --federation-url https://q.a.io/x --robot=o+r --ca-file /ca.pem --timeout 7",
        );
        assert_eq!((all.registry.as_str(), all.endpoint.to_string().as_str()), ("a.io:5000", "https://q.a.io/x"));
        assert_eq!(all.robot.unwrap().as_str(), "o+r");
        assert_eq!((all.ca_file, all.timeout), (Some("/ca.pem".into()), Duration::from_secs(7)));
    }

    #[rstest]
    #[case("", "--registry is missing")]
    #[case("s3cr3t", "there are only flags")]
    #[case("--s3cr3t=1", "there is no such flag")]
    #[case("--registry", "--registry needs a value")]
    #[case("--registry=", "--registry needs a value")]
    #[case("--registry a.io --registry b.io", "--registry is given twice")]
    #[case("--registry https://a.io", "--registry must be HOST or HOST:PORT, as images begin with it")]
    #[case("--registry a.io/team", "--registry must be HOST or HOST:PORT, as images begin with it")]
    #[case("--registry *.a.io", "--registry must be HOST or HOST:PORT, as images begin with it")]
    #[case("--registry a.io --robot s3cr3t", "--robot must be ORGANIZATION+ROBOT, each of a-z, 0-9, '.', '_' and '-'")]
    #[case("--registry a.io --proxy proxy", "--proxy must be HOST:PORT")]
    #[case("--registry a.io --proxy http://proxy:3128", "--proxy must be HOST:PORT")]
    #[case(
        "--registry a.io --federation-url http://[::1]:1/ --proxy proxy:3128",
        "--proxy has no effect with an http:// address"
    )]
    #[case("--registry a.io --timeout 0", "--timeout must be 1 to 50 (seconds)")]
    #[case("--registry a.io --timeout 51", "--timeout must be 1 to 50 (seconds)")]
    #[case("--registry a.io --timeout 5s", "--timeout must be 1 to 50 (seconds)")]
    #[case(
        "--registry a.io --federation-url http://a.io/",
        "--federation-url must be an https:// address (or http:// to this machine), without user, query or fragment"
    )]
    fn invalid_arguments_are_refused(#[case] arguments: &str, #[case] error: &str) {
        assert_eq!(line(arguments).unwrap_err(), error);
    }

    #[test]
    fn the_help_lists_every_flag_within_its_width() {
        let help = help();
        assert!(FLAGS.iter().all(|flag| help.contains(&format!("  --{} {}\n", flag.name, flag.value))));
        assert!(help.lines().all(|line| line.chars().count() <= 105), "{help}");
        assert!(
            [("TIMEOUT", TIMEOUT), ("LONGEST_TIMEOUT", LONGEST_TIMEOUT)]
                .iter()
                .all(|(_, n)| help.contains(&n.to_string()))
        );
        assert_eq!(line("--registry a.io --help").unwrap(), Command::Help);
        assert_eq!(line("version").unwrap(), Command::Version);
    }
}
