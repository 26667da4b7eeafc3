//! `ulockflex` with a thousand children. A file of its own: cargo runs the tests of one file side
//! by side, and beside a thousand threads the short windows of other tests would hold nothing.

use std::process::Command;
use ulocks_testkit::limit::output;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ulockflex");

#[test]
fn a_thousand_children_are_no_trouble() {
    for children in ["--threads", "--processes"] {
        let crowd = [children, "1000", "--locks", "unfair,sysv", "--hold", "1us", "--non-hold", "2us"];
        let short = ["--seconds", "0.2", "--max-runs", "2"];
        let output = output(Command::new(PROGRAM).args(crowd).args(short));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{children}: {}, {stderr}", output.status);
        let table = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields.first() == Some(&"1000"))
            .collect();
        assert_eq!(rows.len(), 2, "{table}");
        for (row, counts) in rows.iter().zip([true, false]) {
            // WC and R, from the lock that counts.
            let known = [row[8], row[10]].map(|field| field.parse::<f64>().is_ok());
            assert_eq!(known, [counts; 2], "{row:?}");
            assert_ne!(row[12], "0", "{row:?}");
        }
    }
}
