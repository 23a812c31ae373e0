//! A connection to etcd: the leader's key, which lives by a lease, and the hosts' keys.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, Error, GetOptions, PutOptions, Txn, TxnOp};
use serde::{Deserialize, Serialize};
use sluice_control::PodPlace;
use sluice_wire::Key;
use tokio::time::timeout;

use crate::options::EtcdOptions;

/// The version of what is stored.
const VERSION: u32 = 1;
/// How many keys one transaction writes; etcd takes 128 unless it was told otherwise.
const WRITES_MAX: usize = 100;

pub(crate) struct EtcdSession {
    client: Client,
    prefix: String,
    patience: Duration,
}

/// Who leads, by the leader's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseHolder {
    /// This process, since the key has this revision.
    This(i64),
    /// The process at this address.
    Other(String),
}

/// The value of the leader's key.
#[derive(Debug, Serialize, Deserialize)]
struct StoredLeader {
    version: u32,
    at: String,
}

/// The value of a host's key.
#[derive(Debug, Serialize, Deserialize)]
struct StoredHost {
    version: u32,
    spine: usize,
    key: u32,
}

impl EtcdSession {
    /// A connection to one member. etcd-client would spread the calls over all members, also over one that
    /// does not answer.
    pub(crate) async fn open(options: &EtcdOptions, member: usize) -> Result<Self, String> {
        let connect = options.connect_options()?;
        let at = &options.endpoints[member % options.endpoints.len()];
        let client = Client::connect([at], Some(connect)).await.map_err(|why| said(&why))?;
        Ok(Self { client, prefix: options.prefix(), patience: options.patience() })
    }

    /// Finds out who leads; becomes the leader if nobody does. `lease` is this process's lease, made when it
    /// is needed.
    pub(crate) async fn hold(
        &mut self,
        lease: &mut Option<i64>,
        seconds: i64,
        at: &str,
    ) -> Result<LeaseHolder, String> {
        if let Some(id) = *lease {
            match self.within(self.client.clone().lease_keep_alive(id)).await {
                Ok(_) => {}
                Err(Failed::Etcd(Error::LeaseKeepAliveError(_))) => *lease = None,
                Err(failed) => return Err(failed.text()),
            }
        }
        if let Some(holder) = self.holder(*lease).await? {
            return Ok(holder);
        }
        let id = match *lease {
            Some(id) => id,
            None => {
                self.within(self.client.clone().lease_grant(seconds, None)).await.map_err(Failed::text)?.id()
            }
        };
        *lease = Some(id);
        let leader = StoredLeader { version: VERSION, at: at.to_owned() };
        let value = serde_json::to_string(&leader).map_err(|why| why.to_string())?;
        let key = self.leader_key();
        let is_vacant = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
        let put = TxnOp::put(key, value, Some(PutOptions::new().with_lease(id)));
        self.write(is_vacant, vec![put]).await?;
        self.holder(Some(id)).await?.ok_or_else(|| "the leader's key is gone again".to_owned())
    }

    /// Stores where hosts are if this process still leads; otherwise returns false.
    pub(crate) async fn store(
        &mut self,
        revision: i64,
        moves: &BTreeMap<String, Option<PodPlace>>,
    ) -> Result<bool, String> {
        let moves: Vec<_> = moves.iter().collect();
        for some in moves.chunks(WRITES_MAX) {
            let writes = some.iter().map(|(host, place)| self.write_of(host, place.as_ref()));
            let writes = writes.collect::<Result<Vec<_>, _>>()?;
            let is_ours = Compare::create_revision(self.leader_key(), CompareOp::Equal, revision);
            if !self.write(is_ours, writes).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where all hosts are, as far as they are stored in a form that is known.
    pub(crate) async fn load(&mut self) -> Result<BTreeMap<String, PodPlace>, String> {
        let prefix = format!("{}hosts/", self.prefix);
        let all = GetOptions::new().with_prefix();
        let found =
            self.within(self.client.clone().get(prefix.clone(), Some(all))).await.map_err(Failed::text)?;
        let host = |key: &[u8], value: &[u8]| {
            let name = std::str::from_utf8(key).ok()?.strip_prefix(&prefix)?.to_owned();
            let host: StoredHost = serde_json::from_slice(value).ok()?;
            (host.version == VERSION).then_some((name, PodPlace { spine: host.spine, key: Key(host.key) }))
        };
        Ok(found.kvs().iter().filter_map(|pair| host(pair.key(), pair.value())).collect())
    }

    /// Ends a lease, and with it the lead.
    pub(crate) async fn give_up(&mut self, lease: i64) -> Result<(), String> {
        self.within(self.client.clone().lease_revoke(lease)).await.map(|_| ()).map_err(Failed::text)
    }

    async fn holder(&mut self, lease: Option<i64>) -> Result<Option<LeaseHolder>, String> {
        let found =
            self.within(self.client.clone().get(self.leader_key(), None)).await.map_err(Failed::text)?;
        let Some(found) = found.kvs().first() else { return Ok(None) };
        if Some(found.lease()) == lease {
            return Ok(Some(LeaseHolder::This(found.create_revision())));
        }
        let leader = serde_json::from_slice::<StoredLeader>(found.value());
        // A newer version may store more; its address is only shown to people.
        Ok(Some(LeaseHolder::Other(leader.map(|leader| leader.at).unwrap_or_default())))
    }

    fn leader_key(&self) -> String {
        format!("{}leader", self.prefix)
    }

    fn write_of(&self, host: &str, place: Option<&PodPlace>) -> Result<TxnOp, String> {
        let key = format!("{}hosts/{host}", self.prefix);
        let Some(place) = place else { return Ok(TxnOp::delete(key, None)) };
        let host = StoredHost { version: VERSION, spine: place.spine, key: place.key.0 };
        Ok(TxnOp::put(key, serde_json::to_string(&host).map_err(|why| why.to_string())?, None))
    }

    /// Writes if the condition holds; says whether it did.
    async fn write(&mut self, when: Compare, writes: Vec<TxnOp>) -> Result<bool, String> {
        let txn = Txn::new().when([when]).and_then(writes);
        let done = self.within(self.client.clone().txn(txn)).await;
        Ok(done.map_err(Failed::text)?.succeeded())
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Failed> {
        timeout(self.patience, call).await.map_err(|_| Failed::Late)?.map_err(Failed::Etcd)
    }
}

/// Why a call was not answered as it should be.
enum Failed {
    Late,
    Etcd(Error),
}

impl Failed {
    fn text(self) -> String {
        match self {
            Self::Late => "no answer in time".to_owned(),
            Self::Etcd(why) => said(&why),
        }
    }
}

fn said(why: &Error) -> String {
    match why {
        Error::GRpcStatus(status) => sluice_rpc::reason(status),
        other => other.to_string(),
    }
}
