//! Whatever bytes come: no panic, and a `RoCEv2` packet that is taken comes back from what we write of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_wire::roce::{Frame, View, encode, encoded_len};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frame) = Frame::parse(bytes) {
        if let Ok(view) = View::parse(frame.transport) {
            frame.icrc_holds(&view);
        }
        check(frame.transport);
    }
    check(bytes);
});

fn check(transport: &[u8]) {
    let Ok((packet, payload)) = View::parse(transport).and_then(|view| view.packet()) else { return };
    // A link may carry no more than the largest MTU; longer writes are for the receiver to refuse.
    let mut again = vec![0; encoded_len(&packet, payload.len())];
    let Ok(length) = encode(&packet, payload, None, &mut again) else { return };
    assert_eq!(length, transport.len());
    let read = View::parse(&again).and_then(|view| view.packet());
    assert_eq!(read, Ok((packet, payload)));
}
