//! The types have the faces, the sizes and the arithmetic of those in `core`.

use crate::all_outcomes;
use core::sync::atomic;
use std::fmt::Debug;
use ulocks_vm::explore::{Config, Strategy, explore};
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use ulocks_vm::thread;

/// Numbers that are good at overflows.
const VALUES: [u64; 9] = [0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// The one execution without surprises: an exchange that `fetch_update` makes may fail for no
/// reason.
fn run(model: impl Fn() + 'static) {
    let config = Config { strategy: Strategy::Bytes(Vec::new()), ..Config::default() };
    assert_eq!(explore(config, model).executions, 1);
}

macro_rules! same_arithmetic {
    ($test:ident, $vm:ident, $core:ident, $int:ty) => {
        #[test]
        fn $test() {
            assert_eq!((size_of::<$vm>(), align_of::<$vm>()), (size_of::<atomic::$core>(), align_of::<atomic::$core>()));
            run(|| {
                for (a, b) in VALUES.iter().flat_map(|&a| VALUES.iter().map(move |&b| (a as $int, b as $int))) {
                    let (vm, core) = ($vm::new(a), atomic::$core::new(a));
                    macro_rules! both {
                        ($call:ident($arguments:tt)) => { both!(@ $call $arguments) };
                        (@ $call:ident ($argument:expr, $order:expr)) => {{
                            assert_eq!(vm.$call($argument, $order), core.$call($argument, $order), stringify!($call));
                            assert_eq!(vm.load(Relaxed), core.load(Relaxed), stringify!($call));
                        }};
                    }
                    both!(fetch_add((b, Relaxed)));
                    both!(fetch_sub((b, Acquire)));
                    both!(fetch_sub((a, Release)));
                    both!(fetch_max((b, AcqRel)));
                    both!(fetch_min((a, SeqCst)));
                    both!(fetch_and((b, Relaxed)));
                    both!(fetch_or((a, Relaxed)));
                    both!(fetch_xor((b, Relaxed)));
                    both!(fetch_nand((a, Relaxed)));
                    both!(swap((b, AcqRel)));
                    let twice = |value: $int| value.checked_mul(2);
                    assert_eq!(vm.fetch_update(Relaxed, Relaxed, twice), core.fetch_update(Relaxed, Relaxed, twice));
                    let exchanged = vm.compare_exchange(a, b, AcqRel, Acquire);
                    assert_eq!(exchanged, core.compare_exchange(a, b, AcqRel, Acquire));
                    vm.store(a, Release);
                    assert_eq!(format!("{vm:?}"), format!("{a:?}"));
                    assert_eq!(vm.into_inner(), a);
                }
                assert_eq!($vm::default().into_inner(), 0);
                assert_eq!($vm::from(7).into_inner(), 7);
            });
        }
    };
}

same_arithmetic!(numbers_of_32_bits, AtomicU32, AtomicU32, u32);
same_arithmetic!(numbers_of_64_bits, AtomicU64, AtomicU64, u64);
same_arithmetic!(numbers_of_a_pointers_size, AtomicUsize, AtomicUsize, usize);

#[test]
fn numbers_of_8_bits() {
    for a in VALUES {
        run(move || {
            let a = a as u8;
            let (vm, core) = (AtomicU8::new(a), atomic::AtomicU8::new(a));
            for b in VALUES.map(|b| b as u8) {
                assert_eq!(vm.fetch_add(b, Relaxed), core.fetch_add(b, Relaxed));
                assert_eq!(vm.fetch_nand(b, Relaxed), core.fetch_nand(b, Relaxed));
                assert_eq!(vm.swap(b, Relaxed), core.swap(b, Relaxed));
                assert_eq!(vm.fetch_max(a, Relaxed), core.fetch_max(a, Relaxed));
                assert_eq!(
                    vm.compare_exchange(a, b, Relaxed, Relaxed),
                    core.compare_exchange(a, b, Relaxed, Relaxed)
                );
                assert_eq!(vm.load(Relaxed), core.load(Relaxed));
            }
        });
    }
}

#[test]
fn booleans() {
    run(|| {
        for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
            let (vm, core) = (AtomicBool::new(a), atomic::AtomicBool::new(a));
            assert_eq!(vm.fetch_and(b, Relaxed), core.fetch_and(b, Relaxed));
            assert_eq!(vm.fetch_or(b, Relaxed), core.fetch_or(b, Relaxed));
            assert_eq!(vm.fetch_xor(b, Relaxed), core.fetch_xor(b, Relaxed));
            assert_eq!(vm.fetch_nand(b, Relaxed), core.fetch_nand(b, Relaxed));
            assert_eq!(vm.swap(a, Relaxed), core.swap(a, Relaxed));
            assert_eq!(vm.into_inner(), core.into_inner());
        }
    });
}

