//! The issuers whose tokens a robot accepts in place of its password.
//!
//! Quay drops the audiences of an issuer without a word: each token of that issuer and subject opens the registry, for
//! whatever audience it was made. Give the puller a service account that nothing else uses.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::QuayRegistry;
use super::errors::{self, Known};
use crate::client::{Answer, Call};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::name::AccountName;
use crate::request::Request;

/// An issuer of tokens and the subject that it vouches for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Issuer {
    /// Address of the issuer; Quay fetches its keys over https only.
    pub issuer: String,
    /// The subject, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub subject: String,
}

// === impl QuayRegistry ===

impl QuayRegistry {
    /// Reads the issuers that an account accepts.
    ///
    /// # Errors
    ///
    /// `NotFound` if the account does not exist.
    pub async fn issuers(&self, name: &AccountName) -> Result<BTreeSet<Issuer>, AccountError> {
        let (call, request) = self.federation(name, Method::GET);
        let answer = call.send(&request).await?;
        parsed(&call, &answer)
    }

    /// Replaces the issuers that an account accepts.
    ///
    /// # Errors
    ///
    /// `NotFound` if the account does not exist; `Corrupt` if Quay has kept others than the given ones.
    pub async fn set_issuers(&self, name: &AccountName, issuers: &BTreeSet<Issuer>) -> Result<(), AccountError> {
        let (call, request) = self.federation(name, Method::POST);
        let answer = call.send(&request.with_body(&json!(issuers))).await?;
        if parsed(&call, &answer)? == *issuers { Ok(()) } else { Err(call.failed(ErrorKind::Corrupt)) }
    }

    /// Removes all issuers of an account; there may be none.
    ///
    /// # Errors
    ///
    /// `NotFound` if the account does not exist.
    pub async fn clear_issuers(&self, name: &AccountName) -> Result<(), AccountError> {
        let (call, request) = self.federation(name, Method::DELETE);
        let answer = call.send(&request).await?;
        match answer.status {
            StatusCode::NO_CONTENT => Ok(()),
            _ => Err(refused(&call, &answer)),
        }
    }

    fn federation(&self, name: &AccountName, method: Method) -> (Call<'_>, Request) {
        let request = Request::new("robot_federation", method, self.robot_path(name, "/federation"));
        (self.call(Operation::Federate, name), request)
    }
}

fn parsed(call: &Call<'_>, answer: &Answer) -> Result<BTreeSet<Issuer>, AccountError> {
    match answer.status {
        StatusCode::OK => answer.parse().ok_or_else(|| call.unreadable()),
        _ => Err(refused(call, answer)),
    }
}

fn refused(call: &Call<'_>, answer: &Answer) -> AccountError {
    match errors::known(answer) {
        Some(Known::NoSuchRobot) => call.failed(ErrorKind::NotFound),
        _ => call.refused(answer),
    }
}
