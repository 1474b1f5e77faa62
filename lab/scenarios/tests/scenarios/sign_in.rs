//! People at the API's page: Chromium, oauth2-proxy and an issuer, with the settings and grants that the guide gives.

mod browser;
mod issuer;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::environment::{missing, variable};
use testkit::fleet::run;
use testkit::program;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::guides::free_ports;
use crate::processes::started;
use browser::{Browser, chromium};
use issuer::{Issuer, SECRET};

const GUIDE: &str = include_str!("../../../../docs/guides/oidc.md");
/// Addresses of the guide.
const ISSUER: &str = "https://sso.example.com/realms/fleet";
const PAGE: &str = "https://hyperfleet.example.com";
const API: &str = "https://hyperfleet-api.hyperfleet-system.svc:8000";
/// The path of the clusters.
const CLUSTERS: &str = "/api/hyperfleet/v1/clusters";

/// The API with HTTPS and the proxy before it, each a process.
struct Front {
    /// The address that people open.
    url: String,
    api: String,
    metrics: String,
    folder: TempDir,
    _processes: [Child; 2],
}

/// The first block of a language below a heading of the guide.
fn block(heading: &str, language: &str) -> &'static str {
    let (_, rest) = GUIDE.split_once(&format!("\n### {heading}\n")).unwrap();
    let (_, rest) = rest.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// Replaces what must be in the guide.
fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "the guide has no {from}");
        text.replace(from, to)
    })
}

impl Front {
    async fn start(proxy: &str, issuer: &Issuer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        write(&folder.path().join("ca/ca.crt"), &pair.cert.pem());
        write(&folder.path().join("tls.key"), &pair.signing_key.serialize_pem());
        write(&folder.path().join("client-secret"), SECRET);
        let (server, line) = api(folder.path(), issuer).await;
        let address = |part: usize| line.split(" on ").nth(part).unwrap().split([',', ' ']).next().unwrap().to_owned();
        let (api, metrics) = (address(1), address(3).trim_end_matches('.').to_owned());
        let [port] = free_ports(1)[..] else { unreachable!() };
        let url = format!("https://127.0.0.1:{port}");
        let front = oauth2_proxy(proxy, &folder, issuer, [&url, &api]);
        until_open(port).await;
        Self { url, api, metrics, folder, _processes: [server, front] }
    }

    /// Status and body of a request to the page's address, without following redirects.
    async fn send(&self, base: &str, arguments: &[&str], path: &str) -> (String, String) {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--noproxy", "*", "--write-out", "\n%{http_code}", "--cacert"]);
        curl.arg(self.folder.path().join("ca/ca.crt")).args(arguments).arg(format!("{base}{path}"));
        let (code, text, errors) = run(&mut curl).await;
        assert_eq!(code, Some(0), "{errors}");
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    daemon::file::replace(path, text.as_bytes()).unwrap();
}

/// The API with the guide's issuer and grants.
async fn api(folder: &Path, issuer: &Issuer) -> (Child, String) {
    let values = replaced(block("Issuer and grants at the API", "yaml"), &[(ISSUER, &issuer.url)]);
    let values: Value = serde_saphyr::from_str(&values).unwrap();
    let [issuers, grants] = ["issuers", "grants"].map(|name| values["api"][name].clone());
    let tls = json!({"enabled": true, "cert_file": folder.join("ca/ca.crt"), "key_file": folder.join("tls.key")});
    let config = json!({
        "server": {"host": "127.0.0.1", "port": 0, "tls": tls, "jwt": {"enabled": true, "configs": issuers}},
        "authorization": {"grants": grants}, "health": {"port": 0}, "metrics": {"port": 0},
    });
    write(&folder.join("api.yaml"), &config.to_string());
    let mut command = program::pull_secret(&["api", "--config"]);
    command.arg(folder.join("api.yaml")).current_dir(folder);
    started(command, "HyperFleet API on ").await
}

/// The proxy with the guide's settings, but that it is its own front, and refreshes tokens at once.
fn oauth2_proxy(program: &str, folder: &TempDir, issuer: &Issuer, [url, api]: [&str; 2]) -> Child {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let address = url.trim_start_matches("https://");
    let front = format!(
        "http_address = \"-\"\nhttps_address = \"{address}\"\ntls_cert_file = \"{}\"\ntls_key_file = \"{}\"",
        path("ca/ca.crt"),
        path("tls.key")
    );
    let config = replaced(
        block("The proxy", "toml"),
        &[
            (ISSUER, &issuer.url),
            (PAGE, url),
            (API, api),
            ("/etc/oauth2-proxy/secret/client-secret", &path("client-secret")),
            ("http_address = \"0.0.0.0:4180\"", &front),
            ("cookie_refresh = \"4m\"", "cookie_refresh = \"1s\""),
        ],
    );
    write(&folder.path().join("oauth2-proxy.cfg"), &config);
    let log = std::fs::File::create(folder.path().join("oauth2-proxy.log")).unwrap();
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.path().join("oauth2-proxy.cfg")).env_clear();
    command.env("SSL_CERT_DIR", path("ca")).env("OAUTH2_PROXY_COOKIE_SECRET", "0123456789abcdef0123456789abcdef");
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).kill_on_drop(true);
    command.spawn().unwrap()
}

async fn until_open(port: u16) {
    let open = async { while TcpStream::connect(("127.0.0.1", port)).await.is_err() {} };
    tokio::time::timeout(Duration::from_mins(1), open).await.unwrap();
}

