//! The roll-out as a trace, of what the played nodes confirm.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use fleet_model::names;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::cluster::Kind;
use crate::rig::{CANARY, Rig, document};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Takes everything that is sent to the address, and hands each body on.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, bodies) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _gone = sender.send(take(&stream.unwrap()));
        }
    });
    (endpoint, bodies)
}

fn take(mut stream: &TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    body
}

fn contains(body: &[u8], piece: &[u8]) -> bool {
    body.windows(piece.len()).any(|window| window == piece)
}

/// The original's copy has no annotation, as HyperShift makes it; the Secret that it is copied from has.
#[tokio::test(flavor = "multi_thread")]
async fn a_roll_out_ends_with_the_last_confirmation_and_links_to_the_run_that_has_stored_the_original() {
    let mut rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.stop();
    let namespace = rig.cluster.namespace.clone();
    rig.cluster.put_secret(&namespace, "source", &document("q.io=2")).await;
    let trace =
        json!({"metadata": {"annotations": {names::ANNOTATION_TRACE: format!("00-{TRACE}-b7ad6b7169203331-01")}}});
    let secrets: kube::Api<Secret> = kube::Api::namespaced(rig.cluster.server.client.clone(), &namespace);
    secrets.patch("source", &PatchParams::default(), &Patch::Merge(&trace)).await.unwrap();
    let (endpoint, bodies) = collector();
    let mut program = Command::new(env!("CARGO_BIN_EXE_global-pull-secret"))
        .args(["run", "--health-port=0", "--metrics-port=0", "--syncer-image=i"])
        .args(["--syncer-priority-class=system-node-critical", "--control-plane-namespace"])
        .arg(&namespace)
        .arg("--kubeconfig")
        .arg(rig.cluster.kubeconfig())
        .arg(format!("--source-secret={namespace}/source"))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    rig.add("r.io=2").await;
    rig.deploys("q.io=1 r.io=2").await;
    let first = bodies.recv().unwrap();
    rig.original("q.io=2").await;
    rig.deploys("q.io=2 r.io=2").await;
    let second = bodies.recv().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let id: Vec<u8> = (0..32).step_by(2).map(|at| u8::from_str_radix(&TRACE[at..at + 2], 16).unwrap()).collect();
    for (body, is_linked) in [(&first, false), (&second, true)] {
        for piece in ["global-pull-secret", "roll out", "global_pull_secret.revision", "global_pull_secret.nodes"] {
            assert!(contains(body, piece.as_bytes()), "{piece}: {}", String::from_utf8_lossy(body));
        }
        assert_eq!(contains(body, &id), is_linked);
        assert!(!contains(body, CANARY.as_bytes()) && !contains(body, crate::rig::encode(b"u:c4n4").as_bytes()));
    }
}
