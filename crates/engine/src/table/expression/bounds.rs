//! The keys that a filter can match: what of a table a query has to read.
//!
//! A filter is turned into *areas*, each an interval of partitions with an interval of rows in every one of them.
//! Comparisons of keys are one or two areas, anything else is all keys; `and` intersects, `or` collects, `not` goes
//! down to the comparisons. An area then is one stretch of keys, which holds rows beyond the area's own where it spans
//! several partitions.

use super::{Expression, Field, Operator};
use crate::rows::entity::field;
use crate::table::value::Value;

/// Most areas that a filter is kept as; of more, neighbours become one.
const AREAS_MAX: usize = 128;
/// Most pairs of areas that are intersected for a filter; what it says beyond that is left to its evaluation.
const PAIRS_MAX: usize = 1 << 14;

/// Keys from one up to another, without the incarnation that begins them: see [`crate::rows::entity::key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub start: Vec<u8>,
    /// The first beyond it; `None` if it goes on to the end.
    pub end: Option<Vec<u8>>,
}

impl Stretch {
    /// Every key.
    pub const ALL: Self = Self { start: Vec::new(), end: None };

    /// Whether `key` lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// What lies in both, if anything can.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        let start = (&self.start).max(&other.start);
        let end = match (&self.end, &other.end) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.as_ref().or(other.as_ref()),
        };
        // Only what is not empty is copied.
        end.is_none_or(|end| start < end).then(|| Self { start: start.clone(), end: end.cloned() })
    }

    /// The key, if there is only one in it.
    pub fn point(&self) -> Option<&[u8]> {
        let fields = self.start.windows(2).filter(|end| *end == [0x00, 0x01]).count();
        (fields == 2 && is_field(&self.start) && self.end == Some(after(&self.start))).then_some(&self.start)
    }

    /// The text that is, as [`field`] wrote it, or one of those that `operator` puts beside it.
    fn of(operator: Operator, constant: &[u8]) -> Vec<Self> {
        let from = |start: Vec<u8>| Self { start, end: None };
        let until = |end: Vec<u8>| Self { start: Vec::new(), end: Some(end) };
        let constant = constant.to_vec();
        match operator {
            Operator::Equal => vec![Self { end: Some(after(&constant)), start: constant }],
            Operator::NotEqual => vec![until(constant.clone()), from(after(&constant))],
            Operator::Greater => vec![from(after(&constant))],
            Operator::GreaterOrEqual => vec![from(constant)],
            Operator::Less => vec![until(constant)],
            Operator::LessOrEqual => vec![until(after(&constant))],
        }
    }

    /// Becomes the least stretch that holds both.
    fn stretch_to(&mut self, other: Self) {
        self.start = std::mem::take(&mut self.start).min(other.start);
        self.end = self.end.take().zip(other.end).map(|(one, other)| one.max(other));
    }

    /// Whether nothing lies between this and a stretch that does not start before it.
    fn reaches(&self, later: &Self) -> bool {
        self.end.as_ref().is_none_or(|end| *end >= later.start)
    }
}

/// The keys that `expression` can match: sorted, apart from each other, none empty.
///
/// Takes stack with the expression's depth, which the protocol bounds.
pub fn bounds(expression: &Expression) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = areas(expression, true, &mut { PAIRS_MAX }).iter().map(Area::stretch).collect();
    stretches.sort_by(|one, other| one.start.cmp(&other.start));
    let mut bounds: Vec<Stretch> = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        match bounds.last_mut() {
            Some(last) if last.reaches(&stretch) => last.stretch_to(stretch),
            _ => bounds.push(stretch),
        }
    }
    bounds
}

/// Partitions, and rows in each of them, both as stretches of fields.
#[derive(Clone, Debug)]
struct Area {
    partitions: Stretch,
    rows: Stretch,
}

impl Area {
    const ALL: Self = Self { partitions: Stretch::ALL, rows: Stretch::ALL };

    fn and(&self, other: &Self) -> Option<Self> {
        self.partitions
            .and(&other.partitions)
            .and_then(|partitions| self.rows.and(&other.rows).map(|rows| Self { partitions, rows }))
    }

    /// Takes `later` in, which does not start before it, if one area is exactly both; gives it back if none is.
    fn join(&mut self, later: Self) -> Option<Self> {
        if self.partitions == later.partitions && self.rows.reaches(&later.rows) {
            self.rows.stretch_to(later.rows);
        } else if self.rows == later.rows && self.partitions.reaches(&later.partitions) {
            self.partitions.stretch_to(later.partitions);
        } else {
            return Some(later);
        }
        None
    }

