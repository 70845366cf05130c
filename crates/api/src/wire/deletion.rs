//! What is soft-deleted: names of deleted containers, and how long they can be restored.

use lazuli_engine::clock::Timestamp;

/// Ticks between 0001-01-01 and 1601-01-01, from which versions of containers are counted.
const VERSION_EPOCH_TICKS: u64 = 504_911_232_000_000_000;

/// The name of a deleted container among those of its name, `01DB7228F6BEE6E7`: when it was deleted.
pub fn version_text(deleted: Timestamp) -> String {
    format!("{:016X}", deleted.ticks().saturating_sub(VERSION_EPOCH_TICKS))
}

/// Reads [`version_text`]; none for anything else.
pub fn parse_version(text: &str) -> Option<Timestamp> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ticks = u64::from_str_radix(text, 16).ok().filter(|_| digits)?;
    ticks.checked_add(VERSION_EPOCH_TICKS).map(Timestamp::from_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_instant_of_the_deletion_in_hexadecimal() {
        let deleted = Timestamp::from_unix_seconds(1_738_139_820);
        let text = version_text(deleted);
        assert_eq!(text, "01DB7228F6A79E00");
        assert_eq!(parse_version(&text), Some(deleted));
        assert_eq!(parse_version(&text.to_lowercase()), Some(deleted));
        for bad in
            ["", "1", "01DB7228F6A79E0", "01DB7228F6A79E00F", "+1DB7228F6A79E00", "FFFFFFFFFFFFFFFF", "yesterday"]
        {
            assert_eq!(parse_version(bad), None, "{bad}");
        }
    }
}
