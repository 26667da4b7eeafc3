//! The comparison as a page: for each published table a plot of the locks' growth, the published
//! line solid and the predicted one dashed, and how far they are apart.

use super::Curve;
use crate::page::{begin, short};
use crate::svg::{Mark, Plot, Series, draw, escape};
use std::fmt::Write;

/// The page.
pub(super) fn html(curves: &[Curve<'_>]) -> String {
    let lines = curves.iter().map(|curve| curve.published.locks.len()).max().unwrap_or(0);
    let mut page = begin("the cost model and published measurements", lines);
    page.push_str(
        "<style>svg{overflow:visible}.predicted .line{stroke-dasharray:5 4}</style>\n<h1>The cost model and published measurements</h1>\n\
         <p>Solid: measured by others. Dashed: predicted by the model. Each lock's rate is divided by its own \
         rate at one thread. The tables with all errors are in BENCHMARKS.md.</p>\n",
    );
    for curve in curves {
        page.push_str(&section(curve));
    }
    page.push_str("</html>\n");
    page
}

fn section(curve: &Curve<'_>) -> String {
    let published = curve.published;
    let mut text = format!("<h2>{}</h2>\n", escape(&published.title));
    let errors = curve.sorted_errors();
    let says = match (errors.get(errors.len() / 2), errors.last()) {
        (Some(median), Some(worst)) => format!(
            "{} cells count; the median error is {:.0} %, the worst {:.0} %.",
            errors.len(),
            median * 100.0,
            worst * 100.0
        ),
        _ => "All of it was fitted on, so no cell counts.".to_owned(),
    };
    let _ = writeln!(
        text,
        "<p>Source: {}. Machine: {}. Fitted: {}. {says}</p>",
        escape(&published.source),
        escape(&published.machine),
        escape(&published.fitted)
    );
    text.push_str(&plot(curve));
    text.push('\n');
    text
}

fn plot(curve: &Curve<'_>) -> String {
    let published = curve.published;
    let threads: Vec<u32> = published.rows.iter().map(|row| row.threads as u32).collect();
    let predicted: Vec<String> = published.locks.iter().map(|lock| format!("{lock}, model")).collect();
    let mut series = Vec::new();
    for (lock, name) in published.locks.iter().enumerate() {
        let pairs: Vec<_> = (0..published.rows.len()).map(|row| curve.growth(row, lock)).collect();
        let marks = |values: Vec<f64>| {
            let mark = |(&threads, value)| Mark { threads, value, band: (value, value), modes: None };
            threads.iter().zip(values).map(mark).collect()
        };
        let measured = pairs.iter().map(|pair| pair.published).collect();
        let model = pairs.iter().map(|pair| pair.predicted).collect();
        series.push(Series { name, class: format!("s{lock}"), points: marks(measured) });
        series.push(Series {
            name: &predicted[lock],
            class: format!("s{lock} predicted"),
            points: marks(model),
        });
    }
    draw(&Plot {
        title: format!("{}: rate over that of one thread", published.title),
        axis: "threads",
        threads: &threads,
        cpus: 0,
        log: false,
        unit: short,
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Row, published};
    use super::*;

    #[test]
    fn a_section_has_both_lines_of_every_lock_and_its_errors() {
        let tables = published().unwrap();
        let table = tables.iter().find(|table| table.locks == ["mcs", "cna"]).unwrap();
        let twice = |row: &Row| {
            let factor = if row.threads > 1 { 2.0 } else { 1.0 };
            row.rates.iter().map(|rate| rate * factor).collect()
        };
        let curve = Curve { published: table, predicted: table.rows.iter().map(twice).collect() };
        let page = html(&[curve]);
        for part in
            ["class=\"s s0\"", "class=\"s s0 predicted\"", "class=\"s s1\"", "class=\"s s1 predicted\""]
        {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("the median error is 100 %"), "{page}");
        assert!(page.contains(&escape(&table.source)) && page.ends_with("</html>\n"));
    }
}
