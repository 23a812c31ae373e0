/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per kind, ones where its header must be zero: entries of a table.
 * Written by a test: BLESS=1 cargo test -p sluice-wire
 */
#define UNUSED_FIELDS \
    1: is_unused(352w0x000000ff0000000000000000000000000000ffffffffffff0000000000000000000000000000000000000000 ++ \
        352w0x00000000ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0000ffff00000000); \
    2: is_unused(352w0x0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000 ++ \
        352w0x0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000); \
    3: is_unused(352w0x0000000000000000ffffffff0000ffff00000000ffffffff0000000000000000000000000000000000000000 ++ \
        352w0x00000000000000000000000000000000000000000000ffff00000000000000000000000000000000ffffffff); \
    4: is_unused(352w0x000000000000000000000000ffffffffffff000000000000ffffffffffffffffffffffffffffffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffff00000000ffffffff00000000ffffffffffffffff); \
    5: is_unused(352w0x000000ff0000000000000000ffffffffffff000000000000ffffffffffffffffffffffffffffffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff00000000ffffffffffffffff); \
    6: is_unused(352w0x0000000000000000ffffffffffffffffffff000000000000ffffffffffffffffffffffffffffffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffff000000000000000000000000ffffffffffffffff); \
    7: is_unused(352w0x0000000000000000ffffffff0000ffff0000ffffffffffff0000000000000000000000000000ffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffff00000000000000000000000000000000ffffffff); \
    8: is_unused(352w0x000000ff00000000ffffffffffffffff0000ffffffffffff0000000000000000000000000000ffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff); \
    9: is_unused(352w0x00000000ffffffffffffffffffffffff00000000ffffffff0000000000000000000000000000ffffffffffff ++ \
        352w0xffffffff000000000000000000000000000000000000ffff0000000000000000ffffffffffffffffffffffff); \
    10: is_unused(352w0x00000000ffffffffffffffffffffffff00000000ffffffff0000000000000000000000000000000000000000 ++ \
        352w0x00000000ffffffffffffffffffffffffffffffffffffffff00000000ffffffffffffffffffffffffffffffff); \
    11: is_unused(352w0x0000000000000000ffffffffffffffffffff000000000000ffffffffffffffffffffffffffffffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffff0000ffffffffffffffffffffffff00000000ffffffff); \
    12: is_unused(352w0x000000ff00000000ffffffffffffffffffff000000000000ffffffffffffffffffffffffffffffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffff0000000000000000ffffffffffffffffffffffff); \
    13: is_unused(352w0x0000000000000000ffffffffffffffffffff000000000000ffffffffffffffffffffffffffffffffffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffff000000000000ffffffffffffffffffffffffffffffff); \
    14: is_unused(352w0x000000000000000000000000000000000000ffffffffffff00000000000000000000000000000000ffffffff ++ \
        352w0xffffffffffffffffffffffffffffffffffffffffffffffff00000000ffffffffffffffff0000ffff00000000);
