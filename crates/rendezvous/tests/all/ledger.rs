//! What must be true of tokens and tasks: each waits under one number, and leaves once.

use sluice_rendezvous::{Note, Task, Token};

/// Where every token and task is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    tokens: Vec<Place>,
    tasks: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// In a CPU's hands, or still to come.
    Held,
    Parked(u32),
    Gone,
}

impl Ledger {
    pub(crate) fn new(tokens: usize, tasks: usize) -> Self {
        Self { tokens: vec![Place::Held; tokens], tasks: vec![Place::Held; tasks] }
    }

    /// Takes note, or says what cannot be.
    pub(crate) fn take(&mut self, note: Note) -> Result<(), String> {
        use Place::{Gone, Held, Parked};
        let right = match note {
            Note::TokenParks(number, token) => self.token(token, &[Held], Parked(number)),
            Note::TaskParks(number, task) => self.task(task, &[Held], Parked(number)),
            Note::TokenTaken(number, token) => self.token(token, &[Parked(number)], Held),
            Note::TaskTaken(number, task) => self.task(task, &[Parked(number)], Held),
            Note::TokenLeaves(token) => self.token(token, &[Held], Gone),
            Note::TaskLeaves(task) => self.task(task, &[Held], Gone),
            Note::Meet(number, token, task) => {
                let places = [Parked(number), Held];
                self.token(token, &places, Gone) && self.task(task, &places, Gone)
            }
            Note::Anew => true,
            Note::Broken(_) => false,
        };
        if right { Ok(()) } else { Err(format!("{note:?} cannot be: {self:?}")) }
    }

    /// How it must end if what waits then are these, by their numbers: nothing else is anywhere.
    pub(crate) fn ends(&self, tokens: &[(u32, Token)], tasks: &[(u32, Task)]) -> Result<(), String> {
        let mut rest = self.clone();
        for (number, token) in tokens {
            rest.take(Note::TokenTaken(*number, *token))?;
            rest.take(Note::TokenLeaves(*token))?;
        }
        for (number, task) in tasks {
            rest.take(Note::TaskTaken(*number, *task))?;
            rest.take(Note::TaskLeaves(*task))?;
        }
        let lost = rest.tokens.iter().chain(&rest.tasks).any(|place| *place != Place::Gone);
        if lost { Err(format!("lost: {rest:?}")) } else { Ok(()) }
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
