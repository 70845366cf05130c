//! Messages as XML, their receipts, and what a request says of them beside.
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-messages>

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::queue::{Held, MessageId, MessageView, Put, Receipt, Taken};

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::version::Version;
use crate::wire::date;
use crate::wire::xml::{Document, Writer};

/// Longest text, in bytes of UTF-8.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of a document that holds such a text: each of its characters may be escaped.
pub const DOCUMENT_BYTES_MAX: u64 = 6 * TEXT_BYTES_MAX as u64 + 1024;
/// Most messages that one request gets.
const MESSAGES_MAX: i64 = 32;
/// A week, in seconds: the longest that a message may be invisible.
const WEEK: i64 = 7 * 24 * 60 * 60;
/// How long a message is invisible after it was taken, unless the request says.
const INVISIBLE: i64 = 30;
/// The lifetime that stands for no end.
const ENDLESS: i64 = -1;
const VISIBILITY: &str = "visibilitytimeout";
const LIFETIME: &str = "messagettl";
const RECEIPT: &str = "popreceipt";
/// Bytes of a receipt: two instants.
const RECEIPT_BYTES: usize = 16;
/// Its letters in Base64.
const RECEIPT_CHARS: usize = 22;

/// The text of a message to put.
///
/// Refuses `InvalidXmlDocument`, `MissingRequiredXmlNode` and `MessageTooLarge`.
pub fn parse(body: &[u8]) -> Result<String, Problem> {
    let mut document = Document::open(body, "QueueMessage")?;
    let mut text = None;
    while let Some(name) = document.child()? {
        if name != "MessageText" || text.is_some() {
            return Err(document.wrong("one MessageText belongs here"));
        }
        text = Some(document.text()?);
    }
    document.close()?;
    let text = text.ok_or_else(|| Problem::new(Code::MissingRequiredXmlNode).detail("XmlNodeName", "MessageText"))?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(Problem::new(Code::MessageTooLarge).detail("MaxLimit", TEXT_BYTES_MAX.to_string()));
    }
    Ok(text)
}

/// The new text of a message, if the body holds one.
///
/// Refuses as [`parse`].
pub fn parse_opt(body: &[u8]) -> Result<Option<String>, Problem> {
    if body.trim_ascii().is_empty() { Ok(None) } else { parse(body).map(Some) }
}

/// How long a message to put is invisible, and how long it lives; none for ever.
///
/// Refuses `InvalidQueryParameterValue` and `OutOfRangeQueryParameterValue`.
pub fn lifetime(fields: &Fields, version: Version) -> Result<(Duration, Option<Duration>), Problem> {
    let invisible = number(fields, VISIBILITY, 0, WEEK)?.unwrap_or(0);
    let (least, most) = if version < Version::V2017_07_29 { (1, WEEK) } else { (ENDLESS, i64::from(i32::MAX)) };
    let lifetime = number(fields, LIFETIME, least, most)?.unwrap_or(WEEK);
    match lifetime {
        ENDLESS => Ok((seconds(invisible), None)),
        0 => Err(Problem::query_range(LIFETIME, "0", 1, most)),
        // It would expire before anybody could have it.
        _ if invisible >= lifetime => {
            Err(Problem::query_range(VISIBILITY, &invisible.to_string(), 0, lifetime.saturating_sub(1)))
        }
        _ => Ok((seconds(invisible), Some(seconds(lifetime)))),
    }
}

/// How many messages a request wants.
///
/// Refuses `InvalidQueryParameterValue` and `OutOfRangeQueryParameterValue`.
pub fn limit(fields: &Fields) -> Result<usize, Problem> {
    let limit = number(fields, "numofmessages", 1, MESSAGES_MAX)?.unwrap_or(1);
    Ok(usize::try_from(limit).unwrap_or(1))
}

/// How long messages are invisible that are taken.
///
/// Refuses `InvalidQueryParameterValue` and `OutOfRangeQueryParameterValue`.
pub fn invisible_when_taken(fields: &Fields) -> Result<Duration, Problem> {
    Ok(seconds(number(fields, VISIBILITY, 1, WEEK)?.unwrap_or(INVISIBLE)))
}

/// How long a message is invisible that is updated.
///
/// Refuses `MissingRequiredQueryParameter`, `InvalidQueryParameterValue` and `OutOfRangeQueryParameterValue`.
pub fn invisible_when_updated(fields: &Fields) -> Result<Duration, Problem> {
    let invisible = number(fields, VISIBILITY, 0, WEEK)?;
    invisible.map(seconds).ok_or_else(|| Problem::missing_query(VISIBILITY))
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(number.unsigned_abs())
}

