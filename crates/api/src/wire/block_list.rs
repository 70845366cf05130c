//! Block ids and block lists. <https://learn.microsoft.com/rest/api/storageservices/put-block-list>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::blob::blocks::{
    BLOCK_ID_BYTES_MAX, BlockId, BlockLists, BlockSource, BlockView, COMMITTED_BLOCKS_MAX,
};

use crate::code::Code;
use crate::error::Problem;
use crate::wire::xml::{Document, Writer};

/// What is wrong with a text that is no id.
const NO_ID: &str = "It is not Base64 of 1 to 64 bytes.";

/// Which lists Get Block List is to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The committed one.
    pub committed: bool,
    /// The uncommitted one.
    pub uncommitted: bool,
}

impl Wanted {
    /// Reads `blocklisttype`; absent means the committed list.
    ///
    /// Refuses `InvalidQueryParameterValue`.
    pub fn parse(text: Option<&str>) -> Result<Self, Problem> {
        let text = text.unwrap_or("committed");
        match text.to_ascii_lowercase().as_str() {
            "committed" => Ok(Self { committed: true, uncommitted: false }),
            "uncommitted" => Ok(Self { committed: false, uncommitted: true }),
            "all" => Ok(Self { committed: true, uncommitted: true }),
            _ => Err(Problem::query("blocklisttype", text, "It is not committed, uncommitted or all.")),
        }
    }
}

/// Reads the id of a block in a query.
///
/// Refuses `InvalidQueryParameterValue`.
pub fn parse_id(text: &str) -> Result<BlockId, Problem> {
    decode(text).ok_or_else(|| Problem::query("blockid", text, NO_ID))
}

/// Reads the body of Put Block List. The order is the content's; an id may come repeatedly.
///
/// Refuses `InvalidXmlDocument`, `InvalidBlockId`, and `BlockListTooLong` for more than
/// [`COMMITTED_BLOCKS_MAX`] entries.
pub fn parse(body: &[u8]) -> Result<Vec<(BlockSource, BlockId)>, Problem> {
    let mut document = Document::open(body, "BlockList")?;
    let mut blocks = Vec::new();
    while let Some(name) = document.child()? {
        let source = match name.as_str() {
            "Committed" => BlockSource::Committed,
            "Uncommitted" => BlockSource::Uncommitted,
            "Latest" => BlockSource::Latest,
            _ => return Err(document.wrong("only Committed, Uncommitted and Latest belong here")),
        };
        if blocks.len() == COMMITTED_BLOCKS_MAX {
            return Err(Problem::new(Code::BlockListTooLong));
        }
        let text = document.text()?;
        let wrong = || Problem::new(Code::InvalidBlockId).detail("XmlNodeName", name).detail("XmlNodeValue", &text);
        let id = decode(&text).ok_or_else(|| wrong().detail("Reason", NO_ID))?;
        blocks.push((source, id));
    }
    document.close()?;
    Ok(blocks)
}

/// The body of Get Block List: the lists that are wanted.
pub fn document(lists: &BlockLists, wanted: Wanted) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open("BlockList");
    if wanted.committed {
        list(&mut xml, "CommittedBlocks", &lists.committed);
    }
    if wanted.uncommitted {
        list(&mut xml, "UncommittedBlocks", &lists.uncommitted);
    }
    xml.close("BlockList");
    xml.finish()
}

fn list(xml: &mut Writer, name: &str, blocks: &[BlockView]) {
    if blocks.is_empty() {
        return xml.empty(name);
    }
    xml.open(name);
    for block in blocks {
        xml.open("Block");
        xml.text("Name", &STANDARD.encode(&block.id.0));
        xml.text("Size", &block.length.to_string());
        xml.close("Block");
    }
    xml.close(name);
}

fn decode(text: &str) -> Option<BlockId> {
    let bytes = STANDARD.decode(text.trim()).ok()?;
    (1..=BLOCK_ID_BYTES_MAX).contains(&bytes.len()).then_some(BlockId(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(bytes: &[u8]) -> BlockId {
        BlockId(bytes.to_vec())
    }

    #[test]
    fn a_list_keeps_order_and_repetition() {
        let body = "<?xml version='1.0' encoding='utf-8'?>\n<BlockList>\n  <Latest>MQ==</Latest>\n  \
                    <Committed>Mg==</Committed><Uncommitted>MQ==</Uncommitted>\n</BlockList>";
        let expected = vec![
            (BlockSource::Latest, id(b"1")),
            (BlockSource::Committed, id(b"2")),
            (BlockSource::Uncommitted, id(b"1")),
        ];
        assert_eq!(parse(body.as_bytes()), Ok(expected));
        assert_eq!(parse(b"<BlockList/>"), Ok(vec![]));
    }

    #[test]
    fn bad_lists_are_refused() {
        let long = STANDARD.encode([0; 65]);
        let cases = [
            ("", Code::InvalidXmlDocument),
            ("<BlockList>", Code::InvalidXmlDocument),
            ("<BlockList><Newest>MQ==</Newest></BlockList>", Code::InvalidXmlDocument),
            ("<BlockList><Latest><Id/></Latest></BlockList>", Code::InvalidXmlDocument),
            ("<BlockList><Latest>?</Latest></BlockList>", Code::InvalidBlockId),
            ("<BlockList><Latest/></BlockList>", Code::InvalidBlockId),
            (&format!("<BlockList><Latest>{long}</Latest></BlockList>"), Code::InvalidBlockId),
        ];
        for (body, code) in cases {
            assert_eq!(parse(body.as_bytes()).map_err(|problem| problem.code), Err(code), "{body}");
        }
    }

    #[test]
    fn a_list_has_at_most_fifty_thousand_entries() {
        let body = |entries| format!("<BlockList>{}</BlockList>", "<Latest>MQ==</Latest>".repeat(entries));
        assert_eq!(parse(body(50_000).as_bytes()).map(|blocks| blocks.len()), Ok(50_000));
        assert_eq!(parse(body(50_001).as_bytes()).unwrap_err().code, Code::BlockListTooLong);
    }

    #[test]
    fn an_id_in_a_query_is_base64_of_up_to_64_bytes() {
        assert_eq!(parse_id("MQ=="), Ok(id(b"1")));
        assert_eq!(parse_id(&STANDARD.encode([7; 64])), Ok(id(&[7; 64])));
        for text in ["", "1", "MQ=", "MQ", "!!!!", &STANDARD.encode([7; 65])] {
            assert_eq!(parse_id(text).unwrap_err().code, Code::InvalidQueryParameterValue, "{text}");
        }
    }

    #[test]
    fn only_the_lists_that_are_wanted_are_answered() {
        let lists =
            BlockLists { blob: None, committed: vec![BlockView { id: id(b"1"), length: 10 }], uncommitted: Vec::new() };
        let body = |text| String::from_utf8(document(&lists, Wanted::parse(text).unwrap())).unwrap();
        let committed = "<CommittedBlocks><Block><Name>MQ==</Name><Size>10</Size></Block></CommittedBlocks>";
        assert!(body(None).ends_with(&format!("<BlockList>{committed}</BlockList>")));
        assert!(body(Some("All")).ends_with(&format!("<BlockList>{committed}<UncommittedBlocks /></BlockList>")));
        assert!(body(Some("uncommitted")).ends_with("<BlockList><UncommittedBlocks /></BlockList>"));
        assert_eq!(Wanted::parse(Some("none")).unwrap_err().code, Code::InvalidQueryParameterValue);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
