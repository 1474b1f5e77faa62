//! The HyperFleet API as its users start it.

use std::path::Path;
use std::process::Output;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::api::{command as program, server, server_with};
use testkit::environment::{missing, variable};
use tokio::process::{Child, Command};

const PASSWORD: &str = "Zq7wordThatMustNotShow";

async fn stop(mut child: Child) -> Option<i32> {
    kill_process(Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap(), Signal::TERM).unwrap();
    child.wait().await.unwrap().code()
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn the_commands_of_the_guide_work() {
    let guide = include_str!("../../../../docs/guides/api.md");
    let section = guide.split("## Try it\n").nth(1).unwrap().split("\n\nOpen ").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (child, address) = server(folder.path()).await;
    // The first line starts the server, the second names the usual address.
    let lines = section.trim_start().lines().skip(2).map(str::trim).collect::<Vec<_>>().join("\n");
    let script =
        format!("set -e; api=http://{address}/api/hyperfleet/v1\n{}", lines.replace("curl ", "curl -sS --fail "));
    let output = Command::new("bash").args(["-c", &script]).env("no_proxy", "*").output().await.unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&answers).into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.len(), 5);
    let status = &answers[4]["status"];
    assert_eq!(status["adapters"]["validation"]["available"], "True");
    let reconciled = &status["conditions"][0];
    assert_eq!(reconciled["reason"], "ReconciledMissingAdapters");
    assert!(reconciled["message"].as_str().unwrap().ends_with("Currently reporting: [dns, validation]"));
    assert_eq!(stop(child).await, Some(0));
}

