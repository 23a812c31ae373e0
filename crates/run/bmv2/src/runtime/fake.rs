//! A P4Runtime server of the tests' own, and what the driver does with servers as BMv2's is not: one that has
//! registers, one that reorders and explains much, one that another controller takes over.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status, Streaming};

use super::names::P4Names;
use super::proto::google::rpc;
use super::proto::p4::config::v1::{Action, ActionRef, MatchField, P4Info, Preamble, Register, Table};
use super::proto::p4::v1::field_match::FieldMatchType;
use super::proto::p4::v1::p4_runtime_server::{P4Runtime as Service, P4RuntimeServer};
use super::proto::p4::v1::stream_message_request::Update as Asked;
use super::proto::p4::v1::{
    Entity, Error, GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, Index,
    MasterArbitrationUpdate, P4Data, ReadRequest, ReadResponse, RegisterEntry,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamMessageRequest,
    StreamMessageResponse, Uint128, WriteRequest, WriteResponse, entity, stream_message_response,
};
use super::session::P4Session;
use super::{ActionCall, EntryChange, EntryName, P4Runtime};
use crate::error::Bmv2Error;

const REGISTER: &str = "ingress.numbers";
const TABLE: &str = "ingress.rows";
const ACTION: &str = "ingress.is_row";
const ELECTION: u64 = 7;

#[test]
fn registers_go_over_p4runtime_where_the_server_has_them() {
    let fake = Fake::start(true);
    let mut tables = fake.tables();
    assert!(tables.has_registers());
    tables.fill(REGISTER, 1, Some(2), 0x1_0002).expect("it takes them");
    assert_eq!(tables.words(REGISTER).expect("it has them"), [0, 0x1_0002, 0x1_0002, 0]);
    assert_eq!(tables.word(REGISTER, 2).expect("it has them"), 0x1_0002);
    tables.fill(REGISTER, 0, None, 0).expect("it takes them");
    assert_eq!(tables.words(REGISTER).expect("it has them"), [0; 4]);
    assert!(!Fake::start(false).tables().has_registers(), "such a server answers as BMv2's");
}

#[test]
fn a_batch_has_removals_alone_and_no_entry_twice() {
    let fake = Fake::start(false);
    let mut tables = fake.tables();
    let action = ActionCall { name: ACTION.to_owned(), data: vec![vec![0, 3]] };
    let write = |tables: &mut P4Runtime, key: u8, change: EntryChange<'_>| {
        tables.write(&EntryName { table: TABLE.to_owned(), key: vec![vec![0, key]] }, change).expect("known");
    };
    write(&mut tables, 1, EntryChange::Insert(&action));
    write(&mut tables, 2, EntryChange::Insert(&action));
    write(&mut tables, 1, EntryChange::Modify(&action));
    write(&mut tables, 2, EntryChange::Delete);
    write(&mut tables, 2, EntryChange::Insert(&action));
    tables.settle().expect("all is written");
    tables.settle().expect("there is nothing more");
    assert_eq!(fake.batches(), ["insert 1, insert 2", "modify 1", "delete 2", "insert 2"]);
}

#[test]
fn a_table_that_is_full_and_a_batch_that_failed_are_told_in_one_line() {
    let fake = Fake::start(false);
    let mut tables = fake.tables();
    let action = ActionCall { name: ACTION.to_owned(), data: vec![vec![1]] };
    let named = |key: u16| EntryName { table: TABLE.to_owned(), key: vec![key.to_be_bytes().to_vec()] };
    for key in 0..1_000 {
        tables.write(&named(key), EntryChange::Insert(&action)).expect("there is room");
    }
    let full = tables.write(&named(1_000), EntryChange::Insert(&action)).expect_err("it has 1,000 places");
    assert!(full.to_string().contains("the table is full"), "{full}");
    fake.refuse();
    let why = tables.settle().expect_err("the server refuses all").to_string();
    assert_eq!(why, "BMv2 refuses entries of ingress.rows: no room for 0");
}

