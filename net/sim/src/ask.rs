//! What clients do in the world: ask, wait, and write down what they were told.

use sprag_paxos::NodeId;

use crate::calm::Stage;
use crate::client::{Asking, Timer};
use crate::command::{CallNumber, Operation, Outcome};
use crate::history::{NextToken, RegisterOutcome};
use crate::invariant::{Broken, Fact};
use crate::network::CLIENTS;
use crate::trace::Happening;
use crate::world::{Event, World};

/// What a node tells a client of its call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// It was done.
    Done(Outcome),
    /// It was not done and won't be; another may lead.
    NotDone { leader: Option<NodeId> },
    /// It may be done yet.
    Unknown,
}

/// After so many tries for nothing a client lets a call be.
const TRIES_MAX: u64 = 40;

impl World {
    pub(crate) fn client_fires(
        &mut self,
        client: usize,
        timer: u64,
        what: Timer,
    ) -> Result<(), Broken> {
        if self.clients[client].timer != timer {
            return Ok(());
        }
        match what {
            Timer::Begin => return self.begin(client),
            Timer::Ask => self.ask(client),
            Timer::GiveUp => {
                // Whoever it asked may be gone.
                self.clients[client].leader = None;
                self.let_be(client);
            }
        }
        Ok(())
    }

    fn begin(&mut self, client: usize) -> Result<(), Broken> {
        if self.is_silent(client) {
            return Ok(());
        }
        let reads = self.stage == Stage::Reading;
        let command = self.clients[client].next_command(&self.plan, reads);
        let asks = client as u64;
        let id = match command.operation {
            Operation::Register(operation) => {
                self.registers
                    .invoke(self.now_ns, asks, command.key, operation)
            }
            Operation::NextToken => self
                .issuers
                .invoke(self.now_ns, asks, command.key, NextToken),
        };
        self.tally.asked += 1;
        self.clients[client].asking = Some(Asking {
            command,
            id,
            tries: 0,
        });
        let bytes = command.encode(self.clients[client].padding());
        self.look(Fact::Wanted { command: &bytes })?;
        self.ask(client);
        Ok(())
    }

    fn ask(&mut self, client: usize) {
        let Some(asking) = self.clients[client].asking else {
            return;
        };
        let to = self.clients[client].node(self.nodes.len(), asking.tries);
        let call = asking.command.call;
        self.note(Happening::Asked {
            client,
            number: call.number,
            node: to,
        });
        let bytes = asking.command.encode(self.clients[client].padding());
        // Their connections lose and delay, and double nothing.
        let [at_ns, _] = self
            .network
            .send(&self.faults, self.now_ns, CLIENTS, usize::from(to.0));
        if let Some(at_ns) = at_ns {
            self.at(at_ns, Event::Request { to, call, bytes });
        }
        let patience_ns = self.clients[client].patience_ns(&self.plan);
        self.client_timer(client, patience_ns, Timer::GiveUp);
    }

    /// A node's reply leaves.
    pub(crate) fn reply(&mut self, node: usize, call: CallNumber, reply: Reply) {
        let [at_ns, _] = self.network.send(&self.faults, self.now_ns, node, CLIENTS);
        if let Some(at_ns) = at_ns {
            let from = NodeId(node as u16);
            self.at(at_ns, Event::Reply { from, call, reply });
        }
    }

    /// A reply arrives.
    pub(crate) fn replied(&mut self, from: NodeId, call: CallNumber, reply: Reply) {
        let client = call.client;
        let is_calm = self.is_calm();
        let Some(asking) = &mut self.clients[client].asking else {
            return;
        };
        if asking.command.call != call {
            return;
        }
        match reply {
            Reply::Done(outcome) => {
                let id = asking.id;
                let key = asking.command.key;
                self.clients[client].leader = Some(from);
                match outcome {
                    Outcome::Register(outcome) => {
                        self.clients[client].versions[key as usize] = version(&outcome);
                        self.registers.respond(self.now_ns, id, outcome);
                    }
                    Outcome::Token(token) => self.issuers.respond(self.now_ns, id, token),
                }
                self.tally.answered += 1;
                let stage = self.stage;
                self.clients[client].count_answer(stage);
                self.note(Happening::Answered {
                    client,
                    number: call.number,
                });
                self.let_be(client);
            }
            Reply::NotDone { leader } => {
                asking.tries += 1;
                if asking.tries < TRIES_MAX || is_calm {
                    self.clients[client].leader = leader.filter(|leader| *leader != from);
                    let wait_ns = if self.clients[client].leader.is_some() {
                        1
                    } else {
                        self.plan.beat_ns
                    };
                    self.client_timer(client, wait_ns, Timer::Ask);
                } else {
                    let (id, operation) = (asking.id, asking.command.operation);
                    match operation {
                        Operation::Register(_) => self.registers.never_ran(id),
                        Operation::NextToken => self.issuers.never_ran(id),
                    }
                    self.let_be(client);
                }
            }
            Reply::Unknown => self.let_be(client),
        }
    }

    /// The call is over, or its outcome stays unknown.
    fn let_be(&mut self, client: usize) {
        self.clients[client].asking = None;
        let think_ns = self.clients[client].think_ns(&self.plan);
        self.client_timer(client, think_ns, Timer::Begin);
    }

    /// Sets the one timer that counts for the client.
    pub(crate) fn client_timer(&mut self, client: usize, after_ns: u64, what: Timer) {
        self.clients[client].timer += 1;
        let timer = self.clients[client].timer;
        let event = Event::Client {
            client,
            timer,
            what,
        };
        self.after(after_ns, event);
    }
}

/// The version that the register has, as far as an outcome shows.
fn version(outcome: &RegisterOutcome) -> u64 {
    match outcome {
        RegisterOutcome::Found(cell) | RegisterOutcome::Refused(cell) => cell.version,
        RegisterOutcome::Written(version) => *version,
        RegisterOutcome::Swapped(cell) => cell.version + 1,
    }
}
