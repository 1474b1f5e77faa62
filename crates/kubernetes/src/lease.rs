//! Leases: one of several replicas at a time, told by the API server.
//!
//! A lease keeps two holders apart only as well as their clocks run at the same speed; what is done under one must bear
//! being done twice.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;

use crate::cluster::{Cluster, Verb};
use crate::error::{Fault, KubernetesError};

/// Which lease, for whom, and for how long without a renewal.
#[derive(Clone, Debug)]
pub struct LeaseClaim {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// Who claims it.
    pub holder: String,
    /// How long it holds after a renewal; whole seconds.
    pub duration: Duration,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The claimant holds the lease until then, unless it renews it.
    Ours(Timestamp),
    /// Another holds it; it may be claimed again then.
    Theirs {
        /// Who.
        holder: String,
        /// Until when, by this process's clock.
        until: Timestamp,
    },
}

/// What to write for a claim, and how that will stand.
struct Decision {
    write: Option<LeaseSpec>,
    hold: Hold,
}

impl Cluster {
    /// Takes or renews the lease if it is free, over, or held by the claimant already.
    pub async fn claim_lease(&self, claim: &LeaseClaim, now: Timestamp) -> Result<Hold, KubernetesError> {
        let api: Api<Lease> = Api::namespaced(self.client(), &claim.namespace);
        let object = format!("lease {}/{}", claim.namespace, claim.name);
        let found = self.call(Verb::Get, &object, api.get_opt(&claim.name)).await?;
        let decision = decide(claim, found.as_ref().and_then(|lease| lease.spec.as_ref()), now);
        let Some(spec) = decision.write else { return Ok(decision.hold) };
        let parameters = self.creation();
        let written = match found {
            None => {
                let metadata = ObjectMeta { name: Some(claim.name.clone()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(spec) };
                self.call(Verb::Create, &object, api.create(&parameters, &lease)).await
            }
            Some(mut lease) => {
                lease.spec = Some(spec);
                self.call(Verb::Apply, &object, api.replace(&claim.name, &parameters, &lease)).await
            }
        };
        match written {
            Ok(_) => Ok(decision.hold),
            // Another was quicker: whoever it is shows at the next claim.
            Err(error) if matches!(error.fault, Fault::Changed | Fault::AlreadyExists) => {
                Ok(Hold::Theirs { holder: "another".to_owned(), until: now })
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the lease back, so that another need not wait for its end. Not holding it is a success.
    pub async fn release_lease(&self, claim: &LeaseClaim) -> Result<(), KubernetesError> {
        let api: Api<Lease> = Api::namespaced(self.client(), &claim.namespace);
        let object = format!("lease {}/{}", claim.namespace, claim.name);
        let Some(mut lease) = self.call(Verb::Get, &object, api.get_opt(&claim.name)).await? else { return Ok(()) };
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        if holder != Some(claim.holder.as_str()) {
            return Ok(());
        }
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
        }
        let parameters = self.creation();
        match self.call(Verb::Apply, &object, api.replace(&claim.name, &parameters, &lease)).await {
            Err(error) if !matches!(error.fault, Fault::Changed | Fault::NotFound) => Err(error),
            _ => Ok(()),
        }
    }
}

fn decide(claim: &LeaseClaim, current: Option<&LeaseSpec>, now: Timestamp) -> Decision {
    let holder = current.and_then(|spec| spec.holder_identity.clone()).filter(|holder| !holder.is_empty());
    let renewed = current.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    let seconds = current.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    let over = renewed.map(|renewed| later(renewed, Duration::from_secs(seconds.unsigned_abs().into())));
    if let (Some(holder), Some(until)) = (&holder, over)
        && *holder != claim.holder
        && now < until
    {
        return Decision { write: None, hold: Hold::Theirs { holder: holder.clone(), until } };
    }
    let is_ours = holder.as_deref() == Some(claim.holder.as_str());
    let transitions = current.and_then(|spec| spec.lease_transitions).unwrap_or_default();
    let acquired = current.and_then(|spec| spec.acquire_time.clone()).filter(|_| is_ours);
    let spec = LeaseSpec {
        holder_identity: Some(claim.holder.clone()),
        lease_duration_seconds: Some(i32::try_from(claim.duration.as_secs()).unwrap_or(i32::MAX)),
        renew_time: Some(MicroTime(now)),
        acquire_time: acquired.or(Some(MicroTime(now))),
        lease_transitions: Some(if is_ours || current.is_none() { transitions } else { transitions.saturating_add(1) }),
        ..LeaseSpec::default()
    };
    Decision { write: Some(spec), hold: Hold::Ours(later(now, claim.duration)) }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(holder: &str) -> LeaseClaim {
        LeaseClaim {
            namespace: "n".to_owned(),
            name: "l".to_owned(),
            holder: holder.to_owned(),
            duration: Duration::from_secs(15),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_lease_passes_from_hand_to_hand() {
        let first = decide(&claim("a"), None, at(100));
        assert_eq!(first.hold, Hold::Ours(at(115)));
        let held = first.write.unwrap();
        let refused = decide(&claim("b"), Some(&held), at(114));
        assert_eq!(refused.hold, Hold::Theirs { holder: "a".to_owned(), until: at(115) });
        assert!(refused.write.is_none());
        let renewed = decide(&claim("a"), Some(&held), at(110)).write.unwrap();
        assert_eq!((renewed.acquire_time.clone().unwrap().0, renewed.lease_transitions), (at(100), Some(0)));
        let taken = decide(&claim("b"), Some(&renewed), at(125));
        assert_eq!(taken.hold, Hold::Ours(at(140)));
        let taken = taken.write.unwrap();
        assert_eq!((taken.acquire_time.clone().unwrap().0, taken.lease_transitions), (at(125), Some(1)));
        let released = LeaseSpec { holder_identity: None, ..taken };
        assert_eq!(decide(&claim("a"), Some(&released), at(126)).hold, Hold::Ours(at(141)));
    }
}
