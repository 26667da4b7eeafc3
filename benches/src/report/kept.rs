//! Records that stay in the repository: one file a machine, small enough to be read and compared.
//!
//! [`pack`] leaves out the trials of the records and keeps what was computed from them: medians,
//! quantiles, intervals, verdicts. Numbers have five digits. A list of objects becomes a table:
//! each object is a line of `rows`, a number and values; the number says which of `shapes` names
//! its fields, those of an object inside an object by `outer.inner`. What is null is left out.
//! [`unpack`] makes the records again, which every program reads as its own.

use super::Report;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The version of such a file.
pub const SCHEMA: &str = "ulocks-kept/1";

/// Packs the records in `files` into the text of the file `output`. `DAY-MACHINE-psrw.json` is
/// called `psrw` in `DAY-MACHINE.json`.
pub fn pack(files: &[impl AsRef<Path>], output: &Path) -> anyhow::Result<String> {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut records = Vec::new();
    for file in files.iter().map(AsRef::as_ref) {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut record: Value =
            serde_json::from_str(&text).with_context(|| format!("cannot use {}", file.display()))?;
        if record["schema"] == super::SCHEMA {
            let mut report = Report::from_json(&text)?;
            report.summary = super::summarise(&report);
            record = serde_json::to_value(report)?;
        }
        if let Some(trials) = record.get_mut("trials") {
            *trials = json!([]);
        }
        let name = stem(file);
        let name = name.strip_prefix(&stem(output)).unwrap_or(&name).trim_start_matches('-');
        records.push(format!("{}: {}", Value::from(name), lines(&tables(record))));
    }
    Ok(format!("{{\"schema\": \"{SCHEMA}\",\n\"records\": {{\n{}}}}}\n", records.join(",\n")))
}

/// The records in a text with their names: those that were packed, or the one that it is.
pub fn unpack(text: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let mut file: Value = serde_json::from_str(text)?;
    if file["schema"] != SCHEMA {
        return Ok(vec![(String::new(), file)]);
    }
    let records = file["records"].as_object_mut().context("no records")?;
    std::mem::take(records).into_iter().map(|(name, record)| Ok((name, objects(record)?))).collect()
}

/// The value with tables in place of lists of objects, and with shorter numbers.
fn tables(value: Value) -> Value {
    match value {
        Value::Array(list) if list.len() > 1 && list.iter().all(Value::is_object) => {
            let mut shapes: Vec<Vec<String>> = Vec::new();
            let row = |object| {
                let mut fields = Map::new();
                flatten("", object, &mut fields);
                let shape: Vec<String> = fields.keys().cloned().collect();
                let at = shapes.iter().position(|known| *known == shape).unwrap_or(shapes.len());
                if at == shapes.len() {
                    shapes.push(shape);
                }
                [at.into()].into_iter().chain(fields.into_iter().map(|(_, value)| tables(value))).collect()
            };
            let rows: Vec<Value> = list.into_iter().map(row).collect();
            json!({"shapes": shapes, "rows": rows})
        }
        Value::Array(list) => list.into_iter().map(tables).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, tables(value))).collect::<Map<_, _>>().into()
        }
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            let number = number.as_f64().unwrap_or_default();
            format!("{number:.4e}").parse::<f64>().map_or(Value::Null, short)
        }
        other => other,
    }
}

/// The number, without `.0`.
fn short(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { json!(number as i64) } else { json!(number) }
}

fn flatten(before: &str, value: Value, fields: &mut Map<String, Value>) {
    match value {
        // `{"contention": null}` is a variant without a payload.
        Value::Object(inner) if before.is_empty() || !inner.values().all(Value::is_null) => {
            for (name, value) in inner {
                let name = if before.is_empty() { name } else { format!("{before}.{name}") };
                flatten(&name, value, fields);
            }
        }
        Value::Null => {}
        other => drop(fields.insert(before.into(), other)),
    }
}

