//! The hosts' session with the controller: when they renew, and what they do with the answers.

use sluice_control::Answer;
use sluice_host::worker::Worker;

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::RENEW_EVERY;
use crate::oracle::Life;
use crate::rack::Rack;

impl Rack<'_> {
    /// A host registers or renews, unless its process has ended or it has just called.
    pub(crate) fn renew_if_alive(&mut self, host: Host, life: Life) {
        if self.life_of(host) != life || life == 0 {
            return;
        }
        let thaws = self.session(host).frozen_until;
        if self.world.now < thaws {
            self.remind(thaws, Event::Renew(host, life));
        } else {
            self.renew(host);
            self.after(RENEW_EVERY, Event::Renew(host, life));
        }
    }

    pub(crate) fn worker_answered(
        &mut self,
        worker: usize,
        life: Life,
        answer: &Answer,
    ) -> Result<(), String> {
        if self.workers[worker].life != life || !self.workers[worker].lives() {
            return Ok(());
        }
        self.workers[worker].session.asked = None;
        match answer {
            Answer::Worker(grant) => {
                let ring = grant.ring;
                let grant = grant.registration;
                let node = &mut self.workers[worker];
                node.ring = ring;
                node.grant = Some(grant);
                node.quota_highest = node.quota_highest.max(grant.quota);
                self.await_change(worker);
                let is_lane = self.has_cores();
                self.on_worker(worker, |machine, now, settings, out| {
                    let take = if is_lane { Worker::grant_lane } else { Worker::grant };
                    take(machine, now, settings, grant, out);
                })?;
                self.settle_lanes(worker)
            }
            Answer::Left { final_sent } => {
                let final_sent = *final_sent;
                self.on_worker(worker, |machine, now, _, _| machine.left(now, final_sent))?;
                self.settle_lanes(worker)
            }
            Answer::Wait { retry_after, .. } => {
                self.ask_later(Host::Worker(worker), *retry_after);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn client_answered(
        &mut self,
        client: usize,
        life: Life,
        answer: Answer,
    ) -> Result<(), String> {
        if self.clients[client].incarnation.0 != life {
            return Ok(());
        }
        self.clients[client].session.asked = None;
        match answer {
            Answer::Client(grant) => {
                self.clients[client].held = Some((grant.client, grant.key));
                let grant = grant.registration;
                self.on_client(client, |machine, now, settings, out| machine.grant(now, settings, grant, out))
            }
            Answer::Wait { retry_after, .. } => {
                self.ask_later(Host::Client(client), retry_after);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
