//! The journal without the feature `memory-journal`: a type without values.

use crate::error::BrokerError;
use crate::memory::queues::Item;
use crate::name::Subscription;

#[derive(Debug)]
pub(super) enum Journal {}

#[expect(clippy::unused_async, reason = "it has the interface of the journal")]
impl Journal {
    pub(super) async fn subscribe(&self, _subscription: &Subscription) -> Result<(), BrokerError> {
        match *self {}
    }

    pub(super) async fn add(&self, _copies: &[(Subscription, Item)]) -> Result<(), BrokerError> {
        match *self {}
    }

    pub(super) async fn count(&self, _item: &Item) -> Result<(), BrokerError> {
        match *self {}
    }

    pub(super) async fn remove(&self, _item: &Item) -> Result<(), BrokerError> {
        match *self {}
    }
}