#[test]
fn who_is_not_the_primary_any_more_hears_of_it() {
    let fake = Fake::start(false);
    let mut tables = fake.tables();
    tables.check().expect("it is the primary");
    fake.tell(&Uint128 { high: 1, low: 2 });
    let why = loop {
        if let Err(why) = tables.check() {
            break why.to_string();
        }
    };
    assert_eq!(why, "another controller has taken BMv2 over, with the election id 18446744073709551618");
}

#[test]
fn an_election_id_that_is_taken_is_told() {
    let fake = Fake::start(false);
    let _first = fake.tables();
    let mut session = P4Session::connect(fake.at, 1, || true).expect("it listens");
    let why = session.lead(ELECTION - 1).expect_err("the first has a higher one").to_string();
    assert!(why.contains("another controller has taken BMv2 over, with the election id 7"), "{why}");
}

#[test]
fn a_packet_of_the_processor_goes_over_the_session() {
    let fake = Fake::start(false);
    let mut tables = fake.tables();
    tables.packet_out(vec![1, 2, 3]).expect("it is the primary");
    while fake.state.lock().expect("no panic").packets != [[1, 2, 3]] {
        tables.check().expect("it is the primary");
    }
}

/// A server with one table and one register.
struct Fake {
    at: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    has_registers: bool,
    refuses: bool,
    cells: BTreeMap<i64, P4Data>,
    batches: Vec<String>,
    primary: u64,
    packets: Vec<Vec<u8>>,
    streams: Vec<mpsc::UnboundedSender<Result<StreamMessageResponse, Status>>>,
}

impl Fake {
    /// Serves on a thread of its own until the tests end.
    fn start(has_registers: bool) -> Self {
        let state = Arc::new(Mutex::new(State { has_registers, ..State::default() }));
        let (served, (tell, told)) = (Served(Arc::clone(&state)), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("tokio");
            tokio.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                tell.send(listener.local_addr().expect("bound")).expect("the test waits");
                let served = Server::builder().add_service(P4RuntimeServer::new(served));
                drop(served.serve_with_incoming(TcpListenerStream::new(listener)).await);
            });
        });
        Self { at: told.recv().expect("it listens"), state }
    }

    /// The tables behind it, with a session that leads.
    fn tables(&self) -> P4Runtime {
        let mut session = P4Session::connect(self.at, 1, || true).expect("it listens");
        session.lead(ELECTION).expect("nobody else is there");
        P4Runtime::new(session, P4Names::read(&p4info()).expect("whole")).expect("it answers")
    }

    fn batches(&self) -> Vec<String> {
        self.state.lock().expect("no panic").batches.clone()
    }

    /// Refuses all updates from now on.
    fn refuse(&self) {
        self.state.lock().expect("no panic").refuses = true;
    }

    /// Tells all controllers that another one leads.
    fn tell(&self, leader: &Uint128) {
        for stream in &self.state.lock().expect("no panic").streams {
            stream.send(Ok(arbitration(*leader, Code::AlreadyExists))).expect("it is open");
        }
    }
}

fn p4info() -> Vec<u8> {
    let named = |id, name: &str| Some(Preamble { id, name: name.to_owned() });
    let table = Table {
        preamble: named(1, TABLE),
        match_fields: vec![MatchField { id: 1, name: "row".to_owned(), bitwidth: 16 }],
        action_refs: vec![ActionRef { id: 2 }],
        size: 1_000,
    };
    let param = super::proto::p4::config::v1::action::Param { id: 1, name: "of".to_owned(), bitwidth: 16 };
    let action = Action { preamble: named(2, ACTION), params: vec![param] };
    let register = Register { preamble: named(3, REGISTER), size: 4 };
    P4Info { tables: vec![table], actions: vec![action], counters: vec![], registers: vec![register] }
        .encode_to_vec()
}

fn arbitration(leader: Uint128, code: Code) -> StreamMessageResponse {
    let status = Some(rpc::Status { code: code as i32, ..rpc::Status::default() });
    let update = MasterArbitrationUpdate { device_id: 1, election_id: Some(leader), status };
    StreamMessageResponse { update: Some(stream_message_response::Update::Arbitration(update)) }
}

