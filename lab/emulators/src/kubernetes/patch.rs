//! The patches besides server-side apply: JSON merge patch, JSON patch, strategic merge patch.

mod json;
mod merge;
mod strategic;

pub(crate) use json::json_patch;
pub(crate) use merge::merge_patch;
pub(crate) use strategic::strategic_patch;
