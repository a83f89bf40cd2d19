//! What a replay asks of a limiter. Owns the question, never an answer: the engine behind it is in
//! [`super::engine`].

/// A limiter over keys, asked in the order of time.
pub(crate) trait Decide {
    /// Whether `cost` units are granted to `key` at `at_ns`, nanoseconds since the Unix epoch. Each
    /// call's time is at least that of the call before.
    ///
    /// # Errors
    ///
    /// Why there is no decision, in words that tell the user what to do.
    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<bool, String>;

    /// How many keys the limiter holds.
    fn keys(&self) -> u64;

    /// How many bytes it holds them in.
    fn bytes(&self) -> u64;
}
