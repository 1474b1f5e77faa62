//! stub
/// x
#[derive(Debug)]
pub struct Mapper;
/// x
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct MappingError;
impl Mapper {
    /// x
    pub fn compile(_: &[crate::entity::ConditionMapping]) -> Result<Self, String> {
        Ok(Self)
    }
}
