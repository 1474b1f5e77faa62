//! Bodies that a typed server cannot read: a text where a number belongs, content that is not base64.

use serde_json::Value;

use super::super::resources::Resource;
use super::super::status::Status;
use super::super::value::{decode_base64, members};

/// Refuses what is not of the kind's form. The refusal quotes no content.
pub(crate) fn decode(resource: &Resource, object: &Value) -> Result<(), Status> {
    let mut texts = vec!["/metadata/labels", "/metadata/annotations"];
    let is_secret = resource.storage == "secrets";
    if is_secret {
        texts.extend(["/data", "/stringData"]);
    }
    for pointer in texts {
        let found = object.pointer(pointer).filter(|found| !found.is_null());
        if found.is_some_and(|found| !found.is_object()) {
            return Err(unreadable(
                resource,
                &format!("json: cannot unmarshal into Go struct field {}", dotted(pointer)),
            ));
        }
        for (key, value) in members(object, pointer).into_iter().flatten() {
            if !value.is_string() && !value.is_null() {
                let message =
                    format!("json: cannot unmarshal into Go struct field {}.{key} of type string", dotted(pointer));
                return Err(unreadable(resource, &message));
            }
        }
    }
    let data = members(object, "/data").into_iter().flatten().filter(|_| is_secret);
    for (_, value) in data {
        if let Err(error) = decode_base64(value.as_str().unwrap_or_default()) {
            return Err(unreadable(resource, &format!("illegal base64 data at input byte {}", position(&error))));
        }
    }
    Ok(())
}

fn unreadable(resource: &Resource, why: &str) -> Status {
    let Resource { kind, version, .. } = resource;
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn position(error: &base64::DecodeError) -> usize {
    match error {
        base64::DecodeError::InvalidByte(position, _)
        | base64::DecodeError::InvalidLastSymbol { offset: position, .. }
        | base64::DecodeError::InvalidLength(position) => *position,
        base64::DecodeError::InvalidPadding => 0,
    }
}
