//! Channels of std's shape.
//!
//! A send and a receive are one step each. A receive orders after everything that was sent before
//! it, by whatever thread. (std promises that for the message itself.)

use super::arc::Arc;
use super::object::{Beside, Object, Token, opaque};
use crate::clock::passes_after;
use crate::engine::{self, At, Until};
use core::panic::Location;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::time::Duration;
use std::collections::VecDeque;
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// How many messages there are.
const MESSAGES: u64 = (1 << 32) - 1;
/// No sender is left.
const NO_SENDER: u64 = 1 << 61;
/// The receiver is gone.
const NO_RECEIVER: u64 = 1 << 62;
/// As many messages as the channel has room for.
const FULL: u64 = 1 << 63;

struct Channel<T> {
    state: Object,
    messages: Beside<VecDeque<Message<T>>>,
    /// `None`: no limit. 0: a send waits until its message is taken.
    room: Option<u64>,
    senders: AtomicUsize,
}

/// A message, and the sender that waits for it to be taken.
type Message<T> = (T, Option<std::sync::Arc<Waiting<T>>>);

/// A sender that waits until its message is taken.
struct Waiting<T> {
    token: Token,
    /// The message, if the receiver has gone and left it.
    back: Beside<Option<T>>,
}

/// A channel without a limit.
#[track_caller]
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Channel::new(None);
    (Sender(Arc::clone(&channel)), Receiver(channel))
}

/// A channel with room for `bound` messages.
#[track_caller]
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let channel = Channel::new(Some(bound as u64));
    (SyncSender(Arc::clone(&channel)), Receiver(channel))
}

impl<T> Channel<T> {
    #[track_caller]
    fn new(room: Option<u64>) -> Arc<Self> {
        let (state, messages) = (Object::new(0), Beside::new(VecDeque::new()));
        Arc::new(Self { state, messages, room, senders: AtomicUsize::new(1) })
    }

    /// One message more.
    fn added(&self, state: u64) -> u64 {
        let is_full = self.room.is_some_and(|room| (state & MESSAGES) + 1 >= room.max(1));
        (state + 1) | if is_full { FULL } else { 0 }
    }

    fn send(&self, message: T, name: &'static str, at: At) -> Result<(), SendError<T>> {
        let until = Until::Clear(FULL);
        let add = |state: u64| if state & NO_RECEIVER != 0 { state } else { self.added(state) };
        let before = self.state.step(name, Some(until), AcqRel, at, add);
        if before & NO_RECEIVER != 0 {
            return Err(SendError(message));
        }
        let waiting = || std::sync::Arc::new(Waiting { token: Token::new(), back: Beside::default() });
        let waiting = (self.room == Some(0)).then(waiting);
        self.messages.with(|messages| messages.push_back((message, waiting.clone())));
        let Some(waiting) = waiting else { return Ok(()) };
        waiting.token.take("send waits to be received", Acquire, at);
        waiting.back.with(Option::take).map_or(Ok(()), |message| Err(SendError(message)))
    }

    /// A step of each sender: it makes a difference after which other one it comes.
    fn drop_sender(&self) {
        let is_last = || self.senders.load(Relaxed) == 1;
        let end = |state: u64| if is_last() { state | NO_SENDER } else { state };
        self.state.step("sender drops", None, Release, Location::caller(), end);
        self.senders.fetch_sub(1, Relaxed);
    }

    fn try_recv(&self, at: At) -> Result<T, TryRecvError> {
        let state = self.state.step("try_recv", None, AcqRel, at, removed);
        let none = if state & NO_SENDER != 0 { TryRecvError::Disconnected } else { TryRecvError::Empty };
        self.taken(at).ok_or(none)
    }

    /// The message that a step has counted out.
    fn taken(&self, at: At) -> Option<T> {
        let (message, sender) = self.messages.with(VecDeque::pop_front)?;
        if let Some(sender) = sender {
            sender.token.give("receive", Release, at);
        }
        Some(message)
    }
}

