//! System V semaphore arrays in files, and the programs `ulocks-ipcs` and `ulocks-ipcrm`.
