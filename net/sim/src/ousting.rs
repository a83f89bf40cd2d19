//! Ousting: others choose another than who leads, while it is apart from them, or stands still, or is down. Again and again,
//! each time before much of what it proposed is chosen, since what it takes several leaders to break is hardly ever met by
//! chance.

use sprag_paxos::RoleName;

use crate::calm::FAULTY_EVENTS;
use crate::chance::Chance;
use crate::host::{MILLISECOND_NS, SECOND_NS};
use crate::invariant::Broken;
use crate::world::{Event, World};

/// Those who come to lead are ousted at most so many times in a row.
const TIMES_MAX: u64 = 64;

/// Who is to be ousted.
#[derive(Debug)]
pub(crate) struct Ousting {
    chance: Chance,
    /// How many more.
    left: u64,
    /// How often something was drawn for them.
    draws: u64,
    /// Which of its timers counts; the earlier ones are void.
    timer: u64,
    /// Who was last: it may have come back by now, and be learning what it missed.
    last: usize,
}

impl Ousting {
    pub(crate) fn none(chance: Chance) -> Self {
        Self {
            chance,
            left: 0,
            draws: 0,
            timer: 0,
            last: 0,
        }
    }

    /// The next numbers, which nothing but this ousting has a part in.
    fn draw(&mut self) -> Chance {
        self.draws += 1;
        self.chance.of(1).of(self.draws)
    }
}

impl World {
    /// The node is ousted soon, and some of those who lead after it.
    pub(crate) fn begin_ousting(&mut self, node: usize, chance: Chance) {
        self.ousting = Ousting {
            chance,
            left: chance.of(0).log_uniform(1, TIMES_MAX),
            draws: 0,
            timer: self.ousting.timer,
            last: node,
        };
        let after_ns = self.soon_ns(chance.of(2));
        self.oust_after(after_ns);
    }

    fn oust_after(&mut self, after_ns: u64) {
        self.ousting.timer += 1;
        let timer = self.ousting.timer;
        self.after(after_ns, Event::Oust { timer });
    }

    /// The node has come to lead. If it is to be ousted, what it proposes until then mostly reaches less than a quorum, and some
    /// of the others may forget what wasn't durable.
    pub(crate) fn come_to_lead(&mut self, node: usize) {
        let chance = self.ousting.draw();
        if self.trace.events() >= FAULTY_EVENTS {
            let after_ns = self.a_round_or_more_ns(chance.of(0));
            self.after(after_ns, Event::Elected);
        }
        if self.ousting.left == 0 {
            return;
        }
        if chance.of(1).below(4) > 0 {
            self.confine(node, chance.of(2));
        }
        if chance.of(3).below(4) == 0 {
            let some = chance.of(4).bits() & chance.of(5).bits();
            for other in 0..self.nodes.len() {
                if other != node && some & 1 << other != 0 {
                    self.kill(other, true, chance.of(6));
                }
            }
        }
        let after_ns = self.a_round_or_more_ns(chance.of(7));
        self.oust_after(after_ns);
    }

    /// Ousts who leads.
    pub(crate) fn oust(&mut self, timer: u64) -> Result<(), Broken> {
        if self.ousting.timer != timer || self.ousting.left == 0 {
            return Ok(());
        }
        let last = self.ousting.last;
        let chance = self.ousting.draw();
        let node = self.highest_standing(chance.of(0));
        self.ousting.last = node;
        self.ousting.left -= 1;
        let how = chance.of(3);
        let reign_ns = self.reign_ns(chance.of(1));
        self.oust_after(reign_ns);
        match chance.of(2).below(20) {
            0..=2 => {
                let node = [node, last][how.of(1).below(2) as usize];
                self.kill(node, how.of(2).below(2) == 0, how.of(3));
            }
            3 => self.black_out(how, 1 << node, 0),
            4 => self.black_out(how, 0, 1 << node),
            5 if self.awake(node).is_some() => {
                self.stand_still(node, how.log_uniform(MILLISECOND_NS, SECOND_NS));
            }
            _ => {
                self.depose(node, reign_ns, how)?;
                let somebody_leads = (0..self.nodes.len()).any(|node| self.leads(node));
                if somebody_leads && how.of(7).below(4) > 0 {
                    // Sooner than that: nobody need be elected first.
                    let after_ns = self.a_round_or_more_ns(how.of(8));
                    self.oust_after(after_ns);
                }
            }
        }
        Ok(())
    }

