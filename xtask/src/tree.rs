//! The files of this project.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A file: its path below the root, with `/`, and its text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// True for files with this extension.
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// All files with one of these endings, sorted by path; build output and hidden folders are left out.
pub(crate) fn files(root: &Path, endings: &[&str]) -> anyhow::Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    collect(root, root, endings, &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn collect(root: &Path, folder: &Path, endings: &[&str], found: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                collect(root, &path, endings, found)?;
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            found.push(SourceFile { path, text });
        }
    }
    Ok(())
}

/// Writes a line to stderr.
pub(crate) fn eprint(line: impl Display) {
    // There is no other channel when stderr is closed.
    let _unwritable = writeln!(io::stderr().lock(), "{line}");
}
