/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times: 48 bits of nanoseconds, of which the lowest 4 are zero as in `Times` of `sluice_switch`, and an age in 16 bits.
 * An action is what the chip does in a stage.
 */
#ifndef TIMES_P4
#define TIMES_P4

control Arrival(inout headers_t hdr, inout pass_t pass, in bit<48> now) {
    bit<16> steps;

    action read_clock() {
        hdr.bridge.now_high = now[47:32];
        hdr.bridge.now_low = now[31:0] & 0xfffffff0;
        steps = hdr.sluice.age[31:16] << 5;
        pass.beside = hdr.udp.length - hdr.sluice.length;
        hdr.behind.age = hdr.sluice.age[15:0] >> 11;
    }

    action arrive() {
        pass.arrived_high = now[47:32];
        pass.arrived_low = now[31:0] & 0xfffffff0;
    }

    action tell_arrival() {
        hdr.bridge.arrived_high = pass.arrived_high;
        hdr.bridge.arrived_low = pass.arrived_low;
    }

    action age_as_it_is() {
        hdr.behind.age = hdr.sluice.age[15:0];
    }

    action count_steps() {
        hdr.behind.age = hdr.behind.age | steps;
    }

    action last_step() {
        hdr.behind.age = LAST_STEP;
    }

    table ages {
        key = { hdr.sluice.age: ternary; }
        actions = { age_as_it_is; count_steps; last_step; }
        const default_action = last_step;
        const entries = {
            0 &&& 0xffffe000: age_as_it_is();
            0 &&& 0xff000000: count_steps();
        }
    }

    action mark_steps() {
        hdr.behind.age = hdr.behind.age | STEP_MARKS;
    }

    action round_up() {
        hdr.behind.age = hdr.behind.age |+| 1;
    }

    apply {
        read_clock();
        if (pass.is_round == 0) {
            arrive();
        }
        tell_arrival();
        ages.apply();
        if (hdr.sluice.age[31:13] != 0) {
            mark_steps();
            if (hdr.sluice.age[10:0] != 0) {
                round_up();
            }
        }
    }
}

/* Writes into a DISPATCH how long its task waited, how old it is then, and what is left of its budget. */
control Telemetry(inout headers_t hdr) {
    bit<32> behind;
    bit<32> low;
    bit<32> high;
    bit<32> units;
    bit<32> upper_units;
    bit<32> age;
    bit<16> spent;

    MOVER(bit<16>, to_spent)

    action subtract() {
        low = hdr.told.now_low - hdr.told.arrived_low;
        behind = hdr.told.arrived_low |-| hdr.told.now_low;
        high = hdr.told.now_high - hdr.told.arrived_high;
        age = hdr.told_behind.sum_and_age & 0x1fff;
    }

    action borrow() {
        high = high - 1;
    }

    /* The pass that took the task had looked at the clock before the pass that kept it. */
    action no_wait() {
        hdr.sluice.word_2 = 0;
        units = 0;
        spent = 0;
    }

    action own_age() {
        age = hdr.sluice.age;
    }

    action oldest() {
        age = 0xffffffff;
    }

    action count_steps() {
        age = age << 11;
    }

    table entry_ages {
        key = {
            hdr.told.waited: ternary;
            hdr.told_behind.sum_and_age[15:0]: ternary @name("age");
        }
        actions = { own_age; oldest; count_steps; NoAction; }
        const default_action = NoAction;
        const entries = {
            (0, _): own_age();
            (_, 0xffff): oldest();
            (_, 0xbfff): oldest();
            (_, 0xe000 &&& 0xe000): count_steps();
            (_, 0xa000 &&& 0xe000): count_steps();
        }
    }

    action tell_wait() {
        hdr.sluice.word_2 = low;
    }

    action tell_long_wait() {
        hdr.sluice.word_2 = 0xffffffff;
    }

    action shift_units() {
        units = low >> 14;
        upper_units = high << 18;
    }

    action add_upper_units() {
        units = units | upper_units;
    }

    action count_most_units() {
        units = 0xffffffff;
    }

    action round_units_up() {
        units = units |+| 1;
    }

    action tell_age() {
        hdr.sluice.age = age |+| units;
    }

    action count_spent() {
        MOVE(to_spent, low[25:10], spent);
    }

    action count_most_spent() {
        spent = 0xffff;
    }

    action round_spent_up() {
        spent = spent |+| 1;
    }

    action tell_budget() {
        hdr.sluice.budget = hdr.sluice.budget |-| spent;
    }

    action tell_budget_spent() {
        hdr.sluice.budget = BUDGET_SPENT;
    }

    apply {
        subtract();
        if (behind != 0) {
            borrow();
        }
        if (high[15:0] == 0xffff) {
            no_wait();
        } else {
            if (high[15:0] == 0) {
                tell_wait();
            } else {
                tell_long_wait();
            }
            if (high[15:0] == 0 && low[31:26] == 0) {
                count_spent();
            } else {
                count_most_spent();
            }
            if (low[9:0] != 0) {
                round_spent_up();
            }
            if (high[15:14] == 0) {
                shift_units();
                add_upper_units();
            } else {
                count_most_units();
            }
            if (low[13:0] != 0) {
                round_units_up();
            }
        }
        if (hdr.sluice.budget != 0) {
            tell_budget();
            if (hdr.sluice.budget == 0) {
                tell_budget_spent();
            }
        }

        entry_ages.apply();
        tell_age();
    }
}

#endif
