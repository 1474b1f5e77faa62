//! Values that files hold, such as those of a mounted Secret.

use std::path::Path;
use std::str::FromStr;

use secrecy::{SecretSlice, SecretString};

use super::configuration::unreadable;

/// Returns the text of a file without surrounding blanks.
///
/// # Errors
///
/// A line for a message that begins with the setting, if the file cannot be read or is empty.
pub fn text(file: &Path, setting: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| cannot_read(setting, file, &error))?;
    let text = text.trim();
    if text.is_empty() { Err(format!("{setting}: {} is empty", file.display())) } else { Ok(text.to_owned()) }
}

/// Returns the credential that a file holds, without surrounding blanks.
///
/// # Errors
///
/// A line for a message that begins with the setting, if the file cannot be read or is empty.
pub fn secret_text(file: &Path, setting: &str) -> Result<SecretString, String> {
    text(file, setting).map(SecretString::from)
}

/// Returns the bytes of a key.
///
/// # Errors
///
/// A line for a message that begins with the setting, if the file cannot be read.
pub fn secret_bytes(file: &Path, setting: &str) -> Result<SecretSlice<u8>, String> {
    std::fs::read(file).map(SecretSlice::from).map_err(|error| cannot_read(setting, file, &error))
}

/// Replaces a value by that of a file, if one is given.
///
/// # Errors
///
/// A line for a message that begins with the setting, if the file cannot be read or holds no such value.
pub fn take<T: FromStr>(value: &mut T, file: Option<&Path>, setting: &str) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    let parsed = text(file, setting)?.parse();
    *value = parsed.map_err(|_repeats_it| format!("{setting}: {} holds no such value", file.display()))?;
    Ok(())
}

fn cannot_read(setting: &str, file: &Path, error: &std::io::Error) -> String {
    format!("{setting}: {}", unreadable(&file.to_string_lossy(), error))
}
