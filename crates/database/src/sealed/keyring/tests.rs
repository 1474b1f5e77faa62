//! Tests of encryption, its bindings, and its keys.

use rstest::rstest;

use super::*;

const PLACE: Bound<'_> = Bound::to("place");

fn key(id: &str, byte: u8) -> KeyBytes {
    KeyBytes { id: id.to_owned(), bytes: vec![byte; 32].into() }
}

fn keyring(ids: &[(&str, u8)]) -> Keyring {
    let keys = ids.iter().map(|(id, byte)| key(id, *byte));
    Keyring::new(keys.collect(), DigestKey::Derived("test/digest/1")).unwrap()
}

fn opened(keyring: &Keyring, bound: Bound<'_>, sealed: &str) -> Result<String, Unopened> {
    keyring.open(bound, sealed).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn a_value_is_opened_at_its_place_only() {
    let keyring = keyring(&[("a", 1)]);
    let sealed = keyring.seal(PLACE, b"a value".to_vec()).unwrap();
    assert!(sealed.starts_with(&format!("{}.", keyring.beginning().unwrap())));
    assert_eq!(opened(&keyring, PLACE, &sealed).unwrap(), "a value");
    assert_ne!(keyring.seal(PLACE, b"a value".to_vec()).unwrap(), sealed, "each has a nonce of its own");
    let other = Bound::to("another place");
    assert_eq!(keyring.open(other, &sealed), Err(Unopened::Damaged));
    assert_eq!(keyring.reseal(other, &sealed, other), Err(Unopened::Damaged));
    let moved = keyring.reseal(PLACE, &sealed, other).unwrap();
    assert_eq!(opened(&keyring, other, &moved).unwrap(), "a value");
    assert_eq!(keyring.open(PLACE, &moved), Err(Unopened::Damaged));
}

#[rstest]
#[case::empty("")]
#[case::no_parts("2:")]
#[case::no_base64("2:YQ==.!.!")]
#[case::a_part_is_missing("2:YQ==.AAECAwQFBgcICQoL")]
#[case::a_short_nonce("2:YQ==.AAEC.2objR0yLY9qvN1jb2d8R3+h5xsZa/IA=")]
#[case::another_tag("2:YQ==.AAECAwQFBgcICQoL.2objR0yLY9qvN1jb2d8R3+h5xsZa/IE=")]
#[case::without_its_form("YQ==.AAECAwQFBgcICQoL.2objR0yLY9qvN1jb2d8R3+h5xsZa/IA=")]
fn a_damaged_value_is_not_opened(#[case] sealed: &str) {
    assert_eq!(keyring(&[("a", 1)]).open(PLACE, sealed), Err(Unopened::Damaged));
}

/// Values that another implementation of AES-256-GCM has made stand for existing databases.
#[rstest]
#[case("2:YQ==.AAECAwQFBgcICQoL.2objR0yLY9qvN1jb2d8R3+h5xsZa/IA=", true)]
#[case("YQ==.AAECAwQFBgcICQoL.2objR0yLY3Qu/S4QUjavoHLf7QZd+GI=", false)]
fn stored_values_are_opened(#[case] sealed: &str, #[case] is_current: bool) {
    let keyring = keyring(&[("a", 1)]);
    let bound = PLACE.or_before_forms("before");
    assert_eq!(opened(&keyring, bound, sealed).unwrap(), "a value");
    assert_eq!(keyring.is_current(sealed), is_current);
    assert_eq!(key_id(sealed.split('.').next().unwrap()), "a");
    assert!(keyring.is_current(&keyring.reseal(bound, sealed, bound).unwrap()));
}

#[test]
fn an_old_key_still_opens_and_a_lost_one_is_named() {
    let sealed = keyring(&[("old", 2)]).seal(PLACE, b"a value".to_vec()).unwrap();
    let (both, new) = (keyring(&[("new", 1), ("old", 2)]), keyring(&[("new", 1)]));
    assert_eq!((both.first(), both.has("old"), new.has("old")), (Some("new"), true, false));
    assert_eq!(opened(&both, PLACE, &sealed).unwrap(), "a value");
    assert_eq!(new.open(PLACE, &sealed), Err(Unopened::NoKey));
    assert!(!both.is_current(&sealed));
    let resealed = both.reseal(PLACE, &sealed, PLACE).unwrap();
    assert!(both.is_current(&resealed));
    assert_eq!(opened(&new, PLACE, &resealed).unwrap(), "a value", "the old key is not needed any more");
}

#[test]
fn keys_have_32_bytes() {
    let digest = || DigestKey::Derived("test/digest/1");
    assert!(Keyring::new(Vec::new(), digest()).is_none());
    for length in [0, 16, 31, 33] {
        let short = KeyBytes { id: "b".to_owned(), bytes: vec![1; length].into() };
        assert!(Keyring::new(vec![key("a", 1), short], digest()).is_none(), "{length} bytes");
    }
}

/// HMAC-SHA-256 of the label, computed by another implementation.
#[test]
fn the_digest_key_is_given_or_follows_from_the_first_key() {
    let derived = keyring(&[("a", 1), ("b", 2)]);
    let hex = |keyring: &Keyring| -> String {
        keyring.digest_key().expose_secret().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
    };
    assert_eq!(hex(&derived), "91b413cf4031a83ef1ce07b525cae5c1ac4e66020678bf6a7f0c7a66c1ac30a1");
    let given = Keyring::new(vec![key("a", 1)], DigestKey::Given(vec![0xab; 32].into())).unwrap();
    assert_eq!(hex(&given), "ab".repeat(32));
}

#[test]
fn nothing_prints_a_key() {
    let keyring = keyring(&[("a", 0xa7)]);
    let printed = format!("{keyring:?} {:?} {:?}", key("a", 0xa7), DigestKey::Given(vec![0xa7; 32].into()));
    assert!(!printed.contains("167") && !printed.to_lowercase().contains("a7"), "{printed}");
}
