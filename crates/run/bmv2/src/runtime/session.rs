//! A session with a P4Runtime server, as its primary controller.
//!
//! The calls wait for their answers. The session's stream is read meanwhile, and when [`P4Session::check`] is
//! called: it tells who the primary is.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::runtime::{Builder, Runtime as Tokio};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use super::proto::google::rpc;
use super::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use super::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use super::proto::p4::v1::packet_replication_engine_entry::Type as Replicated;
use super::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use super::proto::p4::v1::update::Type;
use super::proto::p4::v1::{
    Entity, Error, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, MasterArbitrationUpdate,
    MulticastGroupEntry, PacketOut, PacketReplicationEngineEntry, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Uint128, Update,
    WriteRequest, entity, stream_message_request, stream_message_response,
};
use crate::error::Bmv2Error;

/// How long the switch may take to start its server, and to answer.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
const TRAILER_BYTES_MAX: u32 = 1 << 20;
/// How long a check lets the stream be read.
const GLANCE: Duration = Duration::from_millis(1);

/// A session with a server.
pub(crate) struct P4Session {
    at: SocketAddr,
    tokio: Tokio,
    calls: P4RuntimeClient<Channel>,
    device: u64,
    election: Uint128,
    standing: watch::Receiver<Standing>,
    /// The session's stream, which ends with it.
    asks: UnboundedSender<StreamMessageRequest>,
}

/// What the session's stream last said.
#[derive(Clone, Debug)]
enum Standing {
    Awaited,
    Primary,
    /// Another has this election id.
    Backup(Uint128),
    Ended(String),
}

impl P4Session {
    /// Connects once the server listens. `is_alive` says whether the switch still runs.
    pub(crate) fn connect(
        at: SocketAddr,
        device: u64,
        mut is_alive: impl FnMut() -> bool,
    ) -> Result<Self, Bmv2Error> {
        let built = Builder::new_current_thread().enable_all().build();
        let tokio = built.map_err(Bmv2Error::system("start the P4Runtime client"))?;
        let endpoint = Endpoint::from_shared(format!("http://{at}")).expect("an address and port");
        // Servers explain what failed of a batch in the answer's trailers.
        let endpoint = endpoint.http2_max_header_list_size(TRAILER_BYTES_MAX).connect_timeout(PATIENCE);
        let began = Instant::now();
        let channel = loop {
            match tokio.block_on(endpoint.connect()) {
                Ok(channel) => break channel,
                Err(_) if is_alive() && began.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(_) => return Err(Bmv2Error::Silent(at)),
            }
        };
        // A table may be longer than the 4 MiB that are the default.
        let calls = P4RuntimeClient::new(channel).max_decoding_message_size(usize::MAX);
        let ((_, standing), (asks, _)) = (watch::channel(Standing::Awaited), unbounded_channel());
        Ok(Self { at, tokio, calls, device, election: Uint128::default(), standing, asks })
    }

    /// Becomes the device's primary controller.
    pub(crate) fn lead(&mut self, election: u64) -> Result<(), Bmv2Error> {
        self.election = Uint128 { high: 0, low: election };
        let arbitration = MasterArbitrationUpdate {
            device_id: self.device,
            election_id: Some(self.election),
            status: None,
        };
        let (asks, asked) = unbounded_channel();
        let (tell, standing) = watch::channel(Standing::Awaited);
        (self.standing, self.asks) = (standing, asks);
        self.ask(stream_message_request::Update::Arbitration(arbitration))?;
        self.tokio.spawn({
            let mut calls = self.calls.clone();
            async move {
                match calls.stream_channel(UnboundedReceiverStream::new(asked)).await {
                    Ok(stream) => listen(stream.into_inner(), tell).await,
                    Err(why) => drop(tell.send(Standing::Ended(said(&why)))),
                }
            }
        });
        let told = self.standing.wait_for(|standing| !matches!(standing, Standing::Awaited));
        let told = self.tokio.block_on(async { timeout(PATIENCE, told).await.map(drop) });
        told.map_err(|_| Bmv2Error::Gone("answers no arbitration over P4Runtime".to_owned()))?;
        self.check()
    }

    /// Where the server is.
    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Sends a frame into the program, by the port of the switch's processor.
    pub(crate) fn packet_out(&mut self, payload: Vec<u8>) -> Result<(), Bmv2Error> {
        self.ask(stream_message_request::Update::Packet(PacketOut { payload }))?;
        self.check()
    }

    fn ask(&self, update: stream_message_request::Update) -> Result<(), Bmv2Error> {
        let sent = self.asks.send(StreamMessageRequest { update: Some(update) });
        sent.map_err(|_| Bmv2Error::Gone("ended the P4Runtime session".to_owned()))
    }

    /// An error if this is the primary controller no more.
    pub(crate) fn check(&mut self) -> Result<(), Bmv2Error> {
        self.tokio.block_on(async { sleep(GLANCE).await });
        let standing = self.standing.borrow().clone();
        match standing {
            Standing::Awaited | Standing::Primary => Ok(()),
            Standing::Backup(holder) => Err(Bmv2Error::Supplanted(shown(&holder))),
            Standing::Ended(why) => Err(Bmv2Error::Gone(format!("ended the P4Runtime session: {why}"))),
        }
    }

