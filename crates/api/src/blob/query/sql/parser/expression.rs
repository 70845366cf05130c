//! Expressions, from the weakest binding to the strongest.

use super::super::SyntaxError;
use super::super::lexer::Kind;
use super::super::syntax::{Comparison, DatePart, Expression, Function, Literal, Operator, Side, Test, Type};
use super::{Parser, is_reserved};

impl Parser {
    /// `OR`
    pub(super) fn expression(&mut self) -> Result<Expression, SyntaxError> {
        self.deeper(|parser| parser.chain("or", Self::conjunction, Expression::Any))
    }

    fn conjunction(&mut self) -> Result<Expression, SyntaxError> {
        self.chain("and", Self::negation, Expression::All)
    }

    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Expression, SyntaxError>,
        whole: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, SyntaxError> {
        let first = part(self)?;
        if !self.is_word(word) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept_word(word) {
            parts.push(part(self)?);
        }
        Ok(whole(parts))
    }

    fn negation(&mut self) -> Result<Expression, SyntaxError> {
        if self.accept_word("not") {
            let negated = self.deeper(Self::negation)?;
            return Ok(Expression::Not(Box::new(negated)));
        }
        self.condition()
    }

    /// A comparison or a test, or no more than a value.
    fn condition(&mut self) -> Result<Expression, SyntaxError> {
        let value = self.sum()?;
        if let Some(comparison) = self.comparison() {
            self.next += 1;
            let other = self.sum()?;
            return Ok(Expression::Compare(Box::new(value), comparison, Box::new(other)));
        }
        if self.accept_word("is") {
            let negated = self.accept_word("not");
            let test = if self.accept_word("null") {
                Test::Null
            } else if self.accept_word("missing") {
                Test::Missing
            } else {
                return Err(self.wrong("NULL or MISSING is missing"));
            };
            return Ok(Expression::Test { negated, value: Box::new(value), test });
        }
        let negated = self.accept_word("not");
        match self.test()? {
            Some(test) => Ok(Expression::Test { negated, value: Box::new(value), test }),
            None if negated => Err(self.wrong("BETWEEN, IN or LIKE is missing")),
            None => Ok(value),
        }
    }

