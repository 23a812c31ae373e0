//! A process's contention for the lead, as long as it runs.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use tokio::time::timeout;

use crate::options::EtcdOptions;
use crate::session::{EtcdSession, LeaseHolder};
use crate::shared::{OnLead, Shared};

/// How often in a lease etcd is asked by who waits, and by who leads.
const ASKS_PER_LEASE: u32 = 20;
const RENEWALS_PER_LEASE: u32 = 8;

pub(crate) struct Contention {
    options: EtcdOptions,
    shared: Arc<Shared>,
    at: String,
    on_lead: OnLead,
    /// None after a call failed: the next one goes to the next member, with the certificates of then.
    session: Option<EtcdSession>,
    /// The member that is called.
    member: usize,
    lease: Option<i64>,
    /// When the last call was made that etcd answered.
    answered: Instant,
    /// The revision of the leader's key as long as it is this process's.
    revision: Option<i64>,
    /// What was wrong last, as logged.
    wrong: Option<String>,
    /// Why places of hosts are not stored, as logged.
    unstored: Option<String>,
}

impl Contention {
    pub(crate) fn new(options: EtcdOptions, shared: Arc<Shared>, at: String, on_lead: OnLead) -> Self {
        Self {
            options,
            shared,
            at,
            on_lead,
            session: None,
            member: 0,
            lease: None,
            answered: Instant::now(),
            revision: None,
            wrong: None,
            unstored: None,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut next = Instant::now();
        while !self.shared.is_ending() {
            // The bell: places of hosts are to be stored, or the process ends.
            if timeout(next - Instant::now().min(next), self.shared.bell.notified()).await.is_err() {
                let answer = self.look().await;
                self.note(answer);
                let often = if self.revision.is_some() { RENEWALS_PER_LEASE } else { ASKS_PER_LEASE };
                next = Instant::now() + self.options.lease() / often;
            }
            // What could not be stored is tried again, at another member.
            self.store().await;
        }
        Box::pin(self.end()).await;
    }

    /// Asks one member after the other who leads, until one answers, and tells the controllers.
    async fn look(&mut self) -> Result<(), String> {
        let mut answer = Ok(());
        for _ in 0..self.options.endpoints.len() {
            let asked = Instant::now();
            answer = self.look_at_member().await;
            if answer.is_ok() {
                self.answered = asked;
                break;
            }
            self.turn();
        }
        // Calls may arrive without an answer: they would keep the lease alive, and nobody would ever lead.
        if self.answered.elapsed() > self.options.lease() {
            self.lease = None;
        }
        answer
    }

    /// The next call goes to the next member.
    fn turn(&mut self) {
        (self.session, self.member) = (None, self.member + 1);
    }

    async fn look_at_member(&mut self) -> Result<(), String> {
        let asked = Instant::now();
        let seconds = i64::try_from(self.options.lease().as_secs()).unwrap_or(i64::MAX);
        let mut lease = self.lease;
        let at = self.at.clone();
        let held = self.session().await?.hold(&mut lease, seconds, &at).await;
        self.lease = lease;
        match held? {
            LeaseHolder::This(revision) => {
                if self.revision != Some(revision) {
                    let stored = self.session().await?.load().await?;
                    sluice_log::log!(
                        LeaseHeld,
                        hosts = stored.len(),
                        "etcd grants the lead to this controller; {} hosts are stored",
                        stored.len()
                    );
                    (self.on_lead)(stored);
                }
                self.revision = Some(revision);
                self.shared.leads(asked);
            }
            LeaseHolder::Other(leader) => {
                if self.revision.take().is_some() {
                    sluice_log::log!(LeaseLost, leader, "etcd's lease ended: {leader} leads");
                }
                self.shared.leads_not(leader);
            }
        }
        Ok(())
    }

    /// Stores what has to be stored.
    async fn store(&mut self) {
        let moves = self.shared.take_moves();
        let Some(revision) = self.revision.filter(|_| !moves.is_empty()) else { return };
        let stored = match self.session().await {
            Ok(session) => session.store(revision, &moves).await,
            Err(why) => Err(why),
        };
        // Whether this process leads still, the next look says.
        let Err(why) = stored else { return self.unstored = None };
        // Writing it again changes nothing.
        self.shared.put_back(moves);
        self.turn();
        if self.unstored.as_ref() != Some(&why) {
            sluice_log::log!(EtcdUnstored, why, "etcd does not store where hosts are: {why}; trying again");
            self.unstored = Some(why);
        }
    }

    async fn session(&mut self) -> Result<&mut EtcdSession, String> {
        let session = match self.session.take() {
            Some(session) => session,
            None => EtcdSession::open(&self.options, self.member).await?,
        };
        Ok(self.session.insert(session))
    }

    /// Logs when etcd falls silent, and when it is back.
    fn note(&mut self, answer: Result<(), String>) {
        match answer {
            Ok(()) => {
                if mem::take(&mut self.wrong).is_some() {
                    sluice_log::log!(EtcdBack, "etcd answers again");
                }
            }
            Err(why) => {
                self.shared.is_lost(&why);
                if self.wrong.as_ref() != Some(&why) {
                    let leads = if self.revision.is_some() {
                        "; without it this controller leads until its lease ends"
                    } else {
                        ""
                    };
                    sluice_log::log!(
                        EtcdLost,
                        why,
                        "etcd does not answer as it should: {why}; asking on{leads}"
                    );
                    self.wrong = Some(why);
                }
            }
        }
    }

    async fn end(mut self) {
        self.shared.leads_not(String::new());
        if let Some(lease) = self.lease
            && let Ok(session) = self.session().await
        {
            // If it fails, the lease ends by itself.
            session.give_up(lease).await.unwrap_or_default();
        }
    }
}
