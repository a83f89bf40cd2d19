//! Every state that a node came to, each with a number, and where each step leads from there.
//!
//! The core is deterministic, so a step of a node from a state has to be run once, in however many states of the whole it
//! is taken. The states of the whole are many more than those of the nodes.

use foldhash::HashMap;
use std::rc::Rc;

use crate::bounds::Bounds;
use crate::invariant::{Broken, Claim};
use crate::letter::Letters;
use crate::node::{Node, Step};

/// Where a step leads a node.
#[derive(Debug)]
pub(crate) struct Transition {
    pub(crate) step: Step,
    /// The number of the node's state after it.
    pub(crate) to: u32,
    /// What it claims by it.
    pub(crate) claims: Vec<Claim>,
    /// Whether there are more durable votes now.
    pub(crate) has_new_votes: bool,
    /// Whether nothing came of it but more letters.
    pub(crate) is_gain: bool,
}

/// A node's state, and what is looked at often.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) node: Rc<Node>,
    /// By receiver, which set of letters it sent to it.
    pub(crate) mail: Vec<u32>,
    /// The transitions that need no letter, once they were asked for.
    own: Option<Rc<[u32]>>,
    /// The transitions that are crashes, once they were asked for.
    crashes: Option<Rc<[u32]>>,
}

/// All that is known of nodes by themselves.
#[derive(Debug)]
pub(crate) struct Atlas {
    bounds: Bounds,
    pub(crate) letters: Letters,
    places: Vec<Place>,
    numbers: HashMap<Rc<Node>, u32>,
    transitions: Vec<Transition>,
    /// Sets of letters with one sender and one receiver.
    mails: Vec<Rc<[u32]>>,
    mail_numbers: HashMap<Rc<[u32]>, u32>,
    /// By state and letter: the transition, or none if nothing changes.
    taken: HashMap<(u32, u32), Option<u32>>,
    /// By state and set of letters: the transitions.
    by_mail: HashMap<(u32, u32), Rc<[u32]>>,
}

impl Atlas {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            bounds: bounds.clone(),
            letters: Letters::default(),
            places: Vec::new(),
            numbers: HashMap::default(),
            transitions: Vec::new(),
            mails: Vec::new(),
            mail_numbers: HashMap::default(),
            taken: HashMap::default(),
            by_mail: HashMap::default(),
        }
    }

    /// How many states of nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn place(&self, number: u32) -> &Place {
        &self.places[number as usize]
    }

    pub(crate) fn transition(&self, number: u32) -> &Transition {
        &self.transitions[number as usize]
    }

    /// The number of the state `node`.
    pub(crate) fn number(&mut self, node: Node) -> u32 {
        if let Some(number) = self.numbers.get(&node) {
            return *number;
        }
        let mut mail = vec![Vec::new(); self.bounds.configuration.voters().len()];
        for letter in node.sent() {
            mail[self.letters.get(*letter).to].push(*letter);
        }
        let mail = mail
            .into_iter()
            .map(|letters| self.mail_number(letters.into()));
        let mail = mail.collect();
        let number = self.places.len() as u32;
        let node = Rc::new(node);
        self.numbers.insert(Rc::clone(&node), number);
        self.places.push(Place {
            node,
            mail,
            own: None,
            crashes: None,
        });
        number
    }

    /// The transitions of the node at `index`, in the state `from`, that need no letter and are no crash.
    pub(crate) fn own(&mut self, index: usize, from: u32) -> Result<Rc<[u32]>, (Broken, Step)> {
        if let Some(own) = &self.place(from).own {
            return Ok(Rc::clone(own));
        }
        let steps = self.place(from).node.steps(index, &self.bounds);
        let own = self.try_all(index, from, steps)?;
        self.places[from as usize].own = Some(Rc::clone(&own));
        Ok(own)
    }

    /// The transitions of the node at `index`, in the state `from`, that are crashes.
    pub(crate) fn crashes(&mut self, index: usize, from: u32) -> Result<Rc<[u32]>, (Broken, Step)> {
        if let Some(crashes) = &self.place(from).crashes {
            return Ok(Rc::clone(crashes));
        }
        let steps = self.place(from).node.ways_to_crash(index, &self.bounds);
        let crashes = self.try_all(index, from, steps)?;
        self.places[from as usize].crashes = Some(Rc::clone(&crashes));
        Ok(crashes)
    }

    /// The transitions of the node at `index`, in the state `from`, by one of the letters of `mail`.
    pub(crate) fn taking(
        &mut self,
        index: usize,
        from: u32,
        mail: u32,
    ) -> Result<Rc<[u32]>, (Broken, Step)> {
        if let Some(transitions) = self.by_mail.get(&(from, mail)) {
            return Ok(Rc::clone(transitions));
        }
        let mut transitions = Vec::new();
        for letter in self.mails[mail as usize].clone().iter() {
            let transition = if let Some(transition) = self.taken.get(&(from, *letter)) {
                *transition
            } else {
                let transition = self.try_step(index, from, Step::Takes(*letter))?;
                self.taken.insert((from, *letter), transition);
                transition
            };
            transitions.extend(transition);
        }
        let transitions: Rc<[u32]> = transitions.into();
        self.by_mail.insert((from, mail), Rc::clone(&transitions));
        Ok(transitions)
    }

    fn try_all(
        &mut self,
        index: usize,
        from: u32,
        steps: Vec<Step>,
    ) -> Result<Rc<[u32]>, (Broken, Step)> {
        let mut transitions = Vec::new();
        for step in steps {
            transitions.extend(self.try_step(index, from, step)?);
        }
        Ok(transitions.into())
    }

    /// Where `step` leads; `None` if nowhere.
    fn try_step(
        &mut self,
        index: usize,
        from: u32,
        step: Step,
    ) -> Result<Option<u32>, (Broken, Step)> {
        let before = Rc::clone(&self.place(from).node);
        let mut after = Node::clone(&before);
        let claims = after
            .take(index, &self.bounds, &mut self.letters, step)
            .map_err(|broken| (broken, step))?;
        if after == *before {
            return Ok(None);
        }
        let has_new_votes = after.disk().votes().count() > before.disk().votes().count();
        let transition = Transition {
            step,
            is_gain: after.differs_in_letters_only(&before),
            to: self.number(after),
            claims,
            has_new_votes,
        };
        self.transitions.push(transition);
        Ok(Some(self.transitions.len() as u32 - 1))
    }

    fn mail_number(&mut self, mail: Rc<[u32]>) -> u32 {
        if let Some(number) = self.mail_numbers.get(&mail) {
            return *number;
        }
        let number = self.mails.len() as u32;
        self.mails.push(Rc::clone(&mail));
        self.mail_numbers.insert(mail, number);
        number
    }
}