#[test]
fn pointers_keep_where_they_come_from() {
    run(|| {
        let mut values = [1_u32, 2];
        let [one, two] = values.each_mut().map(std::ptr::from_mut);
        let pointer = AtomicPtr::new(one);
        assert_eq!(pointer.swap(two, AcqRel), one);
        assert_eq!(pointer.compare_exchange(one, two, Relaxed, Relaxed), Err(two));
        assert_eq!(unsafe { *pointer.load(Acquire) }, 2);
        assert!(AtomicPtr::<u8>::default().into_inner().is_null());
        assert_eq!(size_of::<AtomicPtr<u8>>(), size_of::<*mut u8>());
    });
}

#[test]
fn an_atomic_may_be_moved() {
    run(|| {
        let atomic = AtomicU32::new(1);
        atomic.store(2, Relaxed);
        let mut moved = Box::new([AtomicU32::new(0), atomic]);
        assert_eq!(moved[1].load(Relaxed), 2);
        moved.swap(0, 1);
        assert_eq!(moved.map(AtomicU32::into_inner), [2, 0]);
    });
}

#[test]
fn memory_that_is_zero_is_an_atomic_that_everybody_knows() {
    let model = || {
        // The thread learns of the address without any order.
        let zeroed = Box::leak(Box::new([0_u64; 4]));
        let (address, bytes) = (zeroed.as_mut_ptr().expose_provenance(), size_of_val(zeroed));
        let of = move |offset: usize| unsafe {
            &*std::ptr::with_exposed_provenance::<AtomicU64>(address + offset)
        };
        let other = thread::spawn(move || of(8).fetch_add(3, Relaxed));
        let before = of(8).fetch_add(4, Relaxed);
        assert_eq!((other.join().unwrap(), of(8).load(Relaxed)), (if before == 0 { 4 } else { 0 }, 7));
        let (byte, half) = unsafe {
            (
                &*std::ptr::with_exposed_provenance::<AtomicU8>(address + bytes - 1),
                &*std::ptr::with_exposed_provenance::<AtomicU32>(address + 16),
            )
        };
        (byte.load(Relaxed), half.load(Relaxed))
    };
    all_outcomes(model, [(0, 0)]);
}

#[test]
#[should_panic(expected = "a failing exchange cannot be Release")]
fn an_ordering_that_a_failing_exchange_cannot_have_is_refused() {
    run(|| fails(AtomicU32::new(0).compare_exchange(1, 2, AcqRel, Release)));
}

fn fails<T: Debug>(result: Result<T, T>) {
    assert!(result.is_err(), "{result:?}");
}

#[test]
#[should_panic(expected = "there is no such thing as a relaxed fence")]
fn a_relaxed_fence_is_refused() {
    run(|| ulocks_vm::sync::fence(Relaxed));
}

#[test]
#[should_panic(expected = "a load cannot be Release")]
fn a_releasing_load_is_refused() {
    run(|| assert_eq!(AtomicU32::new(0).load(Release), 0));
}

#[test]
#[should_panic(expected = "a store cannot be Acquire")]
fn an_acquiring_store_is_refused() {
    run(|| AtomicU32::new(0).store(1, Acquire));
}

/// What asks for CPUs does the same in every exploration, on whatever machine.
#[test]
fn an_exploration_has_no_cpus() {
    all_outcomes(|| (thread::cpu(), thread::cpus()), [(None, None)]);
}
