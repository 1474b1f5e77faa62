//! A real registry that takes the tokens of a Quay emulator and reports its pulls to it, and skopeo, which pushes and pulls.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::quay::Quay;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::environment::{missing, variable};

/// The line of the log that has the address.
const LISTENING: &str = "listening on ";

/// An image's parts as skopeo reads them: a layer of no files, its configuration and its manifest.
const LAYER: &[u8] = &[0; 1024];

/// distribution's registry with its data in memory. Dropping it ends it.
pub struct Registry {
    pub address: SocketAddr,
    _child: Child,
    skopeo: PathBuf,
    libraries: String,
    folder: TempDir,
}

/// A robot with the organization's name, and its password.
pub struct Login<'a> {
    pub robot: &'a str,
    pub password: &'a str,
}

impl Registry {
    /// `None`, with a line that says how to get it, if the programs are missing; in CI that is a failure.
    pub async fn start(quay: &Quay) -> Option<Self> {
        let variables = ["REAL_REGISTRY", "REAL_SKOPEO", "REAL_SKOPEO_LIBRARIES"].map(variable);
        let [Some(program), Some(skopeo), Some(libraries)] = variables else {
            return missing(
                "a registry is missing; run the test by `hack/real-parts/with.sh registry -- cargo test …`",
            );
        };
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("issuer.pem");
        write_file(&certificate, quay.authority().as_bytes());
        let token = json!({
            "realm": quay.realm(), "service": quay.service(), "issuer": quay.issuer(), "rootcertbundle": certificate,
        });
        let endpoint = json!({
            "name": "quay", "url": quay.events_url(), "timeout": "5s", "threshold": 5, "backoff": "100ms",
            "headers": {"Authorization": [format!("Bearer {}", quay.token())]},
        });
        // JSON is YAML.
        let configuration = json!({
            "version": 0.1,
            "storage": {"inmemory": {}},
            "http": {"addr": "127.0.0.1:0"},
            "auth": {"token": token},
            "notifications": {"endpoints": [endpoint]},
        });
        let file = folder.path().join("registry.yaml");
        write_file(&file, configuration.to_string().as_bytes());
        let mut command = Command::new(program);
        command.arg("serve").arg(file).env_clear().env("OTEL_TRACES_EXPORTER", "none");
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn();
        let mut lines = BufReader::new(child.as_mut().unwrap().stderr.take().unwrap()).lines();
        let mut log = Vec::new();
        let address = loop {
            let Some(line) = lines.next_line().await.unwrap() else { panic!("the registry ended: {log:#?}") };
            if let Some((_, rest)) = line.split_once(LISTENING) {
                break rest.split(|sign: char| sign == '"' || sign.is_whitespace()).next().unwrap().parse().unwrap();
            }
            log.push(line);
        };
        // It would wait once the pipe is full.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Some(Self { address, _child: child.unwrap(), skopeo: skopeo.into(), libraries, folder })
    }

    /// Pushes a small image as `repository:tag`; returns the digest of its manifest.
    pub async fn push(&self, login: &Login<'_>, image: &str) -> String {
        let (layout, digests) = (self.folder.path().join("layout"), self.folder.path().join("digest"));
        write_layout(&layout);
        let source = format!("oci:{}:image", layout.display());
        let flags = ["--dest-tls-verify=false", "--digestfile"];
        let output =
            self.copy(login, &[flags[0], flags[1], digests.to_str().unwrap()], &source, &self.remote(image)).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(digests).unwrap()
    }

    /// Pulls `repository:tag` as a person would.
    pub async fn pull(&self, login: &Login<'_>, image: &str) -> Output {
        let target = format!("dir:{}", self.folder.path().join("pulled").display());
        self.copy(login, &["--src-tls-verify=false"], &self.remote(image), &target).await
    }

    fn remote(&self, image: &str) -> String {
        format!("docker://{}/{image}", self.address)
    }

    async fn copy(&self, login: &Login<'_>, flags: &[&str], from: &str, to: &str) -> Output {
        let auth = STANDARD.encode(format!("{}:{}", login.robot, login.password));
        let file = self.folder.path().join("auth.json");
        write_file(&file, json!({"auths": {self.address.to_string(): {"auth": auth}}}).to_string().as_bytes());
        let mut command = Command::new(&self.skopeo);
        command.args(["--insecure-policy", "copy", "--authfile"]).arg(file).args(flags).args([from, to]);
        command.env_clear().env("LD_LIBRARY_PATH", &self.libraries).env("HOME", self.folder.path());
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap()
    }
}

/// Writes an image in the OCI layout.
fn write_layout(folder: &Path) {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let blob = |content: &[u8], kind: &str| -> Value {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
        let mut hex = String::new();
        digest.as_ref().iter().for_each(|byte| write!(hex, "{byte:02x}").unwrap());
        write_file(&blobs.join(&hex), content);
        json!({"mediaType": kind, "digest": format!("sha256:{hex}"), "size": content.len()})
    };
    let layer = blob(LAYER, "application/vnd.oci.image.layer.v1.tar");
    let configuration = json!({
        "architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let configuration = blob(configuration.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json");
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": configuration,
        "layers": [layer],
    });
    let mut manifest = blob(manifest.to_string().as_bytes(), "application/vnd.oci.image.manifest.v1+json");
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "image"});
    write_file(&folder.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string().as_bytes());
    write_file(&folder.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string().as_bytes());
}

fn write_file(path: &Path, content: &[u8]) {
    daemon::file::replace(path, content).unwrap();
}
