//! The network between nodes, and between clients and nodes: when each message arrives, if it does.

use crate::chance::Chance;
use crate::fault::{Class, Faults};
use crate::plan::Plan;

/// The number of a link's end that stands for the clients.
pub(crate) const CLIENTS: usize = 15;

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A partition is followed by fewer others than this.
const PARTINGS_MAX: u64 = 4;

/// A link that is down for a while, or, where `period_ns` isn't 0, down and up in turn.
#[derive(Clone, Debug)]
struct Cut {
    from: usize,
    to: usize,
    period_ns: u64,
    until_ns: u64,
}

/// Two groups of nodes that hear nothing of each other, for a while, but for those between; then two others, so many times
/// more.
#[derive(Clone, Copy, Debug, Default)]
struct Parting {
    group: u16,
    /// Who hears both, and is heard by both.
    between: u16,
    until_ns: u64,
    /// Says what the next will be.
    next: Option<(Chance, u64)>,
}

/// What a fault did to the links.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Disturbance {
    /// The nodes whose bit is set in `group` are apart from the others, but for those in `between`.
    Parted {
        group: u16,
        between: u16,
        for_ns: u64,
    },
    /// One direction of one link is down, or flaps.
    CutOff { from: usize, to: usize, for_ns: u64 },
}

/// The state of the links.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    chance: Chance,
    latency_ns: u64,
    election_ns: u64,
    sent: u64,
    /// Of each link, when its last message arrives: without faults none overtakes another.
    last_ns: Vec<u64>,
    parting: Parting,
    cuts: Vec<Cut>,
    /// The nodes that nobody hears of ever again.
    gone: u16,
}

impl Network {
    pub(crate) fn new(chance: Chance, plan: &Plan) -> Self {
        Self {
            chance,
            latency_ns: plan.latency_ns,
            election_ns: plan.election_ns,
            sent: 0,
            last_ns: vec![0; 256],
            parting: Parting::default(),
            cuts: Vec::new(),
            gone: 0,
        }
    }

    /// When a message sent now arrives: never, once, or twice.
    pub(crate) fn send(
        &mut self,
        faults: &Faults,
        now_ns: u64,
        from: usize,
        to: usize,
    ) -> [Option<u64>; 2] {
        let link = from * 16 + to;
        self.sent += 1;
        let jitter_ns = self.chance.of(self.sent).below(self.latency_ns);
        let usual_ns = (now_ns + self.latency_ns + jitter_ns).max(self.last_ns[link] + 1);
        if faults.strike(Class::Loss, link).is_some() || self.is_cut(now_ns, from, to) {
            return [None, None];
        }
        let mut at_ns = usual_ns;
        if let Some(chance) = faults.strike(Class::Reordering, link) {
            at_ns += chance.below(10 * self.latency_ns);
        } else if let Some(chance) = faults.strike(Class::DelayTail, link) {
            at_ns += chance.log_uniform(MILLISECOND_NS, SECOND_NS);
        } else {
            self.last_ns[link] = usual_ns;
        }
        let again_ns = faults
            .strike(Class::Duplication, link)
            .map(|chance| at_ns + self.late_ns(chance));
        [Some(at_ns), again_ns]
    }

    /// How much later than a message its copy comes: soon after it, or under another leader.
    fn late_ns(&self, chance: Chance) -> u64 {
        if chance.of(1).below(2) == 0 {
            chance.of(2).below(self.latency_ns)
        } else {
            let (least_ns, most_ns) = (self.election_ns / 2, 16 * self.election_ns);
            chance.of(2).log_uniform(least_ns, most_ns)
        }
    }

    /// Whether nothing passes from one to the other now.
    fn is_cut(&self, now_ns: u64, from: usize, to: usize) -> bool {
        let is_member = |group: u16, node: usize| group & 1 << node != 0;
        if is_member(self.gone, from) || is_member(self.gone, to) {
            return true;
        }
        // A client reaches whatever side it asks.
        if from == CLIENTS || to == CLIENTS {
            return false;
        }
        let Parting {
            group,
            between,
            until_ns,
            ..
        } = self.parting;
        let is_parted = now_ns < until_ns
            && is_member(group, from) != is_member(group, to)
            && !is_member(between, from)
            && !is_member(between, to);
        is_parted
            || self.cuts.iter().any(|cut| {
                let is_down = cut.period_ns == 0 || (now_ns / cut.period_ns).is_multiple_of(2);
                (cut.from, cut.to) == (from, to) && now_ns < cut.until_ns && is_down
            })
    }

