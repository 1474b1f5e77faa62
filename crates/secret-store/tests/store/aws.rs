//! AWS Secrets Manager: a stand-in that others have written for what it gets right, and one that answers as a test wants.

pub(crate) mod moto;
