//! What goes in and what comes out, by tables.

use lazuli_tests::harness::Lazuli;

use crate::{CSV_WITH_HEADERS, JSON, results};

fn delimited(settings: &str) -> String {
    format!("<Type>delimited</Type><DelimitedTextConfiguration>{settings}</DelimitedTextConfiguration>")
}

fn json(separator: &str) -> String {
    format!(
        "<Type>json</Type><JsonTextConfiguration><RecordSeparator>{separator}</RecordSeparator></JsonTextConfiguration>"
    )
}

const PEOPLE: &str = "Name,Age,Place of birth\r\nAnn,41,Rome\r\nBob,7,\"Paris, Texas\"\r\nCleo,,\r\n";

#[tokio::test]
async fn delimited_text_is_selected_from() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("people.csv");
    blob.put(PEOPLE).await.expect(201);
    let no_headers = delimited("<HasHeaders>false</HasHeaders>");
    let semicolons = delimited(
        "<ColumnSeparator>;</ColumnSeparator><FieldQuote>'</FieldQuote><RecordSeparator>.</RecordSeparator>\
         <EscapeChar>\\</EscapeChar><HasHeaders>true</HasHeaders>",
    );
    let cases: [(&str, &str, &str, &str); 14] = [
        ("SELECT * FROM BlobStorage LIMIT 1", "", "", "Name,Age,Place of birth\n"),
        (
            "SELECT * FROM BlobStorage",
            CSV_WITH_HEADERS,
            "",
            "Name,Age,Place of birth\nAnn,41,Rome\nBob,7,\"Paris, Texas\"\nCleo,,\n",
        ),
        ("SELECT * FROM BlobStorage", CSV_WITH_HEADERS, &no_headers, "Ann,41,Rome\nBob,7,\"Paris, Texas\"\nCleo,,\n"),
        (
            "SELECT _3, name FROM BlobStorage WHERE Age <> ''",
            CSV_WITH_HEADERS,
            &no_headers,
            "Rome,Ann\n\"Paris, Texas\",Bob\n",
        ),
        ("SELECT \"Place of birth\" FROM BlobStorage WHERE name = 'Ann'", CSV_WITH_HEADERS, &no_headers, "Rome\n"),
        ("SELECT name, _2 FROM BlobStorage LIMIT 1", CSV_WITH_HEADERS, "", "name,_2\nAnn,41\n"),
        (
            "SELECT * FROM BlobStorage WHERE name LIKE 'B%'",
            CSV_WITH_HEADERS,
            &semicolons,
            "Name;Age;Place of birth.Bob;7;Paris, Texas.",
        ),
        ("SELECT 1.5, 'it''s' FROM BlobStorage LIMIT 1", CSV_WITH_HEADERS, &semicolons, "_1;_2.'1.5';'it\\'s'."),
        (
            "SELECT * FROM BlobStorage WHERE name = 'Ann'",
            CSV_WITH_HEADERS,
            JSON,
            "{\"Name\":\"Ann\",\"Age\":\"41\",\"Place of birth\":\"Rome\"}\n",
        ),
        ("SELECT _2 FROM BlobStorage LIMIT 2", "", JSON, "{\"_1\":\"Age\"}\n{\"_1\":\"41\"}\n"),
        (
            "SELECT name, CAST(age AS INT) AS years FROM BlobStorage LIMIT 1",
            CSV_WITH_HEADERS,
            JSON,
            "{\"name\":\"Ann\",\"years\":41}\n",
        ),
        (
            "SELECT COUNT(*) AS n, MAX(CAST(_2 AS INT)) FROM BlobStorage WHERE _2 <> ''",
            CSV_WITH_HEADERS,
            JSON,
            "{\"n\":2,\"_2\":41}\n",
        ),
        ("SELECT AVG(age), SUM(age) FROM BlobStorage WHERE age <> ''", CSV_WITH_HEADERS, &no_headers, "24,48\n"),
        (
            "SELECT CASE WHEN age = '' THEN NULL ELSE age END FROM BlobStorage",
            CSV_WITH_HEADERS,
            JSON,
            "{\"_1\":\"41\"}\n{\"_1\":\"7\"}\n{\"_1\":null}\n",
        ),
    ];
    for (expression, input, output, expected) in cases {
        assert_eq!(results(&blob, expression, input, output).await, expected, "{expression}");
    }
}

