use super::*;

fn parsed(line: &str) -> Result<Options, String> {
    let arguments = std::iter::once("bench").chain(line.split_whitespace()).map(OsString::from).collect();
    try_parse(with_rows(&[]), without(arguments, CRITERIONS)).map_err(|refusal| refusal.1)
}

#[test]
fn times() {
    for (text, ns) in [("0", 0), ("250ns", 250), ("3us", 3_000), ("0.5ms", 500_000), ("2s", 2_000_000_000)] {
        assert_eq!(duration(text).unwrap(), Duration::from_nanos(ns), "{text}");
    }
    for (text, error) in [
        ("3", "'3' has no unit of time; allowed: 0, or a number with ns, us, ms or s"),
        ("3fortnights", "'fortnights' is not a unit of time; allowed: "),
        ("1.2.3us", "'1.2.3' is not a number; allowed: "),
        ("", "'' has no unit of time; allowed: "),
        ("NaNs", "'NaNs' is not a unit of time"),
        ("1001s", "a time of 1001s is out of range"),
    ] {
        assert!(format!("{:#}", duration(text).unwrap_err()).starts_with(error), "{text}");
    }
    assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
    for text in ["0", "NaN", "1h", "4000"] {
        assert!(seconds(text).unwrap_err().to_string().ends_with("allowed: 0.001 to 3600"), "{text}");
    }
}

#[test]
fn numbers_of_workers() {
    for (text, all) in [
        ("1,2,4..64", &[1, 2, 4, 8, 16, 32, 64][..]),
        ("4..50", &[4, 8, 16, 32, 50]),
        ("8,1,8", &[1, 8]),
        ("7..7", &[7]),
    ] {
        assert_eq!(counts(text).unwrap().0, all, "{text}");
    }
    for (text, error) in [
        ("0", "0 workers are out of range; allowed: 1 to 10000"),
        ("1,,2", "'' is not a number of workers; allowed: "),
        ("8..2", "the range 8..2 runs backwards; allowed: "),
    ] {
        assert!(counts(text).unwrap_err().to_string().starts_with(error), "{text}");
    }
}

#[test]
fn each_bench_passes_over_what_the_other_knows() {
    let line = "--bench --threads 1,2 --sample-size 20 --quick --color=never --think 3us -n scaling many";
    let options = parsed(line).unwrap();
    assert_eq!(options.threads, Some(List(vec![1, 2])));
    assert_eq!(options.wish().times, Some(Times::us(0, 3)));
    assert!(options.quick && options.bench && options.rows == ["scaling", "many"]);
    assert_eq!(parsed("--non-hold 3us").unwrap().think, options.think);

    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let left = without(arguments, OURS);
    assert_eq!(left.join(" ".as_ref()), "--bench --sample-size 20 --quick --color=never -n scaling many");
    assert!(is_group("contended") && is_group("readers/psrw/2") && !is_group("contend"));
}
