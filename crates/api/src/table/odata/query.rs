//! The query of a request for many entities or tables.
//! <https://learn.microsoft.com/rest/api/storageservices/query-operators-supported-for-the-table-service>

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lazuli_engine::names::TableName;
use lazuli_engine::table::EntityKey;
use lazuli_engine::table::expression::Expression;

use super::filter;
use super::path::{self, KEYS};
use crate::answer::Answer;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;

/// Most entities or tables of a page; also how many there are if the request does not say.
pub const PAGE_MAX: usize = 1000;
/// Most properties that can be selected.
const SELECTED_MAX: usize = 255;
/// Options that are read here or elsewhere; all others that begin with a dollar sign are none of this service.
const OPTIONS: [&str; 4] = ["$filter", "$format", "$select", "$top"];
/// What continuation tokens begin with.
const TOKEN: &str = "1!";
/// Where the next page of tables begins: the parameter.
const NEXT_TABLE: &str = "NextTableName";
/// Where the next page of entities begins: the parameters.
const NEXT_KEYS: [&str; 2] = ["NextPartitionKey", "NextRowKey"];

/// What a page holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Only what it matches.
    pub filter: Option<Expression>,
    /// Most entities or tables, 1 to [`PAGE_MAX`].
    pub limit: usize,
    /// Which of their properties.
    pub select: Select,
}

/// Which properties are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All.
    All,
    /// Those that are named.
    Named(Vec<String>),
}

impl Select {
    /// Reads `$select`.
    ///
    /// Refuses `InvalidInput`.
    pub fn parse(fields: &Fields) -> Result<Self, Problem> {
        let Some(list) = fields.query_opt("$select") else { return Ok(Self::All) };
        let names: Vec<_> = list.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(|name| name == "*") {
            return Ok(Self::All);
        }
        if names.len() > SELECTED_MAX {
            return Err(wrong("$select", "It names more than 255 properties."));
        }
        if names.iter().any(String::is_empty) {
            return Err(wrong("$select", "It names a property without a name."));
        }
        Ok(Self::Named(names))
    }

    /// Whether the property is asked for.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|own| own == name),
        }
    }

    /// The properties that are named; none if all are asked for.
    pub fn names(self) -> Option<Vec<String>> {
        match self {
            Self::All => None,
            Self::Named(names) => Some(names),
        }
    }
}

impl Options {
    /// Reads `$filter`, `$top` and `$select`.
    ///
    /// Refuses `NotImplemented` for other options, `InvalidInput`, and what [`filter::of_query`] refuses.
    pub fn parse(fields: &Fields) -> Result<Self, Problem> {
        check_options(fields)?;
        let filter = fields.query_opt("$filter").map(filter::of_query).transpose()?;
        let limit = match fields.query_opt("$top") {
            None => PAGE_MAX,
            Some(text) => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let limit = text.parse().ok().filter(|limit| digits && (1..=PAGE_MAX).contains(limit));
                limit.ok_or_else(|| wrong("$top", "It is not a number from 1 to 1000."))?
            }
        };
        Ok(Self { filter, limit, select: Select::parse(fields)? })
    }
}

/// Sees to it that a request asks for nothing that this service cannot do.
///
/// Refuses `NotImplemented`.
pub fn check_options(fields: &Fields) -> Result<(), Problem> {
    let unknown = |name: &&str| name.starts_with('$') && !OPTIONS.iter().any(|own| name.eq_ignore_ascii_case(own));
    match fields.query_pairs().iter().map(|(name, _)| name.as_str()).find(unknown) {
        Some(name) => Err(Problem::not_implemented(&format!("The query option {name}"))),
        None => Ok(()),
    }
}

/// Where a page of entities begins, if the request says so. Without a row it is the first of the partition.
///
/// Refuses `InvalidInput` for what this service did not make.
pub fn start(fields: &Fields) -> Result<Option<EntityKey>, Problem> {
    let [partition, row] = NEXT_KEYS.map(|name| fields.query_opt(name).map(|token| (name, token)));
    let Some(partition) = partition else {
        return match row {
            Some((name, _)) => Err(wrong(name, "NextPartitionKey is missing.")),
            None => Ok(None),
        };
    };
    let read = |key, (name, token): (&str, &str)| path::key(key, &decode(name, token)?).map_err(|_| not_ours(name));
    let [first, second] = KEYS;
    let row = row.unwrap_or(("NextRowKey", "1!0!"));
    Ok(Some(EntityKey { partition: read(first, partition)?, row: read(second, row)? }))
}

/// Where a page of tables begins, if the request says so.
///
/// Refuses `InvalidInput` for what this service did not make.
pub fn first_table(fields: &Fields) -> Result<Option<TableName>, Problem> {
    let Some(token) = fields.query_opt(NEXT_TABLE) else { return Ok(None) };
    TableName::parse(&decode(NEXT_TABLE, token)?).map(Some).map_err(|_| not_ours(NEXT_TABLE))
}

/// The answer with what says where the next page begins, if there is one.
#[must_use]
pub fn continued(answer: Answer, next: Option<&EntityKey>) -> Answer {
    let Some(EntityKey { partition, row }) = next else { return answer };
    answer
        .header("x-ms-continuation-nextpartitionkey", encode(partition.as_str()))
        .header("x-ms-continuation-nextrowkey", encode(row.as_str()))
}

