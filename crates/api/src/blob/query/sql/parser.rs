//! From text to a statement.

mod expression;

use super::SyntaxError;
use super::lexer::{self, Kind, Token};
use super::syntax::{
    AggregateColumn, AggregateFunction, COLUMNS_MAX, Column, Expression, FieldPath, Name, SPLIT_BYTES_MIN, Select,
    Statement, Step,
};

/// How deep parentheses, functions and `CASE` may lie in each other.
const DEPTH_MAX: usize = 64;

/// Words that are no names unless quoted.
const RESERVED: &[&str] = &[
    "and", "as", "between", "case", "cast", "else", "end", "escape", "false", "from", "in", "is", "like", "limit",
    "missing", "not", "null", "or", "select", "then", "true", "when", "where",
];

/// Reads a statement.
pub fn parse(text: &str) -> Result<Statement, SyntaxError> {
    let mut parser = Parser { tokens: lexer::tokens(text)?, next: 0, depth: 0, fields: Vec::new() };
    parser.keyword("select")?;
    let select = parser.select()?;
    parser.keyword("from")?;
    let from = parser.source()?;
    let (mut filter, mut limit) = (None, None);
    if !matches!(select, Select::Split(_)) {
        filter = if parser.accept_word("where") { Some(parser.expression()?) } else { None };
        limit = if parser.accept_word("limit") { Some(parser.count()?) } else { None };
    }
    parser.accept(";");
    match &parser.here().kind {
        Kind::End => Ok(Statement { select, from, filter, limit, fields: parser.fields }),
        _ => Err(parser.wrong("the statement should end here")),
    }
}

/// An item of a select list.
enum Item {
    Column(Column),
    Aggregate(AggregateColumn),
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    fields: Vec<FieldPath>,
}

impl Parser {
    fn select(&mut self) -> Result<Select, SyntaxError> {
        if self.accept("*") {
            return Ok(Select::All);
        }
        if self.is_word("sys") && self.is_symbol_at(1, ".") {
            return self.split();
        }
        let (mut columns, mut aggregates) = (Vec::new(), Vec::new());
        loop {
            let at = self.here().at;
            match self.item()? {
                Item::Column(column) => columns.push(column),
                Item::Aggregate(aggregate) => aggregates.push(aggregate),
            }
            if columns.len().max(aggregates.len()) > COLUMNS_MAX {
                return Err(SyntaxError::new(at, format!("a select list has at most {COLUMNS_MAX} columns")));
            }
            if !columns.is_empty() && !aggregates.is_empty() {
                return Err(SyntaxError::new(at, "aggregates and other columns cannot be selected together"));
            }
            if !self.accept(",") {
                break;
            }
        }
        Ok(if aggregates.is_empty() { Select::Columns(columns) } else { Select::Aggregates(aggregates) })
    }

    fn split(&mut self) -> Result<Select, SyntaxError> {
        self.keyword("sys")?;
        self.expect(".")?;
        self.keyword("split")?;
        self.expect("(")?;
        let at = self.here().at;
        let bytes = self.count()?;
        if bytes < SPLIT_BYTES_MIN {
            return Err(SyntaxError::new(at, format!("the split size is at least {SPLIT_BYTES_MIN}")));
        }
        self.expect(")")?;
        Ok(Select::Split(bytes))
    }

    fn item(&mut self) -> Result<Item, SyntaxError> {
        if let Some(function) = self.aggregate() {
            self.next += 2;
            let argument = match function {
                AggregateFunction::Count if self.accept("*") => None,
                _ => Some(self.expression()?),
            };
            self.expect(")")?;
            let name = self.alias()?;
            return Ok(Item::Aggregate(AggregateColumn { function, argument, name }));
        }
        let expression = self.expression()?;
        let alias = self.alias()?;
        let name = alias.or_else(|| self.own_name(&expression));
        Ok(Item::Column(Column { expression, name }))
    }

    /// The aggregate that begins here: its name and a parenthesis.
    fn aggregate(&self) -> Option<AggregateFunction> {
        let Kind::Word(word) = &self.here().kind else { return None };
        if !self.is_symbol_at(1, "(") {
            return None;
        }
        match word.to_ascii_lowercase().as_str() {
            "count" => Some(AggregateFunction::Count),
            "avg" | "average" => Some(AggregateFunction::Average),
            "min" => Some(AggregateFunction::Min),
            "max" => Some(AggregateFunction::Max),
            "sum" => Some(AggregateFunction::Sum),
            _ => None,
        }
    }