    /// Gives partitions, cuts and flapping links an occasion to begin.
    pub(crate) fn disturb(
        &mut self,
        faults: &Faults,
        now_ns: u64,
        nodes: usize,
    ) -> Vec<Disturbance> {
        let mut disturbances = Vec::new();
        self.cuts.retain(|cut| now_ns < cut.until_ns);
        if let Some(chance) = faults.strike(Class::Partition, 0) {
            let more = chance.of(3).below(PARTINGS_MAX);
            disturbances.push(self.part(now_ns, nodes, chance, more));
        } else if now_ns >= self.parting.until_ns
            && let Some((chance, more)) = self.parting.next
        {
            disturbances.push(self.part(now_ns, nodes, chance, more));
        }
        for class in [Class::OneWay, Class::Flapping] {
            let Some(chance) = faults.strike(class, 0) else {
                continue;
            };
            let for_ns = chance.of(1).log_uniform(MILLISECOND_NS, SECOND_NS);
            let period_ns = match class {
                Class::Flapping => chance.of(2).log_uniform(self.latency_ns, SECOND_NS),
                _ => 0,
            };
            let node = chance.of(3).below(nodes as u64) as usize;
            let hears = chance.of(4).below(2) == 0;
            // One-way: all that the node says, or all that it is told. Flapping: one link, both ways.
            let peer = chance.of(5).below(nodes as u64) as usize;
            for other in 0..nodes {
                if other == node || (class == Class::Flapping && other != peer) {
                    continue;
                }
                let ends = if hears { (node, other) } else { (other, node) };
                let both = [ends, (ends.1, ends.0)];
                for &(from, to) in &both[..if class == Class::Flapping { 2 } else { 1 }] {
                    self.cuts.push(Cut {
                        from,
                        to,
                        period_ns,
                        until_ns: now_ns + for_ns,
                    });
                    disturbances.push(Disturbance::CutOff { from, to, for_ns });
                }
            }
        }
        disturbances
    }

    /// The nodes fall into two groups, and when that is over, `more` times into two others.
    fn part(&mut self, now_ns: u64, nodes: usize, chance: Chance, more: u64) -> Disturbance {
        let for_ns = chance.of(1).log_uniform(MILLISECOND_NS, SECOND_NS);
        let group = chance.of(2).bits() as u16 & ((1 << nodes) - 1);
        // In half of the cases one node is on both sides.
        let between = match chance.of(5).below(2) {
            0 => 0,
            _ => 1 << chance.of(6).below(nodes as u64),
        };
        let parted = self.part_off(now_ns, group, between, for_ns);
        self.parting.next = more.checked_sub(1).map(|more| (chance.of(4), more));
        parted
    }

    /// The nodes whose bit is set in `group` hear nothing of the others for a while; but those in `between` hear all.
    pub(crate) fn part_off(
        &mut self,
        now_ns: u64,
        group: u16,
        between: u16,
        for_ns: u64,
    ) -> Disturbance {
        self.parting = Parting {
            group,
            between,
            until_ns: now_ns + for_ns,
            next: None,
        };
        Disturbance::Parted {
            group,
            between,
            for_ns,
        }
    }

    /// Every link is sound from now on, but for those of the nodes whose bit is set in `gone`.
    pub(crate) fn heal(&mut self, gone: u16) {
        self.parting = Parting::default();
        self.cuts.clear();
        self.gone = gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Mix;

    #[test]
    fn who_is_between_two_groups_hears_both_and_is_heard_by_both() {
        let plan = Plan::new(0, &Mix::none(), Some(3));
        let mut network = Network::new(Chance::new(0), &plan);
        let cut = |network: &Network, now_ns| {
            let links = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
            links.map(|(from, to)| network.is_cut(now_ns, from, to))
        };
        network.part_off(0, 0b001, 0, 10);
        assert_eq!(cut(&network, 9), [true, true, true, true, false, false]);
        network.part_off(0, 0b001, 0b010, 10);
        assert_eq!(cut(&network, 9), [false, false, true, true, false, false]);
        assert_eq!(cut(&network, 10), [false; 6]);
    }
}
