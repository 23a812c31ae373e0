//! A controller's steps on a switch on links: those of the program, and those that are the driver's own.

use sluice_wire::tables::{ServerState, TableAnswer, TableOp};
use sluice_wire::{Psn, Term};

use crate::error::Bmv2Error;
use crate::registers::NUMBERS;
use crate::sweeps::ControlLink;
use crate::tables::P4Tables;

/// Carries out one step. `term` is that of the controller that the switch obeys.
pub(crate) fn step(
    tables: &mut P4Tables,
    control: &mut ControlLink,
    term: &mut Term,
    op: TableOp,
) -> Result<TableAnswer, Bmv2Error> {
    let rows = &tables.entries;
    let answer = match op {
        TableOp::ReadShape => Some(TableAnswer::Shape(tables.config.shape_of_plain_rain(*term))),
        TableOp::Claim(claimed) => Some(term.claim(claimed)),
        TableOp::ReadType(of) => rows.types.get(usize::from(of.0)).copied().map(TableAnswer::Type),
        TableOp::ReadClient(client) => {
            rows.clients.get(usize::from(client.0)).copied().map(TableAnswer::Client)
        }
        TableOp::ReadServer(server) => match rows.servers.rows().get(usize::from(server.0)) {
            Some(&row) => {
                let next = Psn::new(tables.runtime.word(NUMBERS, server.0.into())? as u32);
                Some(TableAnswer::Server(ServerState { row, next }))
            }
            None => None,
        },
        TableOp::ReadRing(slice, server) => {
            let rings = rows.servers.rings().get(usize::from(slice.0));
            let ring = rings.and_then(|rings| rings.get(usize::from(server.0)));
            ring.copied().map(TableAnswer::Ring)
        }
        TableOp::Inject(sweep) if sweep.slice.0 < tables.config.slices => {
            control.sweep(&mut tables.runtime, sweep)?;
            Some(TableAnswer::Done)
        }
        TableOp::Drain => {
            control.drain(&mut tables.runtime)?;
            Some(TableAnswer::Done)
        }
        TableOp::Inject(_) | TableOp::SetNeeds(..) | TableOp::SetSpine(..) => None,
        op => Some(tables.table(op)?),
    };
    Ok(answer.unwrap_or(TableAnswer::OutOfRange))
}
