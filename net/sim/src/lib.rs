//! A whole cluster in one thread.
