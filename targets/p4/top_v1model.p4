/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every scheduler has on BMv2's v1model: parser, deparser, checksums. The file that includes this one names its
 * scheduler as PROGRAM.
 *
 * With -DHELD_TO_VECTORS each frame begins with a header that tells the time, so that a run can be compared with the
 * model's, and that may say that the frame only asks whether all frames before it are through.
 */
#ifndef TOP_P4
#define TOP_P4

#include "form.p4"
#ifdef WRITES_AHEAD
#include "slots_v1model.p4"
#include "write.p4"
#endif

/* The port of the switch's own control software, which alone may send SWEEPs. */
#ifndef CONTROL_PORT
#define CONTROL_PORT 64
#endif
/* No port: what recirculates passes through egress as if it left there. */
#ifndef ROUND_PORT
#define ROUND_PORT 0
#endif

const bit<32> INSTANCE_RECIRCULATED = 4;

struct meta_t {
    pass_t pass;
    @field_list(1)
    bit<1> nothing;
}

parser SwitchParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    BridgeParser() bridge;
    FrameParser() frame;
    RoundParser() round;

    state start {
        bridge.apply(packet, hdr, meta.pass);
        transition select(standard.instance_type) {
            INSTANCE_RECIRCULATED: recirculated;
            default: arrived;
        }
    }

    state recirculated {
        round.apply(packet, hdr, meta.pass);
#ifdef HELD_TO_VECTORS
        packet.extract(hdr.held);
#endif
        hdr.behind.setValid();
        packet.extract(hdr.sluice);
        transition known;
    }

    state arrived {
#ifdef HELD_TO_VECTORS
        packet.extract(hdr.held);
#endif
        frame.apply(packet, hdr, meta.pass);
        transition known;
    }

    state known {
        transition select(hdr.sluice.isValid(), hdr.sluice.kind, hdr.sluice.code) {
            (true, KIND_JOB, 2): job_2;
            (true, KIND_JOB, 3): job_3;
            (true, KIND_JOB, 4): job_4;
            (true, KIND_JOB, 5): job_5;
            (true, KIND_SUBMIT, _): submit;
            (true, KIND_REPLY, _): reply;
            default: accept;
        }
    }

    state submit {
        transition select(hdr.sluice.length) {
            0 .. INLINE_BYTES: accept;
            INLINE_BYTES + 1 .. BODY_BYTES_MAX: body;
            default: accept;
        }
    }

    state body {
        packet.extract(hdr.body, (bit<32>) hdr.sluice.length << 3);
        transition select(hdr.sluice.length[1:0]) {
            0: icrc;
            1: padding_3;
            2: padding_2;
            3: padding_1;
        }
    }

    state padding_3 {
        packet.extract(hdr.padding[2]);
        transition padding_2;
    }

    state padding_2 {
        packet.extract(hdr.padding[1]);
        transition padding_1;
    }

    state padding_1 {
        packet.extract(hdr.padding[0]);
        transition icrc;
    }

    state icrc {
        packet.extract(hdr.icrc);
        transition accept;
    }

    state reply {
        transition select(hdr.sluice.length) {
            0 .. INLINE_BYTES: accept;
            INLINE_BYTES + 1 .. BODY_BYTES_MAX: reply_body;
            default: accept;
        }
    }

    /* Only SUBMITs have trailers. */
    state reply_body {
        packet.extract(hdr.body, (bit<32>) hdr.sluice.length << 3);
        transition accept;
    }

    state job_2 {
        packet.extract(hdr.job[0]);
        packet.extract(hdr.job[1]);
        transition accept;
    }

    state job_3 {
        packet.extract(hdr.job[0]);
        packet.extract(hdr.job[1]);
        packet.extract(hdr.job[2]);
        transition accept;
    }

    state job_4 {
        packet.extract(hdr.job[0]);
        packet.extract(hdr.job[1]);
        packet.extract(hdr.job[2]);
        packet.extract(hdr.job[3]);
        transition accept;
    }

    state job_5 {
        packet.extract(hdr.job[0]);
        packet.extract(hdr.job[1]);
        packet.extract(hdr.job[2]);
        packet.extract(hdr.job[3]);
        packet.extract(hdr.job[4]);
        transition accept;
    }
}

control SwitchVerify(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Form() form;
    PROGRAM() program;

    COUNTER(MALFORMEDS, malformed)

    bit<48> now;
    bit<8> why;

    apply {
#ifdef HELD_TO_VECTORS
        now = hdr.held.now[47:0];
        if (hdr.held.is_control == 1) {
            meta.pass.is_control = 1;
        }
#else
        /* BMv2 counts microseconds. */
        now = standard.ingress_global_timestamp * 1000;
#endif
        if (standard.ingress_port == CONTROL_PORT) {
            meta.pass.is_control = 1;
        }
        if (meta.pass.is_round == 0) {
            meta.pass.link = standard.ingress_port;
        } else {
            meta.pass.link = hdr.round.link;
        }
        mark_to_drop(standard);
#ifdef HELD_TO_VECTORS
        if (hdr.held.is_question == 1) {
            standard.egress_spec = standard.ingress_port;
            hdr.bridge.setInvalid();
        } else
#endif
        if (hdr.round.isValid() || hdr.udp.isValid() && hdr.udp.to == SWITCH_PORT) {
            if (hdr.round.isValid()) {
                why = WELL_FORMED;
            } else if (hdr.sluice.isValid()) {
                form.apply(hdr, meta.pass, why);
            } else {
                why = MALFORMED_SHORT;
            }
            if (why != WELL_FORMED) {
                COUNT(malformed, why);
            } else {
                program.apply(hdr, meta.pass, now);
                if (hdr.bridge.to == TO_ROUND) {
                    standard.egress_spec = ROUND_PORT;
                } else if (hdr.bridge.to == TO_SERVERS) {
                    standard.mcast_grp = hdr.bridge.slice + 1;
                } else if (hdr.bridge.to != TO_NOBODY) {
                    standard.egress_spec = meta.pass.link;
                }
            }
        }
    }
}