    /// A majority, mostly without the node, goes on without the others; or two halves do that have one node in common.
    fn depose(&mut self, node: usize, for_ns: u64, chance: Chance) -> Result<(), Broken> {
        let mut order = self.in_any_order(chance.of(1));
        if chance.of(2).below(4) > 0 {
            order.retain(|other| *other != node);
            order.push(node);
        }
        let most = order.len() / 2 + 1;
        let (majority, others) = order.split_at(most);
        let together: &[&[usize]] = match chance.of(3).below(3) {
            0 => {
                self.part_off(others, 0, 2 * for_ns);
                &[majority]
            }
            1 => {
                self.suspend(others, for_ns);
                &[majority]
            }
            _ => {
                let between = majority[chance.of(4).below(most as u64) as usize];
                self.part_off(others, 1 << between, 2 * for_ns);
                &[majority, others]
            }
        };
        for (group, number) in together.iter().zip(5..) {
            for member in *group {
                self.go_on(*member)?;
            }
            self.lose_patience(group, chance.of(number));
        }
        Ok(())
    }

    /// What the node says reaches less than a quorum.
    fn confine(&mut self, node: usize, chance: Chance) {
        let mut order = self.in_any_order(chance.of(1));
        order.retain(|other| *other != node);
        let others = chance.of(2).below((self.nodes.len() as u64 / 2).max(1));
        order.truncate(others as usize);
        order.push(node);
        self.part_off(&order, 0, 8 * self.round_ns());
    }

    fn part_off(&mut self, nodes: &[usize], between: u16, for_ns: u64) {
        let group = nodes.iter().fold(0, |group, node| group | 1 << node);
        let parted = self.network.part_off(self.now_ns, group, between, for_ns);
        self.note_disturbance(parted);
    }

    /// These stand still, and their clocks too, as those of machines that are moved: who leads believes that it still does.
    fn suspend(&mut self, nodes: &[usize], for_ns: u64) {
        for node in nodes {
            if self.awake(*node).is_some() {
                self.step_clock(*node, -for_ns.cast_signed());
                self.stand_still(*node, for_ns);
            }
        }
    }

    /// Who leads among these sends again what nobody answered; where nobody leads, they believe that they haven't heard of a
    /// leader for long.
    fn lose_patience(&mut self, nodes: &[usize], chance: Chance) {
        let somebody_leads = nodes.iter().any(|node| self.leads(*node));
        for (node, rank) in nodes.iter().zip(0..) {
            let step_ns = if self.leads(*node) {
                self.plan.beat_ns
            } else if somebody_leads {
                0
            } else {
                // Who isn't first waits up to twice as long before it stands.
                let times = if rank <= chance.below(2) { 2 } else { 1 };
                times * self.plan.waits_ns(*node)
            };
            self.step_clock(*node, step_ns.cast_signed());
        }
    }

    /// The node dies, and is back soon.
    fn kill(&mut self, node: usize, with_power: bool, chance: Chance) {
        if self.nodes[node].life.is_some() {
            self.count_death(node, None);
            self.die(node, with_power);
            let after_ns = chance.below(8 * self.round_ns());
            self.after(after_ns, Event::Start { node });
        }
    }

    /// How long a question and its answer take, where that is durable.
    fn round_ns(&self) -> u64 {
        2 * self.plan.latency_ns + self.plan.sync_ns
    }

    fn a_round_or_more_ns(&self, chance: Chance) -> u64 {
        let round_ns = self.round_ns();
        chance.log_uniform(round_ns, 4 * round_ns)
    }

    /// How long others have to choose another: hardly long enough, or so long that whoever leads loses patience.
    fn reign_ns(&self, chance: Chance) -> u64 {
        let least_ns = 6 * self.round_ns();
        chance.log_uniform(least_ns, least_ns.max(4 * self.plan.election_ns))
    }

    fn in_any_order(&self, chance: Chance) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|node| chance.of(*node as u64).bits());
        order
    }

    /// Whether the node leads, and doesn't stand still.
    fn leads(&self, node: usize) -> bool {
        let life = self.nodes[node].life.as_ref();
        let life = life.filter(|life| !life.is_paused);
        life.is_some_and(|life| matches!(life.role, RoleName::Recovering | RoleName::Leader))
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
