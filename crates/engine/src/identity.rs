//! Identities that may sign for others: whom roles were given to when they got their key, because a signature names the
//! identity alone. <https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas>

use crate::engine::Engine;
use crate::error::Error;
use crate::rows;
use crate::rows::identity::{self as row, IdentityRow};
use crate::store::{Purpose, Space};

/// An identity. Ids are lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityId {
    /// The tenant that knows it.
    pub tenant: String,
    /// Its own id.
    pub object: String,
}

/// Remembers the principals that stand for an identity, in place of those remembered before.
pub async fn remember(engine: &Engine, id: IdentityId, principals: Vec<String>) -> Result<(), Error> {
    if self::principals(engine, &id)?.as_ref() == Some(&principals) {
        return Ok(());
    }
    engine
        .write(Purpose::Grow, move |tx| {
            let row = IdentityRow { principals: principals.clone() };
            Ok(rows::put(tx, Space::Identities, row::key(&id.tenant, &id.object), &row)?)
        })
        .await
}

/// The principals that stand for an identity; none if it never got a key.
pub fn principals(engine: &Engine, id: &IdentityId) -> Result<Option<Vec<String>>, Error> {
    engine.read(|view| {
        let row: Option<IdentityRow> = rows::get(view, Space::Identities, &row::key(&id.tenant, &id.object))?;
        Ok(row.map(|row| row.principals))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::{HeldClock, Timestamp};

    #[tokio::test]
    async fn the_latest_principals_of_an_identity_are_remembered() {
        let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
        let engine = Engine::memory(clock).await.unwrap();
        let id = |object: &str| IdentityId { tenant: "t".into(), object: object.into() };
        assert_eq!(principals(&engine, &id("ann")).unwrap(), None);
        for groups in [vec!["staff".to_owned()], vec!["guests".to_owned(), "staff".to_owned()], vec![]] {
            remember(&engine, id("ann"), groups.clone()).await.unwrap();
            assert_eq!(principals(&engine, &id("ann")).unwrap(), Some(groups));
        }
        assert_eq!(principals(&engine, &id("bob")).unwrap(), None);
    }
}
