//! A real registry that takes the tokens of a Quay emulator and reports its pulls to it, and skopeo, which pushes and pulls.
//!
//! No emulator: distribution's registry runs as a process, with its data in memory. `hack/real-parts/with.sh registry -- …` gets
//! both programs.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use daemon::environment::{Environment, NotUtf8};
use daemon::file::ReplaceError;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::quay::Quay;

/// The variables that name the programs: the registry, skopeo, and the folders of skopeo's libraries.
pub const VARIABLES: [&str; 3] = ["REAL_REGISTRY", "REAL_SKOPEO", "REAL_SKOPEO_LIBRARIES"];

/// The line of the log that has the address.
const LISTENING: &str = "listening on ";

/// A layer of no files.
const LAYER: &[u8] = &[0; 1024];

/// The programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// distribution's registry.
    pub registry: PathBuf,
    /// skopeo.
    pub skopeo: PathBuf,
    /// The `LD_LIBRARY_PATH` that skopeo needs.
    pub libraries: String,
}

/// A running registry. Dropping it ends it.
#[derive(Debug)]
pub struct RealRegistry {
    address: SocketAddr,
    programs: Programs,
    /// Readable by the owner only: it holds the credentials of the present call.
    folder: TempDir,
    _child: Child,
}

/// A user of a registry, and the password.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    /// The robot with its organization.
    pub user: &'a str,
    /// The password.
    pub password: &'a str,
}

