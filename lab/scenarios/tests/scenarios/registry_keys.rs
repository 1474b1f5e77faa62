//! The keys that `docker-config` finds for an image are those that kubelet and CRI-O find, by their own code.
//!
//! `lab/interop/go/registrykeys` has kubelet's keyring and containers/image, by which CRI-O reads its credentials.

use std::collections::BTreeSet;
use std::process::Stdio;

use docker_config::RegistryKey;
use docker_config::lookup::Image;
use serde::Deserialize;
use serde_json::json;
use testkit::go;
use tokio::io::AsyncWriteExt as _;

const KEYS: [&str; 47] = [
    "quay.io",
    "https://quay.io",
    "http://quay.io/",
    "https://quay.io/v1/",
    "https://quay.io/v2/",
    "quay.io/v2/",
    "quay.io/v1",
    "quay.io/",
    "quay.io/a",
    "quay.io/a/",
    "quay.io/a/b",
    "quay.io/a/b/c",
    "quay.io/my",
    "quay.io/mycompany",
    "quay.io:443",
    "quay.io:443/a",
    "QUAY.IO",
    "*.io",
    "*.azurecr.io",
    "x.*.io",
    "*.*.azurecr.io",
    "*",
    "docker.io",
    "index.docker.io",
    "https://index.docker.io/v1/",
    "https://index.docker.io/v1",
    "docker.io/library",
    "docker.io/library/nginx",
    "docker.io/team",
    "registry-1.docker.io",
    "localhost",
    "localhost:5000",
    "https://localhost:5000/v2/",
    "127.0.0.1:5000",
    "[::1]:5000",
    "gcr.io",
    "https://gcr.io/project",
    "us-docker.pkg.dev/p",
    "us-docker.pkg.dev/p/r",
    "*.pkg.dev",
    "?.io",
    "quay.io?x",
    " quay.io",
    "user@quay.io",
    "quay.io#f",
    "quay.io//a",
    "ftp://quay.io",
];

const IMAGES: [&str; 17] = [
    "quay.io/a/b",
    "quay.io/a/b:1",
    "quay.io/a/b/c/d",
    "quay.io:443/a/b",
    "quay.io/mycompany/x@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "nginx",
    "nginx:1",
    "team/app",
    "docker.io/team/app",
    "index.docker.io/team/app",
    "localhost:5000/app",
    "localhost/app",
    "x.azurecr.io/a",
    "a.b.azurecr.io/a",
    "127.0.0.1:5000/a",
    "gcr.io/project/image",
    "us-docker.pkg.dev/p/r/i",
];

/// Indexes of keys.
#[derive(Debug, Deserialize)]
struct Answer {
    kubelet: Vec<usize>,
    /// -1 for none.
    crio: i64,
}

/// Every key alone and every pair, with every image.
fn cases() -> Vec<(Vec<&'static str>, &'static str)> {
    let alone = KEYS.iter().map(|key| vec![*key]);
    let pairs =
        KEYS.iter().enumerate().flat_map(|(at, one)| KEYS[at + 1..].iter().map(move |other| vec![*one, *other]));
    let sets: Vec<_> = alone.chain(pairs).collect();
    IMAGES.iter().flat_map(|image| sets.iter().map(move |keys| (keys.clone(), *image))).collect()
}

async fn answers(cases: &[(Vec<&str>, &str)]) -> Option<Vec<Answer>> {
    let mut program = go::command("registrykeys")?;
    let mut child = program.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: String =
        cases.iter().map(|(keys, image)| json!({"keys": keys, "image": image}).to_string() + "\n").collect();
    let writing = tokio::spawn(async move { stdin.write_all(lines.as_bytes()).await });
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    writing.await.unwrap().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    Some(output.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Docker Hub, as containers/image reads it.
const HUB: [&str; 5] = [
    "docker.io",
    "index.docker.io",
    "https://index.docker.io/v1/",
    "https://index.docker.io/v1",
    "registry-1.docker.io",
];

/// True if two keys are spellings of one registry, among which the programs choose at random, or if one is no key.
fn is_ambiguous(keys: &[&str]) -> bool {
    let parsed = keys.iter().filter_map(|key| RegistryKey::parse(key).ok());
    let normalized: BTreeSet<_> = parsed.map(|key| key.normalized().to_owned()).collect();
    normalized.len() < keys.len() || keys.iter().filter(|key| HUB.contains(key)).count() > 1
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelet_and_crio_find_the_same() {
    let cases = cases();
    let Some(answers) = answers(&cases).await else { return };
    assert_eq!(answers.len(), cases.len());
    let mut different = Vec::new();
    for ((keys, image), answer) in cases.iter().zip(answers).filter(|((keys, _), _)| !is_ambiguous(keys)) {
        let parsed = Image::parse(image).unwrap();
        let kubelet: Vec<&str> = answer.kubelet.iter().map(|index| keys[*index]).collect();
        let crio = usize::try_from(answer.crio).ok().map(|index| keys[index]);
        let ours = (parsed.kubelet_keys(keys.iter().copied()), parsed.containers_image_key(keys.iter().copied()));
        if ours != (kubelet.clone(), crio) {
            different.push(format!("{image} {keys:?}: kubelet {kubelet:?}, CRI-O {crio:?}, ours {ours:?}"));
        }
    }
    assert!(
        different.is_empty(),
        "{} of {} differ:\n{}",
        different.len(),
        cases.len(),
        different[..different.len().min(40)].join("\n")
    );
}
