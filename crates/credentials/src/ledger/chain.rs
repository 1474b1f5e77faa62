//! Links of the chain of events: made by the service, verified by a person.
//!
//! A link is sealed with the first key: who can write to the database and has no key cannot make one. As a hash covers all events
//! before it, a link whose key is withdrawn is proven by a later one. Events since the newest link are not covered, and removing
//! the newest links together with their events is noticed only by a link that is kept elsewhere, such as in the log.

use database::sealed::{Bound, Unopened};
use database::{DatabaseError, Dialect, Parameters, Row, Transaction, Value};
use jiff::{SignedDuration, Timestamp};

use super::claim::micros;
use super::handle::{Ledger, LedgerError};
use super::rows;
use crate::chain::{Fault, KnownLink, Link, Verified};

/// The most events of a link.
const EVENTS_OF_LINK: usize = 5_000;
/// Time after which a link is made although there are no new events, so that a chain without its newest links looks old.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(24);
/// Links that are read at once.
const LINKS_OF_PAGE: usize = 500;

/// A link as its row has it.
struct Stored {
    link: Link,
    /// Nothing, sealed for this link.
    seal: String,
}

/// Some events as a link covers them.
struct Events {
    number: usize,
    /// The number of the last one.
    last: Option<i64>,
    text: String,
}

// === impl Ledger ===

impl Ledger {
    /// Links the events that no link covers yet, and returns the newest link if one was made.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Chain`] if the newest link is not as it was made: it is not continued.
    pub async fn link_events(&self, now: Timestamp) -> Result<Option<Link>, LedgerError> {
        let mut newest = None;
        loop {
            let Some((link, events)) = self.link_some(now).await? else { return Ok(newest) };
            newest = Some(link);
            if events < EVENTS_OF_LINK {
                return Ok(newest);
            }
        }
    }

    /// Verifies all events and links. `known` are links that are kept elsewhere.
    pub async fn verify_events(&self, known: &[KnownLink]) -> Result<Verified, LedgerError> {
        let mut read = self.database().snapshot().await?;
        let (mut verified, mut newest, mut unproven) = (Verified::default(), Link::origin(), None);
        loop {
            let page = links(&mut read, newest.number).await?;
            for stored in &page {
                let events = events(&mut read, newest.through, Some(stored.link.through)).await?;
                let proof = self.proof(stored);
                verified.fault = fault(&newest, &stored.link, &events, known).or(match proof {
                    Err(Unopened::Damaged) => Some(Fault::Changed { link: stored.link.number }),
                    Ok(()) | Err(Unopened::NoKey) => None,
                });
                if verified.fault.is_some() {
                    break;
                }
                unproven = if proof.is_ok() { None } else { unproven.or(Some(stored.link.number)) };
                newest = stored.link.clone();
                verified.links += 1;
                verified.events += u64::try_from(events.number).unwrap_or(u64::MAX);
            }
            if page.len() < LINKS_OF_PAGE || verified.fault.is_some() {
                break;
            }
        }
        let lost = known.iter().map(|known| known.number).find(|number| *number > newest.number);
        let lost = lost.map(|link| Fault::Missing { link }).or(unproven.map(|first| Fault::NoKey { first }));
        verified.fault = verified.fault.or(lost);
        verified.unlinked = count(&mut read, newest.through).await?;
        verified.newest = (newest.number > 0).then_some(newest);
        Ok(verified)
    }

    /// Makes the next link and returns it with the number of its events; `None` if none is due.
    async fn link_some(&self, now: Timestamp) -> Result<Option<(Link, usize)>, LedgerError> {
        let mut write = self.database().begin().await?;
        if write.dialect() == Dialect::Postgres {
            // No event with a lower number is still to be committed, and no other replica makes this link.
            let lock = "LOCK TABLE credential_events IN SHARE ROW EXCLUSIVE MODE".to_owned();
            write.execute(lock, Parameters::default()).await?;
        }
        let newest = newest(&mut write).await?;
        let before = newest.as_ref().map_or_else(Link::origin, |stored| stored.link.clone());
        if newest.as_ref().is_some_and(|stored| self.proof(stored) == Err(Unopened::Damaged)) {
            return Err(LedgerError::Chain(before.number));
        }
        let events = events(&mut write, before.through, None).await?;
        let is_current = newest.is_some_and(|stored| self.keyring().is_current(&stored.seal));
        if events.number == 0 && is_current && now.duration_since(before.time) < LONGEST_PAUSE {
            return Ok(None);
        }
        let link = before.next(events.last.unwrap_or(before.through), &events.text, now);
        let seal = self.keyring().seal(Bound::to(&link.binding()), Vec::new());
        insert(&mut write, &link, seal.ok_or(LedgerError::Chain(link.number))?).await?;
        write.commit().await?;
        Ok(Some((link, events.number)))
    }

