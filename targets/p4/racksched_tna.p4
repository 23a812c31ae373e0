/* SPDX-License-Identifier: Apache-2.0 */
/* RackSched on Tofino. */
#include "arch_tna.p4"
#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "racksched.p4"

#define PROGRAM RackSched
#include "top_tna.p4"
