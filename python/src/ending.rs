//! The end of the interpreter: letting it go for a while, and not coming back to one that is being torn down.

use pyo3::Python;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

/// Runs `call` with the interpreter let go. A thread that would come back to one that is being torn down stops for
/// good instead, as Python 3.14 has it by itself; before, the interpreter ends such a thread in the midst of its
/// calls, which those of Rust do not survive.
pub(crate) fn detach<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> T {
    // Attached now, so this is the thread that tears it down.
    if is_torn_down() {
        return py.detach(call);
    }
    py.detach(|| {
        let returned = call();
        while is_torn_down() {
            std::thread::park();
        }
        returned
    })
}

/// Whether the interpreter is being torn down. Asked of it without being attached: it reads one word.
fn is_torn_down() -> bool {
    static ASK: OnceLock<Option<extern "C" fn() -> c_int>> = OnceLock::new();
    // Not in the stable interface before 3.13, where it has got its name.
    let ask = ASK.get_or_init(|| find(c"Py_IsFinalizing").or_else(|| find(c"_Py_IsFinalizing")));
    ask.is_some_and(|ask| ask() != 0)
}

/// A function of the interpreter's that takes nothing and answers with a number.
fn find(name: &CStr) -> Option<extern "C" fn() -> c_int> {
    // SAFETY: the name ends with a zero; looking up a symbol changes nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: both names that are looked up are CPython's `int (*)(void)`, and stay where they are for as long as
    // the interpreter, without which this module is not loaded.
    Some(unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> c_int>(found) })
}
