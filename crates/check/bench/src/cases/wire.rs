//! Parsing and encoding of packets whose payload of eight bytes is in the header.

use std::hint::black_box;

use sluice_wire::{HEADER_BYTES, Packet, encode, parse};

use crate::hosts::{dispatch, reply, submit, token};
use crate::scale::on_the_scale;

pub(super) fn parse_submit(times: u32) {
    parse_each(times, |turn| Packet::Submit(submit(0, turn)));
}

pub(super) fn parse_token(times: u32) {
    parse_each(times, |turn| Packet::Token(token(3, turn)));
}

pub(super) fn parse_dispatch(times: u32) {
    parse_each(times, |turn| Packet::Dispatch(dispatch(3, turn)));
}

pub(super) fn parse_reply(times: u32) {
    parse_each(times, |turn| Packet::Reply(reply(3, turn)));
}

pub(super) fn encode_submit(times: u32) {
    encode_each(times, |turn| Packet::Submit(submit(0, turn)));
}

pub(super) fn encode_token(times: u32) {
    encode_each(times, |turn| Packet::Token(token(3, turn)));
}

pub(super) fn encode_dispatch(times: u32) {
    encode_each(times, |turn| Packet::Dispatch(dispatch(3, turn)));
}

pub(super) fn encode_reply(times: u32) {
    encode_each(times, |turn| Packet::Reply(reply(3, turn)));
}

fn parse_each(times: u32, packet: impl Fn(u32) -> Packet) {
    let mut bytes = [0; HEADER_BYTES];
    for turn in 1..=times {
        let length = written(&packet(turn), &mut bytes);
        let bytes = black_box(&bytes[..length]);
        let parsed = on_the_scale(|| parse(bytes));
        assert_eq!(parsed, Ok((packet(turn), &[][..])));
    }
}

fn encode_each(times: u32, packet: impl Fn(u32) -> Packet) {
    let mut bytes = [0; HEADER_BYTES];
    for turn in 1..=times {
        let packet = black_box(packet(turn));
        on_the_scale(|| written(&packet, &mut bytes));
        assert_eq!(parse(&bytes), Ok((packet, &[][..])));
    }
}

fn written(packet: &Packet, bytes: &mut [u8]) -> usize {
    encode(packet, &[], bytes).expect("a legal packet that fits")
}
