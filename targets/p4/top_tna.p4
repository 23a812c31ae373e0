/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every scheduler has on Tofino, whose architecture is TNA: parsers, deparsers, checksums. The file that includes
 * this one names its scheduler as PROGRAM.
 */
#ifndef TOP_P4
#define TOP_P4

#ifdef WRITES_AHEAD
#include "slots_tna.p4"
#include "write.p4"
#endif

/* The port of the switch's own processor, from which SWEEPs come. */
#ifndef CONTROL_PORT
#define CONTROL_PORT 64
#endif
#ifndef ROUND_PORT
#define ROUND_PORT 68
#endif

parser IngressParser(packet_in packet, out headers_t hdr, out pass_t pass, out ingress_intrinsic_metadata_t intrinsic) {
    BridgeParser() bridge;
    FrameParser() frame;
    RoundParser() round;

    state start {
        packet.extract(intrinsic);
        bridge.apply(packet, hdr, pass);
        packet.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port) {
            ROUND_PORT: recirculated;
            CONTROL_PORT: controlled;
            default: arrived;
        }
    }

    state recirculated {
        packet.extract(hdr.behind);
        round.apply(packet, hdr, pass);
        packet.extract(hdr.sluice);
        transition accept;
    }

    state controlled {
        pass.is_control = 1;
        transition arrived;
    }

    state arrived {
        frame.apply(packet, hdr, pass);
        transition accept;
    }
}

/* The assembler takes eight bits of a stateful unit's result in a container of eight bits only. */
@pa_container_size("ingress", "pass.granted", 8)
@pa_container_size("ingress", "pass.entered", 8)
@pa_container_size("ingress", "pass.found", 8)
@pa_container_size("ingress", "pass.live", 8)
/* Nor can a look-up's 32 bits be put into three containers. */
@pa_container_size("ingress", "pass.full", 32)
control Ingress(inout headers_t hdr, inout pass_t pass, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    PROGRAM() program;

    apply {
        if (pass.is_round == 0) {
            pass.link = intrinsic.ingress_port;
        } else {
            pass.link = hdr.round.link;
        }
        if (pass.is_packet == 1) {
            program.apply(hdr, pass, from_parser.global_tstamp);
        }
        if (pass.is_packet == 0 || hdr.bridge.to == TO_NOBODY) {
            for_deparser.drop_ctl = 1;
        } else if (hdr.bridge.to == TO_ROUND) {
            for_tm.ucast_egress_port = ROUND_PORT;
#ifdef WRITES_AHEAD
        } else if (hdr.bridge.to == TO_SERVERS) {
            for_tm.mcast_grp_a = hdr.bridge.slice + 1;
#endif
        } else {
            for_tm.ucast_egress_port = pass.link;
        }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in pass_t pass,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr.bridge);
        packet.emit(hdr.behind);
        packet.emit(hdr.round);
        packet.emit(hdr.sluice);
    }
}

/* Whether a UDP checksum is written, and of which header: a checksum unit cannot leave out what is not there. */
struct egress_t {
    bit<1> sums_packet;
    bit<1> sums_write;
}

