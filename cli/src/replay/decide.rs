//! What a replay asks of a limiter. Owns the question, never an answer: the engine behind it is in
//! [`super::engine`].

/// The most limits of one replay.
pub(crate) const LIMITS_MAX: usize = 32;

/// By which of the limits, in the order they were given, a request is refused: bit i says that the i-th
/// has no room for it. Allowed is 0.
pub(crate) type RefusedBy = u32;

/// Limiters over keys, asked in the order of time.
pub(crate) trait Decide {
    /// Who refuses `cost` units of `key` at `at_ns`, nanoseconds since the Unix epoch; they are granted
    /// if nobody does. Each call's time is at least that of the call before.
    ///
    /// # Errors
    ///
    /// Why there is no decision, in words that tell the user what to do.
    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<RefusedBy, String>;

    /// How many keys the limiters hold.
    fn keys(&self) -> u64;

    /// How many bytes they hold them in.
    fn bytes(&self) -> u64;
}
