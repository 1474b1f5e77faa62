//! The surroundings of the store: callers, recorded calls, scripted faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use super::faults::{Aim, Effect, Fault};
use super::meta;
use super::rbac::{Attributes, allows};
use super::settings::{Authorization, Call, Settings};
use super::status::Status;
use super::store::Store;
use super::tokens::{MASTERS, User};
use crate::scripted::Script;
use crate::start_error::StartError;

/// The server, shared by all connections.
pub(crate) struct Engine {
    pub(crate) store: Arc<Store>,
    inner: Mutex<Inner>,
    received: watch::Sender<usize>,
    authorization: Authorization,
    tokens: BTreeMap<String, User>,
}

#[derive(Default)]
struct Inner {
    faults: Script<Fault>,
    calls: Vec<Call>,
}

impl Engine {
    pub(crate) fn open(settings: &Settings, clock: fn() -> Timestamp) -> Result<Self, StartError> {
        let mut tokens = settings.tokens.clone();
        let has_master = tokens.values().any(|user| user.groups.iter().any(|group| group == MASTERS));
        if settings.authorization == Authorization::Rbac && !has_master {
            tokens.insert(format!("{:032x}", rand::random::<u128>()), User::master());
        }
        let mut inner = Inner::default();
        settings.faults.iter().cloned().for_each(|fault| inner.faults.add(fault));
        Ok(Self {
            store: Store::open(settings, clock)?,
            inner: Mutex::new(inner),
            received: watch::Sender::new(0),
            authorization: settings.authorization,
            tokens,
        })
    }

    /// The token of a user that may do everything, if authorization is on.
    pub(crate) fn master_token(&self) -> Option<&str> {
        let mut masters = self.tokens.iter().filter(|(_, user)| user.groups.iter().any(|group| group == MASTERS));
        let token = masters.next().map(|(token, _)| token.as_str());
        token.filter(|_| self.authorization == Authorization::Rbac)
    }

    /// The user of this token.
    pub(crate) fn user(&self, token: Option<&str>) -> Result<User, Status> {
        let off = self.authorization == Authorization::Off;
        let Some(token) = token else {
            return Ok(if off { User::master() } else { User::anonymous() });
        };
        if let Some(user) = User::known(&self.tokens, token) {
            return Ok(user);
        }
        let now = self.store.now();
        let account = self.store.read(|state| {
            let claims = state.tokens.read(token, now)?;
            let accounts = state.resource("serviceaccounts").ok()?;
            let account = state.find(&accounts, &claims.namespace, &claims.account)?;
            (meta::uid(account) == claims.uid).then(|| User::service_account(&claims))
        });
        match account {
            Some(user) => Ok(user),
            None if off => Ok(User::master()),
            None => Err(Status::unauthorized()),
        }
    }

    /// Refuses what the user may not do.
    pub(crate) fn authorize(&self, user: &User, attributes: &Attributes) -> Result<(), Status> {
        match self.allowed(user, attributes) {
            Some(_) => Ok(()),
            None => Err(attributes.refusal(user)),
        }
    }

    /// The rule by which a user may do something; none if not allowed.
    pub(crate) fn allowed(&self, user: &User, attributes: &Attributes) -> Option<String> {
        match self.authorization {
            Authorization::Off => Some(String::new()),
            Authorization::Rbac => self.store.read(|state| allows(state, user, attributes)),
        }
    }

    pub(crate) fn is_authorizing(&self) -> bool {
        self.authorization == Authorization::Rbac
    }

    /// Notes a call; gives its number and what happens to it.
    pub(crate) fn receive(&self, call: Call, aim: &Aim) -> (usize, Option<Effect>) {
        let mut inner = self.lock();
        inner.calls.push(call);
        let count = inner.calls.len();
        let effect = inner.faults.strike(aim);
        drop(inner);
        self.received.send_replace(count);
        (count - 1, effect)
    }

    /// Notes how a call was answered.
    pub(crate) fn answered(&self, index: usize, code: u16) {
        if let Some(call) = self.lock().calls.get_mut(index) {
            call.outcome = Some(code);
        }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub(crate) async fn wait_for_calls(&self, count: usize) {
        let mut received = self.received.subscribe();
        // The sender lives as long as this engine, so waiting cannot fail.
        drop(received.wait_for(|received| *received >= count).await);
    }

    pub(crate) fn inject(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    pub(crate) fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    pub(crate) fn forget_history(&self) {
        self.store.forget_history();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic between two statements of `Inner` leaves nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").field("store", &self.store).finish_non_exhaustive()
    }
}
