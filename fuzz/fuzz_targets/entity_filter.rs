//! A filter on whatever bytes lie in an entity's row: it answers or finds the row damaged, and what matches lies within
//! the keys that are read for it.
#![no_main]

use lazuli_engine::clock::Timestamp;
use lazuli_engine::etag::Etag;
use lazuli_engine::names::KeyText;
use lazuli_engine::rows::entity::{self, body};
use lazuli_engine::table::EntityKey;
use lazuli_engine::table::expression::{Expression, Field, Matcher, Operator, StoredEntity, bounds};
use lazuli_engine::table::value::Value;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut data = Data(data);
    let expression = data.expression(0);
    let (partition, row) = (data.text(), data.text());
    let body = data.0;
    // The row.
    let decoded = body::decode(b"", body);
    if let Ok(properties) = &decoded {
        assert_eq!(body::encode(properties).expect("read from bytes"), body);
    }
    let split = entity::split(b"", body).map(|(etag, parts, rest)| (etag, parts, rest.len()));
    assert!(split.is_err() || split.is_ok_and(|(.., rest)| rest + 10 == body.len()));
    // The filter on it.
    let (Ok(partition), Ok(row)) = (KeyText::parse(&partition), KeyText::parse(&row)) else { return };
    let key = entity::key(7, &EntityKey { partition, row });
    let etag = Etag::at(Timestamp::from_ticks(u64::from(data.byte())));
    let entity = StoredEntity::new(&key, etag, body).expect("a key that was just made");
    let matches = Matcher::new(&expression).matches(&entity);
    assert!(matches.is_ok() || decoded.is_err(), "{matches:?}");
    let bounds = bounds(&expression);
    for pair in bounds.windows(2) {
        assert!(pair[0].end.as_ref().is_some_and(|end| *end < pair[1].start), "{bounds:?}");
    }
    let inside = bounds.iter().any(|stretch| stretch.contains(&key[8..]));
    assert!(inside || matches != Ok(true), "{expression:?} {bounds:?}");
    // Whatever is in a key, a reader refuses it or answers what a writer turns into the same bytes again.
    if let Ok(parsed) = entity::parse_key(body) {
        let incarnation = u64::from_be_bytes(body[..8].try_into().expect("read before"));
        assert_eq!(entity::key(incarnation, &parsed), body);
    }
});

/// Bytes from which things are made; zeros when they have run out.
struct Data<'a>(&'a [u8]);

impl Data<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn text(&mut self) -> String {
        let length = usize::from(self.byte() % 8).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    fn expression(&mut self, depth: usize) -> Expression {
        match self.byte() % 8 {
            0 => Expression::Constant(self.byte() % 2 == 0),
            1 | 2 if depth < 20 => {
                let inner = (0..self.byte() % 4).map(|_| self.expression(depth + 1)).collect();
                if self.byte() % 2 == 0 { Expression::All(inner) } else { Expression::Any(inner) }
            }
            3 if depth < 20 => Expression::Not(Box::new(self.expression(depth + 1))),
            _ => {
                let field = match self.byte() % 4 {
                    0 => Field::PartitionKey,
                    1 => Field::RowKey,
                    2 => Field::Timestamp,
                    _ => Field::Property(self.text()),
                };
                let operator = match self.byte() % 6 {
                    0 => Operator::Equal,
                    1 => Operator::NotEqual,
                    2 => Operator::Greater,
                    3 => Operator::GreaterOrEqual,
                    4 => Operator::Less,
                    _ => Operator::LessOrEqual,
                };
                Expression::Compare { field, operator, value: self.value() }
            }
        }
    }

    fn value(&mut self) -> Value {
        match self.byte() % 9 {
            0 => Value::Binary(self.text().into_bytes()),
            1 => Value::Boolean(self.byte() % 2 == 0),
            2 => Value::DateTime(Timestamp::from_ticks(self.number())),
            3 => Value::Double(f64::from_bits(self.number())),
            4 => Value::Guid(uuid::Uuid::from_u64_pair(self.number(), self.number())),
            5 => Value::Int32(i32::from_le_bytes(std::array::from_fn(|_| self.byte()))),
            6 => Value::Int64(self.number().cast_signed()),
            _ => Value::String(self.text()),
        }
    }
}
