//! The types of properties and the forms of their values in JSON.
//! <https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations#property-types-in-a-json-feed>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::table::value::Value;
use uuid::Uuid;

use super::document::Raw;
use super::instant;
use crate::code::Code;
use crate::error::Problem;

/// 1601-01-01T00:00:00Z, the first instant that a property can have.
const FIRST_INSTANT: Timestamp = Timestamp::from_ticks(504_911_232_000_000_000);
/// Most bytes of a property; of a text, two for each code unit of UTF-16.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A type of the Entity Data Model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the types of `Value`")]
pub enum Edm {
    Binary,
    Boolean,
    DateTime,
    Double,
    Guid,
    Int32,
    Int64,
    String,
}

impl Edm {
    const ALL: [Self; 8] =
        [Self::Binary, Self::Boolean, Self::DateTime, Self::Double, Self::Guid, Self::Int32, Self::Int64, Self::String];

    /// The type that an annotation names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edm| edm.name() == name)
    }

    /// The type of a value.
    pub const fn of(value: &Value) -> Self {
        match value {
            Value::Binary(_) => Self::Binary,
            Value::Boolean(_) => Self::Boolean,
            Value::DateTime(_) => Self::DateTime,
            Value::Double(_) => Self::Double,
            Value::Guid(_) => Self::Guid,
            Value::Int32(_) => Self::Int32,
            Value::Int64(_) => Self::Int64,
            Value::String(_) => Self::String,
        }
    }

    /// `Edm.Int64`
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "Edm.Binary",
            Self::Boolean => "Edm.Boolean",
            Self::DateTime => "Edm.DateTime",
            Self::Double => "Edm.Double",
            Self::Guid => "Edm.Guid",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::String => "Edm.String",
        }
    }
}

/// The value of a property that a document has as `raw`, of the type that its annotation names or its JSON shows; none
/// for null.
///
/// Refuses `InvalidInput` for an unknown type and for a list or an object, `InvalidValueType` for what is not of the
/// type, `OutOfRangeInput` for an instant before 1601, `PropertyValueTooLarge`.
pub fn value(name: &str, annotation: Option<&str>, raw: Raw) -> Result<Option<Value>, Problem> {
    let edm = match annotation {
        None => None,
        Some(text) => Some(Edm::parse(text).ok_or_else(|| {
            of(name, Code::InvalidInput).saying(format!("The type {text} of the property {name} is not known."))
        })?),
    };
    let value = match (raw, edm) {
        (Raw::Null, _) => return Ok(None),
        (Raw::Nested, _) => {
            let problem = of(name, Code::InvalidInput);
            return Err(problem.saying(format!("The property {name} is a list or an object; it can be neither.")));
        }
        (raw, Some(edm)) => typed(edm, raw),
        (raw, None) => Some(untyped(raw)),
    };
    let value = value.ok_or_else(|| {
        let edm = edm.map_or("", Edm::name);
        of(name, Code::InvalidValueType).saying(format!("The value of the property {name} is not of the type {edm}."))
    })?;
    check(name, &value)?;
    Ok(Some(value))
}

