//! What a limit can be given as.

use crate::{Limit, Result};

/// What can be given as a limit: a [`Limit`], or its text.
pub trait IntoLimit {
    /// The limit, or why it is none.
    fn into_limit(self) -> Result<Limit>;
}

impl IntoLimit for Limit {
    fn into_limit(self) -> Result<Limit> {
        Ok(self)
    }
}

impl IntoLimit for &str {
    fn into_limit(self) -> Result<Limit> {
        Ok(Limit::parse(self)?)
    }
}

impl IntoLimit for &String {
    fn into_limit(self) -> Result<Limit> {
        Ok(Limit::parse(self)?)
    }
}
