//! Change feeds. An account whose feed fails by the fault of its own rows is left alone for a while.

use crate::blob;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::AccountName;
use crate::rows::feed;

/// Does some of what the feeds wait for; answers whether there is more to do now.
pub(super) async fn publish(engine: &Engine) -> Result<bool, Error> {
    let accounts = accounts(engine)?;
    if accounts.is_empty() {
        return Ok(false);
    }
    let (now, setbacks) = (engine.now()?, &engine.clockwork().feeds);
    let mut more = false;
    for account in accounts {
        let key = feed::key(&account);
        if setbacks.holds(&key, now) {
            continue;
        }
        match blob::publish_feed(engine, &account).await {
            Ok(some) => more |= some,
            Err(error) => setbacks.note(&key, now, error)?,
        }
    }
    Ok(more)
}

/// The accounts that want a feed, and those that wanted one when the changes happened which still wait.
fn accounts(engine: &Engine) -> Result<Vec<AccountName>, Error> {
    let mut accounts = engine.with_change_feed();
    if engine.clockwork().may_have_leftovers() {
        let left = match engine.read(|view| Ok(blob::waiting_feeds(view)?)) {
            Ok(waiting) => waiting.into_iter().filter(|account| !accounts.contains(account)).collect(),
            Err(error) => {
                engine.clockwork().feeds.note(&[], engine.now()?, error)?;
                Vec::new()
            }
        };
        if left.is_empty() {
            engine.clockwork().has_no_leftovers();
        }
        accounts.extend(left);
    }
    Ok(accounts)
}
