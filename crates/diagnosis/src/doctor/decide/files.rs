//! The checks of files that settings name.

use jiff::{SignedDuration, Timestamp};

use super::checks::{CERTIFICATE_EXPIRING, Checks};
use crate::decide::age;
use crate::doctor::facts::FileFacts;
use crate::doctor::{Group, Line};

pub(super) fn lines(files: &[FileFacts], now: Timestamp) -> Vec<Line> {
    let mut checks = Checks::of(Group::Files);
    if files.is_empty() {
        checks.skipped("settings", "no setting names a file");
    }
    for FileFacts { setting, path, certificate_end } in files {
        let path = path.display();
        match certificate_end {
            Err(reason) => checks.failed(setting, format!("{path} cannot be used: {reason}"), format!("ls -l {path}")),
            Ok(None) => checks.ok(setting, format!("{path} can be read")),
            Ok(Some(end)) => {
                let left = end.duration_since(now);
                let fix = format!("openssl x509 -in {path} -noout -subject -enddate  # then replace it");
                if left > CERTIFICATE_EXPIRING {
                    checks.ok(setting, format!("{path} can be read; its first certificate expires in {}", age(left)));
                } else if left > SignedDuration::ZERO {
                    checks.warning(setting, format!("the first certificate of {path} expires in {}", age(left)), fix);
                } else {
                    checks.failed(setting, format!("the first certificate of {path} expired at {end}"), fix);
                }
            }
        }
    }
    checks.lines
}
