//! Invariants of tokens and tasks: each waits in one spot, and leaves once.

use sluice_rendezvous::{Note, Spot, Task, Token};

/// The location of every token and task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    tokens: Vec<Place>,
    tasks: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A CPU holds the entry, or has not entered it yet.
    Held,
    Parked(Spot),
    Gone,
}

impl Ledger {
    pub(crate) fn new(tokens: usize, tasks: usize) -> Self {
        Self { tokens: vec![Place::Held; tokens], tasks: vec![Place::Held; tasks] }
    }

    /// Takes a report; an error if it is impossible.
    pub(crate) fn take(&mut self, note: Note) -> Result<(), String> {
        use Place::{Gone, Held, Parked};
        let right = match note {
            Note::TokenParks(spot, token) => self.token(token, &[Held], Parked(spot)),
            Note::TaskParks(spot, task) => self.task(task, &[Held], Parked(spot)),
            Note::TokenTaken(spot, token) => self.token(token, &[Parked(spot)], Held),
            Note::TaskTaken(spot, task) => self.task(task, &[Parked(spot)], Held),
            Note::TokenLeaves(token) => self.token(token, &[Held], Gone),
            Note::TaskLeaves(task) => self.task(task, &[Held], Gone),
            Note::Meet(spot, token, task) => {
                let places = [Parked(spot), Held];
                self.token(token, &places, Gone) && self.task(task, &places, Gone)
            }
            Note::Anew => true,
            Note::Broken(_) => false,
        };
        if right { Ok(()) } else { Err(format!("{note:?} cannot be: {self:?}")) }
    }

    /// Checks the end: exactly these tokens and tasks wait, in these spots, and no others are left.
    pub(crate) fn ends(&self, tokens: &[(Spot, Token)], tasks: &[(Spot, Task)]) -> Result<(), String> {
        let mut rest = self.clone();
        for (spot, token) in tokens {
            rest.take(Note::TokenTaken(*spot, *token))?;
            rest.take(Note::TokenLeaves(*token))?;
        }
        for (spot, task) in tasks {
            rest.take(Note::TaskTaken(*spot, *task))?;
            rest.take(Note::TaskLeaves(*task))?;
        }
        let lost = rest.tokens.iter().chain(&rest.tasks).any(|place| *place != Place::Gone);
        if lost { Err(format!("lost: {rest:?}")) } else { Ok(()) }
    }

    /// The indices of the parked tokens.
    pub(crate) fn parked(&self) -> Vec<usize> {
        let parks = |index: &usize| matches!(self.tokens[*index], Place::Parked(_));
        (0..self.tokens.len()).filter(parks).collect()
    }

    fn token(&mut self, token: Token, from: &[Place], to: Place) -> bool {
        moves(self.tokens.get_mut(usize::from(token.worker)), from, to)
    }

    fn task(&mut self, Task([index, same]): Task, from: &[Place], to: Place) -> bool {
        index == same && moves(self.tasks.get_mut(index as usize), from, to)
    }
}

fn moves(place: Option<&mut Place>, from: &[Place], to: Place) -> bool {
    let Some(place) = place.filter(|place| from.contains(place)) else { return false };
    *place = to;
    true
}
