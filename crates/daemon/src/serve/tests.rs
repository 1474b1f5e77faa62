//! Start errors that name the setting to change.

mod connections;

use super::*;
use crate::settings::common;

const TABLE: Table = Table::of(&[common::HEALTH]);

fn endpoint(host: &str, port: u16) -> Endpoint<'_> {
    Endpoint::new(&TABLE, "health", "probes", host, port)
}

#[tokio::test]
async fn a_port_in_use_names_address_purpose_and_setting() {
    let first = listen(&endpoint("127.0.0.1", 0)).await.unwrap();
    let port = first.address().port();
    let error = listen(&endpoint("127.0.0.1", port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!(
            "cannot listen on 127.0.0.1:{port} for probes: address already in use; \
             another program uses the port: choose another with HEALTH_PORT or --health-port"
        )
    );
}

#[tokio::test]
async fn an_address_of_another_machine_names_the_host_setting() {
    // 192.0.2.0/24 is reserved for documentation (RFC 5737).
    let error = listen(&endpoint("192.0.2.1", 0)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot listen on 192.0.2.1:0 for probes: address not available; \
         this machine has no such address: choose one with HEALTH_HOST or --health-host"
    );
}

#[test]
fn a_privileged_port_and_other_errors_name_their_settings() {
    let message = |kind: io::ErrorKind| ListenError::new(&endpoint("::1", 80), kind.into()).to_string();
    assert_eq!(
        message(io::ErrorKind::PermissionDenied),
        "cannot listen on [::1]:80 for probes: permission denied; \
         choose a port from 1024 with HEALTH_PORT or --health-port"
    );
    assert!(
        message(io::ErrorKind::InvalidInput)
            .ends_with("check the host in HEALTH_HOST or --health-host and the port in HEALTH_PORT or --health-port")
    );
}
