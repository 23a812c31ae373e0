/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per kind, ones where its header must be zero: words as they lie in the memory of a little-endian machine.
 * Written by a test: BLESS=1 cargo test -p sluice-wire
 */
#pragma once

#include "wire.h"

static const __u64 unused[KINDS][HEADER_BYTES / 8] = {
	/* SUBMIT */
	{
		0x00000000ff000000, 0x0000000000000000, 0xffffffffffff0000,
		0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0x00000000ffff0000,
	},
	/* DISPATCH */
	{
		0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
		0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
		0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
		0x0000000000000000, 0x0000000000000000,
	},
	/* REPLY */
	{
		0x0000000000000000, 0xffff0000ffffffff, 0xffffffff00000000,
		0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
		0x0000000000000000, 0x0000000000000000, 0x00000000ffff0000,
		0x0000000000000000, 0xffffffff00000000,
	},
	/* TOKEN */
	{
		0x0000000000000000, 0xffffffff00000000, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
		0x00000000ffffffff, 0xffffffffffffffff,
	},
	/* PROBE */
	{
		0x00000000ff000000, 0xffffffff00000000, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0x00000000ffffffff, 0xffffffffffffffff,
	},
	/* ANSWER */
	{
		0x0000000000000000, 0xffffffffffffffff, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
		0x0000000000000000, 0xffffffffffffffff,
	},
	/* REJECT */
	{
		0x0000000000000000, 0xffff0000ffffffff, 0xffffffffffff0000,
		0x0000000000000000, 0xffff000000000000, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
		0x0000000000000000, 0xffffffff00000000,
	},
	/* NOTICE */
	{
		0x00000000ff000000, 0xffffffffffffffff, 0xffffffffffff0000,
		0x0000000000000000, 0xffff000000000000, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff,
	},
	/* NEED */
	{
		0xffffffff00000000, 0xffffffffffffffff, 0xffffffff00000000,
		0x0000000000000000, 0xffff000000000000, 0xffffffffffffffff,
		0x0000000000000000, 0x0000000000000000, 0x00000000ffff0000,
		0xffffffff00000000, 0xffffffffffffffff,
	},
	/* PART */
	{
		0xffffffff00000000, 0xffffffffffffffff, 0xffffffff00000000,
		0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
		0xffffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
		0xffffffffffffffff, 0xffffffffffffffff,
	},
	/* SWEEP */
	{
		0x0000000000000000, 0xffffffffffffffff, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffff0000ffff,
		0xffffffffffffffff, 0xffffffff00000000,
	},
	/* EMPTY */
	{
		0x00000000ff000000, 0xffffffffffffffff, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
		0xffffffff00000000, 0xffffffffffffffff,
	},
	/* UPDATE */
	{
		0x0000000000000000, 0xffffffffffffffff, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0x000000000000ffff,
		0xffffffffffffffff, 0xffffffffffffffff,
	},
	/* JOB */
	{
		0x0000000000000000, 0x0000000000000000, 0xffffffffffff0000,
		0x0000000000000000, 0x0000000000000000, 0xffffffffffffffff,
		0xffffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
		0xffffffffffffffff, 0x00000000ffff0000,
	},
};
