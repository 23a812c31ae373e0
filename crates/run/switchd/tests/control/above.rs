//! Permissions at a controller above several spines: a leaf speaks only for its own rack, a host cannot
//! write a spine's tables, and neither can a controller whose certificate the spines do not trust.

use sluice_control::{Plan, Tier, WorkerHello};
use sluice_rpc::v1;
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_above};
use sluice_switchd::rpc::{Guard, RpcServer, serve_tables};
use tonic::Code;

use crate::authority::{Authority, over_tls};
use crate::rack::{ANY, Switch, client, client_hello, options, worker, worker_hello};
use crate::secure::{calls, counted};

/// Two spines that serve their tables, and the controller above, which shows them a certificate with this
/// name.
struct Secured {
    controllers: Vec<RpcServer>,
    tables: Vec<RpcServer>,
    _spines: [Switch; 2],
}

impl Secured {
    fn start(authority: &Authority, role: &str) -> Self {
        let spines = [Switch::spine(5), Switch::spine(6)];
        let guard = || Guard::Tls(authority.server());
        let serve = |spine: &Switch| serve_tables(ANY.parse().unwrap(), &guard(), spine.local()).unwrap();
        let tables: Vec<_> = spines.iter().map(serve).collect();
        let controller = |tables: &RpcServer| {
            let of = options(SwitchLink::There(over_tls(tables, &authority.caller("above", role))));
            ControllerOptions { guard: guard(), plan: Plan { tier: Tier::Spine, ..of.plan }, ..of }
        };
        let racks = vec![vec!["rack-1".to_owned()], vec!["rack-2".to_owned()]];
        let controllers = start_above(tables.iter().map(controller).collect(), racks, None).unwrap();
        Self { controllers, tables, _spines: spines }
    }
}

fn leaf_hello(name: &str) -> WorkerHello {
    WorkerHello { workers: 3, ..worker_hello(name) }
}

#[tokio::test(flavor = "current_thread")]
async fn a_leaf_speaks_for_its_own_rack_with_whichever_spines_controller_it_speaks() {
    let authority = Authority::new();
    let above = Secured::start(&authority, "controller");
    let own = authority.caller("rack-2", "host");
    let grants = above.controllers.iter().map(|server| {
        let leaf = worker(over_tls(server, &own), leaf_hello("rack-2/get"));
        leaf.granted().epoch.0
    });
    assert_eq!(grants.collect::<Vec<_>>(), [6, 6], "it is below its own spine");
    let server = &above.controllers[0];
    let hostile = worker(over_tls(server, &own), leaf_hello("rack-1/get")).refused();
    assert!(hostile.contains("the certificate of rack-2 does not speak for \"rack-1/get\""), "{hostile}");
    let stranger = worker(over_tls(server, &authority.stranger()), leaf_hello("rack-1/get")).refused();
    assert!(stranger.contains("show a certificate"), "{stranger}");
    let no_rack = authority.caller("rack-9", "host");
    let no_rack = worker(over_tls(server, &no_rack), leaf_hello("rack-9/get")).refused();
    assert!(no_rack.contains("rack-9/get") && no_rack.contains("rack-1, rack-2"), "{no_rack}");
    let other = client(over_tls(server, &own), client_hello("load")).refused();
    assert!(other.contains("does not speak for \"load\""), "{other}");
    let mut operator = calls(server, &authority.caller("ann", "operator"));
    assert_eq!(counted(&mut operator, "other_name").await, 2);
}

#[tokio::test(flavor = "current_thread")]
async fn a_host_writes_no_spines_tables_and_leaves_nobody_elses_rack() {
    let authority = Authority::new();
    let above = Secured::start(&authority, "controller");
    let rack = worker(
        over_tls(&above.controllers[0], &authority.caller("rack-1", "host")),
        leaf_hello("rack-1/get"),
    );
    let before = rack.granted();
    let hostile = authority.caller("rack-2", "host");
    let mut tables = TablesClient::new(over_tls(&above.tables[0], &hostile).connect());
    let why = tables.apply(v1::ApplyRequest::default()).await.unwrap_err();
    assert_eq!(why.code(), Code::PermissionDenied, "{why}");
    let mut hostile = calls(&above.controllers[1], &hostile);
    let leave = v1::LeaveWorkerRequest { name: "rack-1/get".to_owned(), life: leaf_hello("rack-1/get").life };
    assert_eq!(hostile.leave_worker(leave).await.unwrap_err().code(), Code::PermissionDenied);
    rack.line.renew_now();
    assert_eq!(rack.granted().generation, before.generation);
}

#[test]
fn a_controller_above_that_spines_do_not_believe_lets_nobody_in() {
    let authority = Authority::new();
    let above = Secured::start(&authority, "host");
    let rack = worker(
        over_tls(&above.controllers[0], &authority.caller("rack-1", "host")),
        leaf_hello("rack-1/get"),
    );
    let why = rack.waiting();
    assert!(why.contains("reading the switch's tables back") || why.contains("cannot reach"), "{why}");
}
