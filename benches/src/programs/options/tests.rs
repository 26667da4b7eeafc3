use super::*;

#[derive(Parser, Debug)]
struct Cli {
    #[command(flatten)]
    options: BenchOptions,
}

fn parsed(line: &str) -> Result<BenchOptions, String> {
    let arguments = std::iter::once("bench").chain(line.split_whitespace()).map(OsString::from).collect();
    try_parse::<Cli>(without(arguments, CRITERIONS)).map(|cli| cli.options).map_err(|refusal| refusal.1)
}

#[test]
fn times() {
    for (text, ns) in [("0", 0), ("250ns", 250), ("3us", 3_000), ("0.5ms", 500_000), ("2s", 2_000_000_000)] {
        assert_eq!(duration(text).unwrap(), Duration::from_nanos(ns), "{text}");
    }
    for (text, error) in [
        ("3", "'3' has no unit of time; allowed: 0, or a number with ns, us, ms or s"),
        ("xus", "'xus' is not a unit of time; allowed: "),
        ("3fortnights", "'fortnights' is not a unit of time; allowed: "),
        ("1.2.3us", "'1.2.3' is not a number; allowed: "),
        ("", "'' has no unit of time; allowed: "),
        ("-1us", "a time of -1us is out of range; allowed: 0 to 1000s"),
        ("NaNs", "'NaNs' is not a unit of time"),
        ("1001s", "a time of 1001s is out of range"),
    ] {
        assert!(format!("{:#}", duration(text).unwrap_err()).starts_with(error), "{text}");
    }
    assert_eq!(durations("0,3us").unwrap().0, [Duration::ZERO, Duration::from_micros(3)]);
    assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
    for text in ["0", "-1", "NaN", "1h", "4000"] {
        assert!(seconds(text).unwrap_err().to_string().ends_with("allowed: 0.001 to 3600"), "{text}");
    }
}

#[test]
fn numbers_of_workers() {
    for (text, all) in [
        ("3", &[3][..]),
        ("1,2,4..64", &[1, 2, 4, 8, 16, 32, 64]),
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
        ("10001", "10001 workers are out of range"),
        ("two", "'two' is not a number of workers"),
    ] {
        assert!(counts(text).unwrap_err().to_string().starts_with(error), "{text}");
    }
}

#[test]
fn percentages_and_locks() {
    assert_eq!(percentages("0,20,100").unwrap().0, [0, 20, 100]);
    assert_eq!(percentages("101").unwrap_err().to_string(), "'101' is not a percentage; allowed: 0 to 100");
    let names: Vec<_> = lock_names("std,sysv").unwrap().0.iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["std", "sysv"]);
    assert!(lock_names("std,").unwrap_err().to_string().starts_with("unknown lock ''; allowed: none, "));
}

#[test]
fn each_harness_passes_over_what_the_other_knows() {
    let line = "--bench --threads 1,2 --sample-size 20 --quick --color=never --hold 3us -n name";
    let options = parsed(line).unwrap();
    assert_eq!(options.threads, Some(List(vec![1, 2])));
    assert_eq!(options.hold, Some(Duration::from_micros(3)));
    assert!(options.quick && options.bench && options.selects("a name") && !options.selects("another"));

    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let left = without(arguments, OURS);
    assert_eq!(left.join(" ".as_ref()), "--bench --sample-size 20 --quick --color=never -n name");
}

#[test]
fn an_error_is_one_line() {
    for (line, error) in [
        (
            "--thread 2",
            "unexpected argument '--thread'; allowed: --threads, --hold, --non-hold, --short, --seconds, --rounds, --locks, ",
        ),
        (
            "--threads 0",
            "invalid value '0' for '--threads <LIST>': 0 workers are out of range; allowed: 1 to 10000",
        ),
        ("--hold 3", "invalid value '3' for '--hold <TIME>': '3' has no unit of time; allowed: 0, "),
        (
            "--pin near",
            "invalid value 'near' for '--pin <HOW>': unknown pinning 'near'; allowed: none, compact, scatter, node",
        ),
        ("--locks x", "invalid value 'x' for '--locks <LIST>': unknown lock 'x'; allowed: none, std, "),
        ("--json", "a value is required for '--json <FILE>' but none was supplied"),
        ("a b", "unexpected argument 'b'; allowed: "),
    ] {
        let found = parsed(line).unwrap_err();
        assert!(found.starts_with(error) && !found.contains('\n'), "{line}: {found}");
    }
}
