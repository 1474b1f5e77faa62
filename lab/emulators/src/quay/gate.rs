//! Checks in front of the API: its token and the scripted faults.

use jiff::{SignedDuration, Timestamp};

use super::form::Form;
use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::settings::{ApiToken, Settings};
use crate::http_faults::{Aim, Effect, Fault};
use crate::scripted::Script;

/// The checks and what they remember.
#[derive(Debug)]
pub(crate) struct Gate {
    tokens: Vec<ApiToken>,
    started: Timestamp,
    pub(crate) faults: Script<Fault<Operation>>,
}

/// A call that may go on.
#[derive(Debug)]
pub(crate) struct Passed {
    /// The user of the token; empty where none is demanded.
    pub(crate) user: String,
    /// Something to be done to the call.
    pub(crate) effect: Option<Effect>,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(settings: &Settings, started: Timestamp) -> Self {
        let mut faults = Script::default();
        settings.faults.iter().cloned().for_each(|fault| faults.add(fault));
        Self { tokens: settings.tokens.clone(), started, faults }
    }

    /// Lets a call pass, or refuses it. One whose token is not good uses up no fault.
    pub(crate) fn check(&mut self, now: Timestamp, request: &Request, aim: &Aim<Operation>) -> Result<Passed, Refusal> {
        let form = request.operation.form();
        let mut user = String::new();
        let mut may = true;
        if form == Form::Api {
            let token = self.token(now, request)?;
            (user, may) = (token.user.clone(), token.admin);
        }
        let effect = self.faults.strike(aim);
        match effect {
            Some(effect) if !effect.commits() => Ok(Passed { user, effect: Some(effect) }),
            _ if !may => Err(Refusal::forbidden()),
            effect => Ok(Passed { user, effect }),
        }
    }

    fn token(&self, now: Timestamp, request: &Request) -> Result<&ApiToken, Refusal> {
        let shown = request.bearer().ok_or_else(Refusal::unauthenticated)?;
        let age = now.duration_since(self.started);
        let good = |token: &&ApiToken| {
            token.secret == shown && SignedDuration::try_from(token.lifetime).is_ok_and(|lifetime| age < lifetime)
        };
        self.tokens.iter().find(good).ok_or_else(Refusal::unauthenticated)
    }
}
