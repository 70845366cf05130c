//! The words of a filter.

use lazuli_engine::table::value::Value;
use unicode_xid::UnicodeXID as _;

use super::Wrong;
use crate::table::odata::{edm, instant, path};

/// Words that a text may follow without a blank.
const KEYWORDS: [&str; 9] = ["eq", "ne", "gt", "ge", "lt", "le", "and", "or", "not"];

/// A word of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// A name or a keyword.
    Word(&'a str),
    Literal(Value),
    End,
}

/// Gives out the words of a filter one by one.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next word and where it begins.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), Wrong> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        let (start, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else { return Ok((start, Token::End)) };
        let token = match first {
            '(' => self.take(1, Token::Open),
            ')' => self.take(1, Token::Close),
            '\'' => Token::Literal(Value::String(self.quoted()?)),
            '0'..='9' | '-' | '+' | '.' => Token::Literal(self.number()?),
            c if c.is_xid_start() || c == '_' => self.word()?,
            c => return Err(Wrong::at(start, format!("{c:?} is unexpected"))),
        };
        Ok((start, token))
    }

    fn take(&mut self, bytes: usize, token: Token<'a>) -> Token<'a> {
        self.at += bytes;
        token
    }

    /// A text in quotes.
    fn quoted(&mut self) -> Result<String, Wrong> {
        let rest = self.rest();
        let (text, after) = path::text(rest).ok_or_else(|| Wrong::at(self.at, "a quote does not end"))?;
        self.at += rest.len() - after.len();
        Ok(text)
    }

    fn number(&mut self) -> Result<Value, Wrong> {
        let (start, rest) = (self.at, self.rest());
        if let Some(after) = rest.strip_prefix("-INF") {
            self.at += rest.len() - after.len();
            return Ok(Value::Double(f64::NEG_INFINITY));
        }
        let mut exponent = false;
        let part = |c: char| {
            let sign = exponent && matches!(c, '+' | '-');
            exponent = matches!(c, 'e' | 'E');
            c.is_ascii_alphanumeric() || c == '.' || sign
        };
        let signed = rest.starts_with(['+', '-']);
        let behind_sign = rest.get(usize::from(signed)..).unwrap_or_default();
        let length = behind_sign.find(not(part)).unwrap_or(behind_sign.len()) + usize::from(signed);
        let text = rest.get(..length).unwrap_or_default();
        self.at += length;
        let integer = |text: &str| text.parse::<i64>().ok();
        let value = match text.strip_suffix(['L', 'l']) {
            Some(long) => integer(long).map(Value::Int64),
            None if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-".contains(&byte)) => {
                integer(text).map(|number| i32::try_from(number).map_or(Value::Int64(number), Value::Int32))
            }
            None => edm::double(text.strip_suffix(['d', 'D']).unwrap_or(text)).map(Value::Double),
        };
        value.ok_or_else(|| Wrong::at(start, format!("{text} is not a number")))
    }

    /// A name, a keyword, or a literal that begins like one.
    fn word(&mut self) -> Result<Token<'a>, Wrong> {
        let (start, rest) = (self.at, self.rest());
        let length = rest.find(|c: char| !c.is_xid_continue()).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        self.at += length;
        if !self.rest().starts_with('\'') || KEYWORDS.contains(&word) {
            return match word {
                "true" => Ok(Token::Literal(Value::Boolean(true))),
                "false" => Ok(Token::Literal(Value::Boolean(false))),
                "NaN" => Ok(Token::Literal(Value::Double(f64::NAN))),
                "INF" => Ok(Token::Literal(Value::Double(f64::INFINITY))),
                "null" => Err(Wrong::at(start, "null cannot be compared with")),
                word => Ok(Token::Word(word)),
            };
        }
        let text = self.quoted()?;
        let value = match word {
            "datetime" => instant::parse(&text).map(Value::DateTime),
            "guid" => edm::guid(&text).map(Value::Guid),
            "X" | "binary" => hex(&text).map(Value::Binary),
            _ => return Err(Wrong::at(start, format!("{word} is not a type of literals"))),
        };
        value.map(Token::Literal).ok_or_else(|| Wrong::at(start, format!("'{text}' is not a {word}")))
    }
}

fn not(mut part: impl FnMut(char) -> bool) -> impl FnMut(char) -> bool {
    move |c| !part(c)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}
