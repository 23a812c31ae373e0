/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as `Times` of `sluice_switch` has them: ticks of 16 ns and an age in 14 bits, in two words. The high word has
 * the upper 32 of 50 bits of ticks, the low word the lower 18, then the age.
 */
#ifndef TIMES_P4
#define TIMES_P4

/* An age up to 13 bits as it is; beyond, in steps of 2,048, rounded up, and the last step for all beyond that. */
control Arrival(inout headers_t hdr, in bit<64> now) {
    bit<32> stepped;
    bit<14> age;

    apply {
        stepped = hdr.sluice.age |+| 2047;
        if (hdr.sluice.age[31:13] == 0) {
            age = hdr.sluice.age[13:0];
        } else if (stepped[31:24] == 0) {
            age = 1w1 ++ stepped[23:11];
        } else {
            age = 0x3fff;
        }
        hdr.bridge.now_high = now[53:22];
        hdr.bridge.now_low = 14w0 ++ now[21:4];
        hdr.bridge.arrived_high = now[53:22];
        hdr.bridge.arrived_low = now[21:4] ++ age;
    }
}

/* Writes into a DISPATCH how long its task waited, how old it is then, and what is left of its budget. */
control Telemetry(inout headers_t hdr) {
    bit<32> low;
    bit<32> high;
    bit<32> borrow;
    bit<32> units;
    bit<32> age;
    bit<16> spent;

    apply {
        low = hdr.bridge.now_low - (14w0 ++ hdr.bridge.arrived_low[31:14]);
        high = hdr.bridge.now_high - hdr.bridge.arrived_high;
        borrow = 31w0 ++ low[31:31];
        high = high - borrow;

        if (hdr.bridge.waited == 0) {
            age = hdr.sluice.age;
        } else if (hdr.bridge.arrived_low[13:13] == 0) {
            age = 19w0 ++ hdr.bridge.arrived_low[12:0];
        } else if (hdr.bridge.arrived_low[12:0] == 0x1fff) {
            age = 0xffffffff;
        } else {
            age = 8w0 ++ hdr.bridge.arrived_low[12:0] ++ 11w0;
        }

        if (high[31:10] == 0x3fffff) {
            /* The pass that took the task had looked at the clock before the pass that kept it. */
            low = 0;
            high = 0;
        }
        if (high[31:10] == 0) {
            hdr.sluice.word_2 = high[9:0] ++ low[17:0] ++ 4w0;
        } else {
            hdr.sluice.word_2 = 0xffffffff;
        }

        if (high[31:24] == 0) {
            units = high[23:0] ++ low[17:10];
        } else {
            units = 0xffffffff;
        }
        if (low[9:0] != 0) {
            units = units |+| 1;
        }
        hdr.sluice.age = age |+| units;

        if (high[31:4] == 0) {
            spent = high[3:0] ++ low[17:6];
        } else {
            spent = 0xffff;
        }
        if (low[5:0] != 0) {
            spent = spent |+| 1;
        }
        if (hdr.sluice.budget != 0) {
            hdr.sluice.budget = hdr.sluice.budget |-| spent;
            if (hdr.sluice.budget == 0) {
                hdr.sluice.budget = BUDGET_SPENT;
            }
        }
    }
}

#endif
