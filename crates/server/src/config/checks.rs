//! What no server starts with, said in one line that shows no secret.

use std::borrow::Cow;
use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use lazuli_api::auth::accounts::DEVELOPMENT_ACCOUNT;
use lazuli_api::target::Front;
use tracing::level_filters::LevelFilter;

use super::Listen;
use crate::start::StartError;

/// The number, which the file calls `name`, if it is one of `range`.
pub(super) fn within<N: Copy + Display + PartialOrd>(
    name: &str,
    number: N,
    range: RangeInclusive<N>,
) -> Result<N, StartError> {
    if range.contains(&number) {
        return Ok(number);
    }
    Err(StartError::new(format!("{name} is {number}, not {} to {}", range.start(), range.end())))
}

/// Refuses a word that is no level. The tracing library would take it for the name of a module and log nothing at all.
pub(super) fn log_level(filter: &str) -> Result<(), StartError> {
    let is_word = |part: &&str| part.chars().all(|letter| letter.is_ascii_alphanumeric() || "_:-".contains(letter));
    let mut words = filter.split(',').filter(|part| !part.is_empty()).filter(is_word);
    match words.find(|word| word.parse::<LevelFilter>().is_err()) {
        Some(word) => Err(StartError::new(format!(
            "log level {word:?}: it is none of off, error, warn, info, debug and trace, nor a filter such as \
             lazuli_api=debug"
        ))),
        None => Ok(()),
    }
}

/// Refuses to show what everybody may use to other machines: the development account, and tokens that are not checked.
pub(super) fn private(listen: &[Listen], development: bool, unchecked_tokens: bool) -> Result<(), StartError> {
    let is_private = |host: &str| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
    };
    // Websites are for everybody, and no key opens more of them.
    let public = |listen: &&Listen| listen.front != Front::Web && !is_private(&listen.host);
    let Some(Listen { host, .. }) = listen.iter().find(public) else { return Ok(()) };
    if development {
        return Err(StartError::new(format!(
            "{host} can be reached by others, and the key of {DEVELOPMENT_ACCOUNT} is known to everybody: give accounts \
             of your own (LAZULI_ACCOUNTS=name:key), or --allow-development-account"
        )));
    }
    if unchecked_tokens {
        return Err(StartError::new(format!(
            "{host} can be reached by others, and with --oauth basic everybody can make a token: name an issuer and its \
             keys, or --allow-development-account"
        )));
    }
    Ok(())
}

/// What is wrong with a value of the wrong type, without the value: it may be a key that was written in the wrong place.
pub(super) fn without_value(message: &str) -> Cow<'_, str> {
    let parts = message.strip_prefix("invalid type: ").and_then(|rest| rest.rsplit_once(", expected "));
    match parts {
        Some((found, expected)) => {
            let kind = found.split(' ').next().unwrap_or_default();
            Cow::Owned(format!("invalid type: {kind}, expected {expected}"))
        }
        None => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use lazuli_api::auth::accounts::DEVELOPMENT_KEY;

    use super::super::tests::load;

    /// What these arguments are refused with.
    fn refusal(arguments: &[&str]) -> Option<String> {
        load(arguments).err().map(|error| error.to_string())
    }

    #[test]
    fn the_development_account_is_not_shown_to_others_unawares() {
        let public = ["--blobHost", "0.0.0.0"];
        let refused = |more: &[&str]| refusal(&[&public[..], more].concat()).is_some();
        assert!(refused(&[]));
        assert!(!refused(&["--allow-development-account"]));
        assert!(!refused(&["--accounts", "mine:c2VjcmV0"]));
        for name in ["devstoreaccount1", "mine"] {
            assert!(refused(&["--accounts", &format!("{name}:c2VjcmV0:{DEVELOPMENT_KEY}")]), "{name}");
        }
        for private in ["localhost", "127.0.0.2", "::1", "[::1]"] {
            assert_eq!(refusal(&["--blobHost", private]), None);
        }
        assert_eq!(refusal(&["--webHost", "0.0.0.0", "--webPort", "0"]), None);
    }

    #[test]
    fn numbers_that_nothing_could_work_with_are_refused_by_name() {
        let max = u64::MAX.to_string();
        let max = max.as_str();
        let cases = [
            (["--idle-timeout", "0"], "idle_timeout is 0"),
            (["--idle-timeout", max], "idle_timeout"),
            (["--blobKeepAliveTimeout", "0"], "keep_alive is 0"),
            (["--cache-mib", "0"], "cache_mib is 0"),
            (["--cache-mib", max], "cache_mib"),
            (["--connections-max", "0"], "connections_max is 0"),
            (["--connections-max", max], "connections_max"),
        ];
        for (arguments, named) in cases {
            assert!(refusal(&arguments).is_some_and(|said| said.contains(named)), "{arguments:?}");
        }
        assert_eq!(refusal(&["--idle-timeout", "1", "--cache-mib", "1", "--connections-max", "1"]), None);
    }

    #[test]
    fn a_log_level_is_a_level_or_a_filter() {
        for level in ["info", "OFF", "warn,lazuli_api=debug", "lazuli_engine::blob=trace,error", "[request]=debug"] {
            assert_eq!(refusal(&["--log-level", level]), None, "{level}");
        }
        for level in ["loud", "inof", "info,lazuli_api"] {
            assert!(refusal(&["--log-level", level]).is_some_and(|said| said.contains("none of off")), "{level}");
        }
    }

    #[test]
    fn no_key_is_shown_where_it_stands_in_the_wrong_place() {
        let long = "c2VjcmV0".repeat(11);
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for text in [
            format!("[accounts]\nmine = \"{long}\"\n"),
            format!("[accounts.mine]\nkeys = \"{long}\"\n"),
            format!("[accounts]\nmine = [{{ key = \"{long}\" }}]\n"),
            format!("[accounts]\nmine = {long}\n"),
            format!("[accounts]\nmine = [\"{long}\n"),
            format!("[accounts]\n\"{long}\" = [\"AAAA\"]\n"),
            format!("[accounts]\nmine = [\"{long}%\"]\n"),
        ] {
            std::fs::write(file.path(), &text).unwrap();
            let said = refusal(&["--config", path]).expect("it is refused");
            assert!(!said.contains("c2VjcmV0") && !said.contains('\n'), "{said}");
        }
        for accounts in [long.clone(), format!("{long}:mine"), format!("mine:{long}%")] {
            let said = refusal(&["--accounts", &accounts]).expect("it is refused");
            assert!(!said.contains("c2VjcmV0"), "{said}");
        }
    }
}
