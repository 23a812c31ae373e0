/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets that leave. Ingress has said what the packet becomes; here its header is written, at egress, where the
 * stages begin anew.
 */
#ifndef REPLIES_P4
#define REPLIES_P4

/* The receiver's address. */
struct host_t {
    bit<1> is_v4;
    bit<32> to_0;
    bit<32> to_1;
    bit<32> to_2;
    bit<32> to_3;
}

control Replies(inout headers_t hdr, in host_t host) {
    bit<32> at_0;
    bit<32> at_1;
    bit<32> at_2;
    bit<32> at_3;
    bit<16> at_port;
    bit<32> incarnation_high;

    Telemetry() telemetry;

    action client_is(bit<32> ip_0, bit<32> ip_1, bit<32> ip_2, bit<32> ip_3, bit<16> port, bit<32> life) {
        incarnation_high = life;
        at_0 = ip_0;
        at_1 = ip_1;
        at_2 = ip_2;
        at_3 = ip_3;
        at_port = port;
    }

    /* Where a DISPATCH says that the answer goes, and what an entry leaves out of the incarnation. */
    @ternary(1) table client_ends {
        key = { hdr.sluice.client: exact; }
        actions = { client_is; }
        default_action = client_is(0, 0, 0, 0, 0, 0);
        size = CLIENTS;
    }

    action retry_after(bit<32> span) {
        hdr.sluice.word_2 = span;
    }

    action retry_at_once() {
        hdr.sluice.word_2 = 0;
    }

    table retry_hints {
        key = { hdr.sluice.task_type: exact; }
        actions = { retry_after; retry_at_once; }
        default_action = retry_at_once;
        size = TYPES;
    }

    action this_epoch(bit<32> epoch) {
        hdr.sluice.epoch = epoch;
    }

    table life {
        actions = { this_epoch; }
        default_action = this_epoch(0);
    }

    action clear_token() {
        hdr.sluice.worker = 0;
        hdr.sluice.generation = 0;
    }

    action clear_task() {
        hdr.sluice.priority = 0;
        hdr.sluice.constraints = 0;
        hdr.sluice.length = 0;
        hdr.sluice.payload_0 = 0;
        hdr.sluice.payload_1 = 0;
        hdr.sluice.payload_2 = 0;
        hdr.sluice.payload_3 = 0;
        hdr.sluice.payload_4 = 0;
        hdr.sluice.payload_5 = 0;
        hdr.sluice.payload_6 = 0;
        hdr.sluice.payload_7 = 0;
        hdr.sluice.budget = 0;
        hdr.sluice.age = 0;
    }

    action clear_name() {
        hdr.sluice.task_type = 0;
        hdr.sluice.client = 0;
        hdr.sluice.incarnation_high = 0;
        hdr.sluice.incarnation_low = 0;
        hdr.sluice.sequence = 0;
        hdr.sluice.attempt = 0;
    }

    action clear_address() {
        hdr.sluice.address_0 = 0;
        hdr.sluice.address_1 = 0;
        hdr.sluice.address_2 = 0;
        hdr.sluice.address_3 = 0;
        hdr.sluice.port = 0;
    }

    action begin() {
        hdr.sluice.kind = hdr.told.made;
        hdr.sluice.code = hdr.told.code;
        hdr.sluice.key = 0;
        hdr.sluice.slice = 0;
    }

    action answer() {
        hdr.sluice.word_0 = hdr.told.seen;
        hdr.sluice.word_1 = hdr.told.sent;
        hdr.sluice.occupancy = 0;
        clear_name();
        clear_task();
        clear_address();
    }

    action reject() {
        hdr.sluice.word_0 = 0;
        hdr.sluice.word_1 = 0;
        hdr.sluice.occupancy = 0;
        clear_token();
        clear_task();
        clear_address();
    }

    action notice() {
        hdr.sluice.task_type = 0;
        hdr.sluice.word_0 = 0;
        hdr.sluice.word_1 = 0;
        hdr.sluice.word_2 = 0;
        hdr.sluice.occupancy = 0;
        clear_token();
        clear_task();
        clear_address();
    }

    action dispatch() {
        hdr.sluice.word_0 = hdr.told.seen;
        hdr.sluice.word_1 = hdr.told.sent;
        hdr.sluice.occupancy = hdr.told.occupancy;
        hdr.sluice.address_0 = at_0;
        hdr.sluice.address_1 = at_1;
        hdr.sluice.address_2 = at_2;
        hdr.sluice.address_3 = at_3;
        hdr.sluice.port = at_port;
    }

    /* Only a DISPATCH of a task that met a token brings the task's bytes along. */
    action bytes_are_here() {
        hdr.udp.length = UDP_BYTES + hdr.sluice.length;
    }

    action bytes_are_ahead() {
        hdr.sluice.code = PLACE_AHEAD;
        hdr.sluice.key = TICKET_OF(hdr.told.ticket);
        hdr.sluice.slice = hdr.told.slice;
    }

    action bytes_are_at_client() {
        hdr.sluice.code = PLACE_AT_CLIENT;
    }

    /*
     * Where the bytes are that do not fit the header: an entry's age has a mark if they were written ahead. Without
     * their sum there is no checksum for IPv6, and they stay with the client.
     */
    table places {
        key = {
            hdr.told.waited: ternary;
            hdr.told_behind.sum_and_age[15:0]: ternary @name("age");
            hdr.told_behind.unsummed: ternary;
            host.is_v4: ternary;
        }
        actions = { bytes_are_here; bytes_are_ahead; bytes_are_at_client; }
        const default_action = bytes_are_at_client;
        const entries = {
            (0, _, 1, 0): bytes_are_at_client();
            (0, _, _, _): bytes_are_here();
            (_, 0x4000 &&& 0xe000, _, _): bytes_are_ahead();
            (_, 0xa000 &&& 0xe000, _, _): bytes_are_ahead();
        }
    }

    apply {
        client_ends.apply();
        hdr.udp.length = UDP_BYTES;
        if (hdr.told.made != KIND_NONE) {
            begin();
            life.apply();
        }
        if (hdr.told.made == KIND_ANSWER) {
            answer();
            if (hdr.told.code == 0) {
                hdr.sluice.word_0 = 0;
                hdr.sluice.word_1 = 0;
            }
#ifdef ANSWERS_POLLS
        } else if (hdr.told.made == KIND_EMPTY) {
            answer();
            hdr.sluice.word_2 = 0;
#endif
        } else if (hdr.told.made == KIND_REJECT) {
            reject();
            retry_hints.apply();
        } else if (hdr.told.made == KIND_NOTICE) {
            notice();
        } else if (hdr.told.made == KIND_DISPATCH) {
            dispatch();
            telemetry.apply(hdr);
            if (IS_OUTSIDE(hdr.sluice.length)) {
                places.apply();
            }
#ifdef PASSES_REPLIES
        } else if (IS_OUTSIDE(hdr.sluice.length)) {
            hdr.udp.length = UDP_BYTES + hdr.sluice.length;
#endif
        }
        if (hdr.told.waited == 1) {
            hdr.sluice.incarnation_high = incarnation_high;
        }
    }
}

