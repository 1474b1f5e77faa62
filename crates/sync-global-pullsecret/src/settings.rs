//! Reads the settings of the node syncer: flags take precedence over variables, variables over defaults.

mod table;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use daemon::environment::Environment;
use daemon::log;
use daemon::settings::{Row, hint};

use crate::combine::UnmanagedEntries;
use crate::confirm::ConfirmSettings;
use crate::decide::{Delays, Rules};
use crate::kubelet_file::FOLDER;
use crate::run::RevisionRule;
use crate::source::{ApiSettings, Folder, SourceSettings};
use crate::units::UnitSettings;

pub use table::{SETTINGS, TABLE};

/// Settings of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Source of the credentials.
    pub source: SourceSettings,
    /// Credential file of the kubelet.
    pub kubelet_file: PathBuf,
    /// Treatment of entries that other programs have written to it.
    pub unmanaged_entries: UnmanagedEntries,
    /// The kubelet's unit.
    pub unit: UnitSettings,
    /// Rules of the state machine.
    pub rules: Rules,
    /// Revision that the process applies.
    pub revision: RevisionRule,
    /// The object in which it confirms the applied revision.
    pub confirm: Option<ConfirmSettings>,
    /// Unix socket of health, status and metrics.
    pub socket: PathBuf,
    /// Loopback address that serves the same.
    pub listen: Option<SocketAddr>,
    /// Address that serves the metrics only.
    pub metrics_listen: Option<SocketAddr>,
    /// File that the last status is written to.
    pub termination_log: PathBuf,
    /// The log.
    pub log: log::Settings,
}

/// Values of flags, then of variables, then defaults.
pub struct Values<'a, E> {
    flags: &'a dyn Fn(&str) -> Option<String>,
    environment: &'a E,
    faults: Vec<String>,
}

impl<'a, E: Environment> Values<'a, E> {
    /// Values of these flags and this environment.
    pub fn new(flags: &'a dyn Fn(&str) -> Option<String>, environment: &'a E) -> Self {
        Self { flags, environment, faults: Vec::new() }
    }

    fn given(&mut self, flag: &str) -> Option<(String, String)> {
        if let Some(value) = (self.flags)(flag).filter(|value| !value.trim().is_empty()) {
            return Some((format!("--{flag}"), value.trim().to_owned()));
        }
        for variable in TABLE.variables_of(row(flag)?) {
            match self.environment.text(&variable) {
                Ok(Some(value)) if !hint::is_of_a_service(&variable, &value) => return Some((variable, value)),
                Ok(_) => {}
                Err(error) => self.faults.push(error.to_string()),
            }
        }
        None
    }

    fn optional<T>(&mut self, flag: &str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let (origin, value) = self.given(flag)?;
        match read(&value) {
            Ok(value) => Some(value),
            Err(must) => {
                // The value is not repeated: it may be a credential in the wrong place.
                self.faults.push(format!("{origin}: {must}"));
                None
            }
        }
    }

    fn or_default<T>(&mut self, flag: &str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let faults = self.faults.len();
        let given = self.optional(flag, &read);
        let default = row(flag).map_or("", |row| row.default);
        given.or_else(|| read(default).ok().filter(|_default| self.faults.len() == faults))
    }

    fn duration(&mut self, flag: &str) -> Option<Duration> {
        let row = row(flag)?;
        self.or_default(flag, |text| row.duration(text))
    }

    /// The socket alone, for commands that query a running process.
    pub fn socket(mut self) -> Result<PathBuf, Vec<String>> {
        let file = self.or_default("kubelet-file", absolute);
        let socket = self.socket_beside(file.as_deref());
        socket.filter(|_socket| self.faults.is_empty()).ok_or(self.faults)
    }

    fn socket_beside(&mut self, file: Option<&Path>) -> Option<PathBuf> {
        let socket = self.optional("socket", absolute);
        socket.or_else(|| Some(file?.parent()?.join(FOLDER).join("socket")))
    }

