//! Failures of identities at AWS. None of their messages is repeated: they may quote files, and answers of token services.

use std::io;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::assume_role::AssumeRoleError;
use aws_sdk_sts::operation::assume_role_with_web_identity::AssumeRoleWithWebIdentityError;
use daemon::causes::cause;

use crate::identity::unproved::Unproved;

/// Names of refusals that end by themselves.
const FOR_NOW: [&str; 5] =
    ["IDPCommunicationError", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"];

/// Returns the failure to assume a role, or to have the identity that does it.
pub(super) fn of_role(arn: &str, error: &SdkError<AssumeRoleError>) -> Unproved {
    match cause::<CredentialsError>(error) {
        Some(identity) => of_identity(identity),
        None if is_outage(error) => Unproved::for_now("the token service of AWS does not answer for now"),
        None => format!("the identity of the environment cannot assume the role {arn}").into(),
    }
}

/// Returns the failure of the environment's identity.
pub(super) fn of_identity(error: &CredentialsError) -> Unproved {
    let is_for_now = match cause::<SdkError<AssumeRoleWithWebIdentityError>>(error) {
        Some(refused) => is_outage(refused),
        None => cause::<io::Error>(error).is_some(),
    };
    let detail = match error {
        CredentialsError::CredentialsNotLoaded(_) => "the environment has no credentials of AWS",
        CredentialsError::InvalidConfiguration(_) => {
            "the environment's credentials of AWS are not complete, or a file of theirs cannot be read"
        }
        CredentialsError::ProviderTimedOut(_) => return Unproved::for_now("no credentials of AWS in time"),
        _ if is_for_now => return Unproved::for_now("the service of AWS for credentials does not answer for now"),
        _ => "the service of AWS for credentials did not give any",
    };
    detail.to_owned().into()
}

/// True if the token service did not answer, or not in its form, or refused for now.
fn is_outage<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    match error {
        SdkError::ConstructionFailure(_) => false,
        SdkError::ServiceError(refused) => {
            let status = refused.raw().status().as_u16();
            let is_refusal = (400..500).contains(&status) && status != 429;
            !is_refusal || refused.err().code().is_some_and(|code| FOR_NOW.contains(&code))
        }
        _ => true,
    }
}
