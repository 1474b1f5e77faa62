//! systemd, over the system's D-Bus. A connection lives as long as one restart or one watch.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};
use zbus::{Connection, OwnedObjectPath, connection};

use super::{UnitError, Units};

/// How long a single question may take. systemd answers in milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the kubelet's state is looked at while it must stay up.
const GLANCE: Duration = Duration::from_millis(500);

/// The kubelet's unit in systemd.
#[derive(Clone, Debug)]
pub struct Systemd {
    settings: UnitSettings,
}

/// Which unit, and how long things may take.
#[derive(Clone, Debug)]
pub struct UnitSettings {
    /// The bus, as a D-Bus address such as `unix:path=/run/dbus/system_bus_socket`.
    pub bus: String,
    /// The unit, such as `kubelet.service`.
    pub unit: String,
    /// How long a restart may take.
    pub restart_timeout: Duration,
    /// How long the unit must stay up to count as well.
    pub stable_for: Duration,
}

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
trait Manager {
    fn subscribe(&self) -> zbus::Result<()>;
    fn reset_failed_unit(&self, name: &str) -> zbus::Result<()>;
    fn restart_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn load_unit(&self, name: &str) -> zbus::Result<OwnedObjectPath>;
    #[zbus(signal)]
    fn job_removed(&self, id: u32, job: OwnedObjectPath, unit: String, result: String) -> zbus::Result<()>;
}

#[zbus::proxy(interface = "org.freedesktop.systemd1.Unit", default_service = "org.freedesktop.systemd1")]
trait Unit {
    #[zbus(property(emits_changed_signal = "false"))]
    fn active_state(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn sub_state(&self) -> zbus::Result<String>;
    /// A new one at every start.
    #[zbus(property(emits_changed_signal = "false"), name = "InvocationID")]
    fn invocation_id(&self) -> zbus::Result<Vec<u8>>;
}

// === impl Systemd ===

impl Systemd {
    /// The unit as the settings name it. Nothing is connected yet.
    pub fn new(settings: UnitSettings) -> Self {
        Self { settings }
    }

    async fn connect(&self) -> Result<Connection, UnitError> {
        let connecting = async { connection::Builder::address(self.settings.bus.as_str()).build().await };
        match timeout(PATIENCE, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(UnitError::Unreachable(words(&error))),
            Err(_elapsed) => Err(UnitError::Unreachable("the bus does not answer".to_owned())),
        }
    }

    async fn restart_over(&self, connection: &Connection) -> Result<(), UnitError> {
        let manager = ask(ManagerProxy::new(connection)).await?;
        // Both before the restart: systemd tells of a job's end only whom has asked for it, and may be quick.
        ask(manager.subscribe()).await?;
        let mut ends = ask(manager.receive_job_removed()).await?;
        // Explicit restarts count for the start limit too; it must not be what fails an attempt.
        match ask(manager.reset_failed_unit(&self.settings.unit)).await {
            Err(UnitError::Unreachable(why)) => return Err(UnitError::Unreachable(why)),
            // A unit that is not there, is told by the next call better.
            Ok(()) | Err(UnitError::Bad(_)) => {}
        }
        let job = ask(manager.restart_unit(&self.settings.unit, "replace")).await?;
        let ended = async {
            while let Some(signal) = ends.next().await {
                if let Ok(end) = signal.args()
                    && end.job == job
                {
                    return match end.result.as_str() {
                        "done" => Ok(()),
                        other => Err(UnitError::Bad(format!("the restart of the kubelet ended as {other}"))),
                    };
                }
            }
            Err(UnitError::Bad("the connection to systemd was lost while the kubelet was restarted".to_owned()))
        };
        match timeout(self.settings.restart_timeout, ended).await {
            Ok(ended) => ended,
            Err(_elapsed) => {
                let seconds = self.settings.restart_timeout.as_secs();
                Err(UnitError::Bad(format!("the restart has not ended after {seconds} s")))
            }
        }
    }

    async fn prove_over(&self, connection: &Connection) -> Result<(), UnitError> {
        let manager = ask(ManagerProxy::new(connection)).await?;
        let path = ask(manager.load_unit(&self.settings.unit)).await?;
        let building = async {
            UnitProxy::builder(connection).path(path).cache_properties(zbus::proxy::CacheProperties::No).build().await
        };
        let unit = ask(building).await?;
        let since = Instant::now();
        let first = ask(unit.invocation_id()).await?;
        loop {
            let active = ask(unit.active_state()).await?;
            if !matches!(active.as_str(), "active" | "reloading") {
                let sub = ask(unit.sub_state()).await?;
                return Err(UnitError::Bad(format!("the kubelet did not stay up: it is {active} ({sub})")));
            }
            if ask(unit.invocation_id()).await? != first {
                return Err(UnitError::Bad("the kubelet did not stay up: it was started again".to_owned()));
            }
            let left = self.settings.stable_for.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(GLANCE)).await;
        }
    }
}

impl Units for Systemd {
    async fn restart(&self) -> Result<(), UnitError> {
        let connection = self.connect().await?;
        self.restart_over(&connection).await
    }

    async fn prove(&self) -> Result<(), UnitError> {
        let connection = self.connect().await?;
        self.prove_over(&connection).await
    }
}

/// Asks one question.
async fn ask<T>(question: impl Future<Output = zbus::Result<T>>) -> Result<T, UnitError> {
    match timeout(PATIENCE, question).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(judge(&error)),
        Err(_elapsed) => Err(UnitError::Unreachable("systemd does not answer".to_owned())),
    }
}

/// Who has failed: the unit, or whoever was to ask about it.
fn judge(error: &zbus::Error) -> UnitError {
    /// D-Bus says these of a service that is not there or does not answer; systemd says the last ones while it shuts the
    /// machine down or starts itself anew.
    const UNREACHABLE: &[&str] = &[
        "org.freedesktop.DBus.Error.ServiceUnknown",
        "org.freedesktop.DBus.Error.NameHasNoOwner",
        "org.freedesktop.DBus.Error.NoReply",
        "org.freedesktop.DBus.Error.Disconnected",
        "org.freedesktop.DBus.Error.TimedOut",
        "org.freedesktop.DBus.Error.Timeout",
        "org.freedesktop.DBus.Error.LimitsExceeded",
        "org.freedesktop.DBus.Error.NoServer",
        "org.freedesktop.systemd1.TransactionIsDestructive",
        "org.freedesktop.systemd1.ShuttingDown",
    ];
    match error {
        zbus::Error::MethodError(name, ..) if UNREACHABLE.contains(&name.as_str()) => {
            UnitError::Unreachable(words(error))
        }
        zbus::Error::MethodError(..) => UnitError::Bad(format!("systemd refuses: {}", words(error))),
        _ => UnitError::Unreachable(words(error)),
    }
}

/// What an error says, in one line.
fn words(error: &zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(name, Some(text), _) => format!("{text} ({name})"),
        zbus::Error::MethodError(name, None, _) => name.to_string(),
        other => other.to_string().lines().collect::<Vec<_>>().join(" "),
    }
}
