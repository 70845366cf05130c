use proptest::prelude::*;

use super::*;

fn body(inside: &str) -> String {
    format!("<?xml version='1.0' encoding='utf-8'?>\n<QueryRequest>{inside}</QueryRequest>")
}

fn asked(input: &str, output: &str) -> Result<QueryRequest, Problem> {
    let wrapped = |name: &str, format: &str| match format {
        "" => String::new(),
        format => format!("<{name}><Format>{format}</Format></{name}>"),
    };
    let (input, output) = (wrapped("InputSerialization", input), wrapped("OutputSerialization", output));
    let text = body(&format!("<QueryType>SQL</QueryType><Expression>SELECT *</Expression>{input}{output}"));
    parse(text.as_bytes())
}

#[test]
fn formats_have_defaults() {
    let default = Format::Delimited(Delimited::default());
    let json = |separator: &str| Format::Json { separator: separator.to_owned() };
    let settings = "<Type>delimited</Type><DelimitedTextConfiguration><ColumnSeparator>;</ColumnSeparator><FieldQuote>'\
                    </FieldQuote><RecordSeparator>\n</RecordSeparator><EscapeChar>\\</EscapeChar><HasHeaders>true\
                    </HasHeaders></DelimitedTextConfiguration>";
    let semicolons = Format::Delimited(Delimited {
        column: b';',
        quote: Some(b'\''),
        record: "\n".to_owned(),
        escape: Some(b'\\'),
        headers: true,
    });
    let bare = "<Type>delimited</Type><DelimitedTextConfiguration><FieldQuote/><RecordSeparator/><EscapeChar />\
                <HasHeaders>false</HasHeaders></DelimitedTextConfiguration>";
    let unquoted = Format::Delimited(Delimited { quote: None, ..Delimited::default() });
    let arrow = "<Type>arrow</Type><ArrowConfiguration><Schema><Field><Type>decimal</Type><Name>abc</Name><Precision>4\
                 </Precision><Scale>2</Scale></Field></Schema></ArrowConfiguration>";
    let decimal = ArrowField { kind: "decimal".into(), name: "abc".into(), precision: Some(4), scale: Some(2) };
    let cases = [
        ("", "", default.clone(), default.clone()),
        ("<Type>delimited</Type>", "", default.clone(), default.clone()),
        (settings, "", semicolons.clone(), semicolons.clone()),
        (settings, "<Type>json</Type>", semicolons, json("\n")),
        (bare, "<Type>Delimited</Type>", unquoted.clone(), default.clone()),
        (&bare.replace("delimited", "CSV"), "<Type>csv</Type>", unquoted, default.clone()),
        ("<Type>json</Type>", "", json("\n"), json("\n")),
        (
            "<Type>json</Type>",
            "<Type>json</Type><JsonTextConfiguration><RecordSeparator>;</RecordSeparator></JsonTextConfiguration>",
            json("\n"),
            json(";"),
        ),
        (
            "<Type>parquet</Type><ParquetTextConfiguration> </ParquetTextConfiguration>",
            "",
            Format::Parquet,
            default.clone(),
        ),
        ("", arrow, default, Format::Arrow(vec![decimal])),
    ];
    for (input, output, expected_input, expected_output) in cases {
        let request = asked(input, output).unwrap();
        assert_eq!((request.input, request.output), (expected_input, expected_output), "{input} {output}");
    }
}

#[test]
fn separators_may_be_written_as_they_are() {
    for (written, expected) in [("&#13;&#10;", "\r\n"), ("&#xa;", "\n"), ("!", "!")] {
        let input = format!(
            "<Type>delimited</Type><DelimitedTextConfiguration><RecordSeparator>{written}</RecordSeparator>\
             </DelimitedTextConfiguration>"
        );
        let Format::Delimited(delimited) = asked(&input, "").unwrap().input else { panic!("{written}") };
        assert_eq!(delimited.record, expected);
    }
}

#[test]
fn bad_requests_are_refused() {
    let statement = "<QueryType>SQL</QueryType><Expression>SELECT *</Expression>";
    let format =
        |inside: &str| body(&format!("{statement}<InputSerialization><Format>{inside}</Format></InputSerialization>"));
    let delimited = |inside: &str| {
        format(&format!("<Type>delimited</Type><DelimitedTextConfiguration>{inside}</DelimitedTextConfiguration>"))
    };
    let long = format!("<QueryType>SQL</QueryType><Expression>{}</Expression>", "a".repeat(EXPRESSION_BYTES_MAX + 1));
    let cases = [
        (String::new(), Code::InvalidXmlDocument),
        ("<QueryRequest>".to_owned(), Code::InvalidXmlDocument),
        ("<Other/>".to_owned(), Code::InvalidXmlDocument),
        (body("<Nonsense/>"), Code::InvalidXmlDocument),
        (body("<Expression>SELECT *</Expression>"), Code::MissingRequiredXmlNode),
        (body("<QueryType>SQL</QueryType>"), Code::MissingRequiredXmlNode),
        (body("<QueryType>SQL</QueryType><Expression> </Expression>"), Code::MissingRequiredXmlNode),
        (body("<QueryType>KQL</QueryType><Expression>x</Expression>"), Code::InvalidXmlNodeValue),
        (body(&long), Code::OutOfRangeInput),
        (body(&format!("{statement}<InputSerialization><Other/></InputSerialization>")), Code::InvalidXmlDocument),
        (format("<Type>avro</Type>"), Code::InvalidXmlNodeValue),
        (format("<Type>arrow</Type>"), Code::MissingRequiredXmlNode),
        (format("<Type>arrow</Type><ArrowConfiguration/>"), Code::InvalidXmlNodeValue),
        (format("<DelimitedTextConfiguration/>"), Code::MissingRequiredXmlNode),
        (format("<Type>json</Type><DelimitedTextConfiguration/>"), Code::InvalidXmlNodeValue),
        (delimited("<ColumnSeparator>ab</ColumnSeparator>"), Code::InvalidXmlNodeValue),
        (delimited("<ColumnSeparator>ä</ColumnSeparator>"), Code::InvalidXmlNodeValue),
        (delimited("<RecordSeparator>ab</RecordSeparator>"), Code::InvalidXmlNodeValue),
        (delimited("<RecordSeparator>,</RecordSeparator>"), Code::InvalidXmlNodeValue),
        (delimited("<FieldQuote>,</FieldQuote>"), Code::InvalidXmlNodeValue),
        (delimited("<RecordSeparator>\"</RecordSeparator>"), Code::InvalidXmlNodeValue),
        (delimited("<HasHeaders>maybe</HasHeaders>"), Code::InvalidXmlNodeValue),
        (delimited("<Other/>"), Code::InvalidXmlDocument),
    ];
    for (text, code) in cases {
        assert_eq!(parse(text.as_bytes()).map_err(|problem| problem.code), Err(code), "{text:.300}");
    }
    let output = |kind: &str| asked("", kind).map_err(|problem| problem.code);
    assert_eq!(output("<Type>parquet</Type>"), Err(Code::InvalidXmlNodeValue));
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }
}