    /// Checks the seal of a link.
    fn proof(&self, stored: &Stored) -> Result<(), Unopened> {
        self.keyring().open(Bound::to(&stored.link.binding()), &stored.seal).map(drop)
    }
}

/// Returns the fault of a link that follows `before`, without its seal.
fn fault(before: &Link, link: &Link, events: &Events, known: &[KnownLink]) -> Option<Fault> {
    if link.number != before.number + 1 {
        return Some(Fault::Missing { link: before.number + 1 });
    }
    if before.hash_of_next(&events.text) != link.hash {
        return Some(Fault::Events { link: link.number, first: before.through + 1, last: link.through });
    }
    let known = known.iter().find(|known| known.number == link.number)?;
    (known.hash != link.hash).then_some(Fault::Replaced { link: link.number })
}

/// Reads the events after a number, as many as a link may have: one more would be a fault of its hash.
async fn events(read: &mut Transaction, after: i64, through: Option<i64>) -> Result<Events, LedgerError> {
    let mut parameters = Parameters::default();
    let [after, through] = [after, through.unwrap_or(i64::MAX)].map(|number| parameters.add(Value::Number(number)));
    let sql = format!(
        "SELECT number, time, credential, registry, cluster_id, actor, action, outcome, reason, remark FROM credential_events \
         WHERE number > {after} AND number <= {through} ORDER BY number LIMIT {EVENTS_OF_LINK}"
    );
    let rows = read.fetch(sql, parameters).await?;
    let last = rows.last().map(|row| row.number(0)).transpose()?;
    let lines = rows.iter().map(line).collect::<Result<Vec<_>, _>>()?;
    Ok(Events { number: rows.len(), last, text: lines.concat() })
}

/// Returns an event as a line of JSON, which differs for different values.
fn line(row: &Row) -> Result<String, DatabaseError> {
    let texts = (2..10).map(|column| row.optional_text(column)).collect::<Result<Vec<_>, _>>()?;
    Ok(serde_json::json!([row.number(0)?, row.number(1)?, texts]).to_string() + "\n")
}

async fn count(read: &mut Transaction, after: i64) -> Result<u64, LedgerError> {
    let mut parameters = Parameters::default();
    let after = parameters.add(Value::Number(after));
    let sql = format!("SELECT COUNT(*) FROM credential_events WHERE number > {after}");
    let rows = read.fetch(sql, parameters).await?;
    let count = rows.first().map(|row| row.number(0)).transpose()?.unwrap_or_default();
    Ok(u64::try_from(count).unwrap_or_default())
}

/// Reads some links after a number.
async fn links(read: &mut Transaction, after: i64) -> Result<Vec<Stored>, LedgerError> {
    let mut parameters = Parameters::default();
    let after = parameters.add(Value::Number(after));
    let condition = format!("WHERE number > {after} ORDER BY number LIMIT {LINKS_OF_PAGE}");
    select(read, &condition, parameters).await
}

async fn newest(read: &mut Transaction) -> Result<Option<Stored>, LedgerError> {
    Ok(select(read, "ORDER BY number DESC LIMIT 1", Parameters::default()).await?.pop())
}

async fn select(read: &mut Transaction, condition: &str, parameters: Parameters) -> Result<Vec<Stored>, LedgerError> {
    let sql = format!("SELECT number, through, time, hash, seal FROM credential_event_links {condition}");
    let stored = |row: &Row| {
        let time = rows::time(row.number(2)?)?;
        let link = Link { number: row.number(0)?, through: row.number(1)?, time, hash: row.text(3)? };
        Ok(Stored { link, seal: row.text(4)? })
    };
    read.fetch(sql, parameters).await?.iter().map(stored).collect()
}

async fn insert(write: &mut Transaction, link: &Link, seal: String) -> Result<(), LedgerError> {
    let mut parameters = Parameters::default();
    let values = [
        Value::Number(link.number),
        Value::Number(link.through),
        micros(link.time),
        rows::text(&link.hash),
        Value::Text(seal),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "INSERT INTO credential_event_links (number, through, time, hash, seal) VALUES ({})",
        values.join(", ")
    );
    write.execute(sql, parameters).await?;
    Ok(())
}
