//! Splits a task's or reply's bytes into PARTs, as a NEED asks for them.

use sluice_host::PART_BYTES;
use sluice_wire::{Need, Part, Payload};

use crate::payloads::described;

/// The PARTs that answer `need`, each with the bytes behind its header. `all` are the bytes that `payload`
/// describes. A PART brings as many whole parts as fit into `packet_max` bytes.
pub(crate) fn parts<'a>(
    need: &Need,
    payload: &Payload,
    all: &'a [u8],
    packet_max: usize,
) -> impl Iterator<Item = (Part, &'a [u8])> {
    let part_bytes = PART_BYTES as usize;
    let step = (packet_max / part_bytes).max(1) * part_bytes;
    let end = all.len().min(need.offset.saturating_add(need.length) as usize);
    let (need, descriptor) = (*need, payload.inline);
    (need.offset as usize..end).step_by(step).map(move |start| {
        let (payload, body) = described(&all[start..end.min(start + step)], descriptor);
        let Need { of, worker, client, task, attempt, .. } = need;
        (Part { of, worker, client, task, attempt, offset: start as u32, payload }, body)
    })
}

#[cfg(test)]
mod tests {
    use sluice_wire::Handle;

    use super::*;

    fn cut(offset: u32, length: u32, packet_max: usize) -> Vec<(u32, u16)> {
        let all = [7; 5_000];
        let need = Need { offset, length, ..Need::default() };
        let payload = Payload { len: 1_400, inline: [1; 8], handle: Handle(0) };
        let cut = parts(&need, &payload, &all, packet_max);
        cut.map(|(part, body)| {
            let inline = usize::from(part.payload.len) - body.len();
            assert!(inline == 0 || inline <= 8, "few bytes ride in the header");
            (part.offset, part.payload.len)
        })
        .collect()
    }

    #[test]
    fn a_part_starts_where_parts_start_and_fills_its_packet() {
        let to_end = [(1_024, 1_024), (2_048, 1_024), (3_072, 1_024), (4_096, 904)];
        assert_eq!(cut(1_024, 3_976, 1_412), to_end);
        assert_eq!(cut(2_048, 2_048, 5_000), [(2_048, 2_048)]);
        assert_eq!(cut(4_096, 900_000, 10), [(4_096, 904)]);
    }

    #[test]
    fn nobody_gets_bytes_that_are_not_there() {
        assert_eq!(cut(5_000, 1, 1_412), []);
        assert_eq!(cut(u32::MAX, u32::MAX, 1_412), []);
    }
}