/// A registry that does not start, or an image that cannot be pushed.
#[derive(Debug, thiserror::Error)]
pub enum RealRegistryError {
    /// A folder or process that cannot be made.
    #[error("cannot {0}")]
    Io(&'static str, #[source] io::Error),
    /// A file that cannot be written.
    #[error(transparent)]
    File(#[from] ReplaceError),
    /// The registry has ended.
    #[error("the registry has ended before it listened: {0}")]
    Ended(String),
    /// skopeo has failed.
    #[error("cannot push {image}: {message}")]
    Push {
        /// The image.
        image: String,
        /// skopeo's errors.
        message: String,
    },
}

// === impl Programs ===

impl Programs {
    /// Returns the programs that the environment names; `None` if one is missing.
    ///
    /// # Errors
    ///
    /// A variable that is not UTF-8.
    pub fn of(environment: &impl Environment) -> Result<Option<Self>, NotUtf8> {
        let [registry, skopeo, libraries] = VARIABLES.map(|name| environment.text(name));
        let (Some(registry), Some(skopeo), Some(libraries)) = (registry?, skopeo?, libraries?) else { return Ok(None) };
        Ok(Some(Self { registry: registry.into(), skopeo: skopeo.into(), libraries }))
    }
}

// === impl RealRegistry ===

impl RealRegistry {
    /// Starts a registry that takes the tokens of `quay`.
    ///
    /// # Errors
    ///
    /// See [`RealRegistryError`].
    pub async fn start(programs: Programs, quay: &Quay) -> Result<Self, RealRegistryError> {
        let folder = tempfile::tempdir().map_err(|error| RealRegistryError::Io("make a temporary folder", error))?;
        let certificate = folder.path().join("issuer.pem");
        daemon::file::replace(&certificate, quay.authority().as_bytes())?;
        let file = folder.path().join("registry.yaml");
        // JSON is YAML.
        daemon::file::replace(&file, configuration(quay, &certificate).to_string().as_bytes())?;
        let mut command = Command::new(&programs.registry);
        command.arg("serve").arg(file).env_clear().env("OTEL_TRACES_EXPORTER", "none");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| RealRegistryError::Io("start the registry", error))?;
        let Some(stderr) = child.stderr.take() else {
            return Err(RealRegistryError::Ended("it has no log".to_owned()));
        };
        let address = address(stderr).await?;
        Ok(Self { address, programs, folder, _child: child })
    }

    /// The address that it listens on: the key of its credentials in a pull secret.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Pushes a small image as `repository:tag`; returns the digest of its manifest.
    ///
    /// # Errors
    ///
    /// See [`RealRegistryError`].
    pub async fn push(&self, login: &Login<'_>, image: &str) -> Result<String, RealRegistryError> {
        let failed = |message: String| RealRegistryError::Push { image: image.to_owned(), message };
        let (layout, digest) = (self.folder.path().join("layout"), self.folder.path().join("digest"));
        write_layout(&layout)?;
        let mut command = self.copy();
        command.args(["--dest-tls-verify=false", "--digestfile"]).arg(&digest);
        command.arg(format!("oci:{}:image", layout.display())).arg(self.remote(image));
        let output = self.run(command, &self.document(login)).await?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        fs::read_to_string(digest).map_err(|error| failed(error.to_string()))
    }

    /// Pulls `repository:tag` as a node would, with a pull secret; returns skopeo's status and messages.
    ///
    /// # Errors
    ///
    /// See [`RealRegistryError`].
    pub async fn pull(&self, pull_secret: &[u8], image: &str) -> Result<Output, RealRegistryError> {
        let mut command = self.copy();
        command.arg("--src-tls-verify=false").arg(self.remote(image));
        command.arg(format!("dir:{}", self.folder.path().join("pulled").display()));
        self.run(command, pull_secret).await
    }

    /// The pull secret with this login.
    pub fn document(&self, login: &Login<'_>) -> Vec<u8> {
        let auth = BASE64_STANDARD.encode(format!("{}:{}", login.user, login.password));
        json!({"auths": {self.address.to_string(): {"auth": auth}}}).to_string().into_bytes()
    }

    fn remote(&self, image: &str) -> String {
        format!("docker://{}/{image}", self.address)
    }

    fn copy(&self) -> Command {
        let mut command = Command::new(&self.programs.skopeo);
        command.args(["--insecure-policy", "copy", "--authfile"]).arg(self.authfile());
        command.env_clear().env("LD_LIBRARY_PATH", &self.programs.libraries).env("HOME", self.folder.path());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    fn authfile(&self) -> PathBuf {
        self.folder.path().join("auth.json")
    }

    /// Runs skopeo. Its credentials are in a file only while it runs, and never in its arguments.
    async fn run(&self, mut command: Command, pull_secret: &[u8]) -> Result<Output, RealRegistryError> {
        daemon::file::replace(&self.authfile(), pull_secret)?;
        let output = command.output().await;
        fs::remove_file(self.authfile())
            .map_err(|error| RealRegistryError::Io("remove the file with credentials", error))?;
        output.map_err(|error| RealRegistryError::Io("run skopeo", error))
    }
}

fn configuration(quay: &Quay, certificate: &Path) -> Value {
    let token = json!({
        "realm": quay.realm(), "service": quay.service(), "issuer": quay.issuer(), "rootcertbundle": certificate,
    });
    let endpoint = json!({
        "name": "quay", "url": quay.events_url(), "timeout": "5s", "threshold": 5, "backoff": "100ms",
        "headers": {"Authorization": [format!("Bearer {}", quay.token())]},
    });
    json!({
        "version": 0.1,
        "storage": {"inmemory": {}},
        "http": {"addr": "127.0.0.1:0"},
        "auth": {"token": token},
        "notifications": {"endpoints": [endpoint]},
    })
}

/// The address in a registry's log, the rest of which is read and dropped: it would wait once the pipe is full.
async fn address(log: ChildStderr) -> Result<SocketAddr, RealRegistryError> {
    let mut lines = BufReader::new(log).lines();
    let mut read = Vec::new();
    while let Some(line) =
        lines.next_line().await.map_err(|error| RealRegistryError::Io("read the registry's log", error))?
    {
        let found = line.split_once(LISTENING).map(|(_, rest)| rest);
        let found = found.and_then(|rest| rest.split(|sign: char| sign == '"' || sign.is_whitespace()).next());
        if let Some(address) = found.and_then(|address| address.parse().ok()) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(address);
        }
        read.push(line);
    }
    Err(RealRegistryError::Ended(read.join("\n")))
}

/// Writes an image in the OCI layout, as skopeo reads it.
fn write_layout(folder: &Path) -> Result<(), RealRegistryError> {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(|error| RealRegistryError::Io("make the folder of an image", error))?;
    let blob = |content: &[u8], kind: &str| -> Result<Value, ReplaceError> {
        let mut hex = String::new();
        for byte in Sha256::digest(content) {
            // Writing to a String cannot fail.
            let _infallible = write!(hex, "{byte:02x}");
        }
        daemon::file::replace(&blobs.join(&hex), content)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{hex}"), "size": content.len()}))
    };
    let layer = blob(LAYER, "application/vnd.oci.image.layer.v1.tar")?;
    let configuration = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer.get("digest")]},
    });
    let configuration = blob(configuration.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": configuration,
        "layers": [layer],
    });
    let mut manifest = blob(manifest.to_string().as_bytes(), "application/vnd.oci.image.manifest.v1+json")?;
    if let Some(members) = manifest.as_object_mut() {
        members.insert("annotations".to_owned(), json!({"org.opencontainers.image.ref.name": "image"}));
    }
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    daemon::file::replace(&folder.join("index.json"), index.to_string().as_bytes())?;
    daemon::file::replace(&folder.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string().as_bytes())?;
    Ok(())
}

// === impl Login ===

impl std::fmt::Debug for Login<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}