#define UDP_FIELDS_6                                                                                       \
    hdr.ipv6.from_0, hdr.ipv6.from_1, hdr.ipv6.from_2, hdr.ipv6.from_3, hdr.ipv6.to_0, hdr.ipv6.to_1,      \
    hdr.ipv6.to_2, hdr.ipv6.to_3, 16w0, hdr.udp.length, 24w0, PROTOCOL_UDP, hdr.udp.from, hdr.udp.to,      \
    hdr.udp.length, SLUICE_FIELDS

/* Of invalid headers nothing is summed. */
#define BODY_FIELDS                                                                                        \
    WRITE_FIELDS, hdr.body.bytes, hdr.padding[0].zero, hdr.padding[1].zero, hdr.padding[2].zero, hdr.icrc.icrc

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Replies() replies;
#ifdef WRITES_AHEAD
    Write() write;
#endif
    Hosts() hosts;
    Addresses() addresses;
    Lengths() lengths;

    host_t host;
    bit<1> is_nowhere = 0;
    bit<1> is_dropped = 0;

    action tell() {
        hdr.told.setValid();
        hdr.told.made = hdr.bridge.made;
        hdr.told.code = hdr.bridge.code;
        hdr.told.to = hdr.bridge.to;
        hdr.told.waited = hdr.bridge.waited;
        hdr.told.seen = hdr.bridge.seen;
        hdr.told.sent = hdr.bridge.sent;
        hdr.told.now_high = hdr.bridge.zero_0 ++ hdr.bridge.now_high;
        hdr.told.now_low = hdr.bridge.now_low;
        hdr.told.arrived_high = hdr.bridge.zero_1 ++ hdr.bridge.arrived_high;
        hdr.told.arrived_low = hdr.bridge.arrived_low;
        hdr.told.ticket = hdr.bridge.ticket;
        hdr.told.slice = hdr.bridge.slice;
        hdr.told.occupancy = hdr.bridge.occupancy;
        hdr.told_behind.setValid();
        hdr.told_behind.unsummed = hdr.behind.unsummed;
        hdr.told_behind.sum_and_age = hdr.behind.sum ++ hdr.behind.age;
    }

    apply {
        if (hdr.bridge.isValid() && hdr.bridge.to == TO_ROUND) {
            recirculate_preserving_field_list(1);
            hdr.bridge.setInvalid();
            hdr.ethernet.setInvalid();
            hdr.ipv4.setInvalid();
            hdr.ipv6.setInvalid();
            hdr.udp.setInvalid();
        } else if (hdr.bridge.isValid()) {
            tell();
            hosts.apply(hdr, standard.egress_rid, host);
#ifdef WRITES_AHEAD
            if (hdr.told.to == TO_SERVERS) {
                write.apply(hdr, standard.egress_rid, is_dropped);
            } else
#endif
            {
                replies.apply(hdr, host);
            }
            hdr.ipv4.setInvalid();
            hdr.ipv6.setInvalid();
            addresses.apply(hdr, host, is_nowhere);
            lengths.apply(hdr);
            if (is_nowhere == 1 || is_dropped == 1) {
                mark_to_drop(standard);
            }
            if (hdr.udp.length == UDP_BYTES) {
                hdr.body.setInvalid();
            }
            /* A chip cannot cut a packet: there a trailer and the like stay in the frame behind the datagram. */
            if (hdr.ipv4.isValid()) {
                truncate(14 + 20 + (16w0 ++ hdr.udp.length));
            } else {
                truncate(14 + 40 + (16w0 ++ hdr.udp.length));
            }
            /* BMv2's hash of bytes of variable length ends the process. */
            if (hdr.ipv6.isValid() && !hdr.body.isValid()) {
                hash(hdr.udp.checksum, HashAlgorithm.csum16, 32w0, { UDP_FIELDS_6 }, 32w0x10000);
                /* No checksum is written as zero, which would mean that there is none. */
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;
                }
            }
#ifdef HELD_TO_VECTORS
            hdr.held.setInvalid();
#endif
            hdr.bridge.setInvalid();
        }
    }
}

control SwitchChecksums(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
                        { hdr.ipv4.version_ihl, hdr.ipv4.service, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.fragment,
                          hdr.ipv4.hops, hdr.ipv4.protocol, hdr.ipv4.from, hdr.ipv4.to },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv6.isValid() && hdr.body.isValid(), { UDP_FIELDS_6, BODY_FIELDS }, hdr.udp.checksum,
                        HashAlgorithm.csum16);
        /* Of bytes that the parser left where they are. */
        update_checksum_with_payload(hdr.ipv6.isValid() && hdr.udp.length > UDP_BYTES + BODY_BYTES_MAX,
                                     { UDP_FIELDS_6 }, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.round);
#ifdef HELD_TO_VECTORS
        packet.emit(hdr.held);
#endif
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.sluice);
        packet.emit(hdr.write);
        packet.emit(hdr.body);
        packet.emit(hdr.padding[2]);
        packet.emit(hdr.padding[1]);
        packet.emit(hdr.padding[0]);
        packet.emit(hdr.icrc);
    }
}

V1Switch(SwitchParser(), SwitchVerify(), SwitchIngress(), SwitchEgress(), SwitchChecksums(), SwitchDeparser()) main;

#endif
