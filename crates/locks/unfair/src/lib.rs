#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod asym;
mod barging;
#[cfg(feature = "parking_lot")]
mod byte;
mod throughput;

pub use asym::{
    AsymCondvar, AsymCondvarWith, AsymMutex, AsymMutexGuard, AsymMutexWith, MappedAsymMutexGuard,
    RawAsymMutex,
};
#[doc(hidden)]
pub use barging::BargingState;
pub use barging::{
    BargingCondvar, BargingCondvarWith, BargingMutex, BargingMutexGuard, BargingMutexWith,
    MappedBargingMutexGuard, RawBargingMutex,
};
#[cfg(feature = "parking_lot")]
#[doc(hidden)]
pub use byte::ByteState;
#[cfg(feature = "parking_lot")]
#[cfg_attr(docsrs, doc(cfg(feature = "parking_lot")))]
pub use byte::{
    ByteBits, ByteCondvar, ByteCondvarWith, ByteMutex, ByteMutexGuard, ByteMutexWith, MappedByteMutexGuard,
    RawByteMutex, UserBits,
};
pub use throughput::{
    After, HandOff, MappedThroughputMutexGuard, RawThroughputMutex, ThroughputCondvar, ThroughputCondvarWith,
    ThroughputMutex, ThroughputMutexGuard, ThroughputMutexWith,
};

use ulocks_core::Policy;
use ulocks_core::raw::RawInterruptible;

// Not of `RawByteMutex`, which sleeps in parking_lot_core; core says it of the throughput mutex.
impl<P: Policy> RawInterruptible for RawBargingMutex<P> {}
impl<P: Policy> RawInterruptible for RawAsymMutex<P> {}