/// One message less, if there is one.
fn removed(state: u64) -> u64 {
    if state & MESSAGES == 0 { state } else { (state - 1) & !FULL }
}

/// The sending half of a [`channel`].
pub struct Sender<T>(Arc<Channel<T>>);

/// The sending half of a [`sync_channel`].
pub struct SyncSender<T>(Arc<Channel<T>>);

/// The receiving half of a channel.
pub struct Receiver<T>(Arc<Channel<T>>);

impl<T> Sender<T> {
    /// Sends `message`.
    ///
    /// # Errors
    /// `message`, if the receiver is gone.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.send(message, "send", Location::caller())
    }
}

impl<T> SyncSender<T> {
    /// Sends `message` when there is room for it.
    ///
    /// # Errors
    /// `message`, if the receiver is gone.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.send(message, "send", Location::caller())
    }

    /// Sends `message` if there is room for it.
    ///
    /// # Errors
    /// `message`, if there is none, or the receiver is gone. Always, if the channel has no room at
    /// all: no receiver is known to wait.
    #[track_caller]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let (channel, at) = (&self.0, Location::caller());
        let has_room = channel.room != Some(0);
        let add = |state: u64| (has_room && state & (FULL | NO_RECEIVER) == 0).then(|| channel.added(state));
        match channel.state.try_step("try_send", AcqRel, at, add) {
            Ok(_) => {
                channel.messages.with(|messages| messages.push_back((message, None)));
                Ok(())
            }
            Err(state) if state & NO_RECEIVER != 0 => Err(TrySendError::Disconnected(message)),
            Err(_) => Err(TrySendError::Full(message)),
        }
    }
}

impl<T> Receiver<T> {
    /// Waits for a message.
    ///
    /// # Errors
    /// If there is none and no sender is left.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        let at = Location::caller();
        let until = Until::Set(MESSAGES | NO_SENDER);
        self.0.state.step("recv", Some(until), AcqRel, at, removed);
        self.0.taken(at).ok_or(RecvError)
    }

    /// A message, if there is one.
    ///
    /// # Errors
    /// If there is none.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.try_recv(Location::caller())
    }

    /// Waits for a message for `timeout` at most. Where
    /// [`Config::timeouts`](crate::explore::Config::timeouts) is off, no timeout passes.
    ///
    /// # Errors
    /// If none came, or there is none and no sender is left.
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let (at, deadline) = (Location::caller(), passes_after(timeout));
        let mut answer = Err(TryRecvError::Empty);
        super::spin_until(|| {
            answer = self.0.try_recv(at);
            let none_yet = matches!(answer, Err(TryRecvError::Empty));
            !none_yet || engine::with(|engine| engine.has_passed(deadline, at))
        });
        answer.map_err(|none| match none {
            TryRecvError::Empty => RecvTimeoutError::Timeout,
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
        })
    }

    /// The messages, until no sender is left.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        core::iter::from_fn(|| self.recv().ok())
    }

    /// The messages that are there.
    pub fn try_iter(&self) -> impl Iterator<Item = T> + '_ {
        core::iter::from_fn(|| self.try_recv().ok())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if engine::is_installed() {
            self.0.drop_sender();
        }
    }
}

impl<T> Drop for SyncSender<T> {
    fn drop(&mut self) {
        if engine::is_installed() {
            self.0.drop_sender();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if !engine::is_installed() {
            return;
        }
        let at = Location::caller();
        // A sender that waits for room goes on, and finds the receiver gone.
        self.0.state.step("receiver drops", None, AcqRel, at, |state| (state | NO_RECEIVER) & !FULL);
        let left = self.0.messages.with(core::mem::take);
        for (message, sender) in left {
            let Some(sender) = sender else { continue };
            sender.back.with(|back| *back = Some(message));
            sender.token.give("receiver drops", Relaxed, at);
        }
    }
}

opaque! { Sender<T>; SyncSender<T>; Receiver<T>; }
