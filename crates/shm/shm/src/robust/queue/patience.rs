//! How long an acquisition may wait.

use core::time::Duration;
use ulocks_core::time::Deadline;

/// Whether an acquisition may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    Never,
    Until(Deadline),
    Forever,
}

impl Patience {
    pub(crate) fn within(timeout: Duration) -> Self {
        Self::Until(Deadline::after(timeout))
    }

    pub(crate) fn deadline(self) -> Option<Deadline> {
        match self {
            Self::Until(deadline) => Some(deadline),
            Self::Never | Self::Forever => None,
        }
    }

    pub(super) fn is_over(self) -> bool {
        match self {
            Self::Never => true,
            Self::Until(deadline) => deadline.has_passed(),
            Self::Forever => false,
        }
    }
}
