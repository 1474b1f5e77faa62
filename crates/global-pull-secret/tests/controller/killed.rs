//! The program, ended by SIGKILL in the middle of what it makes and removes.

use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::Secret;
use rstest::rstest;

use crate::cluster::{ADDITIONAL, Kind, until};
use crate::rig::Rig;

/// The program; it goes with the test.
struct Program(Child);

impl Program {
    fn start(rig: &Rig) -> Self {
        let kubeconfig = rig.cluster.kubeconfig();
        let child = Command::new(env!("CARGO_BIN_EXE_global-pull-secret"))
            .args(["run", "--health-port", "0", "--metrics-port", "0", "--syncer-image", "i"])
            .args(["--syncer-priority-class", "system-node-critical", "--control-plane-namespace"])
            .arg(&rig.cluster.namespace)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Killed with a write under way, done or not done: the next one ends what was begun, in both directions.
#[rstest]
#[case::done("commit-then-hang")]
#[case::not_done("hang")]
#[tokio::test(flavor = "multi_thread")]
async fn another_controller_continues_after_a_kill(#[case] fault: &str) {
    let mut rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.stop();
    let emulator = rig.cluster.emulator();
    let hangs = |verb: &str, kind: &str| {
        let calls = emulator.calls();
        calls.iter().filter(|call| call.verb == verb && call.resource == kind && call.outcome.is_none()).count()
    };
    for kind in ["secrets", "serviceaccounts", "roles", "rolebindings", "daemonsets", "configmaps"] {
        rig.add("r.io=2").await;
        for verb in ["create", "delete"] {
            let before = hangs(verb, kind);
            let inject = || emulator.inject(format!("{verb}/{kind}:{fault}").parse().unwrap());
            if verb == "create" {
                inject();
            }
            let mut program = Program::start(&rig);
            if verb == "delete" {
                // The write that the killed one began is complete.
                rig.deploys("q.io=1 r.io=2").await;
                rig.shows("RolledOut=True/RolledOut").await;
                rig.cluster.delete::<Secret>(ADDITIONAL).await;
                inject();
            }
            until("it is in the middle", async || (hangs(verb, kind) > before).then_some(())).await;
            program.kill();
            emulator.clear_faults();
        }
        let _program = Program::start(&rig);
        rig.is_removed().await;
    }
}
