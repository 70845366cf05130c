//! What a statement is.

/// Most columns of a select list.
pub const COLUMNS_MAX: usize = 49;
/// Smallest size for `sys.split`, in bytes.
pub const SPLIT_BYTES_MIN: u64 = 10 * 1024 * 1024;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What is selected.
    pub select: Select,
    /// Where in each document the records are; empty: the document itself.
    pub from: Vec<Step>,
    /// Which records count.
    pub filter: Option<Expression>,
    /// How many results at most.
    pub limit: Option<u64>,
    /// The fields of a record that the statement names: expressions have their places in this list.
    pub fields: Vec<FieldPath>,
}

/// What is selected.
#[derive(Clone, Debug, PartialEq)]
pub enum Select {
    /// `*`
    All,
    /// Expressions over each record.
    Columns(Vec<Column>),
    /// Aggregates over all records.
    Aggregates(Vec<AggregateColumn>),
    /// `sys.split`: sizes of batches of whole records, each of at least so many bytes.
    Split(u64),
}

/// A column of the select list.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it holds.
    pub expression: Expression,
    /// What it is called, if it has a name.
    pub name: Option<String>,
}

/// An aggregate of the select list.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateColumn {
    /// What is computed.
    pub function: AggregateFunction,
    /// Of what; none for `COUNT(*)`.
    pub argument: Option<Expression>,
    /// What it is called, if it has a name.
    pub name: Option<String>,
}

/// What is computed over all records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the language")]
pub enum AggregateFunction {
    Count,
    Average,
    Min,
    Max,
    Sum,
}

/// A field of a record: a name or an ordinal, and the way on from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// The name with which it begins.
    pub name: Name,
    /// Members and elements below it.
    pub rest: Vec<Step>,
}

/// A name of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// As it is written.
    pub text: String,
    /// Whether it stands in quotes: then letter case matters.
    pub exact: bool,
}

/// A step into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Member(Name),
    /// An element of an array.
    Element(usize),
    /// Every element of an array. Only where the records are.
    Every,
}

impl Name {
    /// Whether a field called `name` is meant.
    pub fn means(&self, name: &str) -> bool {
        if self.exact { self.text == name } else { same_letters(&self.text, name) }
    }

    /// The ordinal that the name stands for, from 1 on: `_1`, `_2`, …
    pub fn ordinal(&self) -> Option<usize> {
        let digits = self.text.strip_prefix('_').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok().filter(|&ordinal| ordinal > 0 && !self.exact)
    }
}

/// Equality without regard to letter case.
fn same_letters(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        return one.eq_ignore_ascii_case(other);
    }
    one.chars().flat_map(char::to_lowercase).eq(other.chars().flat_map(char::to_lowercase))
}

/// An expression over a record. Chains of one rank are lists, so that an expression is only as deep as its
/// parentheses.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Literal(Literal),
    /// A field: its place in [`Statement::fields`].
    Field(usize),
    /// `AND`
    All(Vec<Expression>),
    /// `OR`
    Any(Vec<Expression>),
    /// `NOT`
    Not(Box<Expression>),
    /// `=`, `<`, …
    Compare(Box<Expression>, Comparison, Box<Expression>),
    /// A test that can be negated.
    Test {
        /// Whether `NOT` is before it.
        negated: bool,
        /// What is tested.
        value: Box<Expression>,
        /// How.
        test: Test,
    },
    /// `+ -` or `* / %`, from left to right.
    Arithmetic(Box<Expression>, Vec<(Operator, Expression)>),
    /// `-`
    Negate(Box<Expression>),
    /// `CASE`
    Case {
        /// What the arms are compared with; none: they are conditions.
        subject: Option<Box<Expression>>,
        /// `WHEN … THEN …`
        arms: Vec<(Expression, Expression)>,
        /// `ELSE`
        otherwise: Option<Box<Expression>>,
    },
    /// `CAST`
    Cast(Box<Expression>, Type),
    /// A function and its arguments, as many as it needs.
    Call(Function, Vec<Expression>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "named after what they hold")]
pub enum Literal {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as they are read")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What a value is tested for.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `BETWEEN … AND …`
    Between(Box<Expression>, Box<Expression>),
    /// `IN (…)`
    In(Vec<Expression>),
    /// `LIKE … ESCAPE …`
    Like(Box<Expression>, Option<Box<Expression>>),
    /// `IS NULL`
    Null,
    /// `IS MISSING`
    Missing,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as they are read")]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A type of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the language")]
pub enum Type {
    Int,
    Float,
    String,
    Timestamp,
    Boolean,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the language")]
pub enum Function {
    Lower,
    Upper,
    CharLength,
    Substring,
    Trim(Side),
    Coalesce,
    NullIf,
    UtcNow,
    ToString,
    ToTimestamp,
    DateAdd(DatePart),
    DateDiff(DatePart),
    Extract(DatePart),
}

/// Where `TRIM` trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the language")]
pub enum Side {
    Leading,
    Trailing,
    Both,
}

/// A part of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the language")]
pub enum DatePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    TimezoneHour,
    TimezoneMinute,
}
