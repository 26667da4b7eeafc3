//! The file for pprof, read again by a reader of the wire format that shares no code with the
//! writer.

#![cfg(all(feature = "pprof", not(any(ulocks_loom, ulocks_vm))))]

use std::collections::BTreeMap;
use std::io::Read;
use std::thread;
use ulocks_debug::*;
use ulocks_testkit as _;

/// The fields of a message, by number.
type Fields = BTreeMap<u64, Vec<Field>>;

#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        shift += 7;
        if first & 128 == 0 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Fields {
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(number(&mut bytes)),
            2 => {
                let length = number(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(tag >> 3).or_default().push(field);
    }
    fields
}

fn messages(fields: &Fields, tag: u64) -> Vec<Fields> {
    let all = fields.get(&tag).into_iter().flatten();
    all.map(|field| if let Field::Bytes(bytes) = field { self::fields(bytes) } else { panic!() }).collect()
}

/// The numbers of a field: packed, single, or none, which is zero.
fn numbers(fields: &Fields, tag: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for field in fields.get(&tag).into_iter().flatten() {
        match field {
            Field::Number(value) => all.push(*value),
            Field::Bytes(bytes) => {
                let mut bytes = &bytes[..];
                while !bytes.is_empty() {
                    all.push(number(&mut bytes));
                }
            }
        }
    }
    all
}

fn one(fields: &Fields, tag: u64) -> u64 {
    numbers(fields, tag).first().copied().unwrap_or(0)
}

#[test]
fn the_file_for_pprof_is_read_again() {
    static NAME: Class = Class::new("books");
    let lock = Mutex::new_in(&NAME, 0);
    profile::start();
    let guard = lock.lock();
    thread::scope(|scope| {
        let work = || *lock.lock() += 1;
        thread::Builder::new().name("reader".to_owned()).spawn_scoped(scope, work).unwrap();
        ulocks_testkit::limit::until("a thread waits for a lock", || {
            held().locks().iter().any(|held| held.waiters > 0)
        });
        drop(guard);
    });
    profile::stop();
    let profile = profile::snapshot();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&profile.to_pprof()[..]).read_to_end(&mut bytes).unwrap();
    let file = fields(&bytes);

    let texts: Vec<String> = file[&6]
        .iter()
        .map(|field| if let Field::Bytes(bytes) = field { bytes.clone() } else { panic!() })
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect();
    assert_eq!(texts[0], "");
    let text = |index: u64| texts[index as usize].as_str();
    let types: Vec<(&str, &str)> =
        messages(&file, 1).iter().map(|kind| (text(one(kind, 1)), text(one(kind, 2)))).collect();
    let expected = [
        ("contentions", "count"),
        ("delay", "nanoseconds"),
        ("acquisitions", "count"),
        ("hold", "nanoseconds"),
    ];
    assert_eq!(types, expected);
    assert_eq!(text(one(&file, 14)), "delay");
    assert_eq!(u128::from(one(&file, 10)), profile.ran().as_nanos());
    assert!(one(&file, 9) > 0);

    let functions: BTreeMap<u64, Fields> =
        messages(&file, 5).into_iter().map(|function| (one(&function, 1), function)).collect();
    let locations: BTreeMap<u64, Fields> =
        messages(&file, 4).into_iter().map(|location| (one(&location, 1), location)).collect();
    // The name, the file and the line of a location.
    let frame = |id: u64| {
        let lines = messages(&locations[&id], 4);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let function = &functions[&one(line, 1)];
        (text(one(function, 2)), text(one(function, 4)), one(line, 2))
    };
    let mut samples: Vec<(String, Vec<u64>)> = Vec::new();
    for sample in messages(&file, 2) {
        let stack: Vec<_> = numbers(&sample, 1).into_iter().map(frame).collect();
        let [place, class, thread] = stack[..] else { panic!("{stack:?}") };
        assert!(place.0.starts_with(&format!("{}:{}:", file!(), place.2)), "{place:?}");
        assert_eq!((place.1, class.1), (file!(), file!()));
        assert!(class.0.starts_with("books of "), "{class:?}");
        let labels: Vec<_> =
            messages(&sample, 3).iter().map(|label| (text(one(label, 1)), text(one(label, 2)))).collect();
        assert_eq!(labels, [("thread", thread.0), ("class", class.0)]);
        samples.push((thread.0.to_owned(), numbers(&sample, 2)));
    }
    let expected: Vec<(String, Vec<u64>)> = profile
        .sites()
        .iter()
        .map(|site| {
            let nanos = |time: std::time::Duration| time.as_nanos() as u64;
            let sums = &site.sums;
            let values = vec![sums.contended, nanos(sums.waited), sums.acquired, nanos(sums.held)];
            (site.thread.clone(), values)
        })
        .collect();
    assert_eq!(samples, expected);
    assert_eq!(samples[0].0, "reader");
    assert_eq!((samples[0].1[0], samples[0].1[2]), (1, 1));
    assert!(samples[0].1[1] > 0);
    if let Some(path) = std::env::var_os("ULOCKS_PPROF") {
        std::fs::write(path, profile.to_pprof()).unwrap();
    }
}
