//! A shared region's side of sessions, in a model: there is none.

use super::SessionId;
use crate::error::Result;
use crate::sync::Word;

pub(super) enum Shared {}

impl Shared {
    pub(super) fn set_own(&self, _: SessionId) {
        match *self {}
    }

    pub(super) fn begin_opening(&self) -> Result<()> {
        match *self {}
    }

    pub(super) fn take_line(&self, _: &Word, _: u16, _: &dyn Fn(u16)) -> Result<Option<u64>> {
        match *self {}
    }

    pub(super) fn check_not_being_replaced(&self) -> Result<()> {
        match *self {}
    }

    pub(super) fn is_held(&self, _: u16) -> bool {
        match *self {}
    }

    pub(super) fn let_die(&self, _: SessionId) {
        match *self {}
    }

    pub(super) fn is_alive(&self, _: SessionId) -> bool {
        match *self {}
    }
}
