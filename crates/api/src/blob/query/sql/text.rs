//! What the language does with texts.

use std::borrow::Cow;
use std::collections::HashSet;

use super::RowError;
use super::syntax::Side;

/// Most characters of a pattern: matching takes, at worst, this many steps for every character of the text.
const PATTERN_CHARS_MAX: usize = 4000;

/// A character of a pattern.
#[derive(Clone, Copy)]
enum Piece {
    /// `%`
    Any,
    /// `_`
    One,
    Exactly(char),
}

/// `LIKE`: `%` stands for any characters, `_` for one. What follows `escape` stands for itself.
pub(super) fn is_like(text: &str, pattern: &str, escape: Option<&str>) -> Result<bool, RowError> {
    let pattern = pieces(pattern, escape)?;
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut piece) = (0, 0);
    // Where to go on when the last `%` has to take one more character.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(c) = text.get(at) {
        match pattern.get(piece) {
            Some(Piece::Any) => {
                retry = Some((at, piece));
                piece += 1;
            }
            Some(Piece::One) => (at, piece) = (at + 1, piece + 1),
            Some(Piece::Exactly(wanted)) if wanted == c => (at, piece) = (at + 1, piece + 1),
            _ => match retry {
                Some((from, any)) => {
                    retry = Some((from + 1, any));
                    (at, piece) = (from + 1, any + 1);
                }
                None => return Ok(false),
            },
        }
    }
    Ok(pattern.iter().skip(piece).all(|piece| matches!(piece, Piece::Any)))
}

fn pieces(pattern: &str, escape: Option<&str>) -> Result<Vec<Piece>, RowError> {
    let escape = match escape.map(|escape| (escape.chars().next(), escape.chars().count())) {
        None => None,
        Some((escape, 1)) => escape,
        Some(_) => return Err(RowError::InvalidArgument("The escape is not one character.")),
    };
    let mut pieces = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            _ if Some(c) == escape => {
                let escaped = chars.next().ok_or(RowError::InvalidArgument("The pattern ends with its escape."))?;
                Piece::Exactly(escaped)
            }
            '%' => Piece::Any,
            '_' => Piece::One,
            c => Piece::Exactly(c),
        });
        if pieces.len() > PATTERN_CHARS_MAX {
            return Err(RowError::InvalidArgument("The pattern is too long."));
        }
    }
    Ok(pieces)
}

/// `SUBSTRING`: from the character at `start`, the first being 0, `length` characters or all. What would lie before the
/// first character is counted and absent.
pub(super) fn substring(text: &str, start: i64, length: Option<i64>) -> Result<&str, RowError> {
    if length.is_some_and(|length| length < 0) {
        return Err(RowError::InvalidArgument("The length of a substring is negative."));
    }
    let end = length.map(|length| start.saturating_add(length).max(0));
    let place = |chars: i64| {
        let chars = usize::try_from(chars.max(0)).unwrap_or(usize::MAX);
        text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
    };
    let first = place(start);
    let last = end.map_or(text.len(), place);
    Ok(text.get(first..last.max(first)).unwrap_or_default())
}

/// `TRIM`: without the characters of `trimmed` at its sides.
pub(super) fn trim<'t>(text: &'t str, side: Side, trimmed: &str) -> &'t str {
    let set: HashSet<char> = trimmed.chars().collect();
    let is_trimmed = |c: char| set.contains(&c);
    match side {
        Side::Leading => text.trim_start_matches(is_trimmed),
        Side::Trailing => text.trim_end_matches(is_trimmed),
        Side::Both => text.trim_matches(is_trimmed),
    }
}

/// A part of a text, held as the text was.
pub(super) fn part<'t>(
    text: Cow<'t, str>,
    cut: impl FnOnce(&str) -> Result<&str, RowError>,
) -> Result<Cow<'t, str>, RowError> {
    match text {
        Cow::Borrowed(text) => cut(text).map(Cow::Borrowed),
        Cow::Owned(text) => Ok(Cow::Owned(cut(&text)?.to_owned())),
    }
}
