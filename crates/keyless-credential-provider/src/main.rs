//! The process that the kubelet starts for a pull.

use std::process::ExitCode;

fn main() -> ExitCode {
    keyless_credential_provider::main()
}
