/* SPDX-License-Identifier: Apache-2.0 */
/* The links of clients that did not send the packet. */
#ifndef LINKS_P4
#define LINKS_P4

control ClientLink(inout headers_t hdr, inout pass_t pass) {
    action leads_to(bit<9> link) {
        pass.client_there = 1;
        pass.link = link;
    }

    table client_links {
        key = { hdr.sluice.client: exact; }
        actions = { leads_to; @defaultonly NoAction; }
        default_action = NoAction;
        size = CLIENTS;
    }

    apply {
        client_links.apply();
    }
}

#endif
