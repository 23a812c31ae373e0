/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frames hold a packet for the switch. Others pass with `sluice` invalid: IPv4 options, fragments, other
 * protocols and other ports. Whoever runs this program beside a router's has their tables decide about those.
 */
#ifndef PARSER_P4
#define PARSER_P4

/* Nothing is known yet of what becomes of the packet. */
parser BridgeParser(packet_in packet, inout headers_t hdr, inout pass_t pass) {
    state start {
        hdr.bridge.setValid();
        hdr.bridge.made = KIND_NONE;
        hdr.bridge.code = 0;
        hdr.bridge.to = TO_NOBODY;
        hdr.bridge.waited = 0;
        hdr.bridge.seen = 0;
        hdr.bridge.sent = 0;
        hdr.bridge.zero_0 = 0;
        hdr.bridge.now_high = 0;
        hdr.bridge.now_low = 0;
        hdr.bridge.zero_1 = 0;
        hdr.bridge.arrived_high = 0;
        hdr.bridge.arrived_low = 0;
        hdr.bridge.ticket = 0;
        hdr.bridge.slice = 0;
        hdr.bridge.occupancy = 0;
        pass.refusal = REFUSAL_NONE;
        transition accept;
    }
}

/* A packet that recirculated. */
parser RoundParser(packet_in packet, inout headers_t hdr, inout pass_t pass) {
    state start {
        packet.extract(hdr.round);
        pass.is_round = 1;
        pass.is_packet = 1;
        pass.is_control = 1;
        pass.round = hdr.round.number;
        pass.arrived_high = hdr.round.arrived_high;
        pass.arrived_low = hdr.round.arrived_low;
        transition accept;
    }
}

parser FrameParser(packet_in packet, inout headers_t hdr, inout pass_t pass) {
    REST_SUM(rest)

    state start {
        hdr.behind.setValid();
        hdr.behind.unsummed = 0;
        hdr.behind.age = 0;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        NO_REST_SUM(hdr.behind.unsummed)
        pass.from_0 = 0;
        pass.from_1 = 0;
        pass.from_2 = 0xffff;
        pass.from_3 = hdr.ipv4.from;
        /* More fragments, or an offset: no fragment is taken. */
        transition select(hdr.ipv4.version_ihl, hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (0x45, 0x0000 &&& 0x3fff, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        LEAVE_OUT(rest, {
            hdr.ipv6.length, 8w0, hdr.ipv6.next, hdr.ipv6.from_0, hdr.ipv6.from_1, hdr.ipv6.from_2,
            hdr.ipv6.from_3, hdr.ipv6.to_0, hdr.ipv6.to_1, hdr.ipv6.to_2, hdr.ipv6.to_3 })
        pass.from_0 = hdr.ipv6.from_0;
        pass.from_1 = hdr.ipv6.from_1;
        pass.from_2 = hdr.ipv6.from_2;
        pass.from_3 = hdr.ipv6.from_3;
        transition select(hdr.ipv6.next) {
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        LEAVE_OUT(rest, { hdr.udp.from, hdr.udp.to, hdr.udp.length, hdr.udp.checksum })
        transition select(hdr.udp.to, hdr.udp.length) {
            (SWITCH_PORT, UDP_BYTES): brief;
            (SWITCH_PORT, _): long;
            default: accept;
        }
    }

    /* Nothing is behind our header. */
    state brief {
        pass.is_brief = 1;
        transition select(packet.lookahead<bit<32>>()) {
            WIRE_VERSION ++ 8w0 ++ HEADER_BYTES ++ 8w0 &&& 0xff00ff00: known;
            default: sluice;
        }
    }

    state long {
        transition select(packet.lookahead<bit<32>>()) {
            WIRE_VERSION ++ KIND_SUBMIT ++ HEADER_BYTES ++ 8w0 &&& 0xffffff00: known;
            WIRE_VERSION ++ KIND_REPLY ++ HEADER_BYTES ++ 8w0 &&& 0xffffff00: known;
            default: sluice;
        }
    }

    state known {
        pass.is_packet = 1;
        transition sluice;
    }

    state sluice {
        packet.extract(hdr.sluice);
        LEAVE_OUT(rest, { SLUICE_FIELDS })
        SUM_REST(rest, hdr.behind.sum)
        transition accept;
    }
}

#endif