/// A number is an integer only if it looks like one and is of 32 bits: larger ones are annotated.
fn untyped(raw: Raw) -> Value {
    match raw {
        Raw::Boolean(boolean) => Value::Boolean(boolean),
        Raw::Integer(number) => i32::try_from(number).map_or_else(|_| Value::Double(nearest(number)), Value::Int32),
        Raw::Number(number) => Value::Double(number),
        Raw::Text(text) => Value::String(text),
        // Told apart before.
        Raw::Null | Raw::Nested => Value::String(String::new()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double is the nearest one")]
const fn nearest(number: i128) -> f64 {
    number as f64
}

/// None if it is not of the type. What is annotated may be a text, whatever its type: so clients write back what they
/// read with types.
fn typed(edm: Edm, raw: Raw) -> Option<Value> {
    Some(match (edm, raw) {
        (Edm::Boolean, Raw::Boolean(boolean)) => Value::Boolean(boolean),
        (Edm::Boolean, Raw::Text(text)) => Value::Boolean(text.to_ascii_lowercase().parse().ok()?),
        (Edm::Int32, Raw::Integer(number)) => Value::Int32(number.try_into().ok()?),
        (Edm::Int32, Raw::Text(text)) => Value::Int32(text.parse().ok()?),
        (Edm::Int64, Raw::Integer(number)) => Value::Int64(number.try_into().ok()?),
        (Edm::Int64, Raw::Text(text)) => Value::Int64(text.parse().ok()?),
        (Edm::Double, Raw::Integer(number)) => Value::Double(nearest(number)),
        (Edm::Double, Raw::Number(number)) => Value::Double(number),
        (Edm::Double, Raw::Text(text)) => Value::Double(double(&text)?),
        (Edm::String, Raw::Text(text)) => Value::String(text),
        (Edm::Binary, Raw::Text(text)) => Value::Binary(STANDARD.decode(text).ok()?),
        (Edm::Guid, Raw::Text(text)) => Value::Guid(guid(&text)?),
        (Edm::DateTime, Raw::Text(text)) => Value::DateTime(instant::parse(&text)?),
        _ => return None,
    })
}

/// A double, with the names that the service has for what is no number or not finite.
pub fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) => {
            text.parse().ok().filter(|number: &f64| number.is_finite())
        }
        _ => None,
    }
}

/// A GUID in its usual form, with four hyphens.
pub fn guid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 36)
}

/// Refuses `OutOfRangeInput` and `PropertyValueTooLarge`.
fn check(name: &str, value: &Value) -> Result<(), Problem> {
    let bytes = match value {
        Value::String(text) => 2 * text.encode_utf16().count(),
        Value::Binary(bytes) => bytes.len(),
        Value::DateTime(time) if *time < FIRST_INSTANT => {
            let problem = of(name, Code::OutOfRangeInput);
            return Err(problem.saying(format!("The property {name} is an instant before the year 1601.")));
        }
        _ => 0,
    };
    if bytes > VALUE_BYTES_MAX {
        return Err(of(name, Code::PropertyValueTooLarge));
    }
    Ok(())
}

