//! A library for LD_PRELOAD: `semget`, `semop`, `semtimedop` and `semctl` in user space.
