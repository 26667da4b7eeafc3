//! The mutex that its holder may lock again. The model worlds have none.

ulocks_core::on_machine! {
    use crate::unfair::RawThroughputMutex;
    use ulocks_core::api::{Raw, ThreadId};
    use ulocks_core::lock_api;

    /// `ReentrantMutex<T>` is a [`Mutex`](crate::Mutex) that its holder may lock again. A guard
    /// gives shared access to the data only.
    ///
    /// The lock in it is that of [`Mutex`](crate::Mutex), so fairness and blocking are the same. It
    /// is sixteen bytes larger. The model worlds have none.
    ///
    /// # Panics
    /// If one thread holds it more than `usize::MAX` times.
    ///
    /// # Signals and forks
    /// As [`Mutex`](crate::Mutex), but for what the forking thread held: the child of a `fork` has
    /// another thread id. It drops the copies of all guards before it locks the mutex again, or it
    /// would wait for ever.
    ///
    /// # Methods
    /// | method | what it does |
    /// |---|---|
    /// | [`new`](ReentrantMutex#method.new) | an unlocked mutex; `const`, so it can be a `static` |
    /// | [`lock`](ReentrantMutex#method.lock) | locks, or locks again, and waits as long as that takes |
    /// | [`try_lock`](ReentrantMutex#method.try_lock), [`try_lock_for`](ReentrantMutex#method.try_lock_for), [`try_lock_until`](ReentrantMutex#method.try_lock_until) | the same without waiting, for a `Duration`, until an `Instant` |
    /// | [`is_locked`](ReentrantMutex#method.is_locked), [`is_owned_by_current_thread`](ReentrantMutex#method.is_owned_by_current_thread) | whether some thread holds it, whether this one does |
    /// | [`get_mut`](ReentrantMutex#method.get_mut), [`into_inner`](ReentrantMutex#method.into_inner) | the data without locking |
    #[cfg_attr(
        feature = "arc_lock",
        doc = "| [`lock_arc`](ReentrantMutex#method.lock_arc), [`try_lock_arc`](ReentrantMutex#method.try_lock_arc), \
               [`try_lock_arc_for`](ReentrantMutex#method.try_lock_arc_for), \
               [`try_lock_arc_until`](ReentrantMutex#method.try_lock_arc_until) | the same on an `Arc`, with \
               an owned [`ArcReentrantMutexGuard`] |\n\
               | [`make_arc_guard_unchecked`](ReentrantMutex#method.make_arc_guard_unchecked) | for code that \
               locks in ways of its own: `unsafe` |"
    )]
    /// | [`raw`](ReentrantMutex#method.raw), [`data_ptr`](ReentrantMutex#method.data_ptr), [`make_guard_unchecked`](ReentrantMutex#method.make_guard_unchecked), [`force_unlock`](ReentrantMutex#method.force_unlock) | for code that locks in ways of its own; all but `data_ptr` are `unsafe` |
    ///
    /// There is no fair release, such as `force_unlock_fair`: see [`Mutex`](crate::Mutex).
    ///
    /// # Examples
    /// ```
    /// use std::cell::Cell;
    /// use ulocks::ReentrantMutex;
    ///
    /// static DEPTH: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));
    ///
    /// fn descend(levels: u32) {
    ///     let depth = DEPTH.lock();
    ///     depth.set(depth.get() + 1);
    ///     if levels > 0 {
    ///         descend(levels - 1);
    ///     }
    /// }
    /// descend(2);
    /// assert_eq!(DEPTH.lock().get(), 3);
    /// ```
    pub type ReentrantMutex<T> = lock_api::ReentrantMutex<Raw<RawThroughputMutex>, ThreadId, T>;

    /// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one unlocks.
    pub type ReentrantMutexGuard<'a, T> =
        lock_api::ReentrantMutexGuard<'a, Raw<RawThroughputMutex>, ThreadId, T>;

    /// A [`ReentrantMutexGuard`] narrowed to a part of the data.
    pub type MappedReentrantMutexGuard<'a, T> =
        lock_api::MappedReentrantMutexGuard<'a, Raw<RawThroughputMutex>, ThreadId, T>;

    /// A [`ReentrantMutexGuard`] that owns a share of its mutex.
    #[cfg(feature = "arc_lock")]
    #[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
    pub type ArcReentrantMutexGuard<T> =
        lock_api::ArcReentrantMutexGuard<Raw<RawThroughputMutex>, ThreadId, T>;
}