/*
 * Who gets the packet. It is looked up before the header is written, which may clear the key. Who is answered has shown
 * that it is where its row says.
 */
control Hosts(inout headers_t hdr, in bit<16> server, out host_t host) {
    action goes_to(bit<32> ip_0, bit<32> ip_1, bit<32> ip_2, bit<32> ip_3, bit<16> port, bit<48> to,
                   bit<48> from, bit<1> ipv4) {
        host.is_v4 = ipv4;
        host.to_0 = ip_0;
        host.to_1 = ip_1;
        host.to_2 = ip_2;
        host.to_3 = ip_3;
        hdr.udp.to = port;
        hdr.ethernet.to = to;
        hdr.ethernet.from = from;
    }

    table worker_hosts {
        key = { hdr.sluice.worker: exact; }
        actions = { goes_to; }
        default_action = goes_to(0, 0, 0, 0, 0, 0, 0, 0);
        size = WORKERS;
    }

    @ternary(1) table client_hosts {
        key = { hdr.sluice.client: exact; }
        actions = { goes_to; }
        default_action = goes_to(0, 0, 0, 0, 0, 0, 0, 0);
        size = CLIENTS;
    }

    @ternary(1) table server_hosts {
        key = { server: exact; }
        actions = { goes_to; }
        default_action = goes_to(0, 0, 0, 0, 0, 0, 0, 0);
        size = SERVERS;
    }

    apply {
        hdr.udp.setValid();
        hdr.ethernet.setValid();
        if (hdr.told.to == TO_WORKER) {
            worker_hosts.apply();
        } else if (hdr.told.to == TO_CLIENT) {
            client_hosts.apply();
        } else {
            server_hosts.apply();
        }
    }
}

/*
 * The headers below ours, written anew: egress of the chip has not seen those that came. The datagram's length stands
 * there already.
 */
control Addresses(inout headers_t hdr, in host_t host, inout bit<1> is_nowhere) {
    action leave_by_ipv4(bit<32> own) {
        hdr.ethernet.type = ETHERTYPE_IPV4;
        hdr.ipv4.setValid();
        hdr.ipv4.version_ihl = 0x45;
        hdr.ipv4.service = 0;
        hdr.ipv4.id = 0;
        hdr.ipv4.fragment = 0x4000;
        hdr.ipv4.hops = 64;
        hdr.ipv4.protocol = PROTOCOL_UDP;
        hdr.ipv4.from = own;
        hdr.ipv4.to = host.to_3;
        hdr.udp.checksum = 0;
    }

    action leave_by_ipv6(bit<32> own_0, bit<32> own_1, bit<32> own_2, bit<32> own_3) {
        hdr.ethernet.type = ETHERTYPE_IPV6;
        hdr.ipv6.setValid();
        hdr.ipv6.version_class_flow = 0x60000000;
        hdr.ipv6.next = PROTOCOL_UDP;
        hdr.ipv6.hops = 64;
        hdr.ipv6.from_0 = own_0;
        hdr.ipv6.from_1 = own_1;
        hdr.ipv6.from_2 = own_2;
        hdr.ipv6.from_3 = own_3;
        hdr.ipv6.to_0 = host.to_0;
        hdr.ipv6.to_1 = host.to_1;
        hdr.ipv6.to_2 = host.to_2;
        hdr.ipv6.to_3 = host.to_3;
    }

    action family_without_address() {
        is_nowhere = 1;
    }

    /* The switch's own address of the receiver's family. */
    table own_addresses {
        key = { host.is_v4: exact; }
        actions = { leave_by_ipv4; leave_by_ipv6; family_without_address; }
        default_action = family_without_address;
        size = 2;
    }

    apply {
        hdr.udp.from = SWITCH_PORT;
        own_addresses.apply();
    }
}

/* The lengths that follow from that of the datagram. */
control Lengths(inout headers_t hdr) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.length = hdr.udp.length + 20;
        } else {
            hdr.ipv6.length = hdr.udp.length;
        }
    }
}

#endif
