//! Credential documents damaged at random: parsing, merging and looking up never panic, and lose no registry.
//!
//! The corpus is `tests/corpus`; the variable `FUZZ_INPUTS` is the number of inputs of a long run. That nothing
//! secret is shown is in `laws`: damage may turn a value into a name, which is shown.

use damage::{Random, inputs};

use crate::lookup::Image;
use crate::merge::{ConflictPolicy, InvalidEntries, Policy, Source, admit, merge};
use crate::{Document, Limits};

/// Inputs of an ordinary run.
const INPUTS: u64 = 3_000;

/// The documents that are damaged: each form of entry, key and fault.
const CORPUS: &[&str] = &[
    include_str!("../../../tests/corpus/entries.json"),
    include_str!("../../../tests/corpus/keys.json"),
    include_str!("../../../tests/corpus/members.json"),
    include_str!("../../../tests/corpus/faults.json"),
];

/// Words that mean something here.
const WORDS: &[&[u8]] =
    &[b"auths", b"AUTHS", b"auth", b"Auth", b"://", b"/v1/", b"@", b"index.docker.io", b"[::1]:5000"];

/// Everything that is done with a document, and all that is shown of it.
fn use_it(bytes: &[u8], original: &Document) -> String {
    let mut shown = super::laws::everything_shown(bytes);
    for invalid in [InvalidEntries::RejectAll, InvalidEntries::Skip] {
        let Ok(admitted) = admit(bytes, &Limits::default(), invalid) else { continue };
        for conflict in [ConflictPolicy::AdditionalWins, ConflictPolicy::OriginalWins] {
            let policy = Policy { conflict, protected: Vec::new(), max_bytes: 1_048_576 };
            let sources = [Source { name: "additional", document: &admitted.document }];
            let merged = merge(original, &sources, &policy).unwrap();
            for decision in &merged.decisions {
                shown += &decision.to_string();
            }
            let image = Image::parse("quay.io/team/app").unwrap();
            assert!(!image.kubelet_keys(merged.document.keys()).is_empty(), "the original's registry is lost");
            // A URL whose normal form is read as another key stays, and an original's URL is its host too.
            if merged.document.keys().all(|key| !key.contains("://")) {
                let again = merge(&merged.document, &sources, &policy).unwrap();
                assert_eq!(again.document.digest(), merged.document.digest(), "{}", String::from_utf8_lossy(bytes));
            }
        }
        assert_eq!(admitted.document.normalized().normalized().digest(), admitted.document.normalized().digest());
    }
    shown
}

#[test]
fn damaged_documents_are_survived() {
    let original =
        Document::parse(br#"{"auths": {"quay.io": {"auth": "b3JpZ2luYWw6cHc="}}}"#, &Limits::default()).unwrap();
    for seed in 0..inputs(INPUTS) {
        let mut random = Random::new(seed);
        let document = random.pick(CORPUS);
        let shown = use_it(&random.damaged(document.as_bytes(), WORDS), &original);
        let is_forged = |character: char| character.is_control() && character != '\n';
        assert!(!shown.contains(is_forged), "seed {seed}: {shown}");
    }
}
