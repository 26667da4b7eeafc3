//! The profile in the format of pprof: a protocol buffer, compressed by gzip.
//!
//! The messages are those of `profile.proto` in <https://github.com/google/pprof>, without the
//! fields that have no meaning here. A sample is a place with its class and its thread. Its stack
//! is the place, called by the class, called by the thread. Its values are the four of [`TYPES`].

use crate::{Profile, SiteLine};
use flate2::{Compression, write::GzEncoder};
use prost::Message;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The values of a sample. The first two have the names that Go's mutex profile has.
const TYPES: [(&str, &str); 4] =
    [("contentions", "count"), ("delay", "nanoseconds"), ("acquisitions", "count"), ("hold", "nanoseconds")];

#[derive(Message)]
struct Proto {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

/// Texts are numbers: their places in the table of strings.
#[derive(Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// A profile that is being put together.
#[derive(Default)]
struct Builder {
    proto: Proto,
    texts: BTreeMap<String, i64>,
    frames: BTreeMap<(String, String, u32), u64>,
}

impl Builder {
    /// The number of a text. The first text is the empty one, as the format asks.
    fn text(&mut self, text: &str) -> i64 {
        let next = self.texts.len() as i64;
        *self.texts.entry(text.to_owned()).or_insert_with(|| {
            self.proto.string_table.push(text.to_owned());
            next
        })
    }

    /// The number of a frame: a function and a location.
    fn frame(&mut self, name: &str, file: &str, line: u32) -> u64 {
        let key = (name.to_owned(), file.to_owned(), line);
        if let Some(&id) = self.frames.get(&key) {
            return id;
        }
        let id = self.frames.len() as u64 + 1;
        let (name, filename) = (self.text(name), self.text(file));
        self.proto.function.push(Function { id, name, system_name: name, filename });
        let line = vec![Line { function_id: id, line: line.into() }];
        self.proto.location.push(Location { id, line });
        self.frames.insert(key, id);
        id
    }

    fn sample(&mut self, site: &SiteLine) {
        let (thread, class, at) = (site.thread_frame(), site.class_frame(), site.at);
        let made = site.lock.made;
        let location_id = vec![
            self.frame(&at.to_string(), at.file(), at.line()),
            self.frame(&class, made.file(), made.line()),
            self.frame(&thread, "", 0),
        ];
        let label = [("thread", &thread), ("class", &class)]
            .map(|(key, text)| Label { key: self.text(key), text: self.text(text) })
            .into();
        let sums = &site.sums;
        let (wait, hold) = (sums.waited.as_nanos() as i64, sums.held.as_nanos() as i64);
        let value = vec![sums.contended as i64, wait, sums.acquired as i64, hold];
        self.proto.sample.push(Sample { location_id, value, label });
    }
}

impl Profile {
    /// The profile as a file for `go tool pprof`, and for the other programs that read its format.
    ///
    /// The values of a sample are `contentions`, `delay`, `acquisitions` and `hold`.
    ///
    /// # Examples
    /// ```no_run
    /// let profile = ulocks_profile::snapshot();
    /// std::fs::write("locks.pb.gz", profile.to_pprof())?;
    /// // go tool pprof -top -sample_index=delay locks.pb.gz
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "pprof")))]
    pub fn to_pprof(&self) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.text("");
        for (kind, unit) in TYPES {
            let (kind, unit) = (builder.text(kind), builder.text(unit));
            builder.proto.sample_type.push(ValueType { kind, unit });
        }
        builder.proto.default_sample_type = builder.text("delay");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        builder.proto.time_nanos = now.as_nanos() as i64;
        builder.proto.duration_nanos = self.ran.as_nanos() as i64;
        self.sites.iter().for_each(|site| builder.sample(site));
        let mut file = GzEncoder::new(Vec::new(), Compression::default());
        file.write_all(&builder.proto.encode_to_vec()).expect("a vector takes all");
        file.finish().expect("a vector takes all")
    }
}
