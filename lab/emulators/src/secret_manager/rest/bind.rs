//! Path, query and body together make the request.

use prost_types::FieldMask;

use super::route::Routed;
use crate::secret_manager::method::Method;
use crate::secret_manager::status::Status;
use crate::secret_manager::wire::json::read;
use crate::secret_manager::wire::requests::{Add, Create, List, Named, Tagged, TestIamPermissions, Update};
use crate::secret_manager::wire::{Change, Request, Secret};

/// Parameters that every method has and that change nothing here.
const SYSTEM: [&str; 14] = [
    "access_token",
    "oauth_token",
    "callback",
    "fields",
    "key",
    "prettyPrint",
    "$prettyPrint",
    "quotaUser",
    "upload_protocol",
    "uploadType",
    "$.xgafv",
    "alt",
    "$alt",
    "$fields",
];

/// The query, read once: what belongs to no method is taken out.
#[derive(Debug)]
pub(super) struct Parameters {
    pub(super) enums_as_numbers: bool,
    rest: Vec<(String, String)>,
}

impl Parameters {
    pub(super) fn new(query: Vec<(String, String)>) -> Result<Self, Status> {
        let mut enums_as_numbers = false;
        for (_, value) in query.iter().filter(|(name, _)| name == "$alt" || name == "alt") {
            let mut options = value.split(';');
            if options.next() != Some("json") {
                return Err(Status::invalid("Only alt=json is served by this emulator."));
            }
            enums_as_numbers |= options.any(|option| option == "enum-encoding=int");
        }
        let rest = query.into_iter().filter(|(name, _)| !SYSTEM.contains(&name.as_str())).collect();
        Ok(Self { enums_as_numbers, rest })
    }

    /// Takes out a parameter, by either of its names.
    fn take(&mut self, name: &str, snake: &str) -> String {
        let at = self.rest.iter().position(|(given, _)| given == name || given == snake);
        at.map(|at| self.rest.remove(at).1).unwrap_or_default()
    }

    /// Refuses members that the method does not know.
    fn finish(self) -> Result<(), Status> {
        let Some((name, _)) = self.rest.first() else { return Ok(()) };
        let message = format!(
            "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. Field '{name}' could not be found in \
             request message."
        );
        Err(Status::bad_field("", message))
    }
}

/// Makes the request of a routed call.
pub(super) fn bind(routed: &Routed, mut parameters: Parameters, body: &[u8]) -> Result<Request, Status> {
    let resource = routed.resource.clone();
    let request = match routed.method {
        Method::ListSecrets => Request::ListSecrets(list(resource, &mut parameters)?),
        Method::ListVersions => Request::ListVersions(list(resource, &mut parameters)?),
        Method::CreateSecret => {
            let secret_id = parameters.take("secretId", "secret_id");
            Request::CreateSecret(Create { parent: resource, secret_id, secret: Some(read(body, "secret")?) })
        }
        Method::UpdateSecret => {
            let paths = parameters.take("updateMask", "update_mask");
            let paths = paths.split(',').map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned).collect();
            let secret = Secret { name: resource, ..read(body, "secret")? };
            Request::UpdateSecret(Update { secret: Some(secret), update_mask: Some(FieldMask { paths }) })
        }
        Method::DeleteSecret => Request::DeleteSecret(Tagged { name: resource, etag: parameters.take("etag", "etag") }),
        Method::AddVersion => Request::AddVersion(Add { parent: resource, ..read(body, "")? }),
        Method::GetSecret => Request::GetSecret(Named { name: resource }),
        Method::GetVersion => Request::GetVersion(Named { name: resource }),
        Method::AccessVersion => Request::AccessVersion(Named { name: resource }),
        Method::DisableVersion => change(Change::Disable, resource, body)?,
        Method::EnableVersion => change(Change::Enable, resource, body)?,
        Method::DestroyVersion => change(Change::Destroy, resource, body)?,
        Method::TestIamPermissions => Request::TestIamPermissions(TestIamPermissions { resource, ..read(body, "")? }),
        unserved => return Ok(Request::Unserved(unserved, resource)),
    };
    parameters.finish()?;
    Ok(request)
}

fn list(parent: String, parameters: &mut Parameters) -> Result<List, Status> {
    let size = parameters.take("pageSize", "page_size");
    let wrong =
        |_| Status::bad_field("page_size", "Invalid value at 'page_size' (TYPE_INT32): a whole number is expected.");
    let page_size = if size.is_empty() { 0 } else { size.parse().map_err(wrong)? };
    let page_token = parameters.take("pageToken", "page_token");
    Ok(List { parent, page_size, page_token, filter: parameters.take("filter", "filter") })
}

fn change(change: Change, name: String, body: &[u8]) -> Result<Request, Status> {
    Ok(Request::ChangeVersion(change, Tagged { name, ..read(body, "")? }))
}
