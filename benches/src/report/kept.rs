//! Records in files: one record, as a run leaves it, or those of a machine that stay in the
//! repository, packed so that they can be read and compared.
//!
//! A packed file has `schema` [`SCHEMA`] and `records` by the name of their row. There `lines` is a
//! table: `shapes` are lists of names of figures, and each of `rows` is a cell, the place of its
//! subject, the place of its shape, and the rounds of each figure. Numbers have four digits.

use crate::engine::files;
use crate::engine::record::{Line, Record};
use crate::rows::{self, Row};
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The version of a packed file.
pub const SCHEMA: &str = "ulocks-kept/2";

/// The row that a record is of. `scaling-family` is a run of `scaling`.
pub fn row_of(name: &str) -> Option<&'static Row> {
    Row::find(name).or_else(|| rows::ALL.iter().find(|row| name.split('-').next() == Some(row.name)))
}

/// The records in a file.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    match unpack(&text).with_context(|| format!("cannot use {}", path.display()))? {
        Some(records) => Ok(records),
        None => Ok(vec![files::read(path)?]),
    }
}

/// The records in the text of a packed file, or in a list, as `--json` writes it; nothing if it is
/// a record.
fn unpack(text: &str) -> Result<Option<Vec<Record>>> {
    let mut file: Value = serde_json::from_str(text)?;
    if file.is_array() {
        return Ok(Some(serde_json::from_value(file)?));
    }
    if file["schema"] != SCHEMA {
        return Ok(None);
    }
    let records = file["records"].as_object_mut().context("no records")?;
    std::mem::take(records).into_iter().map(|(_, record)| with_lines(record)).collect::<Result<_>>().map(Some)
}

fn with_lines(mut value: Value) -> Result<Record> {
    type Rounds = Vec<Option<f64>>;
    let mut table = value["lines"].take();
    let shapes: Vec<Vec<String>> = serde_json::from_value(table["shapes"].take()).context("no shapes")?;
    let rows: Vec<(usize, usize, usize, Vec<Rounds>)> = serde_json::from_value(table["rows"].take())?;
    value["lines"] = json!([]);
    let mut record: Record = serde_json::from_value(value)?;
    let known = record.cells.len();
    for (cell, subject, shape, values) in rows {
        let subject = record.subjects.get(subject).context("a row has no subject")?.name.clone();
        ensure!(cell < known, "a row names cell {cell} of {known}");
        let names = shapes.get(shape).context("a row has no shape")?.iter().cloned();
        record.lines.push(Line { cell, subject, rounds: names.zip(values).collect() });
    }
    Ok(record)
}

/// The text of a file of these records.
pub fn pack(records: &[Record]) -> Result<String> {
    let mut packed = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let is_second = records[..at].iter().any(|other| other.row == record.row);
        ensure!(!is_second, "two records of {}: a file has one of each row", record.row);
        let mut shapes: Vec<Vec<&String>> = Vec::new();
        let mut rows = Vec::new();
        for line in &record.lines {
            let subject = record.subjects.iter().position(|subject| subject.name == line.subject);
            let shape: Vec<&String> = line.rounds.keys().collect();
            let at = shapes.iter().position(|known| *known == shape).unwrap_or_else(|| {
                shapes.push(shape);
                shapes.len() - 1
            });
            let values: Vec<Vec<Value>> = line
                .rounds
                .values()
                .map(|rounds| rounds.iter().map(|value| short(*value)).collect())
                .collect();
            rows.push(json!([line.cell, subject.context("a line has no subject")?, at, values]));
        }
        let table = format!("{{\"shapes\": {}, \"rows\": {}}}", one_a_line(&shapes)?, one_a_line(&rows)?);
        let mut fields: Map<String, Value> = serde_json::from_value(serde_json::to_value(record)?)?;
        fields.remove("lines");
        let mut lines = Vec::new();
        for (name, value) in fields {
            let is_list = value.as_array().is_some_and(|list| list.iter().any(Value::is_object));
            let value =
                if is_list { one_a_line(value.as_array().expect("a list"))? } else { value.to_string() };
            lines.push(format!("\"{name}\": {value}"));
        }
        lines.push(format!("\"lines\": {table}"));
        packed.push(format!("\"{}\": {{\n{}}}", record.row, lines.join(",\n")));
    }
    Ok(format!("{{\"schema\": \"{SCHEMA}\",\n\"records\": {{\n{}}}}}\n", packed.join(",\n")))
}

fn one_a_line(list: &[impl serde::Serialize]) -> Result<String> {
    let lines: Result<Vec<String>, _> = list.iter().map(serde_json::to_string).collect();
    Ok(format!("[\n{}]", lines?.join(",\n")))
}

/// Four digits, without `.0`.
fn short(value: Option<f64>) -> Value {
    let Some(number) = value.and_then(|value| format!("{value:.3e}").parse::<f64>().ok()) else {
        return Value::Null;
    };
    if number.fract() == 0.0 && number.abs() < 1e15 { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::answer::screen;
    use crate::report::fixture::plain;

    #[test]
    fn a_packed_record_has_the_answer_of_the_record() {
        let mut record = plain(7);
        record.lines[3].rounds.get_mut("rate").unwrap()[2] = None;
        let text = pack(&[record.clone()]).unwrap();
        let kept = unpack(&text).unwrap().unwrap();
        assert_eq!(kept[0].lines[3].rounds["rate"][..3], record.lines[3].rounds["rate"][..3]);
        assert_eq!(kept[0].lines.len(), record.lines.len());
        assert_eq!(screen(&kept), screen(&[record]));
        assert_eq!(short(Some(123_456.7)), json!(123_500));
    }

    #[test]
    fn what_is_not_a_record_is_refused_with_a_reason() {
        assert!(unpack("{}").unwrap().is_none());
        let text = pack(&[plain(1)]).unwrap();
        assert!(pack(&[plain(1), plain(2)]).is_err());
        let damaged = text.replace("\"rows\": [\n[0,", "\"rows\": [\n[99,");
        assert!(format!("{:#}", unpack(&damaged).unwrap_err()).contains("names cell 99 of 8"));
    }
}
