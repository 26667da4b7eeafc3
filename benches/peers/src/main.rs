//! iceoryx2 and raw_sync on the programs of `benches/peers`: `peers iceoryx2`, `peers raw_sync`.

mod measure;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::prelude::*;
use measure::{MESSAGES, PAIRS, PLACES, ROOM, TRIPS, beside, die, tell, time};
use raw_sync::Timeout;
use raw_sync::events::{Event, EventImpl, EventInit, EventState};
use raw_sync::locks::{LockInit, Mutex};
use std::hint::black_box;
use std::time::Duration;

/// Each of so many messages comes with an event.
const BATCH: u32 = 16;

fn main() {
    set_log_level(LogLevel::Error);
    match std::env::args().nth(1).as_deref() {
        Some("iceoryx2") => iceoryx2(),
        Some("raw_sync") => raw_sync(),
        _ => panic!("which peer? iceoryx2 or raw_sync"),
    }
}

type Ipc = ipc::Service;

/// An event of the run `run`, as this process opens it.
fn event(node: &Node<Ipc>, run: u32, name: &str) -> iceoryx2::service::port_factory::event::PortFactory<Ipc> {
    let name = format!("ulocks-peer/{run}/{name}");
    node.service_builder(&name.as_str().try_into().unwrap()).event().open_or_create().unwrap()
}

/// Notifies the listener, once there is one.
fn notify(notifier: &Notifier<Ipc>) {
    while notifier.notify().unwrap() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn await_event(listener: &Listener<Ipc>) {
    while listener.blocking_wait(|_| {}).unwrap() == 0 {}
}

fn iceoryx2() {
    let run = std::process::id();
    let node = || NodeBuilder::new().create::<Ipc>().unwrap();
    let ends = |mine: &str, other: &str| {
        let node = node();
        let listener = event(&node, run, mine).listener_builder().create().unwrap();
        (listener, event(&node, run, other).notifier_builder().create().unwrap())
    };
    let answers = || {
        let (listener, notifier) = ends("b", "a");
        for _ in 0..=TRIPS {
            await_event(&listener);
            notify(&notifier);
        }
        // The other one has all answers before this one's ends go.
        await_event(&listener);
    };
    let asks = |figure: &str| {
        let (listener, notifier) = ends("a", "b");
        let trip = || {
            notify(&notifier);
            await_event(&listener);
        };
        trip(); // both are ready
        tell("iceoryx2", figure, TRIPS, time(|| (0..TRIPS).for_each(|_| trip())));
        notify(&notifier);
    };
    for (cpus, figure) in PLACES {
        beside(cpus, answers, || asks(figure));
    }

    let messages = |node: &Node<Ipc>| {
        let name = format!("ulocks-peer/{run}/messages");
        let service =
            node.service_builder(&name.as_str().try_into().unwrap()).publish_subscribe::<[u64; 8]>();
        service.enable_safe_overflow(false).subscriber_max_buffer_size(ROOM).open_or_create().unwrap()
    };
    let sends = || {
        let node = node();
        let service = messages(&node);
        let (ready, notifier) = ends("ready", "sent");
        let retries = BackpressureStrategy::RetryUntilDelivered;
        let publisher = service.publisher_builder().backpressure_strategy(retries).create().unwrap();
        while service.dynamic_config().number_of_subscribers() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let send = |nth: u32| {
            let message = publisher.loan_uninit().unwrap().write_payload([u64::from(nth); 8]);
            message.send().unwrap();
            if nth == 0 || nth % BATCH == BATCH - 1 {
                notify(&notifier);
            }
        };
        // Until the subscriber has looked, the publisher drops what it has no room for.
        send(0);
        await_event(&ready);
        (1..MESSAGES).for_each(send);
        // The samples are the publisher's: it goes last.
        while service.dynamic_config().number_of_subscribers() != 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    beside([0, 1], sends, || {
        let node = node();
        let (listener, ready) = ends("sent", "ready");
        let subscriber = messages(&node).subscriber_builder().buffer_size(ROOM).create().unwrap();
        let receive = |nth: u32| loop {
            match subscriber.receive().unwrap() {
                Some(message) => break assert_eq!(*message, [u64::from(nth); 8]),
                None => await_event(&listener),
            }
        };
        let name = format!("ulocks-peer/{run}/messages");
        let other = node.service_builder(&name.as_str().try_into().unwrap());
        if let Err(error) = other.publish_subscribe::<[f64; 8]>().open() {
            println!("iceoryx2 layout a service of another type is refused: {error:?}");
        }
        receive(0);
        notify(&ready);
        tell("iceoryx2", "message", MESSAGES - 1, time(|| (1..MESSAGES).for_each(receive)));
    });
}

fn raw_sync() {
    let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping; the result is checked.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, both, shared, -1, 0) };
    assert!(page != libc::MAP_FAILED, "no shared page");
    // SAFETY: a part of the page for each, and more room than each takes; nothing else uses it.
    let (mutex, mine, other) = unsafe {
        let at = |place: usize| page.cast::<u8>().add(place);
        let mutex = Mutex::new(at(0), at(1024)).unwrap().0;
        (mutex, Event::new(at(2048), true).unwrap().0, Event::new(at(3072), true).unwrap().0)
    };
    let pair = || (0..PAIRS).for_each(|_| drop(black_box(&mutex).lock().unwrap()));
    tell("raw_sync", "pair", PAIRS, time(pair));

    let trips = |awaited: &dyn EventImpl, told: &dyn EventImpl, first: bool| {
        for trip in 0..TRIPS {
            if !first || trip != 0 {
                awaited.wait(Timeout::Infinite).unwrap();
            }
            told.set(EventState::Signaled).unwrap();
        }
    };
    let answers = || trips(&*other, &*mine, false);
    for (cpus, figure) in PLACES {
        // The last answer of the first place is in `mine`.
        mine.set(EventState::Clear).unwrap();
        beside(cpus, answers, || tell("raw_sync", figure, TRIPS, time(|| trips(&*mine, &*other, true))));
    }

    let takes = || {
        let _guard = mutex.lock();
        die()
    };
    beside([0, 1], takes, || ());
    let second = Timeout::Val(Duration::from_secs(1));
    match mutex.try_lock(second) {
        Ok(_) => println!("raw_sync death the next one gets the mutex, and is not told"),
        Err(error) => println!("raw_sync death the next one gets no mutex: {error}"),
    }
}
