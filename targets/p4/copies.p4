/* SPDX-License-Identifier: Apache-2.0 */
/* Included by both `Slots`: how many copies each server got, which is the next one's packet number. */

    REGISTER(bit<32>, bit<32>, bit<16>, SERVERS, numbers, 0)

    ACCESS(next_number, numbers, bit<32>, bit<32>, bit<16>, bit<32>) {
        result = value;
        value = value + 1;
    } DONE(numbers, bit<32>)
