//! The C face of the family: `ulocks.h`, a shared and a static library.