/// Opens the page without a session, signs in at the issuer, and comes back.
async fn signed_in(front: &Front, issuer: &Issuer, chromium: &str, person: &str) -> Browser {
    let mut browser = Browser::start(chromium).await;
    browser.open(&front.url).await;
    let (_, shown) = browser.shows("Sign in with").await;
    assert!(!shown.contains("payments-eu"), "{shown}");
    browser.send_form(None).await;
    let (address, _) = browser.shows("Issuer").await;
    assert!(address.starts_with(&issuer.url), "{address}");
    browser.send_form(Some(("person", person))).await;
    browser
}

/// A program brings a token of its own, and is who it says. Without one nothing is let through, by the proxy or by the API. Returns
/// the cluster's path.
async fn programs_bring_tokens(front: &Front, issuer: &Issuer) -> String {
    let bearer = format!("Authorization: Bearer {}", issuer.id_token("jane"));
    let cluster = json!({"kind": "Cluster", "name": "payments-eu", "spec": {}}).to_string();
    let post = ["-H", &bearer, "-H", "Content-Type: application/json", "--data", &cluster];
    let (status, made) = front.send(&front.url, &post, CLUSTERS).await;
    assert_eq!(status, "201", "{made}");
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["created_by"], "jane@example.com");
    let path = format!("{CLUSTERS}/{}", made["id"].as_str().unwrap());
    for (base, expected) in [(&front.url, "403"), (&front.api, "401")] {
        let (status, body) = front.send(base, &[], &path).await;
        assert_eq!(status, expected, "{body}");
        assert!(!body.contains("payments-eu"), "{body}");
    }
    headers_vouch_for_no_one(front, issuer, &path).await;
    path
}

/// The headers by which a proxy names a caller are not trusted: not by the proxy, not by the API, and not beside the token of a
/// reader, who stays a reader.
async fn headers_vouch_for_no_one(front: &Front, issuer: &Issuer, path: &str) {
    let forged = [
        "X-Forwarded-Email: jane@example.com",
        "X-Forwarded-User: jane@example.com",
        "X-Forwarded-Preferred-Username: jane@example.com",
        "X-Forwarded-Access-Token: x",
        "X-Auth-Request-Email: jane@example.com",
    ];
    let forged = forged.map(|header| ["-H", header]).concat();
    for (base, expected) in [(&front.url, "403"), (&front.api, "401")] {
        let (status, body) = front.send(base, &forged, path).await;
        assert_eq!(status, expected, "{body}");
        assert!(!body.contains("payments-eu"), "{body}");
        let reader = format!("Authorization: Bearer {}", issuer.id_token("ann"));
        let beside = [&["-H", &reader], &forged[..]].concat();
        let (status, body) = front.send(base, &beside, path).await;
        assert!(status == "200" && body.contains("payments-eu"), "{status} {body}");
        let (status, body) = front.send(base, &[&beside[..], &["-X", "DELETE"]].concat(), path).await;
        assert!(status == "403" && body.contains("HYPERFLEET-AUZ-001"), "{status} {body}");
    }
}

/// A person of the group sees the clusters, also when the first token is over, and may not change them.
async fn a_person_of_the_group_reads(front: &Front, issuer: &Issuer, chromium: &str, path: &str) {
    let mut ann = signed_in(front, issuer, chromium, "ann").await;
    let (address, _) = ann.shows("payments-eu").await;
    assert!(address.starts_with(&front.url), "{address}");
    let cookie = ann.cookie(&front.url).await;
    let (status, body) = front.send(&front.url, &["-H", &cookie], path).await;
    assert!(status == "200" && body.contains("payments-eu"), "{status} {body}");
    let (status, body) = front.send(&front.url, &["-H", &cookie, "-X", "DELETE"], path).await;
    assert!(status == "403" && body.contains("HYPERFLEET-AUZ-001"), "{status} {body}");
    let before = issuer.refreshed();
    let refreshed = async {
        while issuer.refreshed() == before {
            ann.open(&front.url).await;
            drop(ann.shows("payments-eu").await);
        }
    };
    tokio::time::timeout(Duration::from_mins(1), refreshed).await.unwrap();
    drop(ann.shows("payments-eu").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_and_see_what_their_grants_allow() {
    let proxy = variable("REAL_OAUTH2_PROXY").or_else(|| {
        missing("REAL_OAUTH2_PROXY is not set: no proxy; e=$(hack/real-parts/tools.sh get oauth2-proxy) && eval \"$e\"")
    });
    let (Some(proxy), Some(chromium)) = (proxy, chromium()) else { return };
    let issuer = Issuer::start().await;
    let front = Front::start(&proxy, &issuer).await;
    let path = programs_bring_tokens(&front, &issuer).await;
    a_person_of_the_group_reads(&front, &issuer, &chromium, &path).await;
    // A person without a grant signs in, and sees nothing of it.
    let mut joe = signed_in(&front, &issuer, &chromium, "joe").await;
    let (_, shown) = joe.shows("HYPERFLEET-AUZ-001").await;
    assert!(!shown.contains("payments-eu"), "{shown}");
    // The API's certificate is on its metrics.
    let (_, metrics) = front.send(&format!("http://{}", front.metrics), &[], "/metrics").await;
    assert!(metrics.contains("hyperfleet_certificate_expiry_timestamp_seconds{certificate=\"server\"}"), "{metrics}");
}