    /// Removes multicast groups from 1 on, as far as they are there. BMv2 forgets groups with a program that
    /// is committed anew, and goes on to send their copies.
    pub(crate) fn remove_groups(&mut self, groups: u32) -> Result<(), Bmv2Error> {
        for multicast_group_id in 1..=groups {
            let group = MulticastGroupEntry { multicast_group_id, replicas: Vec::new() };
            let entry = PacketReplicationEngineEntry { r#type: Some(Replicated::MulticastGroupEntry(group)) };
            let entity = Some(entity::Entity::PacketReplicationEngineEntry(entry));
            let update = Update { r#type: Type::Delete.into(), entity: Some(Entity { entity }) };
            match self.write("multicast groups", vec![update]) {
                // One that is not there.
                Ok(()) | Err(Bmv2Error::Refused { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Gives the switch a program, which empties it.
    pub(crate) fn commit(&mut self, p4info: Vec<u8>, device_config: Vec<u8>) -> Result<(), Bmv2Error> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.device,
            election_id: Some(self.election),
            action: Action::VerifyAndCommit.into(),
            config: Some(ForwardingPipelineConfig { p4info, p4_device_config: device_config }),
        };
        self.call("the program", async |calls| calls.set_forwarding_pipeline_config(request).await).map(drop)
    }

    /// The P4Info of the program that the switch runs; `None` if it has none.
    pub(crate) fn p4info(&mut self) -> Result<Option<Vec<u8>>, Bmv2Error> {
        let response_type = ResponseType::P4infoAndCookie.into();
        let request = GetForwardingPipelineConfigRequest { device_id: self.device, response_type };
        let told = self.call("to tell its program", async |calls| {
            match calls.get_forwarding_pipeline_config(request).await {
                Err(why) if why.code() == Code::FailedPrecondition => Ok(None),
                told => told.map(Some),
            }
        })?;
        Ok(told.and_then(|told| told.into_inner().config).map(|config| config.p4info))
    }

    /// Writes these updates, in any order. `what` says what they are.
    pub(crate) fn write(&mut self, what: &str, updates: Vec<Update>) -> Result<(), Bmv2Error> {
        let (device_id, election_id) = (self.device, Some(self.election));
        let request = WriteRequest { device_id, election_id, updates };
        self.call(what, async |calls| calls.write(request).await).map(drop)
    }

    /// Reads what matches these entities.
    pub(crate) fn read(&mut self, what: &str, entities: Vec<Entity>) -> Result<Vec<Entity>, Bmv2Error> {
        let request = ReadRequest { device_id: self.device, entities };
        self.call(what, async |calls| read_all(calls, request).await)
    }

    /// Whether the server reads this kind of entity at all.
    pub(crate) fn can_read(&mut self, what: &str, entity: Entity) -> Result<bool, Bmv2Error> {
        let request = ReadRequest { device_id: self.device, entities: vec![entity] };
        self.call(what, async |calls| match read_all(calls, request).await {
            Err(why) if why.code() == Code::Unimplemented => Ok(false),
            read => read.map(|_| true),
        })
    }

    fn call<T>(
        &mut self,
        what: &str,
        call: impl AsyncFnOnce(&mut P4RuntimeClient<Channel>) -> Result<T, Status>,
    ) -> Result<T, Bmv2Error> {
        let done = self.tokio.block_on(async { timeout(PATIENCE, call(&mut self.calls)).await });
        let Ok(done) = done else {
            let s = PATIENCE.as_secs();
            return Err(Bmv2Error::Gone(format!("does not answer over P4Runtime within {s} s")));
        };
        done.map_err(|why| match why.code() {
            // What the connection says has a source, and what the server says has none.
            Code::Unavailable | Code::Unknown if std::error::Error::source(&why).is_some() => {
                Bmv2Error::Gone(format!("does not answer over P4Runtime: {}", said(&why)))
            }
            Code::PermissionDenied => {
                // The stream says who.
                self.check().err().unwrap_or_else(|| Bmv2Error::Supplanted("one that is higher".to_owned()))
            }
            _ => Bmv2Error::Refused { call: what.to_owned(), why: reason(&why) },
        })
    }
}

/// Servers may say at the end of what they read that they could not.
async fn read_all(calls: &mut P4RuntimeClient<Channel>, request: ReadRequest) -> Result<Vec<Entity>, Status> {
    let mut stream = calls.read(request).await?.into_inner();
    let mut read = Vec::new();
    while let Some(response) = stream.message().await? {
        read.extend(response.entities);
    }
    Ok(read)
}

/// Tells what a session's stream says, until it ends.
async fn listen(mut stream: Streaming<StreamMessageResponse>, tell: watch::Sender<Standing>) {
    loop {
        let standing = match stream.message().await {
            Ok(Some(StreamMessageResponse { update })) => {
                let Some(stream_message_response::Update::Arbitration(told)) = update else { continue };
                match told.status {
                    Some(status) if status.code != Code::Ok as i32 => {
                        Standing::Backup(told.election_id.unwrap_or_default())
                    }
                    _ => Standing::Primary,
                }
            }
            Ok(None) => Standing::Ended("it closed the stream".to_owned()),
            Err(why) => Standing::Ended(said(&why)),
        };
        let is_over = matches!(standing, Standing::Ended(_));
        if tell.send(standing).is_err() || is_over {
            return;
        }
    }
}

/// Why a call failed: of a batch the first update that did.
fn reason(why: &Status) -> String {
    let details = rpc::Status::decode(why.details()).unwrap_or_default().details;
    let errors = details.iter().filter_map(|detail| Error::decode(detail.value.as_slice()).ok());
    let failed = errors.into_iter().find(|error| error.canonical_code != Code::Ok as i32);
    failed.map_or_else(|| said(why), |error| in_words(Code::from_i32(error.canonical_code), &error.message))
}

fn said(why: &Status) -> String {
    in_words(why.code(), why.message())
}

/// In one line.
fn in_words(code: Code, message: &str) -> String {
    let message =
        message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    if message.is_empty() { code.description().to_owned() } else { message }
}

fn shown(id: &Uint128) -> String {
    (u128::from(id.high) << 64 | u128::from(id.low)).to_string()
}