    fn comparison(&self) -> Option<Comparison> {
        let Kind::Symbol(symbol) = self.here().kind else { return None };
        match symbol {
            "=" => Some(Comparison::Equal),
            "!=" | "<>" => Some(Comparison::NotEqual),
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessOrEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterOrEqual),
            _ => None,
        }
    }

    fn test(&mut self) -> Result<Option<Test>, SyntaxError> {
        if self.accept_word("between") {
            let low = self.sum()?;
            self.keyword("and")?;
            let high = self.sum()?;
            return Ok(Some(Test::Between(Box::new(low), Box::new(high))));
        }
        if self.accept_word("in") {
            self.expect("(")?;
            return Ok(Some(Test::In(self.arguments()?)));
        }
        if self.accept_word("like") {
            let pattern = self.sum()?;
            let escape = if self.accept_word("escape") { Some(Box::new(self.sum()?)) } else { None };
            return Ok(Some(Test::Like(Box::new(pattern), escape)));
        }
        Ok(None)
    }

    fn sum(&mut self) -> Result<Expression, SyntaxError> {
        self.arithmetic(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Expression, SyntaxError> {
        let operators = [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)];
        self.arithmetic(&operators, Self::signed)
    }

    fn arithmetic(
        &mut self,
        operators: &[(&str, Operator)],
        part: fn(&mut Self) -> Result<Expression, SyntaxError>,
    ) -> Result<Expression, SyntaxError> {
        let first = part(self)?;
        let mut rest = Vec::new();
        while let Some(&(_, operator)) = operators.iter().find(|(symbol, _)| self.is_symbol_at(0, symbol)) {
            self.next += 1;
            rest.push((operator, part(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Arithmetic(Box::new(first), rest) })
    }

    fn signed(&mut self) -> Result<Expression, SyntaxError> {
        if self.accept("-") {
            let value = self.deeper(Self::signed)?;
            return Ok(match value {
                Expression::Literal(Literal::Integer(integer)) => Expression::Literal(Literal::Integer(-integer)),
                Expression::Literal(Literal::Float(float)) => Expression::Literal(Literal::Float(-float)),
                value => Expression::Negate(Box::new(value)),
            });
        }
        if self.accept("+") {
            return self.deeper(Self::signed);
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        if self.accept("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let literal = match &self.here().kind {
            Kind::Text(text) => Literal::Text(text.clone()),
            Kind::Integer(integer) => Literal::Integer(*integer),
            Kind::Float(float) => Literal::Float(*float),
            Kind::Word(word) if word.eq_ignore_ascii_case("null") => Literal::Null,
            Kind::Word(word) if word.eq_ignore_ascii_case("true") => Literal::Boolean(true),
            Kind::Word(word) if word.eq_ignore_ascii_case("false") => Literal::Boolean(false),
            Kind::Word(word) if word.eq_ignore_ascii_case("case") => return self.case(),
            Kind::Word(word) if word.eq_ignore_ascii_case("cast") => return self.cast(),
            Kind::Word(word) if self.is_symbol_at(1, "(") && !is_reserved(word) => return self.call(),
            Kind::Word(word) if !is_reserved(word) => return self.field(),
            Kind::Quoted(_) => return self.field(),
            _ => return Err(self.wrong("an expression is missing")),
        };
        self.next += 1;
        Ok(Expression::Literal(literal))
    }

    fn case(&mut self) -> Result<Expression, SyntaxError> {
        self.keyword("case")?;
        let subject = if self.is_word("when") { None } else { Some(Box::new(self.expression()?)) };
        let mut arms = Vec::new();
        while self.accept_word("when") {
            let condition = self.expression()?;
            self.keyword("then")?;
            arms.push((condition, self.expression()?));
        }
        if arms.is_empty() {
            return Err(self.wrong("WHEN is missing"));
        }
        let otherwise = if self.accept_word("else") { Some(Box::new(self.expression()?)) } else { None };
        self.keyword("end")?;
        Ok(Expression::Case { subject, arms, otherwise })
    }

    fn cast(&mut self) -> Result<Expression, SyntaxError> {
        self.keyword("cast")?;
        self.expect("(")?;
        let value = self.expression()?;
        self.keyword("as")?;
        let to = match self.here_lower().as_str() {
            "int" => Type::Int,
            "float" => Type::Float,
            "string" => Type::String,
            "timestamp" => Type::Timestamp,
            "boolean" => Type::Boolean,
            _ => return Err(self.wrong("a type is missing: INT, FLOAT, STRING, TIMESTAMP or BOOLEAN")),
        };
        self.next += 1;
        self.expect(")")?;
        Ok(Expression::Cast(Box::new(value), to))
    }

    /// A function and its arguments.
    fn call(&mut self) -> Result<Expression, SyntaxError> {
        let (at, name) = (self.here().at, self.here_lower());
        self.next += 1;
        self.expect("(")?;
        let (function, counts) = match name.as_str() {
            "lower" => (Function::Lower, 1..=1),
            "upper" => (Function::Upper, 1..=1),
            "char_length" | "character_length" => (Function::CharLength, 1..=1),
            "substring" => (Function::Substring, 2..=3),
            "trim" => return self.trim(),
            "coalesce" => (Function::Coalesce, 1..=usize::MAX),
            "nullif" => (Function::NullIf, 2..=2),
            "utcnow" => (Function::UtcNow, 0..=0),
            "to_string" => (Function::ToString, 2..=2),
            "to_timestamp" => (Function::ToTimestamp, 1..=1),
            "date_add" => (Function::DateAdd(self.unit()?), 2..=2),
            "date_diff" => (Function::DateDiff(self.unit()?), 2..=2),
            "extract" => return self.extract(),
            "count" | "avg" | "average" | "min" | "max" | "sum" => {
                return Err(SyntaxError::new(at, "an aggregate stands alone in the select list"));
            }
            _ => return Err(SyntaxError::new(at, format!("there is no function {}", name.to_uppercase()))),
        };
        let arguments = if self.accept(")") { Vec::new() } else { self.arguments()? };
        if !counts.contains(&arguments.len()) {
            return Err(SyntaxError::new(at, format!("{} has another number of arguments", name.to_uppercase())));
        }
        Ok(Expression::Call(function, arguments))
    }

    /// Expressions up to the closing parenthesis, at least one.
    fn arguments(&mut self) -> Result<Vec<Expression>, SyntaxError> {
        let mut arguments = vec![self.expression()?];
        while self.accept(",") {
            arguments.push(self.expression()?);
        }
        self.expect(")")?;
        Ok(arguments)
    }

    /// `TRIM(text)` or `TRIM([LEADING|TRAILING|BOTH] [characters] FROM text)`; the text is the first argument.
    fn trim(&mut self) -> Result<Expression, SyntaxError> {
        let side = match self.here_lower().as_str() {
            "leading" => Some(Side::Leading),
            "trailing" => Some(Side::Trailing),
            "both" => Some(Side::Both),
            _ => None,
        };
        // A field may be called like a side.
        let side = side.filter(|_| !self.is_symbol_at(1, ")") && !self.is_symbol_at(1, "."));
        self.next += usize::from(side.is_some());
        let function = Function::Trim(side.unwrap_or(Side::Both));
        if side.is_some() && self.accept_word("from") {
            let text = self.expression()?;
            self.expect(")")?;
            return Ok(Expression::Call(function, vec![text]));
        }
        let first = self.expression()?;
        if self.accept_word("from") {
            let text = self.expression()?;
            self.expect(")")?;
            return Ok(Expression::Call(function, vec![text, first]));
        }
        if side.is_some() {
            return Err(self.wrong("FROM is missing"));
        }
        self.expect(")")?;
        Ok(Expression::Call(function, vec![first]))
    }

    fn extract(&mut self) -> Result<Expression, SyntaxError> {
        let part = match self.here_lower().as_str() {
            "timezone_hour" => DatePart::TimezoneHour,
            "timezone_minute" => DatePart::TimezoneMinute,
            name => date_part(name).ok_or_else(|| self.wrong("a part of a date is missing"))?,
        };
        self.next += 1;
        self.keyword("from")?;
        let moment = self.expression()?;
        self.expect(")")?;
        Ok(Expression::Call(Function::Extract(part), vec![moment]))
    }

    /// The first argument of the date functions, as a text or a word, and the comma behind it.
    fn unit(&mut self) -> Result<DatePart, SyntaxError> {
        let part = date_part(&self.here_lower()).ok_or_else(|| self.wrong("a part of a date is missing"))?;
        self.next += 1;
        self.expect(",")?;
        Ok(part)
    }

    fn here_lower(&self) -> String {
        match &self.here().kind {
            Kind::Word(text) | Kind::Text(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        }
    }
}

fn date_part(name: &str) -> Option<DatePart> {
    match name {
        "year" => Some(DatePart::Year),
        "month" => Some(DatePart::Month),
        "day" => Some(DatePart::Day),
        "hour" => Some(DatePart::Hour),
        "minute" => Some(DatePart::Minute),
        "second" => Some(DatePart::Second),
        _ => None,
    }
}
