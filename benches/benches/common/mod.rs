//! What the criterion benches share.

use criterion::Criterion;
use ulocks_benches::programs::options::{self, CriterionOptions};
use ulocks_benches::programs::{scaling, shares};
use ulocks_benches::run::threads::keep_a_thread_asleep;

/// criterion as the command line wants it, and what criterion does not know about. A wrong command
/// line ends here.
///
/// `name` is that of the bench. `benchmarks` says how many of criterion's it has, so that they are
/// sampled for as long as its share of the time allows.
pub fn start(
    name: &str,
    benchmarks: impl FnOnce(&CriterionOptions) -> usize,
) -> (Criterion, CriterionOptions) {
    let options = options::for_criterion(scaling::check);
    keep_a_thread_asleep();
    let sampling = match options.full {
        true => shares::LONGEST,
        false => shares::sampling(name, options.quick, benchmarks(&options)),
    };
    let criterion = Criterion::default()
        .sample_size(20)
        .nresamples(10_000)
        .warm_up_time(shares::WARM_UP)
        .measurement_time(sampling)
        .without_plots()
        .configure_from_args();
    (criterion, options)
}
