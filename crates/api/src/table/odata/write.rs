//! The documents of answers, written straight into their bytes.
//! <https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations>

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::etag::Etag;
use lazuli_engine::names::{AccountName, TableName};
use lazuli_engine::table::EntityView;
use lazuli_engine::table::value::Value;
use percent_encoding::percent_decode_str;
use quick_xml::escape::partial_escape;

use super::document::TABLE_NAME;
use super::edm::Edm;
use super::format::Metadata;
use super::instant::{self, Fraction};
use super::path::{self, KEYS, TABLES};
use super::query::Select;

/// A guess at the bytes of an entity, so that most pages are written without moving them.
const ENTITY_BYTES: usize = 512;

/// Where answers say that they come from, and how much of that they say.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// How much.
    pub metadata: Metadata,
    /// The address of the account, with a slash at its end.
    pub endpoint: &'a str,
    /// The account.
    pub account: &'a AccountName,
}

impl Origin<'_> {
    /// One entity of `table`.
    pub fn entity(&self, table: &TableName, select: &Select, entity: &EntityView) -> Vec<u8> {
        let mut json = Json::begin(ENTITY_BYTES);
        self.context(&mut json, table.as_str(), "/@Element");
        self.members(&mut json, table, select, entity);
        json.end()
    }

    /// Some entities of `table`.
    pub fn entities(&self, table: &TableName, select: &Select, entities: &[EntityView]) -> Vec<u8> {
        let mut json = Json::begin(ENTITY_BYTES * (entities.len() + 1));
        self.context(&mut json, table.as_str(), "");
        json.list(entities, |json, entity| self.members(json, table, select, entity));
        json.end()
    }

    /// One table.
    pub fn table(&self, table: &TableName) -> Vec<u8> {
        let mut json = Json::begin(ENTITY_BYTES);
        self.context(&mut json, TABLES, "/@Element");
        self.entry(&mut json, table);
        json.end()
    }

    /// Some tables.
    pub fn tables(&self, tables: &[TableName]) -> Vec<u8> {
        let mut json = Json::begin(ENTITY_BYTES);
        self.context(&mut json, TABLES, "");
        json.list(tables, |json, table| self.entry(json, table));
        json.end()
    }

    /// What the document is about.
    fn context(&self, json: &mut Json, what: &str, part: &str) {
        if self.metadata != Metadata::None {
            json.name("odata.metadata");
            json.string(&format!("{}$metadata#{what}{part}", self.endpoint));
        }
    }

    fn entry(&self, json: &mut Json, table: &TableName) {
        if self.metadata == Metadata::Full {
            self.links(json, TABLES, &format!("{TABLES}('{table}')"), None);
        }
        json.member(TABLE_NAME, table.as_str());
    }

    fn links(&self, json: &mut Json, kind: &str, address: &str, etag: Option<Etag>) {
        json.member("odata.type", &format!("{}.{kind}", self.account));
        json.member("odata.id", &format!("{}{address}", self.endpoint));
        if let Some(etag) = etag {
            json.etag(etag);
        }
        json.member("odata.editLink", address);
    }

    fn members(&self, json: &mut Json, table: &TableName, select: &Select, entity: &EntityView) {
        let EntityView { key, etag, properties } = entity;
        match self.metadata {
            Metadata::None => {}
            Metadata::Minimal => json.etag(*etag),
            Metadata::Full => self.links(json, table.as_str(), &path::address(table, key), Some(*etag)),
        }
        for (name, value) in KEYS.into_iter().zip([&key.partition, &key.row]) {
            if select.has(name) {
                json.member(name, value.as_str());
            }
        }
        if select.has("Timestamp") {
            if self.metadata == Metadata::Full {
                json.annotation("Timestamp", Edm::DateTime);
            }
            json.name("Timestamp");
            json.instant(etag.committed(), Fraction::Full);
        }
        for (name, value) in &properties.0 {
            if self.metadata != Metadata::None && is_annotated(value) {
                json.annotation(name, Edm::of(value));
            }
            json.name(name);
            json.value(value);
        }
    }
}

