//! Limits as Python writes them: a text, and what is given beside it by name.

use crate::number::whole;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The text of a limit with its options.
pub(crate) fn limit_of(
    limit: &str,
    burst: Option<&Bound<'_, PyAny>>,
    window: Option<&str>,
) -> PyResult<String> {
    let mut text = limit.to_owned();
    if burst.is_some() {
        let burst = whole("burst", burst, 0)?;
        text = format!("{text};burst={burst}");
    }
    match window {
        None => {}
        Some(window @ ("fixed" | "sliding")) => text = format!("{text};window={window}"),
        Some(other) => {
            let text = format!("window is {other:?}; it must be \"fixed\", \"sliding\" or None");
            return Err(PyValueError::new_err(text));
        }
    }
    Ok(text)
}
