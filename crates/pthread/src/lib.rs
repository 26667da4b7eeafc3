//! A library for LD_PRELOAD: the locks of `pthread.h` on the locks of this family.
