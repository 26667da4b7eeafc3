use super::*;

fn parsed(line: &str) -> Options {
    parse_bench(&[], std::iter::once("bench").chain(line.split_whitespace()).map(Into::into).collect())
}

#[test]
fn times() {
    for (text, ns) in [("0", 0), ("250ns", 250), ("3us", 3_000), ("0.5ms", 500_000), ("2s", 2_000_000_000)] {
        assert_eq!(duration(text).unwrap(), Duration::from_nanos(ns), "{text}");
    }
    for text in ["3", "3fortnights", "1.2.3us", "", "NaNs", "1001s", "-1us"] {
        let error = duration(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{text}' is not a time; allowed: 0 to 1000s")), "{error}");
    }
    assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
    for text in ["0", "NaN", "1h", "4000"] {
        assert!(seconds(text).unwrap_err().to_string().ends_with("allowed: 0.001 to 3600"), "{text}");
    }
}

#[test]
fn a_lock_may_be_named_with_its_patience() {
    let named = "std,calock-0,calock-3us,semaphore-3us,psrw,sysv";
    assert_eq!(lock_names(named).unwrap().0.join(","), named);
    let error = lock_names("std-0").unwrap_err().to_string();
    assert!(error.starts_with("unknown lock 'std-0'; allowed: none, std, "), "{error}");
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
        ("0", "'0' is not a number of workers; allowed: 1 to 10000"),
        ("1,,2", "'' is not a number of workers; allowed: "),
        ("8..2", "the range 8..2 runs backwards; allowed: "),
    ] {
        assert!(counts(text).unwrap_err().to_string().starts_with(error), "{text}");
    }
}

#[test]
fn each_bench_passes_over_what_the_other_knows() {
    let line = "--bench --threads 1,2 --sample-size 20 --quick --color=never --think 3us -n scaling many";
    let options = parsed(line);
    assert_eq!(options.threads, Some(List(vec![1, 2])));
    assert_eq!(options.wish().times, Some(Times::us(0, 3)));
    assert!(options.quick && options.bench && options.rows == ["scaling", "many"]);
    assert_eq!(parsed("--non-hold 3us").think, options.think);

    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let left = without(arguments, &ours());
    assert_eq!(left.join(" ".as_ref()), "--bench --sample-size 20 --quick --color=never -n scaling many");
    assert_eq!(
        ["contended", "readers/psrw/2", "contend"].map(group_of),
        [Some("contended"), Some("readers"), None]
    );
}