/* The UDP checksum, which IPv6 asks for. What is left of the sum of the bytes behind our header is added to it. */
control Sums(inout headers_t hdr, in host_t host, inout egress_t meta, inout bit<1> is_dropped) {
    /* The sum shares its container with the age. */
    action with_rest() {
        hdr.told_behind.sum_and_age = hdr.told_behind.sum_and_age & 0xffff0000;
        meta.sums_packet = 1;
    }

    action write_with_rest() {
        hdr.told_behind.sum_and_age = hdr.told_behind.sum_and_age & 0xffff0000;
        meta.sums_write = 1;
    }

    action without_rest() {
        hdr.told_behind.sum_and_age = 0;
        meta.sums_packet = 1;
    }

    action cannot_leave() {
        is_dropped = 1;
    }

    /* Bytes behind the header are a SUBMIT's or a REPLY's; of other packets they lie behind the datagram. */
    table sums {
        key = {
            host.is_v4: ternary;
            hdr.told_behind.unsummed: ternary;
            hdr.told.made: ternary;
            hdr.told.waited: ternary;
            hdr.told.to: ternary;
            hdr.udp.length: ternary;
        }
        actions = { with_rest; write_with_rest; without_rest; cannot_leave; NoAction; }
        const default_action = without_rest;
        const entries = {
            (1, _, _, _, _, _): NoAction();
            (_, 0, KIND_NONE, _, TO_SERVERS, _): write_with_rest();
            (_, 0, KIND_NONE, _, _, _): with_rest();
            (_, 0, KIND_DISPATCH, 0, _, _): with_rest();
            (_, _, KIND_NONE, _, TO_SERVERS, _): cannot_leave();
            (_, _, KIND_NONE, _, _, UDP_BYTES): without_rest();
            (_, _, KIND_NONE, _, _, _): cannot_leave();
        }
    }

    apply {
        sums.apply();
    }
}

/* Of a packet that recirculates nothing but the bridge is parsed: the rest goes on as it is. */
parser EgressParser(packet_in packet, out headers_t hdr, out egress_t meta,
                    out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(hdr.told);
        transition select(hdr.told.to) {
            TO_ROUND: accept;
            default: leaves;
        }
    }

    state leaves {
        packet.extract(hdr.told_behind);
        packet.extract(hdr.sluice);
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout egress_t meta, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    Replies() replies;
#ifdef WRITES_AHEAD
    Write() write;
#endif
    Hosts() hosts;
    Addresses() addresses;
    Lengths() lengths;
    Sums() sums;

    host_t host;
    bit<1> is_nowhere = 0;
    bit<1> is_dropped = 0;

    apply {
        if (hdr.told.to != TO_ROUND) {
            hosts.apply(hdr, intrinsic.egress_rid, host);
#ifdef WRITES_AHEAD
            if (hdr.told.to == TO_SERVERS) {
                write.apply(hdr, intrinsic.egress_rid, is_dropped);
            } else
#endif
            {
                replies.apply(hdr, host);
            }
            addresses.apply(hdr, host, is_nowhere);
            lengths.apply(hdr);
            sums.apply(hdr, host, meta, is_dropped);
            if (is_nowhere == 1 || is_dropped == 1) {
                for_deparser.drop_ctl = 1;
            }
        }
        hdr.told.setInvalid();
    }
}

#define PSEUDO_HEADER_6                                                                                    \
    hdr.ipv6.length, 8w0, hdr.ipv6.next, hdr.ipv6.from_0, hdr.ipv6.from_1, hdr.ipv6.from_2,                \
    hdr.ipv6.from_3, hdr.ipv6.to_0, hdr.ipv6.to_1, hdr.ipv6.to_2, hdr.ipv6.to_3, hdr.udp.from, hdr.udp.to, \
    hdr.udp.length

control EgressDeparser(packet_out packet, inout headers_t hdr, in egress_t meta,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4_checksum;
    Checksum() udp_checksum;
    Checksum() write_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version_ihl, hdr.ipv4.service, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.fragment,
                hdr.ipv4.hops, hdr.ipv4.protocol, hdr.ipv4.from, hdr.ipv4.to });
        }
        if (meta.sums_packet == 1) {
            hdr.udp.checksum = udp_checksum.update({
                PSEUDO_HEADER_6, SLUICE_FIELDS, hdr.told_behind.sum_and_age }, true);
        }
        if (meta.sums_write == 1) {
            hdr.udp.checksum = write_checksum.update({
                PSEUDO_HEADER_6, WRITE_FIELDS, hdr.told_behind.sum_and_age }, true);
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.sluice);
        packet.emit(hdr.write);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;

#endif
