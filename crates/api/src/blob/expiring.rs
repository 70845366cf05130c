//! Set Blob Expiry. <https://learn.microsoft.com/rest/api/storageservices/set-blob-expiry>

use std::time::Duration;

use lazuli_engine::blob::{OnBlob, expiring};
use lazuli_engine::expiry::ExpiryOption;

use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::{condition, date, etag, lease, part};

/// What carries the instant, in a request and in the answers to reads.
pub(super) const TIME: &str = "x-ms-expiry-time";
const OPTION: &str = "x-ms-expiry-option";

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::blob(&[Verb::Put], "expiry", &[], &SET_EXPIRY)];

/// Set Blob Expiry: <https://learn.microsoft.com/rest/api/storageservices/set-blob-expiry>
static SET_EXPIRY: Operation = Operation {
    name: "Blob_SetExpiry",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(set_expiry(call)),
};

async fn set_expiry(call: Call) -> Result<Answer, Problem> {
    let option = option(&call.fields)?;
    let on = OnBlob {
        part: part::base(&call.fields)?,
        conditions: condition::none(&call.fields)?,
        lease: lease::held(&call.fields)?,
        ..call.on()?
    };
    let set = expiring::set(&call.engine, on, option).await?;
    Ok(etag::onto(Answer::ok(), set.etag))
}

/// Refuses `MissingRequiredHeader`, and `InvalidHeaderValue` also for a time that the option does not have.
fn option(fields: &Fields) -> Result<ExpiryOption, Problem> {
    let text = fields.header(OPTION)?;
    let wrong = |time: &str| Problem::header(TIME, time);
    let milliseconds = || {
        let time = fields.header(TIME)?;
        time.parse().map(Duration::from_millis).map_err(|_| wrong(time))
    };
    match text.to_ascii_lowercase().as_str() {
        "neverexpire" => fields.header_opt(TIME)?.map_or(Ok(ExpiryOption::Never), |time| Err(wrong(time))),
        "relativetocreation" => milliseconds().map(ExpiryOption::AfterCreation),
        "relativetonow" => milliseconds().map(ExpiryOption::AfterNow),
        "absolute" => {
            let time = fields.header(TIME)?;
            date::parse_http(time).map(ExpiryOption::At).ok_or_else(|| wrong(time))
        }
        _ => Err(Problem::header(OPTION, text)),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use lazuli_engine::clock::Timestamp;

    use super::*;
    use crate::code::Code;
    use crate::head::HeaderCase;

    #[test]
    fn each_option_has_its_own_form_of_time() {
        let second = Duration::from_secs(1);
        let august = Timestamp::from_unix_seconds(1_785_542_400);
        let cases = [
            ("NeverExpire", "", Ok(ExpiryOption::Never)),
            ("neverexpire", "1000", Err(Code::InvalidHeaderValue)),
            ("RelativeToCreation", "1000", Ok(ExpiryOption::AfterCreation(second))),
            ("RelativeToNow", "1000", Ok(ExpiryOption::AfterNow(second))),
            ("RelativeToNow", "", Err(Code::MissingRequiredHeader)),
            ("RelativeToNow", "-1", Err(Code::InvalidHeaderValue)),
            ("RelativeToNow", "1s", Err(Code::InvalidHeaderValue)),
            ("RelativeToNow", "Sat, 01 Aug 2026 00:00:00 GMT", Err(Code::InvalidHeaderValue)),
            ("Absolute", "Sat, 01 Aug 2026 00:00:00 GMT", Ok(ExpiryOption::At(august))),
            ("Absolute", "1000", Err(Code::InvalidHeaderValue)),
            ("Absolute", "", Err(Code::MissingRequiredHeader)),
            ("Someday", "1000", Err(Code::InvalidHeaderValue)),
            ("", "1000", Err(Code::MissingRequiredHeader)),
        ];
        for (text, time, expected) in cases {
            let headers = HeaderMap::from_iter([
                (HeaderName::from_static(OPTION), HeaderValue::from_static(text)),
                (HeaderName::from_static(TIME), HeaderValue::from_static(time)),
            ]);
            let fields = Fields::parse(headers, None, HeaderCase::default()).unwrap();
            assert_eq!(option(&fields).map_err(|problem| problem.code), expected, "{text} {time}");
        }
    }
}
