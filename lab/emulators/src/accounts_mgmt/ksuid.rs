//! Ids that sort by their time.

/// The digits of base 62, in the order of their bytes.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Characters of an id.
const LENGTH: usize = 27;
/// The second from which ids count.
const EPOCH: i64 = 1_400_000_000;

/// The id of a row of that second, with these random bits.
pub(super) fn ksuid(second: i64, random: u128) -> String {
    let time = u32::try_from(second.saturating_sub(EPOCH).max(0)).unwrap_or(u32::MAX);
    let mut bytes: Vec<u8> = time.to_be_bytes().into_iter().chain(random.to_be_bytes()).collect();
    let mut text = [b'0'; LENGTH];
    for digit in text.iter_mut().rev() {
        let mut rest = 0_u32;
        for byte in &mut bytes {
            let value = rest * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or_default();
            rest = value % 62;
        }
        *digit = usize::try_from(rest).ok().and_then(|index| DIGITS.get(index)).copied().unwrap_or(b'0');
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time() {
        let ids = [ksuid(EPOCH, 0), ksuid(EPOCH + 1, u128::MAX), ksuid(EPOCH + 2, 0), ksuid(1_764_000_000, 7)];
        assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == LENGTH), "{ids:?}");
        assert_eq!(
            ksuid(i64::MAX, u128::MAX),
            "aWgEPTl1tmebfsQzFP4bxwgy80V",
            "the greatest, as KSUID's authors give it"
        );
    }
}
