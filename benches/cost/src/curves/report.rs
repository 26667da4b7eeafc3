//! The comparison as Markdown.

use super::{Curve, Published};
use std::fmt::Write;

/// Before the tables in a file.
pub const BEGIN: &str = "<!-- curves: begin -->\n";
/// After them.
pub const END: &str = "<!-- curves: end -->\n";

/// `text` with other tables between its marks, if it has them.
#[must_use]
pub fn replace(text: &str, tables: &str) -> Option<String> {
    let begin = text.find(BEGIN)? + BEGIN.len();
    let end = begin + text[begin..].find(END)?;
    Some([&text[..begin], tables, &text[end..]].concat())
}

/// A published ratio and the predicted one.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) published: f64,
    pub(super) predicted: f64,
    /// Whether the ratio is 1 by definition, or was fitted on.
    given: bool,
}

impl Pair {
    fn error(self) -> f64 {
        self.predicted / self.published - 1.0
    }

    fn cell(self) -> String {
        let Self { published, predicted, given } = self;
        if given {
            format!("{published:.2}, {predicted:.2}")
        } else {
            format!("{published:.2}, {predicted:.2}, {:+.0} %", self.error() * 100.0)
        }
    }
}

/// Whether the locks come in the same order.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Right,
    Wrong,
    /// The source tells no two of them apart.
    Tie,
}

impl Curve<'_> {
    /// Whether the cell of this lock and those before it were fitted on.
    fn fitted(&self, lock: usize, threads: usize) -> bool {
        lock < self.published.fitted_locks && self.published.fitted_threads.contains(&threads)
    }

    /// A lock's rate over its own at one thread.
    pub(super) fn growth(&self, row: usize, lock: usize) -> Pair {
        let rows = &self.published.rows;
        let threads = rows[row].threads;
        Pair {
            published: rows[row].rates[lock] / rows[0].rates[lock],
            predicted: self.predicted[row][lock] / self.predicted[0][lock],
            given: row == 0 || self.fitted(lock, threads),
        }
    }

    /// A lock's rate over the first lock's.
    fn gain(&self, row: usize, lock: usize) -> Pair {
        let rates = &self.published.rows[row].rates;
        Pair {
            published: rates[lock] / rates[0],
            predicted: self.predicted[row][lock] / self.predicted[row][0],
            given: row == 0 || self.fitted(lock, self.published.rows[row].threads),
        }
    }

    /// Two locks are told apart if their rates are farther apart than their deviations together.
    fn order(&self, row: usize) -> Order {
        let (published, predicted) = (&self.published.rows[row], &self.predicted[row]);
        if published.threads == 1 {
            return Order::Tie; // all of them take a free lock, by one instruction
        }
        let mut order = Order::Tie;
        for one in 0..predicted.len() {
            for other in 0..one {
                let difference = published.rates[one] - published.rates[other];
                if difference.abs() <= published.deviations[one] + published.deviations[other] {
                    continue;
                }
                if difference * (predicted[one] - predicted[other]) <= 0.0 {
                    return Order::Wrong;
                }
                order = Order::Right;
            }
        }
        order
    }

    /// The errors of all ratios that were not given, without signs, ascending.
    pub(super) fn sorted_errors(&self) -> Vec<f64> {
        let locks = self.published.locks.len();
        let pairs = (0..self.predicted.len()).flat_map(|row| {
            let growth = (0..locks).map(move |lock| self.growth(row, lock));
            growth.chain((1..locks).map(move |lock| self.gain(row, lock)))
        });
        let mut errors: Vec<_> = pairs.filter(|pair| !pair.given).map(|pair| pair.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    fn table(&self) -> String {
        let published = self.published;
        let locks = &published.locks;
        let Published { title, unit, source, machine, fitted, .. } = published;
        let mut text = String::from("\n");
        text.push_str(&wrapped(&format!("**{title}** ({unit}). Source: {source}.")));
        text.push_str(&wrapped(&format!("Machine: `{machine}.json`. Fitted: {fitted}.")));
        text.push_str("\n| threads |");
        for lock in locks {
            let _ = write!(text, " {lock} |");
        }
        for lock in &locks[1..] {
            let _ = write!(text, " {lock} / {} |", locks[0]);
        }
        text.push_str(" order |\n|---|");
        text.push_str(&"---|".repeat(2 * locks.len()));
        text.push('\n');
        for (row, cells) in published.rows.iter().enumerate() {
            let _ = write!(text, "| {} |", cells.threads);
            for lock in 0..locks.len() {
                let _ = write!(text, " {} |", self.growth(row, lock).cell());
            }
            for lock in 1..locks.len() {
                let _ = write!(text, " {} |", self.gain(row, lock).cell());
            }
            let order = match self.order(row) {
                Order::Right => "right",
                Order::Wrong => "**wrong**",
                Order::Tie => "tie",
            };
            let _ = writeln!(text, " {order} |");
        }
        text
    }
}

/// Lines of at most 100 characters.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let size = word.chars().count();
        if length > 0 {
            let fits = length + 1 + size <= 100;
            lines.push(if fits { ' ' } else { '\n' });
            length = if fits { length + 1 } else { 0 };
        }
        lines.push_str(word);
        length += size;
    }
    lines + "\n"
}

