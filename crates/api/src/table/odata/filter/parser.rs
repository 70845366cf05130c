//! From words to an expression.

use lazuli_engine::table::expression::{Expression, Field, Operator};
use lazuli_engine::table::value::Value;

use super::lexer::{Lexer, Token};
use super::{DEPTH_MAX, Wrong};

/// Words that calculate; they are no operators of filters here.
const ARITHMETIC: [&str; 5] = ["add", "sub", "mul", "div", "mod"];

pub(super) fn parse(text: &str) -> Result<Expression, Wrong> {
    let mut lexer = Lexer::of(text);
    let (position, token) = lexer.next()?;
    let mut parser = Parser { lexer, position, token, depth: 0 };
    let expression = parser.any()?;
    match parser.token {
        Token::End => Ok(expression),
        _ => Err(Wrong::at(parser.position, "the filter should end")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Of the token at hand.
    position: usize,
    token: Token<'a>,
    depth: usize,
}

/// One side of a comparison.
enum Operand {
    Field(Field),
    Literal(Value),
}

impl<'a> Parser<'a> {
    /// Goes on to the next token and gives out the one at hand.
    fn step(&mut self) -> Result<Token<'a>, Wrong> {
        let (position, next) = self.lexer.next()?;
        self.position = position;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Passes over the keyword if it is at hand.
    fn keyword(&mut self, word: &str) -> Result<bool, Wrong> {
        let found = self.token == Token::Word(word);
        if found {
            self.step()?;
        }
        Ok(found)
    }

    fn any(&mut self) -> Result<Expression, Wrong> {
        let mut parts = vec![self.all()?];
        while self.keyword("or")? {
            parts.push(self.all()?);
        }
        Ok(joined(parts, Expression::Any, |part| match part {
            Expression::Any(parts) => Ok(parts),
            other => Err(other),
        }))
    }

    fn all(&mut self) -> Result<Expression, Wrong> {
        let mut parts = vec![self.none()?];
        while self.keyword("and")? {
            parts.push(self.none()?);
        }
        Ok(joined(parts, Expression::All, |part| match part {
            Expression::All(parts) => Ok(parts),
            other => Err(other),
        }))
    }

    fn none(&mut self) -> Result<Expression, Wrong> {
        let mut negated = false;
        while self.keyword("not")? {
            negated = !negated;
        }
        let item = self.item()?;
        Ok(if negated { Expression::Not(Box::new(item)) } else { item })
    }

    fn item(&mut self) -> Result<Expression, Wrong> {
        if self.token != Token::Open {
            return self.comparison();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Wrong::at(self.position, "the parentheses nest too deeply"));
        }
        self.step()?;
        let inner = self.any()?;
        if self.token != Token::Close {
            return Err(Wrong::at(self.position, "a closing parenthesis is missing"));
        }
        self.step()?;
        self.depth -= 1;
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<Expression, Wrong> {
        let start = self.position;
        let left = self.operand()?;
        let Some(operator) = self.operator()? else {
            return match left {
                Operand::Field(field) => {
                    let (operator, value) = (Operator::Equal, Value::Boolean(true));
                    Ok(Expression::Compare { field, operator, value })
                }
                Operand::Literal(Value::Boolean(constant)) => Ok(Expression::Constant(constant)),
                Operand::Literal(_) => Err(Wrong::at(self.position, "a comparison should follow")),
            };
        };
        match (left, self.operand()?) {
            (Operand::Field(field), Operand::Literal(value)) => Ok(Expression::Compare { field, operator, value }),
            (Operand::Literal(value), Operand::Field(field)) => {
                Ok(Expression::Compare { field, operator: flipped(operator), value })
            }
            (Operand::Field(_), Operand::Field(_)) => Err(unbuilt(start, "Comparing two properties")),
            (Operand::Literal(_), Operand::Literal(_)) => Err(unbuilt(start, "Comparing two literals")),
        }
    }

    fn operand(&mut self) -> Result<Operand, Wrong> {
        let start = self.position;
        match self.step()? {
            Token::Literal(value) => Ok(Operand::Literal(value)),
            Token::Word(word) if self.token == Token::Open => Err(unbuilt(start, &format!("The function {word}"))),
            Token::Word(word) => Ok(Operand::Field(field(word))),
            Token::Open | Token::Close | Token::End => Err(Wrong::at(start, "a property or a literal is missing")),
        }
    }

    fn operator(&mut self) -> Result<Option<Operator>, Wrong> {
        let Token::Word(word) = self.token else { return Ok(None) };
        let operator = match word {
            "eq" => Operator::Equal,
            "ne" => Operator::NotEqual,
            "gt" => Operator::Greater,
            "ge" => Operator::GreaterOrEqual,
            "lt" => Operator::Less,
            "le" => Operator::LessOrEqual,
            word if ARITHMETIC.contains(&word) => return Err(unbuilt(self.position, &format!("The operator {word}"))),
            _ => return Ok(None),
        };
        self.step()?;
        Ok(Some(operator))
    }
}

fn field(name: &str) -> Field {
    match name {
        "PartitionKey" => Field::PartitionKey,
        "RowKey" => Field::RowKey,
        "Timestamp" => Field::Timestamp,
        name => Field::Property(name.to_owned()),
    }
}

fn unbuilt(position: usize, what: &str) -> Wrong {
    Wrong { unbuilt: true, ..Wrong::at(position, format!("{what} is not implemented")) }
}

/// The operator with its sides exchanged.
const fn flipped(operator: Operator) -> Operator {
    match operator {
        Operator::Equal => Operator::Equal,
        Operator::NotEqual => Operator::NotEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
    }
}

/// The only part, or all of them: those that are joined in the same way are joined at once, however clients nest them.
fn joined(
    parts: Vec<Expression>,
    join: fn(Vec<Expression>) -> Expression,
    open: fn(Expression) -> Result<Vec<Expression>, Expression>,
) -> Expression {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match open(part) {
            Ok(inner) => all.extend(inner),
            Err(part) => all.push(part),
        }
    }
    match all.pop() {
        Some(only) if all.is_empty() => only,
        Some(last) => {
            all.push(last);
            join(all)
        }
        None => join(all),
    }
}
