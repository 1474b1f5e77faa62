//! Adds a version: write it, wait until it is decided who wrote its number first, lead readers to that one.
//!
//! Azure adds without a condition, so each writer looks for others after it has written. When the second in which a version was created
//! is over, no other version can get an earlier time; from then on everybody sees the same winner of a number.
//!
//! | step | a run that ends after it leaves | the next run |
//! |---|---|---|
//! | put the version, with number and record | a version that readers get: it is the winner if it was the first of its number | has nothing to do, or adds the next one |
//! | wait for the end of that second, and for the version in the list | the same | the same |
//! | the winner, if readers get another version: put a copy of it | the version that readers get | has nothing to do |
//! | a loser, if readers get its version: put a copy of the winner of the highest number, then disable its own | the version that readers get | has nothing to do |
//!
//! Until a loser has led readers back they get its version. Then the highest number counts as disabled. A caller that decides to pass
//! over it does so without its record. If readers get another version meanwhile, the addition on top fails: it must be decided anew.

use secrecy::{ExposeSecret as _, SecretSlice};

use super::AzureStore;
use super::client::{Call, Waits, kind};
use super::tags::{self, Tags};
use super::view::{Entry, View};
use super::wire::{Change, Found, Got, New, Written};
use crate::contract::NewVersion;
use crate::error::{ErrorKind, Operation};
use crate::{Permission, SecretId, StoreError, VersionNumber};

/// The content of the placeholder; this crate does not read it.
const PLACEHOLDER: &[u8] = b"placeholder of a secret without versions";

impl AzureStore {
    /// Writes the placeholder of a secret; of several at the same moment the first has created it.
    pub(super) async fn created(&self, call: &Call<'_>, secret: &SecretId, tags: Tags) -> Result<(), StoreError> {
        let content = SecretSlice::from(PLACEHOLDER.to_vec());
        let placeholder = New { content: &content, is_enabled: false, tags };
        let written = self.put(call, kind(Operation::Create, Permission::Create), secret, placeholder).await?;
        let view = self.decided(call, secret, &written).await?;
        let is_winner = view.winner(0).is_some_and(|winner| winner.id == written.id);
        if is_winner {
            return Ok(());
        }
        self.lead_readers(call, secret, view, Role::Loser(&written.id)).await?;
        Err(call.failed(ErrorKind::AlreadyExists))
    }

    pub(super) async fn added(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
    ) -> Result<VersionNumber, StoreError> {
        let number = new.number.get();
        let seen = self.view(call, Operation::ListVersions, secret).await?;
        let seen = seen.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        if !self.passed_over.still_holds(secret, seen.top().map(|top| top.id.as_str())) {
            return Err(call.failed(ErrorKind::Changed));
        }
        let highest = seen.highest().unwrap_or(0);
        if number <= highest {
            return self.added_before(call, secret, new).await;
        }
        if number > highest + 1 {
            return Err(call.failed(ErrorKind::Changed));
        }
        let carrier = seen.carrier().map(|carrier| carrier.tags.clone()).unwrap_or_default();
        let tags = tags::of_version(number, new.record, &carrier);
        let tags = tags.map_err(|detail| call.failed(ErrorKind::Invalid).with_detail(detail))?;
        let written = New { content: new.content, is_enabled: true, tags };
        let written = self.put(call, kind(Operation::AddVersion, Permission::AddVersion), secret, written).await?;
        let view = self.decided(call, secret, &written).await?;
        let winner = view.winner(number).cloned().ok_or_else(|| call.unreadable())?;
        if winner.id == written.id {
            self.lead_readers(call, secret, view, Role::Winner(number)).await?;
            return Ok(new.number);
        }
        self.give_way(call, secret, view, &written).await?;
        let is_same = self.is_same(call, secret, &winner, new).await?;
        if is_same { Ok(new.number) } else { Err(call.failed(ErrorKind::Changed)) }
    }

    /// Returns the result of adding a number that is taken: it is a success for the same version, which readers are led to if its
    /// writer has not done it.
    async fn added_before(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
    ) -> Result<VersionNumber, StoreError> {
        let changed = || call.failed(ErrorKind::Changed);
        let number = new.number.get();
        let view = self.decided_number(call, secret, number).await?.ok_or_else(changed)?;
        let winner = view.winner(number).ok_or_else(changed)?;
        if !self.is_same(call, secret, winner, new).await? {
            return Err(changed());
        }
        self.lead_readers(call, secret, view, Role::Winner(number)).await?;
        Ok(new.number)
    }

