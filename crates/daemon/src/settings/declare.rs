//! Declares structures of settings and choices together with their rows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::row::{Kind, Row};

/// A type that a setting can have.
pub trait Setting {
    /// The kind of value that it accepts.
    const KIND: Kind;
}

/// A structure of settings.
pub trait Section {
    /// Its settings, in the order of its fields.
    const ROWS: &'static [Row];
}

/// Declares a structure of settings: each field with its documentation, which is its help, its type and its row. A field
/// without a row is a section; one that only the file can give has a row with nothing but its key.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $help:literal])+
                $(#[serde($($serde:tt)*)])?
                $(#[schemars($($schemars:tt)*)])?
                pub $field:ident : $type:ty $(= $row:expr)?
            ),* $(,)?
        }
    ) => {
        #[derive(Clone, Debug, ::serde::Deserialize)]
        $(#[$meta])*
        #[serde(deny_unknown_fields)]
        $visibility struct $name {
            $(
                $(#[doc = $help])+
                $(#[serde($($serde)*)])?
                $(#[schemars($($schemars)*)])?
                pub $field: $type,
            )*
        }

        impl $crate::settings::Section for $name {
            const ROWS: &'static [$crate::settings::Row] = &[
                $($crate::settings_row!($($row)?)
                    .of(<$type as $crate::settings::Setting>::KIND)
                    .help(concat!($($help),+)),)*
            ];
        }

        impl $crate::settings::Setting for $name {
            const KIND: $crate::settings::Kind =
                $crate::settings::Kind::Section(<Self as $crate::settings::Section>::ROWS);
        }
    };
}

/// Row of a field; for [`settings!`](crate::settings!).
#[doc(hidden)]
#[macro_export]
macro_rules! settings_row {
    () => {
        $crate::settings::Row::section()
    };
    ($row:expr) => {
        $row
    };
}

/// Declares an enumeration of the texts that a setting accepts, each with its other spellings.
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $(
                $(#[doc = $help:literal])+
                $variant:ident = $text:literal $(| $other:literal)*
            ),+ $(,)?
        }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ::serde::Deserialize)]
        $(#[$meta])*
        $visibility enum $name {
            $($(#[doc = $help])+ #[serde(rename = $text $(, alias = $other)*)] $variant,)+
        }

        impl $crate::settings::Setting for $name {
            const KIND: $crate::settings::Kind = $crate::settings::Kind::Choice(&[$(&[$text $(, $other)*]),+]);
        }
    };
}

/// States that only the file can give values of these types.
#[macro_export]
macro_rules! file_only {
    ($($type:ty),+ $(,)?) => {
        $(impl $crate::settings::Setting for $type {
            const KIND: $crate::settings::Kind = $crate::settings::Kind::FileOnly;
        })+
    };
}

macro_rules! kinds {
    ($($type:ty => $kind:expr;)+) => {
        $(impl Setting for $type {
            const KIND: Kind = $kind;
        })+
    };
}

kinds! {
    String => Kind::Text;
    PathBuf => Kind::Path;
    bool => Kind::Switch;
    Duration => Kind::Duration;
    u16 => Kind::Number(u16::MAX as u64);
    u32 => Kind::Number(u32::MAX as u64);
    u64 => Kind::Number(u64::MAX);
    usize => Kind::Number(usize::MAX as u64);
}

#[cfg(feature = "settings")]
kinds! {
    secrecy::SecretString => Kind::Secret;
    serde_json::Map<String, serde_json::Value> => Kind::FileOnly;
}

impl<T: Setting> Setting for Option<T> {
    const KIND: Kind = T::KIND;
}

impl<T> Setting for Vec<T> {
    const KIND: Kind = Kind::FileOnly;
}

impl<K, V> Setting for BTreeMap<K, V> {
    const KIND: Kind = Kind::FileOnly;
}