    /// The keys from its first to its last.
    fn stretch(&self) -> Stretch {
        let joined = |partition: &[u8], row: &[u8]| [partition, row].concat();
        let Stretch { start, end } = &self.partitions;
        let first = if is_field(start) { joined(start, &self.rows.start) } else { start.clone() };
        let end = end.as_ref().map(|end| match (before(end), &self.rows.end) {
            (Some(last), Some(row)) => joined(&last, row),
            _ => end.clone(),
        });
        Stretch { start: first, end }
    }
}

/// The areas in which `expression` can be what is wanted. All keys are always right; once so many `pairs` are used up,
/// they are the answer.
fn areas(expression: &Expression, wanted: bool, pairs: &mut usize) -> Vec<Area> {
    if *pairs == 0 {
        return vec![Area::ALL];
    }
    let constant = |value: bool| if value == wanted { vec![Area::ALL] } else { Vec::new() };
    let (field_of, text, operator) = match expression {
        Expression::Constant(value) => return constant(*value),
        Expression::Not(inner) => return areas(inner, !wanted, pairs),
        Expression::All(all) if wanted => return intersection(all, wanted, pairs),
        Expression::Any(any) if !wanted => return intersection(any, wanted, pairs),
        Expression::All(any) | Expression::Any(any) => {
            return simplified(any.iter().flat_map(|expression| areas(expression, wanted, pairs)).collect());
        }
        Expression::Compare { field, operator, value } => match (field, value) {
            (Field::PartitionKey | Field::RowKey, Value::String(text)) => (field, text, *operator),
            (Field::PartitionKey | Field::RowKey, _) => return constant(false),
            (Field::Timestamp | Field::Property(_), _) => return vec![Area::ALL],
        },
    };
    let operator = if wanted { operator } else { operator.negated() };
    let area = |stretch| match field_of {
        Field::PartitionKey => Area { partitions: stretch, rows: Stretch::ALL },
        _ => Area { partitions: Stretch::ALL, rows: stretch },
    };
    Stretch::of(operator, &field(text)).into_iter().map(area).collect()
}

fn intersection(expressions: &[Expression], wanted: bool, pairs: &mut usize) -> Vec<Area> {
    let mut all = vec![Area::ALL];
    for expression in expressions {
        let other = areas(expression, wanted, pairs);
        // One with one costs no more than reading the filter did.
        *pairs = pairs.saturating_sub((all.len() * other.len()).saturating_sub(1));
        all = simplified(all.iter().flat_map(|one| other.iter().filter_map(|other| one.and(other))).collect());
    }
    all
}

/// The same in fewer areas; in larger ones, if there are too many.
fn simplified(mut areas: Vec<Area>) -> Vec<Area> {
    areas.sort_by(|one, other| {
        one.partitions.start.cmp(&other.partitions.start).then_with(|| one.rows.start.cmp(&other.rows.start))
    });
    let mut joined: Vec<Area> = Vec::with_capacity(areas.len());
    for area in areas {
        let apart = match joined.last_mut() {
            Some(last) => last.join(area),
            None => Some(area),
        };
        joined.extend(apart);
    }
    while joined.len() > AREAS_MAX {
        let mut areas = joined.into_iter();
        joined = std::iter::from_fn(|| {
            let mut area = areas.next()?;
            if let Some(next) = areas.next() {
                area.partitions.stretch_to(next.partitions);
                area.rows.stretch_to(next.rows);
            }
            Some(area)
        })
        .collect();
    }
    joined
}

impl Operator {
    /// What holds of two texts exactly where this does not.
    fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
        }
    }
}

/// Whether `bytes` end as a field does, and not where [`after`] puts the end of a stretch.
fn is_field(bytes: &[u8]) -> bool {
    bytes.ends_with(&[0x00, 0x01])
}

/// The first bytes after everything that begins with `field`.
fn after(field: &[u8]) -> Vec<u8> {
    let mut after = field.to_vec();
    if let Some(last) = after.last_mut() {
        *last += 1; // the end of a field: 01
    }
    after
}

/// The field after which [`after`] puts `end`, if it does.
fn before(end: &[u8]) -> Option<Vec<u8>> {
    let text = end.strip_suffix(&[0x00, 0x02])?;
    Some([text, &[0x00, 0x01]].concat())
}

#[cfg(test)]
mod tests;
