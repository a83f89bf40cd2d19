//! The C ABI: what `include/sprag.h` declares. Each file is a noun and makes a section of that header, whose text
//! is the file's own documentation; the texts here are written to be read from C.
//!
//! Nothing is decided here: every function checks its arguments, calls the library, and turns what comes back
//! into a status. How that is done, and how panics are kept inside, is in `border`.
//!
//! # Safety
//!
//! Every exported function has the same contract, which is the header's paragraph on pointers:
//!
//! - A handle is NULL, or came from an open call and is not closed, and is not closed while the call runs.
//! - Bytes, texts and arrays may be read, for their length, and nobody writes them, while the call runs.
//! - A pointer for something to be written is NULL, or may be written.
//! - A visitor returns, and closes nothing that the call was given.
//! - Options are NULL, or may be read for as many bytes as their first word says.
//! - A hold, an attempt or a decision is zero bytes, or as this library left it, moved perhaps, but no second copy of it
//!   is used; and no other thread uses it while the call runs. A joint decision's limiter is open.

#![allow(
    non_camel_case_types,
    reason = "types are named as C names them, and everything where C reads it"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "all functions share the contract above"
)]
#![allow(
    clippy::doc_markdown,
    reason = "the texts are the header's, which is no Markdown"
)]

pub mod attempt;
mod border;
pub mod bytes;
pub mod check_all;
pub mod clock;
pub mod concurrency;
pub mod counter;
pub mod decision;
pub mod duration;
pub mod error;
pub mod fence;
pub mod hold;
pub mod info;
pub mod inspect;
pub mod joint;
pub mod keep_alive;
pub mod limiter;
pub mod lock;
pub mod metrics;
pub mod once;
mod options;
pub mod overrides;
pub mod owner;
#[cfg(all(test, feature = "steps"))]
mod panics;
pub mod region;
pub mod semaphore;
pub mod space;
pub mod status;
pub mod stop;
pub mod striped;
#[cfg(test)]
mod testing;
pub mod version;