/// The log of a server is verified from its beginning to its end; one with a line less is not.
#[tokio::test]
async fn the_audit_records_of_a_server_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("api.log");
    let ports = ["--server-port", "0", "--health-port", "0", "--metrics-port", "0"];
    let server = program(folder.path(), &ports).stdout(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let log_with = async |operation: &str| {
        let end = tokio::time::Instant::now() + std::time::Duration::from_mins(1);
        loop {
            assert!(tokio::time::Instant::now() < end, "no {operation} in the log");
            let text = std::fs::read_to_string(&log).unwrap();
            if text.contains(operation) {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    log_with("begin-audit").await;
    assert_eq!(stop(server).await, Some(0));
    let whole = log_with("end-audit").await;
    let verify = async |text: &str, output: &str| {
        let file = folder.path().join("copy.log");
        daemon::file::replace(&file, text.as_bytes()).unwrap();
        let mut command = Command::new(testkit::program::path("pull-secret"));
        command.args(["audit", "verify"]).arg(&file).args(["--output", output]).output().await.unwrap()
    };
    let verified = verify(&whole, "table").await;
    assert!(verified.status.success() && output_text(&verified).contains("complete"), "{}", output_text(&verified));
    let lines = whole.lines().filter(|line| !line.contains("begin-audit"));
    let broken = verify(&lines.collect::<Vec<_>>().join("\n"), "json").await;
    let chains: Value = serde_json::from_slice(&broken.stdout).unwrap();
    assert_eq!((broken.status.code(), &chains[0]["fault"]["missing"]["first"]), (Some(1), &Value::from(1)), "{chains}");
    let none = verify("{}", "table").await;
    assert_eq!((none.status.code(), output_text(&none).contains("no audit record")), (Some(1), true));
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_restart_and_the_schema_is_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = program(folder.path(), &["migrate", "--check"]).output().await.unwrap();
    assert_eq!(
        (fresh.status.code(), &fresh.stdout[..]),
        (
            Some(1),
            &b"0001-resources\n0002-keys\n0003-epoch\n0004-tombstones\n0005-tenancy\n0006-counts\n0007-reasons\n\
               0008-ranges\n0009-compression\n0010-fewer-indexes\n0011-tenants\n0012-no-checks-of-rows\n"[..]
        ),
        "{}",
        output_text(&fresh)
    );
    let (child, address) = server(folder.path()).await;
    let create = format!(
        "curl -sS --fail http://{address}/api/hyperfleet/v1/channels -d '{{\"kind\": \"Channel\", \"id\": \"stable\", \"name\": \"stable\", \"spec\": {{}}}}'"
    );
    assert!(Command::new("bash").args(["-c", &create]).output().await.unwrap().status.success());
    assert_eq!(stop(child).await, Some(0));
    let current = program(folder.path(), &["migrate", "--check"]).output().await.unwrap();
    assert_eq!((current.status.code(), &current.stdout[..]), (Some(0), &b""[..]), "{}", output_text(&current));
    let (_child, address) = server(folder.path()).await;
    let read = format!("curl -sS --fail http://{address}/api/hyperfleet/v1/channels/stable");
    assert!(Command::new("bash").args(["-c", &read]).output().await.unwrap().status.success());
}

#[tokio::test]
async fn a_wrong_configuration_ends_at_once_and_names_everything() {
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path(), &["--db-port=70000", "--health-port=many"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        output_text(&output),
        "error: invalid configuration\n  --db-port: must be a whole number up to 65535\n  --health-port: must be a whole number up \
         to 65535\n"
    );
}

/// The guide's commands, with the guide's configuration.
#[tokio::test]
async fn the_grants_of_an_identity_are_printed() {
    let guide = include_str!("../../../../docs/guides/api.md");
    let folder = tempfile::tempdir().unwrap();
    let example = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    daemon::file::replace(&folder.path().join("config.yaml"), example.as_bytes()).unwrap();
    let commands: Vec<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("    pull-secret api grants ")).collect();
    assert_eq!(commands.len(), 2);
    let run = async |arguments: &str| {
        let arguments: Vec<&str> = std::iter::once("grants").chain(arguments.split_whitespace()).collect();
        program(folder.path(), &arguments).output().await.unwrap()
    };
    let adapter = run(commands[0]).await;
    assert_eq!(
        output_text(&adapter),
        "system:serviceaccount:hyperfleet-system:pullsecret-adapter of https://kubernetes.default.svc\n  Cluster: get, \
         list; reports as pullsecret; reads pull secrets; in all tenants (by pullsecret-adapter)\n"
    );
    let operator: Value = serde_json::from_slice(&run(commands[1]).await.stdout).unwrap();
    assert_eq!(operator["permissions"].as_array().unwrap().len(), 3);
    assert_eq!(operator["permissions"][0]["force_deletes"], true);
    assert_eq!(operator["permissions"][0]["reads_pull_secrets"], false);
    let stranger = run("--config config.yaml --as system:serviceaccount:clusters-acme:default").await;
    assert_eq!(stranger.status.code(), Some(1));
    assert!(output_text(&stranger).ends_with("no grant: every call is denied\n"), "{}", output_text(&stranger));
    let unknown = run("--config config.yaml --as x --issuer https://other").await;
    assert!(output_text(&unknown).contains("no item of server.jwt.configs"), "{}", output_text(&unknown));
    let open = run("--as x").await;
    assert!(output_text(&open).contains("authentication is off"), "{}", output_text(&open));
}

/// The guide's certificate is served; a client trusts it by the guide's authority, and nothing by another one.
#[tokio::test]
async fn the_certificates_of_the_guide_are_served_and_trusted() {
    let guide = include_str!("../../../../docs/guides/install.md");
    let commands: Vec<&str> = guide.lines().filter(|line| line.starts_with("    openssl ")).collect();
    let folder = tempfile::tempdir().unwrap();
    let make = async |folder: &Path| {
        let script = format!("set -e; cd '{}'\n{}", folder.display(), commands.join("\n"));
        let output = Command::new("bash").args(["-c", &script]).output().await.unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
    };
    make(folder.path()).await;
    let tls = [
        ("HYPERFLEET_SERVER_TLS_ENABLED", "true"),
        ("HYPERFLEET_SERVER_TLS_CERT_FILE", "tls.crt"),
        ("HYPERFLEET_SERVER_TLS_KEY_FILE", "tls.key"),
    ];
    let (child, address) = server_with(folder.path(), &tls).await;
    let port = address.rsplit_once(':').unwrap().1;
    let url = format!("https://hyperfleet-api.hyperfleet-system.svc:{port}/api/hyperfleet/v1/clusters");
    let get = async |authority: &Path| {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail", "--noproxy", "*", "--resolve"]);
        curl.arg(format!("hyperfleet-api.hyperfleet-system.svc:{port}:127.0.0.1")).arg("--cacert").arg(authority);
        curl.arg(&url).output().await.unwrap()
    };
    let trusted = get(&folder.path().join("ca.crt")).await;
    assert!(trusted.status.success(), "{}", output_text(&trusted));
    let other = tempfile::tempdir().unwrap();
    make(other.path()).await;
    let refused = get(&other.path().join("ca.crt")).await;
    assert_eq!(refused.status.code(), Some(60), "{}", output_text(&refused));
    assert_eq!(stop(child).await, Some(0));
}

/// A token that would pass a network in clear text is not read, let alone sent.
#[tokio::test]
async fn a_token_is_not_sent_in_clear_text() {
    let mut command =
        testkit::program::pull_secret(&["status", "--api", "http://api.fleet:8000", "--token-file", "none"]);
    let output = command.output().await.unwrap();
    let text = output_text(&output);
    assert!(text.contains("refused to send the bearer token to api.fleet in clear text"), "{text}");
    assert_eq!(output.status.code(), Some(2), "{text}");
}

/// Creates a cluster, runs the guide's commands that back up, changes it, runs those that restore, and reads it.
async fn backed_up_and_restored(folder: &Path, variables: &[(&str, &str)], back_up: &str, restore: &str) {
    const CLUSTER: &str = r#"{"kind": "Cluster", "id": "cls-1", "name": "one", "spec": {"region": "backed-up"}}"#;
    let request = async |arguments: &str| {
        let (child, address) = server_with(folder, variables).await;
        let url = format!("http://{address}/api/hyperfleet/v1/clusters");
        let answer = shell(folder, &arguments.replace("URL", &url)).await;
        assert_eq!(stop(child).await, Some(0));
        answer
    };
    request(&format!("curl -sS --fail URL -d '{CLUSTER}'")).await;
    shell(folder, back_up).await;
    request(r#"curl -sS --fail -X PATCH URL/cls-1 -d '{"spec": {"region": "lost"}}'"#).await;
    let printed = shell(folder, restore).await;
    assert!(printed.contains("generations of 1 resources raised by 1000000"), "{printed}");
    let cluster: Value = serde_json::from_str(&request("curl -sS --fail URL/cls-1").await).unwrap();
    assert_eq!((&cluster["generation"], &cluster["spec"]["region"]), (&1_000_001.into(), &"backed-up".into()));
}

async fn shell(folder: &Path, script: &str) -> String {
    let programs = testkit::program::path("pull-secret");
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -e\n{script}")]).current_dir(folder).env("no_proxy", "*");
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.parent().unwrap().display()));
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{script}\n{}", output_text(&output));
    output_text(&output)
}

/// The indented lines of the guide's section on restoring, below the line that begins so.
fn block(beginning: &str) -> String {
    let guide = include_str!("../../../../docs/guides/api.md");
    let section = guide.split("## Back up and restore\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let (_, below) = section.split_once(&format!("\n{beginning}")).unwrap();
    let lines = below.lines().skip_while(|line| !line.starts_with("    ")).map_while(|line| line.strip_prefix("    "));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[tokio::test]
async fn the_guides_restore_of_sqlite_works() {
    let folder = tempfile::tempdir().unwrap();
    daemon::file::replace(&folder.path().join("config.yaml"), b"log: {level: info}\n").unwrap();
    backed_up_and_restored(folder.path(), &[], &block("Back up SQLite"), &block("Restore SQLite")).await;
}

#[tokio::test]
async fn the_guides_restore_of_postgresql_works() {
    let found = variable("REAL_POSTGRESQL_URL").or_else(|| missing("REAL_POSTGRESQL_URL is not set: no PostgreSQL"));
    let Some(server) = found else { return };
    let folder = tempfile::tempdir().unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    let name = format!("guide_{}", std::process::id());
    shell(folder.path(), &format!("psql -q '{server}' -c 'CREATE DATABASE {name}'")).await;
    let url = format!("{base}/{name}");
    daemon::file::replace(&folder.path().join("config.yaml"), b"log: {level: info}\n").unwrap();
    let with_url = |block: String| format!("export DATABASE_URL='{url}'\n{block}");
    let (back_up, restore) = (with_url(block("Back up PostgreSQL")), with_url(block("Restore PostgreSQL")));
    backed_up_and_restored(folder.path(), &[("DATABASE_URL", &url)], &back_up, &restore).await;
    shell(folder.path(), &format!("psql -q '{server}' -c 'DROP DATABASE {name} WITH (FORCE)'")).await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hyperfleet.db");
    let content = vec![b'x'; 10_000];
    daemon::file::replace(&path, &content).unwrap();
    let arguments = ["--server-port=0", "--health-port=0", "--metrics-port=0"];
    let output = program(folder.path(), &arguments).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    assert!(output_text(&output).contains("the database cannot be used"), "{}", output_text(&output));
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

/// The likeliest mistake: a credential where something else belongs.
#[tokio::test]
async fn a_credential_in_the_wrong_place_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let document = format!(r#"{{"auths":{{"quay.io":{{"auth":"{PASSWORD}"}}}}}}"#);
    let url = format!("mysql://user:{PASSWORD}@host/name");
    let variables = [
        "DATABASE_URL",
        "HYPERFLEET_CONFIG",
        "HYPERFLEET_DATABASE_PASSWORD_FILE",
        "HYPERFLEET_DATABASE_SSL_MODE",
        "HYPERFLEET_DATABASE_DIALECT",
        "HYPERFLEET_LOGGING_LEVEL",
        "HYPERFLEET_LOGGING_FORMAT",
        "HYPERFLEET_SERVER_HOST",
        "HYPERFLEET_SERVER_PORT",
        "HYPERFLEET_SERVER_TIMEOUTS_READ",
        "HYPERFLEET_SERVER_OPENAPI_SCHEMA_PATH",
        "HYPERFLEET_PULL_SECRET_READER_TOKEN_FILE",
    ];
    for variable in variables {
        for value in [document.as_str(), url.as_str(), PASSWORD] {
            let mut command = program(folder.path(), &["migrate", "--check"]);
            command.env("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "100ms").env(variable, value);
            let output = command.output().await.unwrap();
            assert!(!output_text(&output).contains(&PASSWORD[4..]), "{variable}: {}", output_text(&output));
            let mut command = program(folder.path(), &["openapi"]);
            let output = command.env(variable, value).output().await.unwrap();
            assert!(!output_text(&output).contains(&PASSWORD[4..]), "{variable}: {}", output_text(&output));
        }
    }
}

/// A key that is lost is named, and what it encrypts is removed at the operator's word only.
#[tokio::test]
async fn the_content_of_a_lost_key_is_removed_at_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| daemon::file::replace(&folder.path().join(name), content).unwrap();
    write("one", &[1; 32]);
    write("two", &[2; 32]);
    write("config.yaml", b"pull_secret: { keys: [{ id: one, file: one }] }");
    let (child, address) = server_with(folder.path(), &[("HYPERFLEET_CONFIG", "config.yaml")]).await;
    let body = r#"{"kind": "Cluster", "id": "cls-1", "name": "one", "spec": {"pullSecret": {"data": {"auths": {"quay.io": {"auth": "dTpw"}}}}}}"#;
    let create = format!("curl -sS --fail http://{address}/api/hyperfleet/v1/clusters -d '{body}'");
    let created = Command::new("bash").args(["-c", &create]).env("no_proxy", "*").output().await.unwrap();
    assert!(created.status.success(), "{}", output_text(&created));
    assert_eq!(stop(child).await, Some(0));
    let rekey = async |more: &[&str]| {
        let arguments: Vec<&str> =
            ["rekey", "--config", "config.yaml"].into_iter().chain(more.iter().copied()).collect();
        program(folder.path(), &arguments).output().await.unwrap()
    };
    let known = rekey(&["--remove-lost-key", "one"]).await;
    assert_eq!(known.status.code(), Some(2), "{}", output_text(&known));
    assert!(output_text(&known).contains("one is in pull_secret.keys"), "{}", output_text(&known));
    write("config.yaml", b"pull_secret: { keys: [{ id: two, file: two }] }");
    let without = rekey(&[]).await;
    assert_eq!(without.status.code(), Some(1));
    assert!(output_text(&without).contains("--remove-lost-key"), "{}", output_text(&without));
    let removed = rekey(&["--remove-lost-key", "one"]).await;
    assert_eq!(removed.status.code(), Some(0), "{}", output_text(&removed));
    assert!(output_text(&removed).contains("the pull secret of cls-1 is removed: send its content again"));
    let (child, _address) = server_with(folder.path(), &[("HYPERFLEET_CONFIG", "config.yaml")]).await;
    assert_eq!(stop(child).await, Some(0));
}