fn number(fields: &Fields, name: &str, least: i64, most: i64) -> Result<Option<i64>, Problem> {
    let Some(text) = fields.query_opt(name) else { return Ok(None) };
    match text.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
        Ok(_) => Err(Problem::query_range(name, text, least, most)),
        Err(_) => Err(Problem::query(name, text, "It is not a whole number.")),
    }
}

/// The receipt of a request; none for one that this service never gave, although it looks like one: that it is wrong, the
/// message tells.
///
/// Refuses `MissingRequiredQueryParameter`, and `InvalidQueryParameterValue` for what no receipt looks like.
pub fn receipt(fields: &Fields) -> Result<Option<Receipt>, Problem> {
    let text = fields.query(RECEIPT)?;
    let own = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| {
        let (visible, placed) = bytes.split_first_chunk()?;
        let (visible, placed) = (u64::from_be_bytes(*visible), u64::from_be_bytes(placed.try_into().ok()?));
        Some(Receipt { visible: Timestamp::from_ticks(visible), placed: Timestamp::from_ticks(placed) })
    });
    if own.is_none() && !looks_like_a_receipt(text) {
        return Err(Problem::query(RECEIPT, text, "It is not a receipt."));
    }
    Ok(own)
}

/// Whether it could be one of ours that was altered, or one of another service: those are in Base64, too, and as long.
fn looks_like_a_receipt(text: &str) -> bool {
    let is_own = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.len() == RECEIPT_CHARS && text.bytes().all(is_own)
        || STANDARD.decode(text).is_ok_and(|bytes| bytes.len() >= RECEIPT_BYTES)
}

/// The receipt as clients get it.
pub fn receipt_text(receipt: Receipt) -> String {
    let bytes = [receipt.visible.ticks().to_be_bytes(), receipt.placed.ticks().to_be_bytes()];
    URL_SAFE_NO_PAD.encode(bytes.concat())
}

/// The body of Put Message.
pub fn put(put: &Put) -> Vec<u8> {
    list(std::slice::from_ref(put), |xml, put| {
        head(xml, put.id, put.inserted, put.expires);
        held(xml, put.held);
    })
}

/// The body of Get Messages.
pub fn taken(messages: &[Taken]) -> Vec<u8> {
    list(messages, |xml, Taken { message, held: right }| {
        head(xml, message.id, message.inserted, message.expires);
        held(xml, *right);
        content(xml, message);
    })
}

/// The body of Peek Messages.
pub fn peeked(messages: &[MessageView]) -> Vec<u8> {
    list(messages, |xml, message| {
        head(xml, message.id, message.inserted, message.expires);
        content(xml, message);
    })
}

fn list<T>(messages: &[T], message: impl Fn(&mut Writer, &T)) -> Vec<u8> {
    let mut xml = Writer::begin();
    if messages.is_empty() {
        xml.empty("QueueMessagesList");
        return xml.finish();
    }
    xml.open("QueueMessagesList");
    for each in messages {
        xml.open("QueueMessage");
        message(&mut xml, each);
        xml.close("QueueMessage");
    }
    xml.close("QueueMessagesList");
    xml.finish()
}

fn head(xml: &mut Writer, id: MessageId, inserted: Timestamp, expires: Timestamp) {
    xml.text("MessageId", &id.uuid().to_string());
    xml.text("InsertionTime", &date::rfc1123(inserted));
    xml.text("ExpirationTime", &date::rfc1123(expires));
}

fn held(xml: &mut Writer, held: Held) {
    xml.text("PopReceipt", &receipt_text(held.receipt));
    xml.text("TimeNextVisible", &date::rfc1123(held.visible));
}

