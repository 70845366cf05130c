//! Index tags of blobs, and expressions over them.
//! <https://learn.microsoft.com/azure/storage/blobs/storage-manage-find-blobs>

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Most tags of a blob.
pub const TAGS_MAX: usize = 10;
/// Longest key, in characters.
pub const KEY_CHARS_MAX: usize = 128;
/// Longest value, in characters.
pub const VALUE_CHARS_MAX: usize = 256;

/// The tags of a blob, sorted by key. Letter case counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tags(Vec<(String, String)>);

/// Why tags are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagError {
    /// There are more than [`TAGS_MAX`].
    TooMany,
    /// A key is there twice.
    Duplicate,
    /// A key or value is too long, or a key is empty.
    Length,
    /// A character that tags cannot have.
    Characters,
}

impl Tags {
    /// Checks `pairs` against the rules: letters, digits, space and `+-./:=_`.
    pub fn new(mut pairs: Vec<(String, String)>) -> Result<Self, TagError> {
        if pairs.len() > TAGS_MAX {
            return Err(TagError::TooMany);
        }
        for (key, value) in &pairs {
            let allowed = |character: char| {
                character.is_ascii_alphanumeric() || matches!(character, ' ' | '+' | '-'..='/' | ':' | '=' | '_')
            };
            if !key.chars().chain(value.chars()).all(allowed) {
                return Err(TagError::Characters);
            }
            if !(1..=KEY_CHARS_MAX).contains(&key.len()) || value.len() > VALUE_CHARS_MAX {
                return Err(TagError::Length);
            }
        }
        pairs.sort();
        if pairs.windows(2).any(|pair| matches!(pair, [(first, _), (second, _)] if first == second)) {
            return Err(TagError::Duplicate);
        }
        Ok(Self(pairs))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> u8 {
        u8::try_from(self.0.len()).unwrap_or(u8::MAX)
    }

    /// The pairs, sorted by key.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// How a tag's value is compared with another: by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

impl Comparison {
    /// Whether `left` and `right` compare so.
    pub fn holds(self, left: &str, right: &str) -> bool {
        let order = left.cmp(right);
        match self {
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
        }
    }
}

/// One comparison of an expression. Of a blob that lacks the tag it is false, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The tag.
    pub key: String,
    /// How its value is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: String,
}

impl Term {
    fn holds(&self, tags: &Tags) -> bool {
        tags.get(&self.key).is_some_and(|value| self.comparison.holds(value, &self.value))
    }
}

/// A condition on the tags of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagCondition {
    /// A comparison.
    Term(Term),
    /// All of them.
    All(Vec<TagCondition>),
    /// At least one of them.
    Any(Vec<TagCondition>),
}

impl TagCondition {
    /// Whether it holds for a blob with these tags.
    pub fn holds(&self, tags: &Tags) -> bool {
        match self {
            Self::Term(term) => term.holds(tags),
            Self::All(parts) => parts.iter().all(|part| part.holds(tags)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(tags)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Result<Tags, TagError> {
        Tags::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect())
    }

    #[test]
    fn tags_keep_their_rules() {
        let long = "k".repeat(KEY_CHARS_MAX + 1);
        let longest = "k".repeat(KEY_CHARS_MAX);
        let value = "v".repeat(VALUE_CHARS_MAX);
        let longer = "v".repeat(VALUE_CHARS_MAX + 1);
        let keys: Vec<String> = (0..=TAGS_MAX).map(|number| number.to_string()).collect();
        let many: Vec<_> = keys.iter().map(|key| (key.as_str(), "")).collect();
        assert!(tags(&many[..TAGS_MAX]).is_ok());
        assert_eq!(tags(&many), Err(TagError::TooMany));
        assert_eq!(tags(&[("a", "1"), ("a", "2")]), Err(TagError::Duplicate));
        assert!(tags(&[("a", "1"), ("A", "2"), (" +-./:=_09zZ", "")]).is_ok());
        assert!(tags(&[(&longest, &value)]).is_ok());
        for (key, value) in [("", "v"), (long.as_str(), ""), ("k", longer.as_str())] {
            assert_eq!(tags(&[(key, value)]), Err(TagError::Length));
        }
        for bad in ["é", "a&b", "a,b", "'", "a\n"] {
            assert_eq!(tags(&[(bad, "")]), Err(TagError::Characters), "{bad}");
            assert_eq!(tags(&[("k", bad)]), Err(TagError::Characters), "{bad}");
        }
    }

    #[test]
    fn a_missing_tag_meets_no_comparison() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let term = |key: &str, comparison, value: &str| {
            TagCondition::Term(Term { key: key.into(), comparison, value: value.into() })
        };
        let tagged = tags(&[("a", "b")]).unwrap();
        let cases = [
            (Equal, [false, true, false]),
            (NotEqual, [true, false, true]),
            (Greater, [true, false, false]),
            (GreaterOrEqual, [true, true, false]),
            (Less, [false, false, true]),
            (LessOrEqual, [false, true, true]),
        ];
        for (comparison, expected) in cases {
            let answers = ["a", "b", "ba"].map(|value| term("a", comparison, value).holds(&tagged));
            assert_eq!(answers, expected, "{comparison:?}");
            assert!(!term("A", comparison, "b").holds(&tagged), "{comparison:?}");
        }
        let (yes, no) = (term("a", Equal, "b"), term("a", Equal, "c"));
        assert!(TagCondition::Any(vec![no.clone(), yes.clone()]).holds(&tagged));
        assert!(!TagCondition::All(vec![yes, no]).holds(&tagged));
    }
}