const DOCUMENTS: &str = r#"{"id": 1, "name": "mouse", "price": 12.50, "tags": ["wireless", "accessory"],
  "dimensions": {"length": 3, "width": 2}, "warehouses": [{"latitude": 41.8, "longitude": -87.6}]}
{"id": 2, "name": "cable", "tags": [], "big": 12345678901234567890123}"#;

#[tokio::test]
async fn json_is_selected_from() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("things.json");
    blob.put(DOCUMENTS).await.expect(201);
    let csv = delimited("");
    let semicolon = json(";");
    let cases: [(&str, &str, &str); 11] = [
        (
            "SELECT weight,warehouses[0].longitude,id,tags[1] FROM BlobStorage[*]",
            "",
            "{\"longitude\":-87.6,\"id\":1,\"_4\":\"accessory\"}\n{\"id\":2}\n",
        ),
        ("SELECT latitude FROM BlobStorage[*].warehouses[*]", "", "{\"latitude\":41.8}\n"),
        ("SELECT length FROM BlobStorage[*].dimensions", &csv, "3\n"),
        ("SELECT * FROM BlobStorage[*].tags[*]", "", "{\"_1\":\"wireless\"}\n{\"_1\":\"accessory\"}\n"),
        ("SELECT name FROM BlobStorage WHERE price IS MISSING", &semicolon, "{\"name\":\"cable\"};"),
        ("SELECT name, price FROM BlobStorage", &csv, "mouse,12.5\ncable,\n"),
        ("SELECT dimensions FROM BlobStorage WHERE id = 1", "", "{\"dimensions\":{\"length\":3,\"width\":2}}\n"),
        ("SELECT dimensions FROM BlobStorage WHERE id = 1", &csv, "\"{\"\"length\"\":3,\"\"width\"\":2}\"\n"),
        (
            "SELECT * FROM BlobStorage WHERE id = 2",
            "",
            "{\"id\":2,\"name\":\"cable\",\"tags\":[],\"big\":12345678901234567890123}\n",
        ),
        ("SELECT * FROM BlobStorage[*].dimensions", &csv, "3,2\n"),
        (
            "SELECT SUM(id), COUNT(price), MIN(name) AS first FROM BlobStorage",
            "",
            "{\"_1\":3,\"_2\":1,\"first\":\"cable\"}\n",
        ),
    ];
    for (expression, output, expected) in cases {
        assert_eq!(results(&blob, expression, JSON, output).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn separators_that_the_input_has_are_known() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("data");
    let dots = "<ColumnSeparator>.</ColumnSeparator><RecordSeparator>!</RecordSeparator>";
    let (input, output) = (delimited(&format!("{dots}<HasHeaders>true</HasHeaders>")), delimited(dots));
    blob.put("100.200!150.250!180.280!").await.expect(201);
    assert_eq!(results(&blob, "select _1 from BlobStorage", &input, &output).await, "150!180!");

    blob.put(r#"{"name":"owner","id":1}{"name2":"owner2"};{"name":"owner"}"#).await.expect(201);
    let expected = "{\"name\":\"owner\"}\n{}\n{\"name\":\"owner\"}\n";
    assert_eq!(results(&blob, "SELECT name from BlobStorage", &json(";"), JSON).await, expected);
}

#[tokio::test]
async fn all_headers_are_written_though_the_first_record_has_fewer_fields() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("data");
    blob.put("a,b,c\n1\n1,2,3,4\n").await.expect(201);
    let all = results(&blob, "SELECT * FROM BlobStorage", CSV_WITH_HEADERS, "").await;
    assert_eq!(all, "a,b,c\n1\n1,2,3,4\n");
}
