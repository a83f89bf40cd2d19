//! A node's clock: it runs at its own rate from its own start, and may step.

/// Maps the world's time to a node's and back.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// When, of the world's time, it showed `shown_ns`.
    set_ns: u64,
    shown_ns: u64,
    /// Parts per thousand of the world's rate.
    rate: u64,
}

impl Clock {
    pub(crate) fn new(shown_ns: u64) -> Self {
        Self {
            set_ns: 0,
            shown_ns,
            rate: 1000,
        }
    }

    /// What it shows at `now_ns` of the world's time.
    pub(crate) fn at(&self, now_ns: u64) -> u64 {
        self.shown_ns + (now_ns - self.set_ns) * self.rate / 1000
    }

    /// When, of the world's time, it will show `shown_ns`: at `now_ns` if it does already.
    pub(crate) fn when(&self, shown_ns: u64, now_ns: u64) -> u64 {
        let ahead = shown_ns.saturating_sub(self.at(now_ns));
        now_ns + (ahead * 1000).div_ceil(self.rate)
    }

    /// Steps by `step_ns`, back no further than to its start.
    pub(crate) fn step(&mut self, now_ns: u64, step_ns: i64) {
        self.set(now_ns, self.rate, step_ns);
    }

    /// Runs at `rate` parts per thousand from now on.
    pub(crate) fn run_at(&mut self, now_ns: u64, rate: u64) {
        self.set(now_ns, rate, 0);
    }

    fn set(&mut self, now_ns: u64, rate: u64, step_ns: i64) {
        *self = Self {
            set_ns: now_ns,
            shown_ns: self.at(now_ns).saturating_add_signed(step_ns),
            rate,
        };
    }
}
