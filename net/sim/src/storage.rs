//! A node and its disk: what it writes and syncs, and what it does when the disk refuses.

use sprag_log::LogError;
use sprag_paxos::simulation::{Bug, Mark, planted, reach};
use sprag_paxos::{NodeId, Record, Ticket};

use crate::fault::Class;
use crate::host::{MILLISECOND_NS, SECOND_NS};
use crate::invariant::{Broken, Fact};
use crate::node::Input;
use crate::trace::Happening;
use crate::world::{Due, World};

/// How long after a disk had no room it is asked again.
const ROOM_AGAIN_NS: u64 = 50 * MILLISECOND_NS;

impl World {
    /// Writes a record.
    pub(crate) fn persist(
        &mut self,
        node: usize,
        ticket: Ticket,
        record: Record,
    ) -> Result<(), Broken> {
        let voter = self.nodes[node].voter;
        self.look(Fact::Written {
            voter,
            record: &record,
        })?;
        let writer = &mut self.nodes[node];
        let Some(life) = &mut writer.life else {
            return Ok(());
        };
        let promised = life.store.log().promised();
        let written = life.store.persist(ticket, record.clone());
        let syncs_vote = life.store.log().promised() > promised;
        // What was refused may be there all the same.
        writer.unsynced.push_back((ticket, record));
        if written.is_err() {
            self.fail(node);
            return Ok(());
        }
        self.report(node)?;
        self.sync(node);
        if syncs_vote && self.nodes[node].life.is_some() {
            let takes_ns = 2 * self.sync_takes_ns(node);
            self.stand_still(node, takes_ns);
        }
        Ok(())
    }

    /// Has what is written synced, if somebody waits for it and no sync is under way.
    pub(crate) fn sync(&mut self, node: usize) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        match life.store.begin_sync() {
            Ok(job) => {
                if job.is_some() {
                    life.syncing = job;
                    let takes_ns = self.sync_takes_ns(node);
                    self.due_after(takes_ns, node, Due::Synced);
                }
                self.keep_up(node);
            }
            Err(LogError::Full { .. } | LogError::TooFar { .. }) => {
                reach(Mark::LogFull);
                self.make_room(node);
            }
            Err(LogError::DiskFull(_)) => {
                reach(Mark::DiskFull);
                // Somebody may free some.
                if !std::mem::replace(&mut life.tries_again, true)
                    && !planted(Bug::FullDiskNotAskedAgain)
                {
                    self.due_after(ROOM_AGAIN_NS, node, Due::RoomAgain);
                }
            }
            Err(_) => self.fail(node),
        }
    }

    /// Sees whether there is room by now.
    pub(crate) fn room_again(&mut self, node: usize) -> Result<(), Broken> {
        if let Some(life) = &mut self.nodes[node].life {
            life.tries_again = false;
        }
        self.sync(node);
        self.go(node)
    }

    /// Has segments made and given back, if there are any to be, while writes go on.
    fn keep_up(&mut self, node: usize) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        match life.store.begin_upkeep() {
            Ok(None) => {}
            Ok(job) => {
                life.upkeep = job;
                let takes_ns = 2 * self.sync_takes_ns(node);
                self.due_after(takes_ns, node, Due::Ready);
            }
            Err(_) => self.fail(node),
        }
    }

    /// The next segment is ready, even if the node stands still.
    pub(crate) fn ready(&mut self, node: usize) -> Result<(), Broken> {
        let Some(life) = &mut self.nodes[node].life else {
            return Ok(());
        };
        let Some(job) = life.upkeep.take() else {
            return Ok(());
        };
        match life.store.finish_upkeep(job.run()) {
            // Without room, whatever fills a segment tries again.
            Ok(()) | Err(LogError::DiskFull(_)) => {
                self.sync(node);
                self.go(node)
            }
            Err(_) => {
                self.fail(node);
                Ok(())
            }
        }
    }

    pub(crate) fn sync_takes_ns(&self, node: usize) -> u64 {
        let slow = self.faults.strike(Class::SlowDisk, node);
        let more_ns = slow.map_or(0, |chance| chance.log_uniform(MILLISECOND_NS, SECOND_NS));
        self.plan.sync_ns + more_ns
    }

    /// The disk is done, even if the node stands still.
    pub(crate) fn synced(&mut self, node: usize) -> Result<(), Broken> {
        let Some(life) = &mut self.nodes[node].life else {
            return Ok(());
        };
        let Some(job) = life.syncing.take() else {
            return Ok(());
        };
        if life.store.finish_sync(job.run()).is_err() {
            self.fail(node);
            return Ok(());
        }
        self.report(node)?;
        self.sync(node);
        self.go(node)
    }

    /// Tells the voter what has become durable.
    fn report(&mut self, node: usize) -> Result<(), Broken> {
        let Some(life) = &mut self.nodes[node].life else {
            return Ok(());
        };
        let ticket = life.store.durable();
        if ticket == life.durable {
            return Ok(());
        }
        life.durable = ticket;
        life.inbox.push_back(Input::Persisted { ticket });
        let voter = self.nodes[node].voter;
        while let Some((_, record)) = self.nodes[node]
            .unsynced
            .pop_front_if(|(of, _)| *of <= ticket)
        {
            let record = &record;
            self.look(Fact::Durable { voter, record })?;
        }
        self.note(Happening::Synced {
            node: NodeId(node as u16),
            ticket,
        });
        Ok(())
    }

    /// The disk failed the node, which stops. Nothing is tried again, but by the next life.
    pub(crate) fn fail(&mut self, node: usize) {
        reach(if self.nodes[node].disk.is_cut() {
            Mark::PowerCutInADiskOperation
        } else {
            Mark::DiskFailed
        });
        self.die(node, false);
    }
}
