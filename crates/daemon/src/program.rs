//! Lookup of the project's other programs: beside the running one, then on PATH.

use std::path::{Path, PathBuf};

use crate::environment::{Environment, NotUtf8};

/// The file of the program `name`: in the folder of the running program, else in the first folder of PATH that has it.
/// `None` if there is none.
pub fn find(name: &str, running: &Path, environment: &impl Environment) -> Result<Option<PathBuf>, NotUtf8> {
    let beside = running.with_file_name(name);
    if beside.is_file() {
        return Ok(Some(beside));
    }
    let path = environment.text("PATH")?.unwrap_or_default();
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    Ok(folders.map(|folder| Path::new(folder).join(name)).find(|file| file.is_file()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_program_beside_the_running_one_comes_before_one_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let (here, elsewhere) = (folder.path().join("here"), folder.path().join("elsewhere"));
        fs::create_dir(&here).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        let path = format!("/nonexistent::{}", elsewhere.display());
        let environment = BTreeMap::from([("PATH", path.as_str())]);
        let found = || find("tool", &here.join("running"), &environment).unwrap();
        assert_eq!(found(), None);
        File::create(elsewhere.join("tool")).unwrap();
        assert_eq!(found(), Some(elsewhere.join("tool")));
        File::create(here.join("tool")).unwrap();
        assert_eq!(found(), Some(here.join("tool")));
        assert_eq!(find("tool", Path::new("/running"), &BTreeMap::new()).unwrap(), None);
    }
}
