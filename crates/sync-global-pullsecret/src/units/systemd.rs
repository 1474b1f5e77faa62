//! systemd over the system's D-Bus. A connection lasts as long as one restart or one verification.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};
use zbus::{Connection, OwnedObjectPath, connection};

use super::{UnitError, Units};

/// Time limit of a single call. systemd answers in milliseconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which the kubelet's state is read during a verification.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The kubelet's unit in systemd.
#[derive(Clone, Debug)]
pub struct Systemd {
    settings: UnitSettings,
}

/// The unit and its time limits.
#[derive(Clone, Debug)]
pub struct UnitSettings {
    /// The bus, as a D-Bus address such as `unix:path=/run/dbus/system_bus_socket`.
    pub bus: String,
    /// The unit, such as `kubelet.service`.
    pub unit: String,
    /// Time limit of a restart.
    pub restart_timeout: Duration,
    /// Time that the unit must stay up after a restart.
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
    /// The unit of these settings. Connects on demand.
    pub fn new(settings: UnitSettings) -> Self {
        Self { settings }
    }

    async fn connect(&self) -> Result<Connection, UnitError> {
        let connecting = async { connection::Builder::address(self.settings.bus.as_str()).build().await };
        match timeout(CALL_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(UnitError::Unreachable(message(&error))),
            Err(_elapsed) => Err(UnitError::Unreachable("the bus does not answer".to_owned())),
        }
    }

    async fn restart_over(&self, connection: &Connection) -> Result<(), UnitError> {
        let manager = call(ManagerProxy::new(connection)).await?;
        // Both before the restart: systemd signals the end of a job to subscribers only, and it may come quickly.
        call(manager.subscribe()).await?;
        let mut ends = call(manager.receive_job_removed()).await?;
        // Explicit restarts count towards the start limit, which must not fail an attempt.
        match call(manager.reset_failed_unit(&self.settings.unit)).await {
            Err(UnitError::Unreachable(why)) => return Err(UnitError::Unreachable(why)),
            // The next call reports a missing unit more precisely.
            Ok(()) | Err(UnitError::Failed(_)) => {}
        }
        let job = call(manager.restart_unit(&self.settings.unit, "replace")).await?;
        let ended = async {
            while let Some(signal) = ends.next().await {
                if let Ok(end) = signal.args()
                    && end.job == job
                {
                    return match end.result.as_str() {
                        "done" => Ok(()),
                        other => Err(UnitError::Failed(format!("the restart of the kubelet ended as {other}"))),
                    };
                }
            }
            Err(UnitError::Failed("the connection to systemd was lost while the kubelet was restarted".to_owned()))
        };
        match timeout(self.settings.restart_timeout, ended).await {
            Ok(ended) => ended,
            Err(_elapsed) => {
                let seconds = self.settings.restart_timeout.as_secs();
                Err(UnitError::Failed(format!("the restart has not ended after {seconds} s")))
            }
        }
    }

    async fn verify_over(&self, connection: &Connection) -> Result<(), UnitError> {
        let manager = call(ManagerProxy::new(connection)).await?;
        let path = call(manager.load_unit(&self.settings.unit)).await?;
        let building = async {
            UnitProxy::builder(connection).path(path).cache_properties(zbus::proxy::CacheProperties::No).build().await
        };
        let unit = call(building).await?;
        let since = Instant::now();
        let first = call(unit.invocation_id()).await?;
        loop {
            let active = call(unit.active_state()).await?;
            if !matches!(active.as_str(), "active" | "reloading") {
                let sub = call(unit.sub_state()).await?;
                return Err(UnitError::Failed(format!("the kubelet did not stay up: it is {active} ({sub})")));
            }
            if call(unit.invocation_id()).await? != first {
                return Err(UnitError::Failed("the kubelet did not stay up: it was started again".to_owned()));
            }
            let left = self.settings.stable_for.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(POLL_INTERVAL)).await;
        }
    }
}

impl Units for Systemd {
    async fn restart(&self) -> Result<(), UnitError> {
        let connection = self.connect().await?;
        self.restart_over(&connection).await
    }

    async fn verify(&self) -> Result<(), UnitError> {
        let connection = self.connect().await?;
        self.verify_over(&connection).await
    }
}

/// Awaits one call, within the time limit.
async fn call<T>(request: impl Future<Output = zbus::Result<T>>) -> Result<T, UnitError> {
    match timeout(CALL_TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(classify(&error)),
        Err(_elapsed) => Err(UnitError::Unreachable("systemd does not answer".to_owned())),
    }
}

/// Distinguishes a failure of the unit from an unreachable systemd.
fn classify(error: &zbus::Error) -> UnitError {
    /// D-Bus reports these for a service that is absent or does not answer; systemd reports the last ones while it shuts the
    /// machine down or re-executes itself.
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
            UnitError::Unreachable(message(error))
        }
        zbus::Error::MethodError(..) => UnitError::Failed(format!("systemd refuses the call: {}", message(error))),
        _ => UnitError::Unreachable(message(error)),
    }
}

/// Returns the message of an error in one line.
fn message(error: &zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(name, Some(text), _) => format!("{text} ({name})"),
        zbus::Error::MethodError(name, None, _) => name.to_string(),
        other => other.to_string().lines().collect::<Vec<_>>().join(" "),
    }
}
