//! The search language (TSL): which resources a list holds, in which order, with which fields.

use crate::resource::Resource;
use crate::store::sql::{Dialect, Parameters};
/// x
#[derive(Clone, Debug, Default)]
pub struct Search;
/// x
#[derive(Clone, Debug, Default)]
pub struct Order;
impl Search {
    pub fn sql(&self, _: Dialect, _: &mut Parameters) -> String {
        "1=1".into()
    }
    pub fn matches(&self, _: &Resource) -> bool {
        true
    }
}
impl Order {
    pub fn sql(&self) -> String {
        "r.created_time desc, r.id desc".into()
    }
}