fn content(xml: &mut Writer, message: &MessageView) {
    xml.text("DequeueCount", &message.dequeues.to_string());
    xml.text("MessageText", &message.text);
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use lazuli_engine::queue::NEVER;
    use proptest::prelude::*;

    use super::*;
    use crate::head::HeaderCase;

    fn fields(query: &str) -> Fields {
        Fields::parse(HeaderMap::new(), Some(query), HeaderCase::default()).unwrap()
    }

    fn body(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    #[test]
    fn a_text_is_kept_byte_for_byte() {
        let cases = [
            (body(""), ""),
            (body("  a\tb\n "), "  a\tb\n "),
            (body("a\r\nb&#13;"), "a\r\nb\r"),
            (body("&lt;b&gt; &amp;amp; &quot;&#x1F600;\u{1F600}"), "<b> &amp; \"\u{1F600}\u{1F600}"),
            (body("<![CDATA[<&>]]>"), "<&>"),
            (format!("\u{feff}<?xml version='1.0' encoding='utf-8'?>\n{}", body("x")), "x"),
            ("<QueueMessage>\n  <MessageText/>\n</QueueMessage>".to_owned(), ""),
        ];
        for (document, text) in cases {
            assert_eq!(parse(document.as_bytes()), Ok(text.to_owned()), "{document}");
            assert_eq!(parse_opt(document.as_bytes()), Ok(Some(text.to_owned())), "{document}");
        }
        assert_eq!(parse_opt(b" \r\n"), Ok(None));
    }

    #[test]
    fn a_text_has_at_most_64_kib_however_it_is_escaped() {
        let largest = "&#x26;".repeat(TEXT_BYTES_MAX);
        assert!(body(&largest).len() as u64 <= DOCUMENT_BYTES_MAX);
        assert_eq!(parse(body(&largest).as_bytes()).map(|text| text.len()), Ok(TEXT_BYTES_MAX));
        let problem = parse(body(&format!("{largest}x")).as_bytes()).unwrap_err();
        assert_eq!((problem.code, problem.details[0].1.as_str()), (Code::MessageTooLarge, "65536"));
        assert_eq!(
            parse(body(&"é".repeat(TEXT_BYTES_MAX / 2 + 1)).as_bytes()).unwrap_err().code,
            Code::MessageTooLarge
        );
    }

    #[test]
    fn anything_else_is_no_message() {
        let cases = [
            ("", Code::InvalidXmlDocument),
            ("text", Code::InvalidXmlDocument),
            ("<Message/>", Code::InvalidXmlDocument),
            ("<QueueMessage/>", Code::MissingRequiredXmlNode),
            ("<QueueMessage><Text>x</Text></QueueMessage>", Code::InvalidXmlDocument),
            (
                "<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>",
                Code::InvalidXmlDocument,
            ),
            (&body("<b>x</b>"), Code::InvalidXmlDocument),
            (&body("a & b"), Code::InvalidXmlDocument),
            (&body("\u{1}"), Code::InvalidXmlDocument),
            (&body("&#2;"), Code::InvalidXmlDocument),
        ];
        for (document, code) in cases {
            assert_eq!(parse(document.as_bytes()).unwrap_err().code, code, "{document}");
        }
    }

    #[test]
    fn numbers_have_their_ranges_and_defaults() {
        use Code::{InvalidQueryParameterValue as Invalid, OutOfRangeQueryParameterValue as Range};
        let limits = [
            ("", Ok(1)),
            ("numofmessages=32", Ok(32)),
            ("numofmessages=0", Err(Range)),
            ("numofmessages=33", Err(Range)),
            ("numofmessages=-1", Err(Range)),
            ("numofmessages=x", Err(Invalid)),
            ("numofmessages=1.5", Err(Invalid)),
            ("numofmessages=99999999999999999999", Err(Invalid)),
        ];
        for (query, expected) in limits {
            assert_eq!(limit(&fields(query)).map_err(|problem| problem.code), expected, "{query}");
        }
        let taken = [
            ("", Ok(30)),
            ("visibilitytimeout=1", Ok(1)),
            ("visibilitytimeout=604800", Ok(604_800)),
            ("visibilitytimeout=0", Err(Range)),
            ("visibilitytimeout=604801", Err(Range)),
            ("visibilitytimeout=x", Err(Invalid)),
        ];
        for (query, expected) in taken {
            let answer = invisible_when_taken(&fields(query)).map(|invisible| invisible.as_secs());
            assert_eq!(answer.map_err(|problem| problem.code), expected, "{query}");
        }
        let updated = [
            ("", Err(Code::MissingRequiredQueryParameter)),
            ("visibilitytimeout=0", Ok(0)),
            ("visibilitytimeout=604800", Ok(604_800)),
            ("visibilitytimeout=-1", Err(Range)),
            ("visibilitytimeout=604801", Err(Range)),
        ];
        for (query, expected) in updated {
            let answer = invisible_when_updated(&fields(query)).map(|invisible| invisible.as_secs());
            assert_eq!(answer.map_err(|problem| problem.code), expected, "{query}");
        }
    }

    #[test]
    fn a_message_outlives_its_invisibility_and_new_versions_let_it_live_longer() {
        use Code::{InvalidQueryParameterValue as Invalid, OutOfRangeQueryParameterValue as Range};
        let week = WEEK.unsigned_abs();
        let cases = [
            ("", Ok((0, Some(week))), Ok((0, Some(week)))),
            ("messagettl=1", Ok((0, Some(1))), Ok((0, Some(1)))),
            ("messagettl=-1", Ok((0, None)), Err(Range)),
            ("messagettl=604801", Ok((0, Some(week + 1))), Err(Range)),
            ("messagettl=2147483647", Ok((0, Some(2_147_483_647))), Err(Range)),
            ("messagettl=2147483648", Err(Range), Err(Range)),
            ("messagettl=0", Err(Range), Err(Range)),
            ("messagettl=-2", Err(Range), Err(Range)),
            ("messagettl=x", Err(Invalid), Err(Invalid)),
            ("messagettl=60&visibilitytimeout=59", Ok((59, Some(60))), Ok((59, Some(60)))),
            ("messagettl=60&visibilitytimeout=60", Err(Range), Err(Range)),
            ("visibilitytimeout=604800", Err(Range), Err(Range)),
            ("messagettl=-1&visibilitytimeout=604800", Ok((week, None)), Err(Range)),
            ("visibilitytimeout=604801&messagettl=-1", Err(Range), Err(Range)),
            ("visibilitytimeout=-1", Err(Range), Err(Range)),
        ];
        let old = Version::parse("2017-04-17", true).unwrap();
        for (query, new, older) in cases {
            for (version, expected) in [(Version::NEWEST, new), (old, older)] {
                let answer = lifetime(&fields(query), version);
                let shown = answer.map(|(invisible, life)| (invisible.as_secs(), life.map(|life| life.as_secs())));
                assert_eq!(shown.map_err(|problem| problem.code), expected, "{query} {version}");
            }
        }
    }

    #[test]
    fn lists_look_like_this() {
        let at = Timestamp::from_unix_seconds(1_785_542_400);
        let id = MessageId::from_uuid("00000000-0000-8000-84de-ef5fd48b0000".parse().unwrap()).unwrap();
        let held = Held { receipt: Receipt { visible: at, placed: Timestamp::from_ticks(1) }, visible: at };
        let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList>";
        let identity = "<QueueMessage><MessageId>00000000-0000-8000-84de-ef5fd48b0000</MessageId>\
                        <InsertionTime>Sat, 01 Aug 2026 00:00:00 GMT</InsertionTime>\
                        <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>";
        let right = "<PopReceipt>CN7vX9SLAAAAAAAAAAAAAQ</PopReceipt>\
                     <TimeNextVisible>Sat, 01 Aug 2026 00:00:00 GMT</TimeNextVisible>";
        let text = "<DequeueCount>1</DequeueCount><MessageText>a&amp;&#13;</MessageText>";
        let tail = "</QueueMessage></QueueMessagesList>";
        let message = MessageView { id, inserted: at, expires: NEVER, dequeues: 1, text: "a&\r".into() };
        let shown = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(shown(peeked(std::slice::from_ref(&message))), format!("{head}{identity}{text}{tail}"));
        assert_eq!(shown(taken(&[Taken { message, held }])), format!("{head}{identity}{right}{text}{tail}"));
        assert_eq!(
            shown(put(&Put { id, inserted: at, expires: NEVER, held })),
            format!("{head}{identity}{right}{tail}")
        );
        assert_eq!(shown(taken(&[])), "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList />");
        assert_eq!(receipt(&fields("popreceipt=CN7vX9SLAAAAAAAAAAAAAQ")), Ok(Some(held.receipt)));
    }

    #[test]
    fn a_receipt_looks_like_one_and_may_be_a_foreign_one() {
        assert_eq!(receipt(&fields("")).unwrap_err().code, Code::MissingRequiredQueryParameter);
        for text in
            ["x", "AAAA", "nonsense", "!!", "CN7vX9SLAAAAAAAAAAAAAQA", "CN7vX9SLAAAAAAAAAAAA!Q", "not-a-receipt"]
        {
            let problem = receipt(&fields(&format!("popreceipt={text}"))).unwrap_err();
            assert_eq!(problem.code, Code::InvalidQueryParameterValue, "{text}");
        }
        for text in ["AgAAAAMAAAAAAAAAtHCwuiMv1gE%3D", "CN7vX9SLAAAAAAAAAAAAAR"] {
            assert_eq!(receipt(&fields(&format!("popreceipt={text}"))), Ok(None), "{text}");
        }
    }

    proptest! {
        #[test]
        fn receipts_come_back(visible: u64, placed: u64) {
            let given = Receipt { visible: Timestamp::from_ticks(visible), placed: Timestamp::from_ticks(placed) };
            prop_assert_eq!(receipt(&fields(&format!("popreceipt={}", receipt_text(given)))), Ok(Some(given)));
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_opt(&bytes);
        }
    }
}
