//! Expressions over tags: the condition `x-ms-if-tags`, and `where` of Find Blobs by Tags.
//! <https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags>
//!
//! ```text
//! any  := all { OR all }          all := item { AND item }
//! item := ( any ) | name op 'value'
//! name := letters, digits, _ | "quoted"      op := = | <> | > | >= | < | <=
//! ```
//! A search knows neither OR nor `<>`, and may name `@container` once.

use lazuli_engine::names::ContainerName;
use lazuli_engine::tags::{Comparison, TagCondition, Term};

/// Most comparisons of an expression.
pub const TERMS_MAX: usize = 10;
/// What a search calls the container.
const CONTAINER: &str = "@container";
/// How deep parentheses nest, at most.
const DEPTH_MAX: usize = 16;

/// What is wrong with an expression, for people.
pub type Wrong = String;

/// What Find Blobs by Tags looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Only in this container.
    pub container: Option<ContainerName>,
    /// All of these, at least one.
    pub terms: Vec<Term>,
}

/// Reads a condition.
pub fn condition(text: &str) -> Result<TagCondition, Wrong> {
    expression(text, false)
}

fn expression(text: &str, search: bool) -> Result<TagCondition, Wrong> {
    let mut parser = Parser { rest: text, search, terms: 0, depth: 0 };
    let condition = parser.any()?;
    parser.end()?;
    Ok(condition)
}

/// Reads a search.
pub fn search(text: &str) -> Result<Search, Wrong> {
    let mut terms = Vec::new();
    flatten(expression(text, true)?, &mut terms)?;
    let mut search = Search { container: None, terms: Vec::new() };
    for term in terms {
        if term.key != CONTAINER {
            search.terms.push(term);
        } else if term.comparison != Comparison::Equal || search.container.is_some() {
            return Err("@container is compared once, by =".into());
        } else {
            let name = ContainerName::parse(&term.value);
            search.container = Some(name.map_err(|_| format!("{} is not a container name", term.value))?);
        }
    }
    if search.terms.is_empty() {
        return Err("a search compares at least one tag".into());
    }
    search.terms.iter().try_for_each(|term| check_bounds(&search.terms, &term.key))?;
    Ok(search)
}

fn flatten(condition: TagCondition, terms: &mut Vec<Term>) -> Result<(), Wrong> {
    match condition {
        TagCondition::Term(term) if term.comparison == Comparison::NotEqual => Err("a search does not know <>".into()),
        TagCondition::Term(term) => {
            terms.push(term);
            Ok(())
        }
        TagCondition::All(parts) => parts.into_iter().try_for_each(|part| flatten(part, terms)),
        TagCondition::Any(_) => Err("a search does not know OR".into()),
    }
}

/// Of each tag a search gives one value, or at most one lower and one upper bound.
fn check_bounds(terms: &[Term], key: &str) -> Result<(), Wrong> {
    let of_key = || terms.iter().filter(|term| term.key == key).map(|term| term.comparison);
    let count = |wanted: &[Comparison]| of_key().filter(|comparison| wanted.contains(comparison)).count();
    let equal = count(&[Comparison::Equal]);
    let lower = count(&[Comparison::Greater, Comparison::GreaterOrEqual]);
    let upper = count(&[Comparison::Less, Comparison::LessOrEqual]);
    match (equal, lower, upper) {
        (1, 0, 0) | (0, 0 | 1, 0 | 1) => Ok(()),
        _ => Err(format!("the comparisons of {key} say more than one value or one range")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    /// Whether the container may be named.
    search: bool,
    terms: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<TagCondition, Wrong> {
        let mut parts = vec![self.all()?];
        while self.keyword("or") {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, TagCondition::Any))
    }

    fn all(&mut self) -> Result<TagCondition, Wrong> {
        let mut parts = vec![self.item()?];
        while self.keyword("and") {
            parts.push(self.item()?);
        }
        Ok(one_or(parts, TagCondition::All))
    }

    fn item(&mut self) -> Result<TagCondition, Wrong> {
        if !self.take("(") {
            return Ok(TagCondition::Term(self.term()?));
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("the parentheses nest too deeply".into());
        }
        let inner = self.any()?;
        self.depth -= 1;
        if self.take(")") { Ok(inner) } else { Err(self.expected(")")) }
    }

    fn term(&mut self) -> Result<Term, Wrong> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            return Err(format!("there are more than {TERMS_MAX} comparisons"));
        }
        let key = self.name()?;
        let comparison = self.comparison()?;
        let value = if self.take("'") { self.quoted('\'')? } else { return Err(self.expected("a value in '…'")) };
        Ok(Term { key, comparison, value })
    }

    fn name(&mut self) -> Result<String, Wrong> {
        if self.take("\"") {
            return self.quoted('"');
        }
        let sign = usize::from(self.search && self.rest.starts_with('@'));
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = sign + self.rest.bytes().skip(sign).take_while(plain).count();
        let (name, rest) = self.rest.split_at_checked(length).unwrap_or_default();
        if name.len() == sign {
            return Err(self.expected("the name of a tag"));
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn comparison(&mut self) -> Result<Comparison, Wrong> {
        const OPERATORS: [(&str, Comparison); 6] = [
            ("<>", Comparison::NotEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            ("=", Comparison::Equal),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ];
        for (text, comparison) in OPERATORS {
            if self.take(text) {
                return Ok(comparison);
            }
        }
        Err(self.expected("one of = <> > >= < <="))
    }

    /// The text up to the closing `quote`; a doubled one stands for itself.
    fn quoted(&mut self, quote: char) -> Result<String, Wrong> {
        let mut text = String::new();
        loop {
            let (part, rest) = self.rest.split_once(quote).ok_or_else(|| self.expected("a closing quote"))?;
            text.push_str(part);
            self.rest = rest;
            match self.rest.strip_prefix(quote) {
                Some(rest) => self.rest = rest,
                None => return Ok(text),
            }
            text.push(quote);
        }
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let Some((start, rest)) = self.rest.split_at_checked(word.len()) else { return false };
        let ends = !rest.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '_');
        if start.eq_ignore_ascii_case(word) && ends {
            self.rest = rest;
            return true;
        }
        false
    }

    fn take(&mut self, text: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn end(&mut self) -> Result<(), Wrong> {
        self.skip_blanks();
        if self.rest.is_empty() { Ok(()) } else { Err(self.expected("AND, OR or the end")) }
    }

    fn expected(&self, what: &str) -> Wrong {
        let found: String = self.rest.chars().take(20).collect();
        if found.is_empty() { format!("expected {what} at the end") } else { format!("expected {what} at \"{found}\"") }
    }
}

fn one_or(mut parts: Vec<TagCondition>, several: fn(Vec<TagCondition>) -> TagCondition) -> TagCondition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            several(parts)
        }
    }
}

#[cfg(test)]
mod tests;
