//! Stores that refuse what is not granted: OpenBao by a policy, moto behind a proxy, the emulator of Key Vault by its faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use emulators::key_vault::{KeyVault, Operation};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::stores::{Fleet, bao};

/// The limits of a store; they end when it is dropped.
pub(crate) struct Limits(Option<JoinHandle<()>>);

// === impl Limits ===

impl Limits {
    /// Leaves a fleet's programs these permissions at its store.
    pub(crate) async fn new(fleet: &mut Fleet, granted: &BTreeSet<String>) -> Self {
        match &fleet.vault {
            Some(vault) => limit_key_vault(vault, granted),
            None if fleet.store == "vault" => limit_openbao(fleet, granted).await,
            None => return Self(Some(limit_moto(fleet, granted.clone()).await)),
        }
        Self(None)
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// A permission as messages have it.
pub(crate) fn in_messages(permission: &str) -> String {
    match permission.split_once(" on ") {
        Some((capability, area)) => format!("needs `{capability}` on `secret/{area}/"),
        None => permission.to_owned(),
    }
}

/// The permissions of a policy in a guide.
pub(crate) fn of_policy(store: &str, policy: &str) -> BTreeSet<String> {
    if store == "vault" {
        return policy.lines().flat_map(of_rule).collect();
    }
    let policy: Value = serde_json::from_str(policy).unwrap();
    let of_aws = policy["Statement"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|statement| &statement["Action"].as_array().unwrap()[..]);
    let all = of_aws.chain(policy["DataActions"].as_array().into_iter().flatten());
    all.map(|action| action.as_str().unwrap().to_owned()).collect()
}

/// The permissions of a line such as `path "secret/data/pull-secrets/*" { capabilities = ["read"] }`.
fn of_rule(line: &str) -> BTreeSet<String> {
    let mut quoted = line.split('"').skip(1).step_by(2);
    let area = quoted.next().unwrap().split('/').nth(1).unwrap();
    quoted.map(|capability| format!("{capability} on {area}")).collect()
}

async fn limit_openbao(fleet: &mut Fleet, granted: &BTreeSet<String>) {
    let folder = fleet.variables["VAULT_FOLDER"].clone();
    let mut areas: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for permission in granted {
        let (capability, area) = permission.split_once(" on ").unwrap();
        areas.entry(area).or_default().push(format!("{capability:?}"));
    }
    let mut policy = "# An empty policy cannot be written.\n".to_owned();
    for (area, capabilities) in areas {
        let of_secrets = if area == "detailed-metadata" { "" } else { "/*" };
        let capabilities = capabilities.join(", ");
        let path = format!("secret/{area}/{folder}{of_secrets}");
        writeln!(policy, "path {path:?} {{ capabilities = [{capabilities}] }}").unwrap();
    }
    let file = |name: &str, text: &str| {
        let path = fleet.files.path().join(name);
        daemon::file::replace(&path, text.as_bytes()).unwrap();
        path.display().to_string()
    };
    bao(&["policy", "write", &folder, &file("policy.hcl", &policy)]).await;
    let token = bao(&["token", "create", "-field=token", &format!("-policy={folder}")]).await;
    let token = file("limited", token.trim());
    fleet.variables.insert("VAULT_TOKEN_FILE", token);
}

fn limit_key_vault(vault: &KeyVault, granted: &BTreeSet<String>) {
    for operation in Operation::all().filter(|operation| *operation != Operation::RequestToken) {
        if !granted.contains(&operation.action()) {
            vault.inject(format!("{operation}:access-denied*0").parse().unwrap());
        }
    }
}

async fn limit_moto(fleet: &mut Fleet, granted: BTreeSet<String>) -> JoinHandle<()> {
    let address = fleet.variables["AWS_ENDPOINT_URL_SECRETS_MANAGER"].clone();
    let target = address.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    fleet.variables.insert("AWS_ENDPOINT_URL_SECRETS_MANAGER", address);
    let granted = Arc::new(granted);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(answer(client, target.clone(), Arc::clone(&granted)));
        }
    })
}

/// Answers the one request of a connection: refuses it, or leaves it to moto.
async fn answer(mut client: TcpStream, target: String, granted: Arc<BTreeSet<String>>) {
    let Some((head, body)) = request(&mut client).await else { return };
    let missing = needed(&head, &body).into_iter().find(|action| !granted.contains(action));
    if let Some(action) = missing {
        let message =
            format!("User: arn:aws:sts::123456789012:assumed-role/test is not authorized to perform: {action}");
        let body = json!({"__type": "AccessDeniedException", "Message": message}).to_string();
        let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/x-amz-json-1.1\r\nconnection: close";
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        client.write_all(answer.as_bytes()).await.unwrap();
        return;
    }
    let mut server = TcpStream::connect(&target).await.unwrap();
    let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    server.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    drop(tokio::io::copy(&mut server, &mut client).await);
}

/// The head of a request, with the empty line, and its body.
async fn request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end + 4].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Some((head, bytes.split_off(end + 4)));
            }
        }
        if client.read_buf(&mut bytes).await.unwrap() == 0 {
            return None;
        }
    }
}

/// The actions that AWS demands for a request: tags at a creation are an action of their own.
fn needed(head: &str, body: &[u8]) -> Vec<String> {
    let name = "x-amz-target: secretsmanager.";
    let operation = head
        .lines()
        .find_map(|line| line.get(..name.len())?.eq_ignore_ascii_case(name).then(|| &line[name.len()..]))
        .unwrap();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let has_tags = operation == "CreateSecret" && body["Tags"].as_array().is_some_and(|tags| !tags.is_empty());
    let tags = has_tags.then_some("TagResource");
    [operation].into_iter().chain(tags).map(|action| format!("secretsmanager:{action}")).collect()
}
