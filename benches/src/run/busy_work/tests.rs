use super::*;

#[test]
fn longer_work_takes_more_iterations() {
    let span = Span::new("a hold time", 3_000, 1_000.0).unwrap();
    let mut rng = Rng::new(7);
    let draws: Vec<u64> = (0..10_000).map(|_| span.draw(&mut rng)).collect();
    let (min, max) = (*draws.iter().min().unwrap(), *draws.iter().max().unwrap());
    // Uniform in [1500, 4500] with mean 3000; 10 000 draws reach within 1 % of the ends.
    assert!((1_500..1_530).contains(&min) && (4_470..=4_500).contains(&max), "{min} {max}");
    let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
    assert!((mean - 3_000.0).abs() < 50.0, "{mean}");
}

#[test]
fn a_time_that_cannot_be_measured_is_refused() {
    assert!(Span::new("a hold time", 0, 1_000.0).unwrap().is_zero());
    assert_eq!(
        Span::new("a hold time", 7, 1_000.0).unwrap_err().to_string(),
        "a hold time of 7 ns cannot be measured; allowed: 0, or 8 ns to 1 s"
    );
    assert!(Span::new("a hold time", 8, 1_000.0).is_ok());
    assert!(Span::new("a non-hold time", 2_000_000_000, 1_000.0).is_err());
    for calibration in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Span::new("a hold time", 100, calibration).is_err());
    }
}

#[test]
fn calibration_is_a_speed() {
    // An iteration is a multiplication at least: between a tenth of a nanosecond and a tenth of a
    // microsecond.
    let speed = calibrate();
    assert!((10.0..10_000.0).contains(&speed), "{speed}");
}

#[test]
fn random_numbers_are_spread() {
    let mut rng = Rng::new(0);
    let mut buckets = [0u32; 8];
    for _ in 0..8_000 {
        buckets[rng.below(8) as usize] += 1;
    }
    assert!(buckets.iter().all(|&n| (800..1_200).contains(&n)), "{buckets:?}");
    assert_ne!(Rng::new(1).bits(), Rng::new(2).bits());
}
