//! Deaths, enumerated: a thread stops for ever in place of each of its steps in turn, and the
//! others have to go on.
//!
//! [`sweep`] finds out, for every step of a thread, what its death there does to the others:
//! whether they all come to their end, or wait for the dead for ever. What they do until then is
//! checked as in any exploration. A lock that survives its owner has no step that blocks another
//! thread; of a plain one, the sweep says which steps do.
//!
//! Thread 0, which runs the model, never dies; so a model starts its threads and judges what is
//! left.

use crate::explore::{Config, Deaths, Failure, Survivors, run_from};
use core::fmt;
use std::rc::Rc;

/// What the death of a thread in place of one of its steps does to the others.
#[derive(Clone, Debug)]
pub struct Point {
    /// The thread that dies.
    pub thread: usize,
    /// The number of the step it does not take, counted from 0.
    pub step: u32,
    /// The lines at which it died, in the executions in which it came so far.
    pub places: Vec<String>,
    /// Executions in which it died.
    pub deaths: u64,
    /// Of these, those in which a thread waits for ever.
    pub blocked: u64,
}

/// What the deaths of one thread do to the others.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// By step.
    pub points: Vec<Point>,
}

impl Sweep {
    /// The steps at which a death blocked the others in some execution.
    pub fn fatal(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| point.blocked > 0)
    }

    /// Executions in which the thread died.
    #[must_use]
    pub fn deaths(&self) -> u64 {
        self.points.iter().map(|point| point.deaths).sum()
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>4}  {:>7}  {:>7}  at", "step", "deaths", "blocked")?;
        for Point { step, places, deaths, blocked, .. } in &self.points {
            writeln!(f, "{step:>4}  {deaths:>7}  {blocked:>7}  {}", places.join(", "))?;
        }
        Ok(())
    }
}

/// Lets `thread` die in place of its first step, its second, and so on, until it ends before it
/// could: each time in all the executions that `config` asks for.
///
/// # Errors
/// The first execution that went wrong. That survivors wait for the dead is not wrong here, it is
/// counted; demand what has to hold of the [`Sweep`].
pub fn sweep(config: &Config, thread: usize, model: impl Fn() + 'static) -> Result<Sweep, Box<Failure>> {
    let model: Rc<dyn Fn()> = Rc::new(model);
    let mut points = Vec::new();
    for step in 0.. {
        let deaths = Deaths::At { thread, step };
        let config = Config { deaths, survivors: Survivors::MayBlock, ..config.clone() };
        let mut places = Vec::new();
        let mut died = |place| {
            if !places.contains(&place) {
                places.push(place);
            }
        };
        let report = run_from(&config, &model, &mut died, &mut None)?;
        if report.deaths == 0 {
            break;
        }
        places.sort_unstable();
        points.push(Point { thread, step, places, deaths: report.deaths, blocked: report.blocked });
    }
    Ok(Sweep { points })
}
