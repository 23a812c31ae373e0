//! //! Packets from a switch at which the client was registered earlier.

use sluice_wire::{Epoch, Packet};

/// Whether a packet from an earlier switch still counts. A driver calls this function before it hands such
/// a packet to the client. A reply counts, without its epoch: the epochs of two switches cannot be
/// compared. A REJECT or a NOTICE does not count, since it says nothing about the present switch.
#[inline]
pub const fn still_counts(packet: &mut Packet) -> bool {
    match packet {
        Packet::Reply(reply) => {
            reply.epoch = Epoch(0);
            true
        }
        Packet::Reject(_) | Packet::Notice(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::{
        Attempt, ClientId, Incarnation, Notice, Part, Reject, RejectReason, Reply, Serial, SliceLoad, TaskId,
        TaskType,
    };

    use super::*;

    #[test]
    fn a_reply_counts_without_its_epoch_and_a_refusal_does_not() {
        let mut reply = Packet::Reply(Reply { epoch: Epoch(7), load: 3, ..Reply::default() });
        assert!(still_counts(&mut reply));
        assert_eq!(reply, Packet::Reply(Reply { load: 3, ..Reply::default() }));
        let (epoch, client, attempt) = (Epoch(7), ClientId(0), Attempt(1));
        let task = TaskId { incarnation: Incarnation(1), sequence: Serial(1) };
        let reason = RejectReason::NoWorkers;
        let (task_type, behind, retry_after_ns, load) = (TaskType(0), 0, 0, SliceLoad::default());
        let reject = Reject { epoch, client, task, attempt, task_type, reason, behind, retry_after_ns, load };
        let notice = Notice { epoch, client, task, attempt };
        for mut told in [Packet::Reject(reject), Packet::Notice(notice)] {
            assert!(!still_counts(&mut told), "{told:?}");
        }
        assert!(still_counts(&mut Packet::Part(Part::default())), "a part of a reply");
    }
}
