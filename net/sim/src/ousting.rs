//! Ousting: most of the others are apart from who leads, and choose another; it stands still, it dies, or the power goes.
//! Again and again, since what it takes several leaders to break is hardly ever met by chance.

use sprag_paxos::RoleName;

use crate::chance::Chance;
use crate::host::{MILLISECOND_NS, SECOND_NS};
use crate::world::{Event, World};

impl World {
    /// Ousts who leads, and `times - 1` times more who does then. The last one was `last`: it may have come back by now, and
    /// be learning what it missed.
    pub(crate) fn oust(&mut self, chance: Chance, times: u64, last: usize) {
        let node = self.highest_standing(chance.of(0));
        let reign_ns = self.reign_ns(chance.of(1));
        let how = chance.of(3);
        match chance.of(2).below(20) {
            0..=2 => self.kill([node, last][how.of(1).below(2) as usize], how.of(2)),
            3 => self.black_out(how, 1 << node, 0),
            4 => self.black_out(how, 0, 1 << node),
            5 if self.awake(node).is_some() => {
                self.stand_still(node, how.log_uniform(MILLISECOND_NS, SECOND_NS));
            }
            _ => self.depose(node, 2 * reign_ns, how),
        }
        if times > 1 {
            let again = Event::Oust {
                chance: chance.of(4),
                times: times - 1,
                last: node,
            };
            self.after(reign_ns, again);
        }
    }

    fn kill(&mut self, node: usize, chance: Chance) {
        if self.nodes[node].life.is_some() {
            self.count_death(node, None);
            self.die(node, chance.below(2) == 0);
        }
    }

    /// How long somebody is let lead: hardly long enough for anything to be chosen, or for others to lose patience.
    fn reign_ns(&self, chance: Chance) -> u64 {
        let round_ns = 2 * self.plan.latency_ns + self.plan.sync_ns;
        let most_ns = (4 * self.plan.election_ns).max(4 * round_ns);
        chance.log_uniform(4 * round_ns, most_ns)
    }

    /// A majority, mostly without the node, is apart from the others, and believes that it hasn't heard of a leader for long.
    fn depose(&mut self, node: usize, for_ns: u64, chance: Chance) {
        let nodes = self.nodes.len();
        let mut order: Vec<usize> = (0..nodes).collect();
        order.sort_by_key(|other| chance.of(1).of(*other as u64).bits());
        if chance.of(2).below(4) > 0 {
            order.retain(|other| *other != node);
            order.push(node);
        }
        order.truncate(nodes / 2 + 1);
        let group = order.iter().fold(0, |group, member| group | 1 << member);
        let parted = self.network.part_off(self.now_ns, group, for_ns);
        self.note_disturbance(parted);
        for (member, rank) in order.into_iter().zip(0..) {
            // Who isn't first waits up to twice as long before it stands.
            let times = if rank <= chance.of(3).below(2) { 2 } else { 1 };
            self.step_clock(member, (times * self.plan.waits_ns(member)).cast_signed());
        }
    }

    /// Who leads, else who stands; one of them, or of all where there is none.
    fn highest_standing(&self, chance: Chance) -> usize {
        let standing = |node: &usize| {
            let life = self.nodes[*node].life.as_ref();
            life.map_or(0, |life| match life.role {
                RoleName::Recovering | RoleName::Leader => 2,
                RoleName::Candidate => 1,
                RoleName::Follower | RoleName::Canvasser => 0,
            })
        };
        let most = (0..self.nodes.len()).map(|node| standing(&node)).max();
        let these: Vec<usize> = (0..self.nodes.len())
            .filter(|node| Some(standing(node)) == most)
            .collect();
        these[chance.below(these.len() as u64) as usize]
    }
}
