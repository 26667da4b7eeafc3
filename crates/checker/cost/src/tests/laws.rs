//! What is known of these locks, in orders and growth.

use super::super::{Machine, Outcome, Run};
use super::contend;
use super::locks::{Lock, Mcs, Tas, ThreeState, Ticket, Ttas};

fn on<L: Lock>(cpus: usize) -> Outcome {
    contend::<L>(&Run::new(Machine::example_with(cpus), cpus)).unwrap()
}

#[test]
fn test_and_set_collapses() {
    fn collapses<L: Lock>() {
        let [few, some, many] = [2, 16, 64].map(|cpus| on::<L>(cpus).per_us);
        assert!(few > 2.0 * some && some > 2.0 * many, "{few} {some} {many}");
    }
    collapses::<Tas>();
    collapses::<Ttas>();
}

#[test]
fn a_ticket_costs_a_transfer_for_every_waiter() {
    let [few, more, many] = [16, 64, 128].map(|cpus| on::<Ticket>(cpus).transfers_per_operation);
    // All others read the word whenever it changes; four times as many, four times as much.
    assert!((3.0..5.0).contains(&(more / few)), "{few} {more}");
    assert!((1.7..2.3).contains(&(many / more)), "{more} {many}");
}

#[test]
fn a_queue_costs_the_same_for_any_number() {
    let run = |cpus| Run { time_ns: 1e6, ..Run::new(Machine::example_with(cpus), cpus) };
    let outcomes = [8, 64, 256].map(|cpus| contend::<Mcs>(&run(cpus)).unwrap());
    let transfers = outcomes.each_ref().map(|outcome| outcome.transfers_per_operation);
    let (least, most) = (transfers[0].min(transfers[2]), transfers[0].max(transfers[2]));
    assert!(most < 1.5 * least, "{transfers:?}");
    // First come, first served.
    assert!(outcomes.iter().all(|outcome| outcome.fairness.jain > 0.95));
}

#[test]
fn order_on_many_cpus() {
    let (tas, ttas, ticket, mcs) =
        (on::<Tas>(128).per_us, on::<Ttas>(128).per_us, on::<Ticket>(128).per_us, on::<Mcs>(128).per_us);
    assert!(mcs > 3.0 * ticket, "{mcs} {ticket}");
    assert!(ticket > 1.5 * ttas.max(tas), "{ticket} {ttas} {tas}");
}

/// More threads than CPUs: a spinning thread keeps the owner off its CPU, a sleeping one does not.
#[test]
fn spinning_needs_a_cpu_for_everybody() {
    let crowd = |threads| Run {
        cpus: 4,
        warm_up_ns: 4e6, // a slice later, or no thread has been preempted yet
        time_ns: 8e6,
        hold_ns: 1_000.0,
        think_ns: 1_000.0,
        ..Run::new(Machine::example(), threads)
    };
    let fits = contend::<Ticket>(&crowd(4)).unwrap().per_us;
    let crowded = contend::<Ticket>(&crowd(8)).unwrap().per_us;
    assert!(fits > 50.0 * crowded, "{fits} {crowded}");
    let fits = contend::<ThreeState<0>>(&crowd(4)).unwrap().per_us;
    let crowded = contend::<ThreeState<0>>(&crowd(8)).unwrap().per_us;
    assert!(fits < 3.0 * crowded, "{fits} {crowded}");
}

#[test]
fn two_runs_are_equal() {
    fn equal<L: Lock>(run: &Run) {
        let (one, other) = (contend::<L>(run).unwrap(), contend::<L>(run).unwrap());
        assert_eq!(one, other);
        assert_eq!(one.to_json(), other.to_json());
        assert!(one.operations > 0);
    }
    let run = Run::new(Machine::example(), 32);
    equal::<Tas>(&run);
    equal::<Ttas>(&run);
    equal::<Ticket>(&run);
    equal::<Mcs>(&run);
    let crowded = Run { cpus: 3, time_ns: 1e6, ..run };
    equal::<ThreeState<20>>(&crowded);
    let one = contend::<ThreeState<20>>(&crowded).unwrap();
    let other = contend::<ThreeState<20>>(&Run { seed: 2, ..crowded }).unwrap();
    assert_ne!(one.event_hash, other.event_hash);
}

#[test]
fn many_threads_and_many_cpus() {
    let outcome = contend::<Mcs>(&Run::new(Machine::example_with(1024), 1024)).unwrap();
    assert!(outcome.operations > 100);
    let crowd = Run { cpus: 8, time_ns: 1e6, ..Run::new(Machine::example(), 2_000) };
    let outcome = contend::<ThreeState<10>>(&crowd).unwrap();
    assert!(outcome.operations > 100);
}

#[test]
fn an_outcome_is_marked_and_carries_its_machine() {
    let outcome = on::<Tas>(2);
    let json: serde_json::Value = serde_json::from_str(&outcome.to_json()).unwrap();
    assert_eq!(json["predicted"], true);
    assert_eq!(json["machine"]["origin"], "guessed");
    assert_eq!(Machine::from_json(&json["machine"].to_string()).unwrap(), Machine::example_with(2));
    assert!(outcome.to_string().starts_with("predicted: "));
}
