//! The words of a statement.

use super::SyntaxError;

/// A word and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

/// What a word is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A keyword or an unquoted name.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// A text in single quotes.
    Text(String),
    Integer(i64),
    Float(f64),
    /// Punctuation and operators.
    Symbol(&'static str),
    /// Nothing more.
    End,
}

/// Longer ones first, so that `<=` is not `<`.
const SYMBOLS: &[&str] =
    &["<=", ">=", "<>", "!=", "<", ">", "=", ",", ".", "(", ")", "[", "]", "*", "+", "-", "/", "%", ";"];

/// All words of `text`; the last one is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let (kind, length) = match first {
            '\'' | '"' => quoted(rest, first).ok_or_else(|| SyntaxError::new(at, "a quotation does not end"))?,
            '0'..='9' => number(rest).ok_or_else(|| SyntaxError::new(at, "a number is malformed"))?,
            '.' if rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
                number(rest).ok_or_else(|| SyntaxError::new(at, "a number is malformed"))?
            }
            _ if first == '_' || first.is_alphabetic() => word(rest),
            _ => symbol(rest).ok_or_else(|| SyntaxError::new(at, format!("'{first}' is not of the language")))?,
        };
        tokens.push(Token { at, kind });
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    tokens.push(Token { at: text.len(), kind: Kind::End });
    Ok(tokens)
}

fn word(rest: &str) -> (Kind, usize) {
    let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
    (Kind::Word(rest.get(..length).unwrap_or_default().to_owned()), length)
}

fn symbol(rest: &str) -> Option<(Kind, usize)> {
    SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)).map(|symbol| (Kind::Symbol(symbol), symbol.len()))
}

/// A quotation: a doubled quote stands for one.
fn quoted(rest: &str, quote: char) -> Option<(Kind, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            text.push(c);
        } else if chars.next_if(|&(_, next)| next == quote).is_some() {
            text.push(quote);
        } else {
            let kind = if quote == '"' { Kind::Quoted(text) } else { Kind::Text(text) };
            return Some((kind, at + 1));
        }
    }
    None
}

fn number(rest: &str) -> Option<(Kind, usize)> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let mut length = digits(0);
    let mut whole = true;
    if is(length, b".") {
        whole = false;
        length += 1 + digits(length + 1);
    }
    if is(length, b"eE") {
        let sign = usize::from(is(length + 1, b"+-"));
        whole = false;
        let exponent = digits(length + 1 + sign);
        if exponent == 0 {
            return None;
        }
        length += 1 + sign + exponent;
    }
    // A letter right behind is a slip, not a name.
    if rest.get(length..)?.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
        return None;
    }
    let text = rest.get(..length)?;
    match text.parse() {
        Ok(integer) if whole => Some((Kind::Integer(integer), length)),
        _ => Some((Kind::Float(text.parse().ok().filter(|float: &f64| float.is_finite())?), length)),
    }
}
