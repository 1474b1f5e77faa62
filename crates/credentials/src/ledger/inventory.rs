//! Lists and counts of credentials, for people and metrics.

use database::Parameters;
use jiff::Timestamp;

use super::handle::{Ledger, LedgerError};
use super::rows::{self, COLUMNS};
use crate::credential::{Credential, RegistryName};
use crate::reason::Reason;
use crate::state::State;

/// The credentials of a list; an empty filter selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of this registry.
    pub registry: Option<RegistryName>,
    /// Those in this state.
    pub state: Option<State>,
    /// Those of this cluster's id, in all its incarnations.
    pub cluster: Option<String>,
}

/// The number of credentials of a registry that are in a state for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The registry.
    pub registry: RegistryName,
    /// The state.
    pub state: State,
    /// The reason.
    pub reason: Reason,
    /// The number.
    pub number: u64,
}

// === impl Ledger ===

impl Ledger {
    /// Reads the credentials that a filter selects, oldest first.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Credential>, LedgerError> {
        let mut parameters = Parameters::default();
        let conditions = [
            ("registry", filter.registry.as_ref().map(rows::text)),
            ("state", filter.state.map(rows::text)),
            ("cluster_id", filter.cluster.as_ref().map(rows::text)),
        ];
        let conditions = conditions.into_iter().filter_map(|(column, value)| Some((column, value?)));
        let conditions: Vec<String> =
            conditions.map(|(column, value)| format!("{column} = {}", parameters.add(value))).collect();
        let condition =
            if conditions.is_empty() { String::new() } else { format!("WHERE {} ", conditions.join(" AND ")) };
        let sql = format!("SELECT {COLUMNS} FROM credentials {condition}ORDER BY id");
        let rows = self.database().fetch(sql, parameters).await?;
        Ok(rows.iter().map(|row| rows::credential(row).map(|row| row.credential)).collect::<Result<_, _>>()?)
    }

    /// Returns the oldest publication among the credentials of a registry that are not adopted.
    pub async fn oldest_unadopted(&self, registry: &RegistryName) -> Result<Option<Timestamp>, LedgerError> {
        let mut parameters = Parameters::default();
        let registry = parameters.add(rows::text(registry));
        // The state is no parameter, so that the index of these rows alone serves.
        let sql = format!(
            "SELECT published FROM credentials WHERE registry = {registry} AND state = '{}' AND published IS NOT NULL \
             ORDER BY published LIMIT 1",
            State::Published
        );
        let rows = self.database().fetch(sql, parameters).await?;
        Ok(rows.first().map(|row| rows::time(row.number(0)?)).transpose()?)
    }

    /// Counts the credentials by registry, state and reason.
    pub async fn counts(&self) -> Result<Vec<Count>, LedgerError> {
        let sql = "SELECT registry, state, reason, COUNT(*) FROM credentials GROUP BY registry, state, reason";
        let mut counts = Vec::new();
        for row in self.database().fetch(sql.to_owned(), Parameters::default()).await? {
            counts.push(Count {
                registry: row.text(0)?.parse().map_err(|_invalid| rows::damaged("credentials.registry"))?,
                state: State::parse(&row.text(1)?).ok_or(rows::damaged("credentials.state"))?,
                reason: Reason::parse(&row.text(2)?).ok_or(rows::damaged("credentials.reason"))?,
                number: u64::try_from(row.number(3)?).unwrap_or_default(),
            });
        }
        Ok(counts)
    }
}
