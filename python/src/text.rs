//! Names and keys: `str` as its UTF-8, or `bytes` as they are. Owns the way in and the way out.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The bytes of a name or a key, called `what` in errors.
#[inline]
pub(crate) fn bytes_of<'a>(what: &'static str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes());
    }
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(type_error(what, "str or bytes", value)),
    }
}

/// Names of several locks.
pub(crate) fn names_of(names: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    // One name would be a name for each of its letters.
    if names.is_instance_of::<PyString>() || names.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("names must be several names, not one"));
    }
    let names = names.try_iter()?;
    names
        .map(|name| Ok(bytes_of("name", &name?)?.to_vec()))
        .collect()
}

/// A name as users have it: `str` where it is UTF-8, else `bytes`.
pub(crate) fn told<'py>(py: Python<'py>, name: &[u8]) -> Bound<'py, PyAny> {
    match std::str::from_utf8(name) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, name).into_any(),
    }
}

/// That an argument is of another type than it must be.
#[cold]
pub(crate) fn type_error(what: &str, must_be: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let is = value.get_type().name();
    let is = is.map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {must_be}, not {is}"))
}
