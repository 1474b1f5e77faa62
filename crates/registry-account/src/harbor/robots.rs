//! Finds the robots of the project, and changes them.

use std::sync::PoisonError;

use form_urlencoded::byte_serialize;
use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::HarborRegistry;
use super::pages::{PAGE, has_more};
use super::wire::{Project, Robot};
use crate::client::Call;
use crate::error::{AccountError, ErrorKind};
use crate::name::AccountName;
use crate::request::Request;

/// Makes Harbor take a name of digits for a name.
const IS_NAME: HeaderName = HeaderName::from_static("x-is-resource-name");

/// One page of the project's robots.
pub(super) struct Page {
    pub(super) robots: Vec<Robot>,
    pub(super) has_more: bool,
}

// === impl HarborRegistry ===

impl HarborRegistry {
    /// Finds the robot of a name, whatever its prefix; `None` if it does not exist.
    pub(super) async fn robot(&self, call: &Call<'_>, name: &AccountName) -> Result<Option<Robot>, AccountError> {
        let mut number = 1;
        loop {
            let Page { robots, has_more } = self.page(call, Some(name), number).await?;
            if let Some(robot) = robots.into_iter().find(|robot| robot.short() == Some(name.as_str())) {
                return Ok(Some(robot));
            }
            if !has_more {
                return Ok(None);
            }
            number += 1;
        }
    }

    /// Reads a robot by its number; `None` if it does not exist.
    pub(super) async fn robot_by_id(&self, call: &Call<'_>, id: u64) -> Result<Option<Robot>, AccountError> {
        let answer = call.send(&Request::new("get_robot", Method::GET, format!("robots/{id}"))).await?;
        match answer.status {
            StatusCode::OK => answer.parse().map(Some).ok_or_else(|| call.unreadable()),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Reads one page of the project's robots, or of those whose name contains another one. Without the project's number, Harbor
    /// lists the robots of no project.
    pub(super) async fn page(
        &self,
        call: &Call<'_>,
        name: Option<&AccountName>,
        number: u64,
    ) -> Result<Page, AccountError> {
        let project = self.project_id(call).await?;
        let named = name.map(|name| format!(",name=~{name}")).unwrap_or_default();
        let query = format!("Level=project,ProjectID={project}{named}");
        let query: String = byte_serialize(query.as_bytes()).collect();
        let path = format!("robots?q={query}&sort=id&page={number}&page_size={PAGE}");
        let answer = call.send(&Request::new("list_robots", Method::GET, path)).await?;
        if answer.status != StatusCode::OK {
            // The project may have been deleted and made again.
            *self.project_id.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return Err(call.refused(&answer));
        }
        // Harbor writes null for no robots.
        let robots: Vec<Robot> = answer.parse::<Option<_>>().ok_or_else(|| call.unreadable())?.unwrap_or_default();
        let has_more = has_more(&answer, number, robots.len());
        Ok(Page { robots, has_more })
    }

    /// Gives a robot the permission to pull, and disables it or not. All else stays as it is.
    pub(super) async fn change(&self, call: &Call<'_>, robot: &Robot, disable: bool) -> Result<(), AccountError> {
        let body = robot.changed(&self.settings.project, disable);
        let request = Request::new("update_robot", Method::PUT, format!("robots/{}", robot.id)).with_body(&body);
        let answer = call.send(&request).await?;
        match answer.status {
            StatusCode::OK => Ok(()),
            StatusCode::NOT_FOUND => Err(call.failed(ErrorKind::NotFound)),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Returns Harbor's number of the project, which is asked for once.
    async fn project_id(&self, call: &Call<'_>) -> Result<u64, AccountError> {
        let known = *self.project_id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known {
            return Ok(id);
        }
        let project = &self.settings.project;
        let request = Request::new("get_project", Method::GET, format!("projects/{project}"));
        let answer = call.send(&request.with_header(IS_NAME, HeaderValue::from_static("true"))).await?;
        match answer.status {
            StatusCode::OK => {
                let Project { project_id } = answer.parse().ok_or_else(|| call.unreadable())?;
                *self.project_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(project_id);
                Ok(project_id)
            }
            StatusCode::NOT_FOUND => {
                let hint = Some("create the project".to_owned());
                let failed = AccountError { hint, ..call.failed(ErrorKind::NotPrepared) };
                Err(failed.with_detail(format!("there is no project `{project}`")))
            }
            _ => Err(call.refused(&answer)),
        }
    }
}