/// All tables, after a summary.
#[must_use]
pub fn markdown(curves: &[Curve<'_>]) -> String {
    let mut text = String::from(
        "\n| table | errors: median | worst | cells | order right | ties |\n|---|---|---|---|---|---|\n",
    );
    let mut all = Vec::new();
    for curve in curves {
        let errors = curve.sorted_errors();
        let orders: Vec<_> = (0..curve.predicted.len()).map(|row| curve.order(row)).collect();
        let count = |what| orders.iter().filter(|order| **order == what).count();
        let (right, wrong, ties) = (count(Order::Right), count(Order::Wrong), count(Order::Tie));
        summary(&mut text, &curve.published.title, &errors, &format!("{right} of {}", right + wrong), ties);
        all.extend(errors);
    }
    all.sort_by(f64::total_cmp);
    summary(&mut text, "all", &all, "", "");
    for curve in curves {
        text.push_str(&curve.table());
    }
    text.push('\n');
    text
}

fn summary(text: &mut String, name: &str, errors: &[f64], order: &str, ties: impl std::fmt::Display) {
    if errors.is_empty() {
        let _ = writeln!(text, "| {name} | fitted | | 0 | {order} | {ties} |");
        return;
    }
    let (median, worst) = (errors[errors.len() / 2] * 100.0, errors[errors.len() - 1] * 100.0);
    let _ = writeln!(text, "| {name} | {median:.0} % | {worst:.0} % | {} | {order} | {ties} |", errors.len());
}

#[cfg(test)]
mod tests {
    use super::super::{Row, published};
    use super::*;

    #[test]
    fn tables_go_between_the_marks() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replace(&text, "new\n").unwrap(), format!("a\n{BEGIN}new\n{END}b\n"));
        assert_eq!(replace("no marks", "new"), None);
    }

    #[test]
    fn an_order_is_wrong_where_two_locks_that_differ_change_places() {
        let tables = published().unwrap();
        let table = tables.iter().find(|table| table.locks == ["mcs", "cna"]).unwrap();
        let rates = |row: &Row| row.rates.clone();
        let mut curve = Curve { published: table, predicted: table.rows.iter().map(rates).collect() };
        let last = table.rows.len() - 1;
        assert!(curve.order(last) == Order::Right && curve.sorted_errors().iter().all(|error| *error < 1e-9));
        curve.predicted[last].reverse();
        assert!(curve.order(last) == Order::Wrong);
        assert!(curve.order(1) == Order::Tie, "the source has one number for both");
        assert!(curve.sorted_errors().iter().any(|error| *error > 0.2));
    }
}