/// As [`continued`], of tables.
#[must_use]
pub fn tables_continued(answer: Answer, next: Option<&TableName>) -> Answer {
    answer.header_opt("x-ms-continuation-nexttablename", next.map(|next| encode(next.as_str())))
}

/// Never empty, and the same in a URL as in a header.
fn encode(text: &str) -> String {
    let text = URL_SAFE_NO_PAD.encode(text);
    format!("{TOKEN}{}!{text}", text.len())
}

fn decode(name: &str, token: &str) -> Result<String, Problem> {
    let text = || {
        let (length, text) = token.strip_prefix(TOKEN)?.split_once('!')?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|_| length == text.len().to_string())?;
        String::from_utf8(bytes).ok()
    };
    text().ok_or_else(|| not_ours(name))
}

fn not_ours(name: &str) -> Problem {
    wrong(name, "It was not made by this service.")
}

fn wrong(name: &str, reason: &str) -> Problem {
    Problem::new(Code::InvalidInput)
        .saying(format!("The value of the query parameter {name} is invalid: {reason}"))
        .detail("QueryParameterName", name)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use lazuli_engine::names::KeyText;
    use proptest::prelude::*;

    use super::*;
    use crate::head::HeaderCase;

    fn fields(query: &str) -> Fields {
        Fields::parse(HeaderMap::new(), Some(query), HeaderCase::default()).unwrap()
    }

    #[test]
    fn options_have_their_bounds() {
        let many = |count: usize| format!("$select={}", vec!["a"; count].join(","));
        let cases = [
            ("", Ok((1000, true))),
            ("$top=1", Ok((1, true))),
            ("$top=1000&$format=x&other=1", Ok((1000, true))),
            ("$top=0", Err(Code::InvalidInput)),
            ("$top=-1", Err(Code::InvalidInput)),
            ("$top=1001", Err(Code::InvalidInput)),
            ("$top=%2B5", Err(Code::InvalidInput)),
            ("$top=x", Err(Code::InvalidInput)),
            ("$select=a", Ok((1000, false))),
            ("$select=a,*", Ok((1000, true))),
            ("$select=a,", Err(Code::InvalidInput)),
            (&many(255), Ok((1000, false))),
            (&many(256), Err(Code::InvalidInput)),
            ("$filter=a", Ok((1000, true))),
            ("$filter=(", Err(Code::InvalidInput)),
            ("$orderby=a", Err(Code::NotImplemented)),
            ("$skip=1", Err(Code::NotImplemented)),
            ("%24expand=a", Err(Code::NotImplemented)),
        ];
        for (query, expected) in cases {
            let options = Options::parse(&fields(query));
            let found = options.map(|options| (options.limit, options.select == Select::All));
            assert_eq!(found.map_err(|problem| problem.code), expected, "{query}");
        }
        let select = Select::parse(&fields("$select=a,%20RowKey")).unwrap();
        assert!(select.has("a") && select.has("RowKey") && !select.has("b"));
        assert_eq!(select.names().map(|names| names.len()), Some(2));
    }

    #[test]
    fn tokens_are_ours_or_refused() {
        let cases = [
            ("NextPartitionKey=1!4!YWJj", Ok(Some(("abc", "")))),
            ("NextPartitionKey=1!0!&NextRowKey=1!4!YWJj", Ok(Some(("", "abc")))),
            ("NextRowKey=1!4!YWJj", Err(Code::InvalidInput)),
            ("NextPartitionKey=abc", Err(Code::InvalidInput)),
            ("NextPartitionKey=1!5!YWJj", Err(Code::InvalidInput)),
            ("NextPartitionKey=1!4!YW*j", Err(Code::InvalidInput)),
            ("NextPartitionKey=1!2!_w", Err(Code::InvalidInput)),
            ("NextPartitionKey=1!2!Lw", Err(Code::InvalidInput)),
            ("", Ok(None)),
        ];
        for (query, expected) in cases {
            let start = start(&fields(query)).map_err(|problem| problem.code);
            let shown = start.as_ref().map(|key| key.as_ref().map(|key| (key.partition.as_str(), key.row.as_str())));
            assert_eq!(shown, expected.as_ref().map(|key| *key), "{query}");
        }
        let table = |query: &str| first_table(&fields(query)).map_err(|problem| problem.code);
        assert_eq!(table("NextTableName=1!4!YWJj"), Ok(TableName::parse("abc").ok()));
        assert_eq!(table("NextTableName=1!2!YQ"), Err(Code::InvalidInput));
        assert_eq!(table(""), Ok(None));
    }

    proptest! {
        #[test]
        fn tokens_come_back(partition in "[^/\\\\#?\\pC]{0,30}", row in "[^/\\\\#?\\pC]{0,30}") {
            let key = EntityKey { partition: KeyText::parse(&partition).unwrap(), row: KeyText::parse(&row).unwrap() };
            let answer = continued(Answer::ok(), Some(&key));
            let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
            let query = format!(
                "NextPartitionKey={}&NextRowKey={}",
                header("x-ms-continuation-nextpartitionkey"),
                header("x-ms-continuation-nextrowkey")
            );
            prop_assert_eq!(start(&fields(&query)), Ok(Some(key)));
        }
    }
}