/// Whether JSON alone does not show the value's type.
fn is_annotated(value: &Value) -> bool {
    match value {
        Value::Binary(_) | Value::DateTime(_) | Value::Guid(_) | Value::Int64(_) => true,
        Value::Double(number) => !number.is_finite(),
        Value::Boolean(_) | Value::Int32(_) | Value::String(_) => false,
    }
}

/// A JSON object under way. Writing to memory cannot fail, so what that would say is passed over.
struct Json {
    out: Vec<u8>,
    /// Whether the next member is the first of its object.
    first: bool,
}

impl Json {
    fn begin(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        Self { out, first: true }
    }

    fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    /// The member `value`: a list of objects.
    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.name("value");
        self.out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            self.out.extend_from_slice(if index == 0 { b"{" } else { b",{" });
            self.first = true;
            write(self, item);
            self.out.push(b'}');
        }
        self.out.push(b']');
    }

    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.string(name);
        self.out.push(b':');
    }

    fn annotation(&mut self, name: &str, edm: Edm) {
        // Names are identifiers: nothing in them is to be escaped.
        self.out.extend_from_slice(if self.first { b"\"" } else { b",\"" });
        self.first = false;
        for part in [name, "@odata.type\":\"", edm.name(), "\""] {
            self.out.extend_from_slice(part.as_bytes());
        }
    }

    fn member(&mut self, name: &str, text: &str) {
        self.name(name);
        self.string(text);
    }

    fn string(&mut self, text: &str) {
        let _ = serde_json::to_writer(&mut self.out, text);
    }

    fn etag(&mut self, etag: Etag) {
        self.name("odata.etag");
        self.out.extend_from_slice(b"\"W/\\\"datetime'");
        escaped_instant(&mut self.out, etag.committed());
        self.out.extend_from_slice(b"'\\\"\"");
    }

    fn instant(&mut self, time: Timestamp, fraction: Fraction) {
        self.out.push(b'"');
        instant::write(&mut self.out, time, fraction);
        self.out.push(b'"');
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Boolean(boolean) => self.out.extend_from_slice(if *boolean { b"true" } else { b"false" }),
            Value::Int32(number) => {
                let _ = serde_json::to_writer(&mut self.out, number);
            }
            Value::Int64(number) => {
                self.out.push(b'"');
                let _ = serde_json::to_writer(&mut self.out, number);
                self.out.push(b'"');
            }
            Value::Double(number) if number.is_nan() => self.out.extend_from_slice(b"\"NaN\""),
            Value::Double(number) if number.is_infinite() => {
                self.out.extend_from_slice(if *number > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
            }
            Value::Double(number) => {
                let _ = serde_json::to_writer(&mut self.out, number);
            }
            Value::DateTime(time) => self.instant(*time, Fraction::Short),
            Value::Guid(id) => {
                let _ = write!(self.out, "\"{}\"", id.hyphenated());
            }
            Value::Binary(bytes) => {
                self.out.push(b'"');
                self.out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
                self.out.push(b'"');
            }
        }
    }
}

fn escaped_instant(out: &mut Vec<u8>, time: Timestamp) {
    let mut text = Vec::with_capacity(28);
    instant::write(&mut text, time, Fraction::Full);
    for byte in text {
        if byte == b':' { out.extend_from_slice(b"%3A") } else { out.push(byte) }
    }
}

/// The version of an entity as headers have it: `W/"datetime'2026-08-01T00%3A00%3A00.1234567Z'"`.
pub fn etag(etag: Etag) -> Vec<u8> {
    let mut text = b"W/\"datetime'".to_vec();
    escaped_instant(&mut text, etag.committed());
    text.extend_from_slice(b"'\"");
    text
}

