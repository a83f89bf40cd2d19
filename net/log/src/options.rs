//! The bounds of a log.

use crate::bytes::UNIT;
use crate::segment::Layout;

/// The bounds of a log. They may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Bytes of a segment, of those that are made from now on: a multiple of 4,096, from 16,384 to 2^30. An eighth of it
    /// is for headers, 64 bytes a record; the rest bounds a batch.
    pub segment_bytes: u64,
    /// How many segments may hold what isn't trimmed, at least 2. One more is kept ready. As many more as it takes may hold what
    /// isn't decided, which can't be trimmed.
    pub segments_max: usize,
    /// How far above the last trimmed slot records may reach, at least 1. Each slot takes about 250 bytes of memory.
    pub slots_max: usize,
}

impl Default for LogOptions {
    /// 16 MiB a segment, 64 segments, 65,536 slots.
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: 16 << 20,
            segments_max: 64,
            slots_max: 1 << 16,
        }
    }
}

impl LogOptions {
    pub(crate) fn layout(&self) -> Result<Layout, OptionsError> {
        let (min, max) = (
            Layout::UNITS_MIN * UNIT as u64,
            Layout::UNITS_MAX * UNIT as u64,
        );
        let layout = Layout::of(self.segment_bytes);
        if self.segments_max < 2 {
            return Err(OptionsError::Segments {
                segments_max: self.segments_max,
            });
        }
        if self.slots_max < 1 {
            return Err(OptionsError::Slots);
        }
        layout.ok_or(OptionsError::SegmentBytes {
            bytes: self.segment_bytes,
            min,
            max,
        })
    }
}

/// An option is out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// No such segments.
    #[error("segment_bytes is {bytes}; it must be a multiple of 4096 from {min} to {max}")]
    SegmentBytes {
        /// What was asked for.
        bytes: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Too few segments.
    #[error("segments_max is {segments_max}; it must be at least 2")]
    Segments {
        /// What was asked for.
        segments_max: usize,
    },
    /// No slots.
    #[error("slots_max is 0; it must be at least 1")]
    Slots,
}
