/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frames hold a packet for the switch. Others pass with `sluice` invalid: IPv4 options, fragments, other
 * protocols and other ports. Whoever runs this program beside a router's has their tables decide about those.
 */
#ifndef PARSER_P4
#define PARSER_P4

/* Nothing is known yet of what becomes of the packet. */
parser BridgeParser(packet_in packet, inout headers_t hdr) {
    state start {
        hdr.bridge.setValid();
        hdr.bridge.made = KIND_NONE;
        hdr.bridge.code = 0;
        hdr.bridge.to = TO_NOBODY;
        hdr.bridge.waited = 0;
        hdr.bridge.ahead = 0;
        hdr.bridge.epoch = 0;
        hdr.bridge.seen = 0;
        hdr.bridge.sent = 0;
        hdr.bridge.zero_0 = 0;
        hdr.bridge.now_high = 0;
        hdr.bridge.now_low = 0;
        hdr.bridge.zero_1 = 0;
        hdr.bridge.arrived_high = 0;
        hdr.bridge.arrived_low = 0;
        hdr.bridge.zero_2 = 0;
        hdr.bridge.age = 0;
        hdr.bridge.ticket = 0;
        hdr.bridge.slice = 0;
        hdr.bridge.occupancy = 0;
        transition accept;
    }
}

/* What follows the frame's headers, and what follows `round` in a packet that recirculated. */
parser SluiceParser(packet_in packet, inout headers_t hdr, inout pass_t pass) {
    state start {
        packet.extract(hdr.sluice);
        transition select(hdr.sluice.version, hdr.sluice.own_length) {
            (WIRE_VERSION, HEADER_BYTES): of_a_kind;
            default: accept;
        }
    }

    state of_a_kind {
        pass.is_packet = 1;
        transition accept;
    }
}

/* A packet that recirculated. */
parser RoundParser(packet_in packet, inout headers_t hdr, inout pass_t pass) {
    state start {
        packet.extract(hdr.round);
        pass.is_round = 1;
        pass.is_control = 1;
        pass.round = hdr.round.number;
        transition accept;
    }
}

parser FrameParser(packet_in packet, inout headers_t hdr, inout pass_t pass) {
    SluiceParser() inner;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
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
        transition select(hdr.udp.to) {
            SWITCH_PORT: sluice;
            default: accept;
        }
    }

    state sluice {
        inner.apply(packet, hdr, pass);
        transition accept;
    }
}

#endif
