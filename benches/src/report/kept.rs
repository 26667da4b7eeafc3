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
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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
    let records = unpack(&text).with_context(|| format!("cannot use {}", path.display()))?;
    records.map_or_else(|| Ok(vec![files::read(path)?]), Ok)
}

/// The records in the text of a packed file, or in a list, as `--json` writes it; nothing if it is
/// a record.
fn unpack(text: &str) -> Result<Option<Vec<Record>>> {
    let mut file: Value = serde_json::from_str(text).context("it is not JSON")?;
    if file.is_array() {
        let records: Vec<Record> = serde_json::from_value(file)?;
        records.iter().try_for_each(files::check)?;
        return Ok(Some(records));
    }
    if file["schema"] != SCHEMA {
        return Ok(None);
    }
    let records = file["records"].as_object_mut().context("no records")?;
    std::mem::take(records).into_iter().map(|(_, record)| with_lines(record)).collect::<Result<_>>().map(Some)
}

/// The lines of a packed record.
#[derive(Serialize, Deserialize)]
struct Packed {
    shapes: Vec<Vec<String>>,
    rows: Vec<(usize, usize, usize, Vec<Vec<Value>>)>,
}

fn with_lines(mut value: Value) -> Result<Record> {
    let Packed { shapes, rows } = serde_json::from_value(value["lines"].take())?;
    value["lines"] = json!([]);
    let mut record: Record = serde_json::from_value(value)?;
    for (cell, subject, shape, values) in rows {
        let known = record.cells.len();
        ensure!(cell < known, "a row names cell {cell} of {known}");
        let subject = record.subjects.get(subject).context("a row has no subject")?.name.clone();
        let names = shapes.get(shape).context("a row has no shape")?.iter().cloned();
        let values = values.iter().map(|rounds| rounds.iter().map(Value::as_f64).collect());
        record.lines.push(Line { cell, subject, rounds: names.zip(values).collect() });
    }
    files::check(&record)?;
    Ok(record)
}

/// The text of a file of these records.
pub fn pack(records: &[Record]) -> Result<String> {
    let mut file = json!({"schema": SCHEMA, "records": {}});
    for record in records {
        let place = &mut file["records"][&record.row];
        ensure!(place.is_null(), "two records of {}: a file has one of each row", record.row);
        let (mut shapes, mut rows) = (Vec::new(), Vec::new());
        for Line { cell, subject, rounds } in &record.lines {
            let subject = record.subjects.iter().position(|known| known.name == *subject);
            let shape: Vec<String> = rounds.keys().cloned().collect();
            let at = shapes.iter().position(|known| *known == shape).unwrap_or(shapes.len());
            if at == shapes.len() {
                shapes.push(shape);
            }
            let values = rounds.values().map(|rounds| rounds.iter().copied().map(short).collect());
            rows.push((*cell, subject.context("a line has no subject")?, at, values.collect()));
        }
        *place = serde_json::to_value(record)?;
        place["lines"] = serde_json::to_value(Packed { shapes, rows })?;
    }
    Ok(spread(&file, 0) + "\n")
}

/// JSON with a line of text for each field, cell, subject, shape and row.
fn spread(value: &Value, depth: usize) -> String {
    let lines = |parts: Vec<String>| parts.join(",\n");
    let deeper = |value: &Value| spread(value, depth + 1);
    match value {
        Value::Object(fields) if depth < 4 => {
            let field = |(name, value): (&String, &Value)| format!("{name:?}: {}", deeper(value));
            format!("{{\n{}}}", lines(fields.iter().map(field).collect()))
        }
        Value::Array(list) if depth < 5 => format!("[\n{}]", lines(list.iter().map(deeper).collect())),
        _ => value.to_string(),
    }
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
        assert!(format!("{:#}", unpack("root:x:0").unwrap_err()).starts_with("it is not JSON: "));
        let text = pack(&[plain(1)]).unwrap();
        assert!(pack(&[plain(1), plain(2)]).is_err());
        let list = |record: Record| format!("[{}]", files::json(&record).unwrap());
        assert_eq!(unpack(&list(plain(1))).unwrap().unwrap().len(), 1);
        let mut damaged = plain(1);
        damaged.lines[0].cell = 99;
        assert!(unpack(&list(damaged)).unwrap_err().to_string().contains("a cell that it has not"));
        let other = Record { schema: "ulocks-bench/0".into(), ..plain(1) };
        assert!(unpack(&list(other)).unwrap_err().to_string().contains("a record of ulocks-bench/0"));
        let damaged = text.replace("\"rows\": [\n[0,", "\"rows\": [\n[99,");
        assert!(format!("{:#}", unpack(&damaged).unwrap_err()).contains("names cell 99 of 8"));
    }
}