struct Served(Arc<Mutex<State>>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Service for Served {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let mut state = self.0.lock().expect("no panic");
        let updates = request.into_inner().updates;
        if state.refuses {
            let error = |at| Error {
                canonical_code: Code::ResourceExhausted as i32,
                message: format!("no room for {at}"),
            };
            let detail = |at| rpc::Detail { type_url: String::new(), value: error(at).encode_to_vec() };
            let details = (0..updates.len()).map(detail).collect();
            let told = rpc::Status { code: Code::Unknown as i32, message: String::new(), details };
            return Err(Status::with_details(Code::Unknown, "", told.encode_to_vec().into()));
        }
        let mut batch = Vec::new();
        for update in updates {
            match update.entity.clone().and_then(|entity| entity.entity) {
                Some(entity::Entity::RegisterEntry(entry)) => {
                    let at = entry.index.expect("of one cell").index;
                    state.cells.insert(at, entry.data.expect("a word"));
                }
                Some(entity::Entity::TableEntry(entry)) => {
                    let kind = update.r#type().as_str_name().to_lowercase();
                    let Some(FieldMatchType::Exact(key)) = entry.r#match[0].field_match_type.clone() else {
                        panic!("exact")
                    };
                    batch.push(format!("{kind} {}", key.value[0]));
                }
                other => panic!("{other:?}"),
            }
        }
        state.batches.push(batch.join(", "));
        Ok(Response::new(WriteResponse {}))
    }

    type ReadStream = Answers<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let state = self.0.lock().expect("no panic");
        if !state.has_registers {
            // BMv2 answers with nothing before it says so.
            let why = Status::unimplemented("Register reads are not supported yet");
            let answers = [Ok(ReadResponse::default()), Err(why)];
            return Ok(Response::new(Box::pin(tokio_stream::iter(answers))));
        }
        let asked = request.into_inner().entities.remove(0).entity;
        let Some(entity::Entity::RegisterEntry(asked)) = asked else { panic!("a register") };
        let cells = asked.index.map_or(0..4, |index| index.index..index.index + 1);
        let entities = cells.map(|index| {
            let data = Some(state.cells.get(&index).cloned().unwrap_or_default());
            let (register_id, index) = (asked.register_id, Some(Index { index }));
            Entity { entity: Some(entity::Entity::RegisterEntry(RegisterEntry { register_id, index, data })) }
        });
        // A message for each, as a server may.
        let answers: Vec<_> = entities.map(|entity| Ok(ReadResponse { entities: vec![entity] })).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        _: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        Ok(Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        _: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        Err(Status::failed_precondition("no program"))
    }

    type StreamChannelStream = Answers<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut asked = request.into_inner();
        let (tell, told) = mpsc::unbounded_channel();
        let state = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Some(Ok(request)) = asked.next().await {
                let mut state = state.lock().expect("no panic");
                match request.update.expect("arbitration or a packet") {
                    Asked::Packet(packet) => state.packets.push(packet.payload),
                    Asked::Arbitration(update) => {
                        let id = update.election_id.expect("an election id");
                        let code = if id.low > state.primary { Code::Ok } else { Code::AlreadyExists };
                        state.primary = state.primary.max(id.low);
                        let leader = Uint128 { high: 0, low: state.primary };
                        drop(tell.send(Ok(arbitration(leader, code))));
                        state.streams.push(tell.clone());
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(tokio_stream::wrappers::UnboundedReceiverStream::new(told))))
    }
}

/// The bad answers of an unknown register are the driver's own.
#[test]
fn what_the_program_has_not_is_told_by_its_name() {
    let fake = Fake::start(true);
    let why = fake.tables().word("ingress.other", 0).expect_err("it is not there");
    assert!(matches!(why, Bmv2Error::P4Info(_)) && why.to_string().contains("ingress.other"), "{why}");
}