    fn alias(&mut self) -> Result<Option<String>, SyntaxError> {
        if !self.accept_word("as") {
            return Ok(None);
        }
        Ok(Some(self.name()?.text))
    }

    /// The name of a column that is a field: the last name on the way to it. Ordinals are no names.
    fn own_name(&self, expression: &Expression) -> Option<String> {
        let Expression::Field(index) = expression else { return None };
        let path = self.fields.get(*index)?;
        match path.rest.last() {
            None => Some(&path.name).filter(|name| name.ordinal().is_none()).map(|name| name.text.clone()),
            Some(Step::Member(name)) => Some(name.text.clone()),
            Some(Step::Element(_) | Step::Every) => None,
        }
    }

    /// `BlobStorage`, and where in it the records are.
    fn source(&mut self) -> Result<Vec<Step>, SyntaxError> {
        self.keyword("blobstorage")?;
        if !self.accept("[") {
            return Ok(Vec::new());
        }
        self.expect("*")?;
        self.expect("]")?;
        let mut steps = Vec::new();
        loop {
            if self.accept(".") {
                steps.push(Step::Member(self.member()?));
            } else if self.accept("[") {
                steps.push(if self.accept("*") { Step::Every } else { Step::Element(self.index()?) });
                self.expect("]")?;
            } else {
                return Ok(steps);
            }
            if steps.len() > DEPTH_MAX {
                return Err(self.wrong("the way to the records is too long"));
            }
        }
    }

    /// A field of a record: its place in the list.
    fn field(&mut self) -> Result<Expression, SyntaxError> {
        let name = self.name()?;
        let mut rest = Vec::new();
        loop {
            if self.accept(".") {
                rest.push(Step::Member(self.member()?));
            } else if self.accept("[") {
                rest.push(Step::Element(self.index()?));
                self.expect("]")?;
            } else {
                break;
            }
        }
        let path = FieldPath { name, rest };
        // Repeated names are mostly among the first; further ones are not worth a search.
        let known = self.fields.iter().take(COLUMNS_MAX).position(|field| *field == path);
        Ok(Expression::Field(known.unwrap_or_else(|| {
            self.fields.push(path);
            self.fields.len() - 1
        })))
    }

    fn name(&mut self) -> Result<Name, SyntaxError> {
        let name = match &self.here().kind {
            Kind::Quoted(text) => Name { text: text.clone(), exact: true },
            Kind::Word(word) if !is_reserved(word) => Name { text: word.clone(), exact: false },
            _ => return Err(self.wrong("a name is missing")),
        };
        self.next += 1;
        Ok(name)
    }

    /// A name behind a point, where no other word can stand.
    fn member(&mut self) -> Result<Name, SyntaxError> {
        if let Kind::Word(word) = &self.here().kind {
            let name = Name { text: word.clone(), exact: false };
            self.next += 1;
            return Ok(name);
        }
        self.name()
    }

    fn index(&mut self) -> Result<usize, SyntaxError> {
        let at = self.here().at;
        usize::try_from(self.count()?).map_err(|_| SyntaxError::new(at, "the index is too large"))
    }

    fn count(&mut self) -> Result<u64, SyntaxError> {
        match self.here().kind {
            Kind::Integer(count) if count >= 0 => {
                self.next += 1;
                Ok(count.unsigned_abs())
            }
            _ => Err(self.wrong("a whole number is missing")),
        }
    }

    fn keyword(&mut self, word: &str) -> Result<(), SyntaxError> {
        if self.accept_word(word) { Ok(()) } else { Err(self.wrong(&format!("{} is missing", word.to_uppercase()))) }
    }

    fn expect(&mut self, symbol: &str) -> Result<(), SyntaxError> {
        if self.accept(symbol) { Ok(()) } else { Err(self.wrong(&format!("'{symbol}' is missing"))) }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol_at(0, symbol);
        self.next += usize::from(found);
        found
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.here().kind, Kind::Word(here) if here.eq_ignore_ascii_case(word))
    }

    fn is_symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.tokens.get(self.next + ahead), Some(Token { kind: Kind::Symbol(here), .. }) if *here == symbol)
    }

    fn here(&self) -> &Token {
        const NOTHING: &Token = &Token { at: 0, kind: Kind::End };
        self.tokens.get(self.next).or(self.tokens.last()).unwrap_or(NOTHING)
    }

    fn wrong(&self, reason: &str) -> SyntaxError {
        SyntaxError::new(self.here().at, reason)
    }

    /// Does what may lead to itself again.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>) -> Result<T, SyntaxError> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong("the expression is nested too deeply"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}
