//! The content of a Pod's volumes. Pure: the caller supplies the referenced objects, and writes the files.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use super::spec::{FieldFiles, ObjectFiles, Pod, Sources, Volume};

/// The mode of files that say nothing else.
const DEFAULT_MODE: u32 = 0o644;

/// Default lifetime of a projected token.
const TOKEN_SECONDS: i64 = 3600;

/// A volume's files by their paths in it, with their modes. It has no `Debug`: they may be secrets.
#[derive(Default)]
pub(crate) struct Content(pub(crate) BTreeMap<String, (Vec<u8>, u32)>);

/// The content of `volume`, or why it cannot be mounted, without any of it.
pub(crate) fn content(pod: &Pod, volume: &Volume, sources: &dyn Sources) -> Result<Content, String> {
    let mut content = Content::default();
    if volume.empty_dir.is_some() {
        return Ok(content);
    }
    if let Some(files) = &volume.secret {
        content.add_object(files, "secret", sources.secret(files.object()), DEFAULT_MODE)?;
    } else if let Some(files) = &volume.config_map {
        content.add_object(files, "configmap", sources.config_map(files.object()), DEFAULT_MODE)?;
    } else if let Some(files) = &volume.downward_api {
        content.add_fields(pod, files, DEFAULT_MODE)?;
    } else if let Some(projected) = &volume.projected {
        let mode = projected.default_mode.unwrap_or(DEFAULT_MODE);
        for source in &projected.sources {
            if let Some(files) = &source.secret {
                content.add_object(files, "secret", sources.secret(files.object()), mode)?;
            }
            if let Some(files) = &source.config_map {
                content.add_object(files, "configmap", sources.config_map(files.object()), mode)?;
            }
            if let Some(files) = &source.downward_api {
                content.add_fields(pod, files, mode)?;
            }
            if let Some(token) = &source.service_account_token {
                let seconds = token.expiration_seconds.unwrap_or(TOKEN_SECONDS);
                let issued = sources.token(pod.account(), seconds);
                let issued = issued.ok_or_else(|| format!("no token for the service account {:?}", pod.account()))?;
                content.add(&token.path, issued.into_bytes(), mode)?;
            }
        }
    } else {
        return Err("the emulator provides emptyDir, secret, configMap, downwardAPI and projected only".to_owned());
    }
    Ok(content)
}

impl Content {
    fn add(&mut self, path: &str, bytes: Vec<u8>, mode: u32) -> Result<(), String> {
        let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !inside {
            return Err(format!("the path {path:?} leaves its volume"));
        }
        self.0.insert(path.to_owned(), (bytes, mode));
        Ok(())
    }

    fn add_object(
        &mut self,
        files: &ObjectFiles,
        kind: &str,
        data: Option<BTreeMap<String, Vec<u8>>>,
        mode: u32,
    ) -> Result<(), String> {
        let mode = files.default_mode.unwrap_or(mode);
        let data = match data {
            Some(data) => data,
            None if files.optional => return Ok(()),
            None => return Err(format!("{kind} {:?} not found", files.object())),
        };
        if files.items.is_empty() {
            return data.into_iter().try_for_each(|(key, value)| self.add(&key, value, mode));
        }
        for item in &files.items {
            match data.get(&item.key) {
                Some(value) => self.add(&item.path, value.clone(), item.mode.unwrap_or(mode))?,
                None if files.optional => {}
                None => return Err(format!("references non-existent {kind} key: {}", item.key)),
            }
        }
        Ok(())
    }

    fn add_fields(&mut self, pod: &Pod, files: &FieldFiles, mode: u32) -> Result<(), String> {
        let mode = files.default_mode.unwrap_or(mode);
        for item in &files.items {
            let path = item.field_ref.as_ref().map_or("", |field| &field.field_path);
            let value = match path {
                "metadata.labels" => Some(lines(&pod.metadata.labels)),
                "metadata.annotations" => Some(lines(&pod.metadata.annotations)),
                path => pod.field(path),
            };
            let value = value.ok_or_else(|| format!("unsupported fieldPath: {path}"))?;
            self.add(&item.path, value.into_bytes(), item.mode.unwrap_or(mode))?;
        }
        Ok(())
    }
}

impl ObjectFiles {
    fn object(&self) -> &str {
        if self.secret_name.is_empty() { &self.name } else { &self.secret_name }
    }
}

/// A map as the downward API writes it: a quoted value a line.
fn lines(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<_> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}
