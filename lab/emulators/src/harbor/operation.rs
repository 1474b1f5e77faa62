//! The operations of Harbor that there are, and their names.

use crate::http_faults::Operated;

/// An operation of Harbor's API, of its token service, or of its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Makes a robot.
    CreateRobot,
    /// Lists robots.
    ListRobots,
    /// Reads a robot.
    GetRobot,
    /// Changes a robot.
    UpdateRobot,
    /// Gives a robot another password.
    RefreshRobot,
    /// Deletes a robot.
    DeleteRobot,
    /// Reads a project.
    GetProject,
    /// Pages through a project's audit log.
    ListLogs,
    /// Issues a token for the registry.
    IssueToken,
    /// Logs in at the registry, or tells where tokens are issued.
    Challenge,
    /// Lists a repository's tags.
    ListTags,
    /// Reads a manifest: a pull.
    GetManifest,
}

// === impl Operation ===

impl Operation {
    /// All operations.
    pub const ALL: [Self; 12] = [
        Self::CreateRobot,
        Self::ListRobots,
        Self::GetRobot,
        Self::UpdateRobot,
        Self::RefreshRobot,
        Self::DeleteRobot,
        Self::GetProject,
        Self::ListLogs,
        Self::IssueToken,
        Self::Challenge,
        Self::ListTags,
        Self::GetManifest,
    ];

    /// The name that faults and [`super::Harbor::counts`] use. Those of the API's are those of its own description.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateRobot => "CreateRobot",
            Self::ListRobots => "ListRobot",
            Self::GetRobot => "GetRobotByID",
            Self::UpdateRobot => "UpdateRobot",
            Self::RefreshRobot => "RefreshSec",
            Self::DeleteRobot => "DeleteRobot",
            Self::GetProject => "getProject",
            Self::ListLogs => "getLogExts",
            Self::IssueToken => "issueToken",
            Self::Challenge => "challenge",
            Self::ListTags => "listTags",
            Self::GetManifest => "getManifest",
        }
    }

    /// True for operations of the API, which demand its identity.
    pub(super) fn is_of_api(self) -> bool {
        !matches!(self, Self::IssueToken | Self::Challenge | Self::ListTags | Self::GetManifest)
    }
}

impl Operated for Operation {
    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }
}