    /// Returns the versions once it is decided who wrote a number; `None` if there is no secret.
    pub(super) async fn decided_number(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        number: u64,
    ) -> Result<Option<View>, StoreError> {
        let mut waits = Waits::default();
        loop {
            let view = self.view(call, Operation::ListVersions, secret).await?;
            let is_open = |view: &View| view.winner(number).is_some_and(|winner| !view.is_decided(winner.created));
            match view {
                Some(view) if is_open(&view) => {}
                view => return Ok(view),
            }
            call.wait(&mut waits, "it is not decided yet which version has the number").await?;
        }
    }

    /// Returns the versions once a version that was written is among them, and no other one can get an earlier time.
    async fn decided(&self, call: &Call<'_>, secret: &SecretId, written: &Written) -> Result<View, StoreError> {
        let mut waits = Waits::default();
        loop {
            let view = self.view(call, Operation::ListVersions, secret).await?;
            let is_decided = |view: &View| view.is_decided(written.created) && view.entry(&written.id).is_some();
            if let Some(view) = view.filter(is_decided) {
                return Ok(view);
            }
            call.wait(&mut waits, "the version does not show yet").await?;
        }
    }

    /// Takes a version of this writer back, which is not the winner of its number.
    async fn give_way(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        view: View,
        written: &Written,
    ) -> Result<(), StoreError> {
        self.lead_readers(call, secret, view, Role::Loser(&written.id)).await?;
        let disabled = Change { is_enabled: Some(false), tags: None };
        self.patch(call, kind(Operation::Update, Permission::Update), secret, &written.id, disabled).await
    }

    /// Leads readers to the winner of the highest number by a copy of it, as long as this writer is the one who has to. What it writes
    /// may itself come too late, and cover a newer number.
    async fn lead_readers(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        mut view: View,
        role: Role<'_>,
    ) -> Result<(), StoreError> {
        let mut copies = Vec::new();
        while role.has_to_lead(&view, &copies) {
            let (Some(leader), Some(carrier)) = (view.leader(), view.carrier()) else { return Ok(()) };
            // Its administrator has disabled it: readers get nothing until there is a new number.
            let Got::Found(Found { content, .. }) = self.get(call, secret, Some(&leader.id)).await? else {
                return Ok(());
            };
            let copy = New { content: &content, is_enabled: true, tags: tags::of_copy(&leader.id, &carrier.tags) };
            let copy = self.put(call, kind(Operation::AddVersion, Permission::AddVersion), secret, copy).await?;
            view = self.decided(call, secret, &copy).await?;
            copies.push(copy.id);
        }
        Ok(())
    }

    /// Returns true if this version is what `new` would add.
    async fn is_same(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        winner: &Entry,
        new: &NewVersion<'_>,
    ) -> Result<bool, StoreError> {
        let Got::Found(Found { content, tags, .. }) = self.get(call, secret, Some(&winner.id)).await? else {
            return Ok(false);
        };
        Ok(tags::record(&tags) == *new.record && content.expose_secret() == new.content.expose_secret())
    }
}

/// A writer's part in what readers get.
#[derive(Clone, Copy)]
enum Role<'a> {
    /// It has the winner of a number: it leads readers there while the number is the highest.
    Winner(u64),
    /// It has a version that lost: it leads readers away from that.
    Loser(&'a str),
}

// === impl Role ===

impl Role<'_> {
    fn has_to_lead(self, view: &View, copies: &[String]) -> bool {
        let is_mine = |id: &String| copies.contains(id) || matches!(self, Self::Loser(mine) if mine == id);
        let is_covered_by_mine = view.top().is_some_and(|top| is_mine(&top.id));
        let is_my_number = matches!(self, Self::Winner(number) if view.highest() == Some(number));
        let can_be_led =
            view.highest().is_some_and(|number| number > 0) && view.leader().is_some_and(|leader| leader.is_enabled);
        can_be_led && !view.is_led() && (is_my_number || is_covered_by_mine)
    }
}
