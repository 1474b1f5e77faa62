//! Version, commit and build date of a program.

use serde_json::json;

/// Version, commit and build date of a program; [`version!`](crate::version!) reads them when the program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Name of the program.
    pub program: &'static str,
    /// Version of the release.
    pub version: &'static str,
    /// Commit that it was built from; `unknown` outside a release.
    pub commit: &'static str,
    /// Time of the build; `unknown` outside a release.
    pub built: &'static str,
}

/// The [`Version`] of the program with this name, from the variables `VERSION`, `COMMIT` and `BUILD_DATE` of the build.
///
/// A macro, so that a build at another time compiles the program anew, and not the crates that it uses.
#[macro_export]
macro_rules! version {
    ($program:literal) => {
        $crate::version::Version {
            program: $program,
            version: match option_env!("VERSION") {
                Some(version) => version,
                None => env!("CARGO_PKG_VERSION"),
            },
            commit: match option_env!("COMMIT") {
                Some(commit) => commit,
                None => "unknown",
            },
            built: match option_env!("BUILD_DATE") {
                Some(built) => built,
                None => "unknown",
            },
        }
    };
}

// === impl Version ===

impl Version {
    /// Lines for people.
    pub fn text(&self) -> String {
        let Self { program, version, commit, built } = self;
        format!("{program} version info:\n  Version:    {version}\n  Commit:     {commit}\n  Built:      {built}\n")
    }

    /// One JSON object, for programs.
    pub fn json(&self) -> String {
        let Self { program, version, commit, built } = self;
        let object = json!({ "program": program, "version": version, "commit": commit, "buildDate": built });
        format!("{object:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_say_the_same() {
        let version = Version { program: "p", version: "1.2.3", commit: "abc1234", built: "2026-02-01T00:00:00Z" };
        let json: serde_json::Value = serde_json::from_str(&version.json()).unwrap_or_default();
        for (member, value) in
            [("program", "p"), ("version", "1.2.3"), ("commit", "abc1234"), ("buildDate", "2026-02-01T00:00:00Z")]
        {
            assert_eq!(json[member], value, "{member}");
            assert!(version.text().contains(value), "{member}");
        }
    }

    #[test]
    fn without_a_release_the_package_has_the_version() {
        assert_eq!(crate::version!("daemon").program, "daemon");
        assert!(!crate::version!("daemon").version.is_empty());
    }
}
