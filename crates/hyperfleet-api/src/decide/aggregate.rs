//! stub
use super::mapping::{Mapper, MappingError};
use crate::resource::{Condition, Resource};
/// x
pub fn aggregate(
    _required: &[String],
    _r: &Resource,
    _a: bool,
    _m: Option<&Mapper>,
) -> Result<Vec<Condition>, MappingError> {
    Ok(vec![])
}