    /// Settings of the log, as far as they are valid; [`Values::resolve`] reports their faults.
    pub fn log(&mut self) -> log::Settings {
        let format =
            self.or_default("log-format", |text| text.parse().map_err(|error: log::Unknown| error.to_string()));
        let level = self.or_default("log-level", |text| log::level(text).map_err(|error| error.to_string()));
        let crates = &["daemon", "sync_global_pullsecret"];
        log::Settings {
            format: format.unwrap_or_default(),
            level: level.unwrap_or(tracing::level_filters::LevelFilter::INFO),
            crates,
        }
    }

    /// All settings, or all faults.
    pub fn resolve(mut self) -> Result<Settings, Vec<String>> {
        let log = self.log();
        self.faults.extend(hint::misspelt_variables(&TABLE, self.environment));
        let source = self.source();
        let kubelet_file = self.or_default("kubelet-file", absolute);
        let socket = self.socket_beside(kubelet_file.as_deref());
        let listen = self.optional("listen", loopback);
        let metrics_listen = self.optional("metrics-listen", address);
        let unit = self.unit();
        let unmanaged_entries = self.or_default("unmanaged-entries", |text| match text {
            "keep" => Ok(UnmanagedEntries::Keep),
            "remove" => Ok(UnmanagedEntries::Remove),
            _ => Err("must be keep or remove".to_owned()),
        });
        let restart = self.or_default("restart-policy", |text| match text {
            "always" => Ok(true),
            "never" => Ok(false),
            _ => Err("must be always or never".to_owned()),
        });
        let held = self.duration("retry-failed-after");
        let expected = self.optional("revision", |text| Ok(text.to_owned()));
        let only =
            self.or_default("only-this-revision", |text| text.parse().map_err(|_| "must be true or false".to_owned()));
        if only == Some(true) && expected.is_none() {
            self.faults.push("--only-this-revision: has no effect without --revision".to_owned());
        }
        let confirm = self.confirm(source.as_ref());
        let termination_log = self.or_default("termination-log", absolute);
        let settings = (|| {
            Some(Settings {
                source: source?,
                kubelet_file: kubelet_file?,
                unmanaged_entries: unmanaged_entries?,
                unit: unit?,
                rules: Rules { restart: restart?, delays: Delays { failed_content: held? } },
                revision: RevisionRule { expected, only: only? },
                confirm,
                socket: socket?,
                listen,
                metrics_listen,
                termination_log: termination_log?,
                log,
            })
        })();
        settings.filter(|_settings| self.faults.is_empty()).ok_or(self.faults)
    }

    fn confirm(&mut self, source: Option<&SourceSettings>) -> Option<ConfirmSettings> {
        let config_map = self.optional("confirm-in", |text| text.parse().map_err(|error| format!("{error}")));
        let [node, pod] = ["node", "pod"].map(|flag| self.optional(flag, name));
        match (config_map, node, pod) {
            (Some(_), _, _) if matches!(source, Some(SourceSettings::Files(_))) => {
                self.faults.push("--confirm-in: has no effect beside --from-files".to_owned());
                None
            }
            (Some(config_map), Some(node), Some(pod)) => Some(ConfirmSettings { config_map, node, pod }),
            (Some(_), _, _) => {
                self.faults.push("--confirm-in: needs --node and --pod".to_owned());
                None
            }
            (None, None, None) => None,
            (None, _, _) => {
                self.faults.push("--node and --pod: have no effect without --confirm-in".to_owned());
                None
            }
        }
    }

