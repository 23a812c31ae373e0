//! A client of several spines (Horus §3.2). It has a registration at each spine. Each task goes to a
//! randomly drawn spine, weighted by how many workers below the spine serve the task's type.
//!
//! A task is retried at the spine that accepted it, since only that spine can recognise the retry. If a
//! spine is gone, its registration moves to another spine after a lease, and its outstanding tasks with it.
//! The tasks keep their names, so a worker that ran one answers its retry. Until then the lost spine is
//! drawn as before.

use std::sync::{Mutex, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use sluice_rpc::Remote;
use sluice_rpc::registrar::Controllers;
use sluice_wire::TaskType;

use super::{Client, ClientOptions, ClientReport};
use crate::NetError;

/// A client for each spine.
#[derive(Debug)]
pub struct SpineClients {
    clients: Vec<Client>,
    dice: Mutex<ChaCha8Rng>,
}

impl From<Client> for SpineClients {
    fn from(only: Client) -> Self {
        Self::of(vec![only], 0)
    }
}

impl SpineClients {
    /// Registers with each of these controllers, under the name in `options` followed by the spine's
    /// number. `seed` seeds the draws. With a single controller, or with several of one rack, of which one
    /// leads, the client uses its plain name.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect(options: &ClientOptions, controllers: &[Remote], seed: u64) -> Result<Self, NetError> {
        if controllers.len() > 1 && sluice_rpc::are_of_one_rack(controllers) == Some(true) {
            let rack = Remote::any_of(controllers);
            return Ok(Self::of(vec![Client::connect_at(options, rack.into())?], seed));
        }
        let homes = Controllers::homes(controllers);
        let several = homes.len() > 1;
        let connect = |(home, controllers): (usize, Controllers)| {
            let name = if several { format!("{}/{}", options.name, home + 1) } else { options.name.clone() };
            Client::connect_at(&ClientOptions { name, ..options.clone() }, controllers)
        };
        let clients = homes.into_iter().enumerate().map(connect).collect::<Result<_, _>>()?;
        Ok(Self::of(clients, seed))
    }

    fn of(clients: Vec<Client>, seed: u64) -> Self {
        Self { clients, dice: Mutex::new(ChaCha8Rng::seed_from_u64(seed)) }
    }

    /// Draws the client for the next task of a type.
    pub fn draw(&self, task_type: TaskType) -> &Client {
        if let [only] = &self.clients[..] {
            return only;
        }
        let weights = self.clients.iter().map(|client| u64::from(client.workers_of(task_type)));
        // Nothing that can panic happens under this lock.
        let word = self.dice.lock().unwrap_or_else(PoisonError::into_inner).next_u64();
        &self.clients[drawn(weights, word)]
    }

    /// The names of task types in the plan; all spines have the same plan.
    pub fn type_names(&self) -> Vec<(TaskType, String)> {
        self.clients.first().map(Client::type_names).unwrap_or_default()
    }

    /// Has all clients accept no more tasks, as [`Client::accept_no_more`].
    pub fn accept_no_more(&self) {
        self.clients.iter().for_each(Client::accept_no_more);
    }

    /// Closes all clients, and returns their counters.
    ///
    /// # Errors
    /// The error that ended a packet thread early, if any.
    pub fn close(self) -> Result<Vec<ClientReport>, NetError> {
        self.clients.into_iter().map(Client::close).collect()
    }
}

/// Which of the weights a random word draws, in proportion to them; any one if all are zero.
fn drawn(mut weights: impl ExactSizeIterator<Item = u64> + Clone, word: u64) -> usize {
    let all: u64 = weights.clone().sum();
    if all == 0 {
        return (word % weights.len() as u64) as usize;
    }
    let mut left = word % all;
    let holds = |weight: u64| {
        let is_it = left < weight;
        left = left.saturating_sub(weight);
        is_it
    };
    weights.position(holds).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_drawn_as_often_as_it_weighs_and_all_if_nobody_weighs_anything() {
        let counts = |weights: &[u64]| {
            let mut counts = vec![0; weights.len()];
            (0..60).for_each(|word| counts[drawn(weights.iter().copied(), word)] += 1);
            counts
        };
        assert_eq!(counts(&[1, 0, 5]), [10, 0, 50]);
        assert_eq!(counts(&[0, 0]), [30, 30]);
    }
}
