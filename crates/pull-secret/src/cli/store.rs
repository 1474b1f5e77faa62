//! The flags that choose the secret store whose secrets a command reads.

use clap::Args;

/// The secret store, and the place of the secrets in it.
#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// Secret store: google, or vault, aws and azure with the Job's variables (`VAULT_…`, `AWS_…`, `AZURE_…`) [env: `SECRET_STORE`] [default: google]
    #[arg(long, value_name = "STORE", verbatim_doc_comment)]
    pub(crate) secret_store: Option<String>,
    /// Google Cloud project of the secrets; required there without one in the context
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Option<String>,
    /// Location of regional secrets at Google; without it, the project's global ones
    #[arg(long, value_name = "LOCATION")]
    pub(crate) location: Option<String>,
}