/// Reads the version of an entity; none for what has not the form of one. What has the form and was not made here is a
/// version that no entity ever has.
pub fn parse_etag(text: &str) -> Option<Etag> {
    let inner = text.strip_prefix("W/\"")?.strip_suffix('"').filter(|inner| !inner.contains('"'))?;
    let decoded = percent_decode_str(inner).decode_utf8().unwrap_or_default();
    let instant = decoded.strip_prefix("datetime'").and_then(|rest| rest.strip_suffix('\'')).and_then(instant::parse);
    Some(Etag::at(instant.unwrap_or(Timestamp::from_ticks(0))))
}

/// A refusal in JSON.
pub fn refusal(code: &str, message: &str) -> Vec<u8> {
    let mut json = Json::begin(ENTITY_BYTES);
    json.name("odata.error");
    json.out.push(b'{');
    json.first = true;
    json.member("code", code);
    json.name("message");
    json.out.push(b'{');
    json.first = true;
    json.member("lang", "en-US");
    json.member("value", message);
    json.out.extend_from_slice(b"}}");
    json.end()
}

/// A refusal in XML.
pub fn refusal_xml(code: &str, message: &str) -> Vec<u8> {
    let message = partial_escape(message);
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\
         <error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><code>{code}</code>\
         <message xml:lang=\"en-US\">{message}</message></error>"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use lazuli_engine::names::KeyText;
    use lazuli_engine::table::{EntityKey, Properties};
    use uuid::Uuid;

    use super::*;

    fn entity() -> EntityView {
        let august = Timestamp::from_unix_seconds(1_785_542_400);
        let properties = [
            ("i", Value::Int32(-1)),
            ("l", Value::Int64(1_099_511_627_776)),
            ("d", Value::Double(1.0)),
            ("n", Value::Double(f64::NAN)),
            ("m", Value::Double(f64::NEG_INFINITY)),
            ("b", Value::Boolean(true)),
            ("s", Value::String("\"\\\u{1}é".into())),
            ("bin", Value::Binary(b"ab".to_vec())),
            ("g", Value::Guid(Uuid::from_u128(1))),
            ("t", Value::DateTime(august)),
        ];
        EntityView {
            key: EntityKey { partition: KeyText::parse("p'é").unwrap(), row: KeyText::parse("").unwrap() },
            etag: Etag::at(Timestamp::from_ticks(august.ticks() + 1_234_567)),
            properties: Properties(properties.map(|(name, value)| (name.to_owned(), value)).to_vec()),
        }
    }

    fn origin(metadata: Metadata, account: &AccountName) -> Origin<'_> {
        Origin { metadata, endpoint: "http://h/acct/", account }
    }

    #[test]
    fn an_entity_says_as_much_of_itself_as_is_asked() {
        const TYPED: &str = r#""i":-1,"l@odata.type":"Edm.Int64","l":"1099511627776","d":1.0,"n@odata.type":"Edm.Double","n":"NaN","m@odata.type":"Edm.Double","m":"-Infinity","b":true,"s":"\"\\\u0001é","bin@odata.type":"Edm.Binary","bin":"YWI=","g@odata.type":"Edm.Guid","g":"00000000-0000-0000-0000-000000000001","t@odata.type":"Edm.DateTime","t":"2026-08-01T00:00:00Z"}"#;
        const BARE: &str = r#"{"PartitionKey":"p'é","RowKey":"","Timestamp":"2026-08-01T00:00:00.1234567Z","i":-1,"l":"1099511627776","d":1.0,"n":"NaN","m":"-Infinity","b":true,"s":"\"\\\u0001é","bin":"YWI=","g":"00000000-0000-0000-0000-000000000001","t":"2026-08-01T00:00:00Z"}"#;
        const ETAG: &str = r#""odata.etag":"W/\"datetime'2026-08-01T00%3A00%3A00.1234567Z'\"","#;
        let keys = r#""PartitionKey":"p'é","RowKey":"","#;
        let minimal = format!(
            r#"{{"odata.metadata":"http://h/acct/$metadata#People/@Element",{ETAG}{keys}"Timestamp":"2026-08-01T00:00:00.1234567Z",{TYPED}"#
        );
        let full = format!(
            r#"{{"odata.metadata":"http://h/acct/$metadata#People/@Element","odata.type":"acct.People","odata.id":"http://h/acct/People(PartitionKey='p%27%27%C3%A9',RowKey='')",{ETAG}"odata.editLink":"People(PartitionKey='p%27%27%C3%A9',RowKey='')",{keys}"Timestamp@odata.type":"Edm.DateTime","Timestamp":"2026-08-01T00:00:00.1234567Z",{TYPED}"#
        );
        let (account, table) = (AccountName::parse("acct").unwrap(), TableName::parse("People").unwrap());
        for (metadata, expected) in [(Metadata::None, BARE), (Metadata::Minimal, &minimal), (Metadata::Full, &full)] {
            let written = origin(metadata, &account).entity(&table, &Select::All, &entity());
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }

    #[test]
    fn a_page_has_what_was_selected() {
        let (account, table) = (AccountName::parse("acct").unwrap(), TableName::parse("People").unwrap());
        let few = EntityView { properties: Properties(Vec::new()), ..entity() };
        let select = Select::Named(vec!["RowKey".into(), "x".into()]);
        let written = origin(Metadata::None, &account).entities(&table, &select, &[few.clone(), few]);
        assert_eq!(String::from_utf8(written).unwrap(), r#"{"value":[{"RowKey":""},{"RowKey":""}]}"#);
        let written = origin(Metadata::Minimal, &account).entities(&table, &Select::All, &[]);
        let expected = r#"{"odata.metadata":"http://h/acct/$metadata#People","value":[]}"#;
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn tables_are_written_like_entities() {
        let (account, table) = (AccountName::parse("acct").unwrap(), TableName::parse("People").unwrap());
        let cases = [
            (Metadata::None, r#"{"value":[{"TableName":"People"}]}"#),
            (
                Metadata::Minimal,
                r#"{"odata.metadata":"http://h/acct/$metadata#Tables","value":[{"TableName":"People"}]}"#,
            ),
            (
                Metadata::Full,
                r#"{"odata.metadata":"http://h/acct/$metadata#Tables","value":[{"odata.type":"acct.Tables","odata.id":"http://h/acct/Tables('People')","odata.editLink":"Tables('People')","TableName":"People"}]}"#,
            ),
        ];
        for (metadata, expected) in cases {
            let written = origin(metadata, &account).tables(std::slice::from_ref(&table));
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
        let one = origin(Metadata::Minimal, &account).table(&table);
        let expected = r#"{"odata.metadata":"http://h/acct/$metadata#Tables/@Element","TableName":"People"}"#;
        assert_eq!(String::from_utf8(one).unwrap(), expected);
    }

    #[test]
    fn versions_come_back() {
        let own = entity().etag;
        let text = String::from_utf8(etag(own)).unwrap();
        assert_eq!(text, "W/\"datetime'2026-08-01T00%3A00%3A00.1234567Z'\"");
        let nobody_s = Some(Etag::at(Timestamp::from_ticks(0)));
        let cases = [
            (text.as_str(), Some(own)),
            ("W/\"datetime'2026-08-01T00:00:00.1234567Z'\"", Some(own)),
            ("W/\"\"", nobody_s),
            ("W/\"datetime'soon'\"", nobody_s),
            ("W/\"%ff\"", nobody_s),
            ("W/\"a\"b\"", None),
            ("\"0x8DEEF5FD48B0000\"", None),
            ("0x8DEEF5FD48B0000", None),
            ("W/\"", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_etag(text), expected, "{text}");
        }
    }

    #[test]
    fn refusals_have_two_forms() {
        let json = refusal("TableNotFound", "It \"is\" gone.\nTime:1");
        let expected =
            r#"{"odata.error":{"code":"TableNotFound","message":{"lang":"en-US","value":"It \"is\" gone.\nTime:1"}}}"#;
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        let xml = String::from_utf8(refusal_xml("TableNotFound", "<gone>")).unwrap();
        assert!(xml.ends_with("<code>TableNotFound</code><message xml:lang=\"en-US\">&lt;gone&gt;</message></error>"));
    }
}