    fn unit(&mut self) -> Option<UnitSettings> {
        let bus = self.or_default("bus", |text| {
            let fits = text.parse::<zbus::Address>().is_ok();
            if fits { Ok(text.to_owned()) } else { Err("must be a D-Bus address, such as unix:path=FILE".to_owned()) }
        });
        let unit = self.or_default("unit", |text| match text {
            text if text.contains('.') && !text.contains(['/', ' ']) => Ok(text.to_owned()),
            _ => Err("must be the name of a unit, such as kubelet.service".to_owned()),
        });
        let restart_timeout = self.duration("restart-timeout");
        let stable_for = self.duration("stable-for");
        Some(UnitSettings { bus: bus?, unit: unit?, restart_timeout: restart_timeout?, stable_for: stable_for? })
    }

    fn source(&mut self) -> Option<SourceSettings> {
        if let Some(folder) = self.optional("from-files", absolute) {
            for flag in ["secret", "api-server"] {
                if let Some((origin, _)) = self.given(flag) {
                    self.faults.push(format!("{origin}: has no effect beside --from-files"));
                }
            }
            return Some(SourceSettings::Files(Folder(folder)));
        }
        let secret = self.or_default("secret", |text| text.parse().map_err(|error| format!("{error}")))?;
        let authority = self.or_default("api-authority", absolute)?;
        let token = self.or_default("api-token", absolute)?;
        let (encrypted, host, port) = match self.given("api-server") {
            Some((origin, url)) => match server(&url) {
                Ok(server) => server,
                Err(must) => {
                    self.faults.push(format!("{origin}: {must}"));
                    return None;
                }
            },
            None => self.server_of_pods()?,
        };
        let authority = encrypted.then_some(authority);
        Some(SourceSettings::Api(ApiSettings { secret, host, port, authority, token }))
    }

    fn server_of_pods(&mut self) -> Option<(bool, String, u16)> {
        let text = |name: &str| self.environment.text(name).ok().flatten();
        let host = text("KUBERNETES_SERVICE_HOST");
        let port = text("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse().ok());
        let server = host.map(|host| (true, host.trim_matches(['[', ']']).to_owned(), port.unwrap_or(443)));
        if server.is_none() {
            self.faults.push("no source: outside of a Pod, set --api-server or --from-files".to_owned());
        }
        server
    }
}

/// The name of an object of Kubernetes.
fn name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let is_name = !text.is_empty() && text.len() <= 253 && text.bytes().all(fits);
    if is_name { Ok(text.to_owned()) } else { Err("must be the name of an object".to_owned()) }
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("must be a path that begins with /".to_owned()) }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let must = "must be a loopback address with a port, such as 127.0.0.1:9110";
    text.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback()).ok_or_else(|| must.to_owned())
}

/// An address and a port. An IPv6 address needs no brackets, as Kubernetes gives a Pod's address without them.
fn address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or_default();
    let host = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let address = host.zip(port.parse::<u16>().ok()).map(SocketAddr::from);
    address.ok_or_else(|| "must be an IP address with a port, such as 10.0.0.1:9110".to_owned())
}

/// Returns whether the server is encrypted, its host without brackets, and its port.
fn server(url: &str) -> Result<(bool, String, u16), String> {
    let must = || "must be a URL such as https://10.0.0.1:6443".to_owned();
    let (scheme, rest) = url.split_once("://").ok_or_else(must)?;
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse::<u16>().map_err(|_no_port| must())?)),
        _ => (authority, None),
    };
    let host = host.trim_matches(['[', ']']);
    if host.is_empty() || host.contains(['/', '@', '?', '#', ' ']) {
        return Err(must());
    }
    match scheme {
        "https" => Ok((true, host.to_owned(), port.unwrap_or(443))),
        "http" if host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()) => {
            Ok((false, host.to_owned(), port.unwrap_or(80)))
        }
        "http" => Err("must begin with https://; http:// is for loopback only".to_owned()),
        _ => Err(must()),
    }
}

fn row(flag: &str) -> Option<&'static Row> {
    SETTINGS.iter().find(|row| row.flag == Some(flag))
}

impl<E> std::fmt::Debug for Values<'_, E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Values").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
