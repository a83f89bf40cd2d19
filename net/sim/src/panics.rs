//! Panics of what is simulated: caught, kept with the place they came from, and not printed.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `work`; if it panics, gives what the panic said, and where in the code.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_WATCHED.get() {
                return usual(panic);
            }
            let said = panic.payload_as_str().unwrap_or("a panic without words");
            let place = panic.location().map(ToString::to_string);
            let said = format!("{said}, at {}", place.unwrap_or_default());
            SAID.set(Some(said));
        }));
    });
    IS_WATCHED.set(true);
    let ended = panic::catch_unwind(AssertUnwindSafe(work));
    IS_WATCHED.set(false);
    ended.map_err(|_| SAID.take().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::catch;

    #[test]
    fn a_panic_is_told_with_its_words_and_its_place() {
        let said = catch(|| panic!("{} is too many", 7)).unwrap_err();
        assert!(said.starts_with("7 is too many, at "), "{said}");
        assert!(said.contains("panics.rs"), "{said}");
        assert_eq!(catch(|| 7), Ok(7));
    }
}
