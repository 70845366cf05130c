//! `identities`: tenant, object -> [`IdentityRow`].

use serde::{Deserialize, Serialize};

use crate::rows::codec::{KeyWriter, Row};

/// Whom roles are given to, of an identity that got a key to sign for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityRow {
    /// Its own ids and those of its groups and applications, as its last token named them.
    pub principals: Vec<String>,
}

impl Row for IdentityRow {
    const VERSION: u8 = 1;
}

/// The key of the identity `object` of `tenant`.
pub fn key(tenant: &str, object: &str) -> Vec<u8> {
    KeyWriter::new().text(tenant).text(object).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};
    use crate::store::Space;

    #[test]
    fn a_key_on_disk_looks_like_this_for_ever() {
        assert_eq!(key("t1", "o1"), b"t1\x00\x01o1\x00\x01");
    }

    #[test]
    fn a_value_on_disk_looks_like_this_for_ever() {
        let row = IdentityRow { principals: vec!["o1".into(), "staff".into()] };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, b"\x01\x02\x02o1\x05staff");
        assert_eq!(decode::<IdentityRow>(Space::Identities, b"k", &bytes).unwrap(), row);
    }
}