fn of(name: &str, code: Code) -> Problem {
    Problem::new(code).detail("PropertyName", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Raw {
        Raw::Text(text.to_owned())
    }

    #[test]
    fn json_alone_shows_four_types() {
        let cases = [
            (Raw::Boolean(true), Value::Boolean(true)),
            (Raw::Integer(i128::from(i32::MAX)), Value::Int32(i32::MAX)),
            (Raw::Integer(i128::from(i32::MIN)), Value::Int32(i32::MIN)),
            (Raw::Integer(i128::from(i32::MAX) + 1), Value::Double(2_147_483_648.0)),
            (Raw::Number(1.0), Value::Double(1.0)),
            (text("x"), Value::String("x".into())),
        ];
        for (raw, expected) in cases {
            assert_eq!(value("p", None, raw), Ok(Some(expected)));
        }
        assert_eq!(value("p", None, Raw::Null), Ok(None));
        assert_eq!(value("p", Some("Edm.Int64"), Raw::Null), Ok(None));
        assert_eq!(value("p", None, Raw::Nested).unwrap_err().code, Code::InvalidInput);
    }

    #[test]
    fn annotations_decide_and_each_type_has_its_exact_range() {
        let id = "00112233-4455-6677-8899-aabbccddeeff";
        let cases = [
            ("Edm.Boolean", Raw::Boolean(false), Ok(Value::Boolean(false))),
            ("Edm.Boolean", text("true"), Ok(Value::Boolean(true))),
            ("Edm.Boolean", text("False"), Ok(Value::Boolean(false))),
            ("Edm.Boolean", text("1"), Err(Code::InvalidValueType)),
            ("Edm.Boolean", Raw::Integer(1), Err(Code::InvalidValueType)),
            ("Edm.Int32", Raw::Integer(5), Ok(Value::Int32(5))),
            ("Edm.Int32", text("-5"), Ok(Value::Int32(-5))),
            ("Edm.Int32", Raw::Integer(2_147_483_648), Err(Code::InvalidValueType)),
            ("Edm.Int32", Raw::Number(5.0), Err(Code::InvalidValueType)),
            ("Edm.Int64", text("9223372036854775807"), Ok(Value::Int64(i64::MAX))),
            ("Edm.Int64", text("-9223372036854775808"), Ok(Value::Int64(i64::MIN))),
            ("Edm.Int64", text("9223372036854775808"), Err(Code::InvalidValueType)),
            ("Edm.Int64", Raw::Integer(7), Ok(Value::Int64(7))),
            ("Edm.Int64", text(""), Err(Code::InvalidValueType)),
            ("Edm.Double", Raw::Integer(7), Ok(Value::Double(7.0))),
            ("Edm.Double", text("Infinity"), Ok(Value::Double(f64::INFINITY))),
            ("Edm.Double", text("-Infinity"), Ok(Value::Double(f64::NEG_INFINITY))),
            ("Edm.Double", text("1.7976931348623157e308"), Ok(Value::Double(f64::MAX))),
            ("Edm.Double", text("1e999"), Err(Code::InvalidValueType)),
            ("Edm.Double", text("inf"), Err(Code::InvalidValueType)),
            ("Edm.String", text("é"), Ok(Value::String("é".into()))),
            ("Edm.String", Raw::Integer(5), Err(Code::InvalidValueType)),
            ("Edm.Binary", text("AP8="), Ok(Value::Binary(vec![0, 255]))),
            ("Edm.Binary", text("AP8"), Err(Code::InvalidValueType)),
            ("Edm.Guid", text(id), Ok(Value::Guid(Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff)))),
            ("Edm.Guid", text("00112233445566778899aabbccddeeff"), Err(Code::InvalidValueType)),
            ("Edm.DateTime", text("1601-01-01T00:00:00Z"), Ok(Value::DateTime(FIRST_INSTANT))),
            ("Edm.DateTime", text("1601-01-01T02:00:00+02:00"), Ok(Value::DateTime(FIRST_INSTANT))),
            ("Edm.DateTime", text("1600-12-31T23:59:59.9999999Z"), Err(Code::OutOfRangeInput)),
            (
                "Edm.DateTime",
                text("9999-12-31T23:59:59.9999999Z"),
                Ok(Value::DateTime(Timestamp::from_ticks(3_155_378_975_999_999_999))),
            ),
            ("Edm.DateTime", text("10000-01-01T00:00:00Z"), Err(Code::InvalidValueType)),
            ("Edm.DateTime", Raw::Integer(0), Err(Code::InvalidValueType)),
            ("Edm.Decimal", text("1"), Err(Code::InvalidInput)),
            ("edm.int32", Raw::Integer(1), Err(Code::InvalidInput)),
        ];
        for (annotation, raw, expected) in cases {
            let given = format!("{annotation} {raw:?}");
            let value = value("p", Some(annotation), raw).map(Option::unwrap).map_err(|problem| problem.code);
            assert_eq!(value, expected, "{given}");
        }
        let nan = value("p", Some("Edm.Double"), text("NaN")).unwrap();
        assert!(matches!(nan, Some(Value::Double(number)) if number.is_nan()));
    }

    #[test]
    fn a_value_has_at_most_64_kibibytes() {
        let units = VALUE_BYTES_MAX / 2;
        let binary = |bytes: usize| (Some("Edm.Binary"), text(&STANDARD.encode(vec![7; bytes])));
        let cases = [
            ((None, text(&"é".repeat(units))), true),
            ((None, text(&"é".repeat(units + 1))), false),
            ((None, text(&"😀".repeat(units / 2))), true),
            ((None, text(&"😀".repeat(units / 2 + 1))), false),
            (binary(VALUE_BYTES_MAX), true),
            (binary(VALUE_BYTES_MAX + 1), false),
        ];
        for ((annotation, raw), fits) in cases {
            let outcome = value("p", annotation, raw).map(|_| ()).map_err(|problem| problem.code);
            assert_eq!(outcome, if fits { Ok(()) } else { Err(Code::PropertyValueTooLarge) });
        }
    }
}
