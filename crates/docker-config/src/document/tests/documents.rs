//! Documents made up for tests, in as many spellings as JSON and the readers allow.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use damage::Random;
use proptest::prelude::*;

/// The meaning of a document, apart from its spelling.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) entries: Vec<ModelEntry>,
    pub(crate) extra: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelEntry {
    pub(crate) host: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) only_kubelet: bool,
    pub(crate) email: Option<String>,
    pub(crate) token: Option<String>,
}

enum Node {
    Text(String),
    Object(Vec<(String, Self)>),
}

impl Model {
    /// One of the many ways to write it down.
    pub(crate) fn write(&self, random: &mut Random) -> String {
        let entries = self.entries.iter().map(|entry| (entry.key(random), entry.node(random)));
        let mut members = vec![("auths".to_owned(), Node::Object(entries.collect()))];
        members.extend(self.extra.clone().map(|extra| ("extra".to_owned(), Node::Text(extra))));
        let mut text = blanks(random).to_owned();
        Node::Object(members).write(random, &mut text);
        text + blanks(random)
    }

    /// Every text that must never be shown.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = self.extra.iter().cloned().collect();
        for entry in &self.entries {
            secrets.extend([entry.user.clone(), entry.password.clone(), entry.unpadded()]);
            secrets.extend(entry.email.iter().chain(&entry.token).cloned());
        }
        secrets
    }
}

impl ModelEntry {
    fn pair(&self) -> String {
        format!("{}:{}", self.user, self.password)
    }

    fn unpadded(&self) -> String {
        STANDARD_NO_PAD.encode(self.pair())
    }

    /// An `auth` for the readers that it is for, if there is one.
    fn auth(&self) -> Option<String> {
        if self.only_kubelet {
            Some(self.unpadded()).filter(|auth| !auth.len().is_multiple_of(4))
        } else {
            Some(STANDARD.encode(self.pair()))
        }
    }

    /// One of the spellings that both readers take alike.
    fn key(&self, random: &mut Random) -> String {
        let host = &self.host;
        random
            .pick(&[
                host.clone(),
                format!("https://{host}"),
                format!("http://{host}/"),
                format!("http://{host}/v2/"),
                format!("https://{host}/v1/"),
            ])
            .clone()
    }

    fn node(&self, random: &mut Random) -> Node {
        let mut members = Vec::new();
        let auth = self.auth().filter(|_| !self.only_kubelet || random.roll(2) == 0);
        if auth.is_none() || random.roll(2) == 0 {
            members.push(("username", self.user.clone()));
            members.push(("password", self.password.clone()));
        }
        members.extend(auth.map(|auth| ("auth", auth)));
        members.extend(self.email.clone().map(|email| ("email", email)));
        members.extend(self.token.clone().map(|token| ("identitytoken", token)));
        let members = members.into_iter().map(|(name, text)| (name.to_owned(), Node::Text(text)));
        Node::Object(members.collect())
    }
}

impl Node {
    fn write(self, random: &mut Random, text: &mut String) {
        match self {
            Self::Text(value) => quote(&value, random, text),
            Self::Object(mut members) => {
                text.push('{');
                let mut first = true;
                while !members.is_empty() {
                    let (name, value) = members.swap_remove(random.roll(members.len()));
                    text.push_str(if first { "" } else { "," });
                    first = false;
                    text.push_str(blanks(random));
                    quote(&name, random, text);
                    text.push_str(blanks(random));
                    text.push(':');
                    text.push_str(blanks(random));
                    value.write(random, text);
                    text.push_str(blanks(random));
                }
                text.push('}');
            }
        }
    }
}

pub(crate) fn model() -> impl Strategy<Value = Model> {
    let extra = proptest::option::of("EXTRA[A-Z0-9]{8}");
    (proptest::collection::vec(model_entry(), 1..5), extra).prop_map(|(mut entries, extra)| {
        for (number, entry) in entries.iter_mut().enumerate() {
            entry.host = format!("{}{number}.example", entry.host);
        }
        Model { entries, extra }
    })
}

fn model_entry() -> impl Strategy<Value = ModelEntry> {
    let email = proptest::option::of("MAIL[a-z]{4}@mail\\.test");
    let token = proptest::option::of("TOKEN[A-Z0-9]{8}");
    ("[a-z][a-z0-9]{0,8}", "USER[A-Z0-9]{4,12}", "PASS\\PC{4,20}", any::<bool>(), email, token).prop_map(
        |(host, user, password, only_kubelet, email, token)| ModelEntry {
            host,
            user,
            password,
            only_kubelet,
            email,
            token,
        },
    )
}

fn blanks(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["", "", "", " ", "\n", "\t", "\r\n", " \n  "])
}

fn quote(value: &str, random: &mut Random, text: &mut String) {
    text.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') || random.roll(8) == 0 {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").unwrap();
            }
        } else {
            text.push(character);
        }
    }
    text.push('"');
}