/// The value with lists of objects in place of tables.
fn objects(value: Value) -> anyhow::Result<Value> {
    match value {
        Value::Object(mut fields) => {
            let is_table = fields.len() == 2 && fields.contains_key("shapes") && fields.contains_key("rows");
            if !is_table {
                let inner = fields.into_iter().map(|(name, value)| Ok((name, objects(value)?)));
                return Ok(inner.collect::<anyhow::Result<Map<_, _>>>()?.into());
            }
            let shapes: Vec<Vec<String>> = serde_json::from_value(fields["shapes"].take())?;
            let rows: Vec<Vec<Value>> = serde_json::from_value(fields["rows"].take())?;
            let object = |row: Vec<Value>| {
                let mut values = row.into_iter();
                let shape = values.next().and_then(|at| shapes.get(at.as_u64()? as usize));
                let mut object = Map::new();
                for (name, value) in shape.context("a row has no shape")?.iter().zip(values) {
                    let (outer, last) = name.rsplit_once('.').unwrap_or(("", name));
                    let mut place = &mut object;
                    for part in outer.split('.').filter(|part| !part.is_empty()) {
                        let inner = place.entry(part).or_insert_with(|| json!({}));
                        place = inner.as_object_mut().with_context(|| format!("two values of {name}"))?;
                    }
                    place.insert(last.into(), objects(value)?);
                }
                Ok(Value::from(object))
            };
            rows.into_iter().map(object).collect::<anyhow::Result<Vec<_>>>().map(Value::from)
        }
        Value::Array(list) => {
            list.into_iter().map(objects).collect::<anyhow::Result<Vec<_>>>().map(Value::from)
        }
        other => Ok(other),
    }
}

/// JSON in which a row of a table that is a field of the record has a line of its own.
fn lines(value: &Value) -> String {
    let Value::Object(fields) = value else { return value.to_string() };
    let field = |(name, value): (&String, &Value)| {
        let name = Value::from(name.as_str());
        match value.as_array().filter(|rows| rows.len() > 1 && rows.iter().all(|row| row.is_array())) {
            Some(rows) => {
                let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
                format!("{name}: [\n{}]", rows.join(",\n"))
            }
            None => format!("{name}: {}", lines(value)),
        }
    };
    format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_what_its_objects_had() {
        let list = json!({"rows": [
            {"bound": {"at-least": 1.25}, "side": {"lock": "std", "modes": null}, "span": [1, 2]},
            {"bound": "shown", "side": {"lock": "byte"}, "own": [{"a": 1}, {"a": 2}], "digits": 0.123456, "run": {"contention": null}},
        ]});
        let packed = tables(list);
        assert_eq!(packed["rows"]["shapes"][0], json!(["bound.at-least", "side.lock", "span"]));
        let is = objects(serde_json::from_str(&lines(&packed)).unwrap()).unwrap();
        let expected = json!({"rows": [
            {"bound": {"at-least": 1.25}, "side": {"lock": "std"}, "span": [1, 2]},
            {"bound": "shown", "side": {"lock": "byte"}, "own": [{"a": 1}, {"a": 2}], "digits": 0.12346, "run": {"contention": null}},
        ]});
        assert_eq!(is, expected);
    }

    #[test]
    fn a_packed_record_has_the_answer_of_the_record() {
        use crate::report::{Report, answer, fixture};
        let record = fixture::plain(7);
        let folder = std::env::temp_dir();
        let [file, output] =
            ["-x", ""].map(|end| folder.join(format!("ulocks-kept-{}{end}.json", std::process::id())));
        std::fs::write(&file, record.to_json()).unwrap();
        let text = pack(&[&file], &output).unwrap();
        std::fs::remove_file(&file).unwrap();
        let (name, kept) = unpack(&text).unwrap().remove(0);
        assert_eq!(name, "x");
        let mut kept = Report::from_value(kept).unwrap();
        kept.summary = super::super::summarise(&kept);
        assert_eq!(kept.trials.len(), 0);
        assert_eq!(answer(&kept), answer(&record));
    }
}
