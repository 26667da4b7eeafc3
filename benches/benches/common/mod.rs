//! What the criterion benches share.

use criterion::Criterion;
use std::time::Duration;
use ulocks_benches::programs::options::{self, CriterionOptions};
use ulocks_benches::programs::scaling;
use ulocks_benches::run::threads::keep_a_thread_asleep;

/// criterion as the command line wants it, and what criterion does not know about. A wrong command
/// line ends here.
///
/// Each bench is sampled for a time of `sampling`. That is short, since there are many locks: all
/// of `cargo bench` has fourteen minutes, and three with `--quick`.
pub fn start(sampling: Duration) -> (Criterion, CriterionOptions) {
    let options = options::for_criterion(scaling::check);
    keep_a_thread_asleep();
    let criterion = Criterion::default()
        .sample_size(20)
        .nresamples(10_000)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(if options.quick { Duration::from_millis(150) } else { sampling })
        .without_plots()
        .configure_from_args();
    (criterion, options)
}
