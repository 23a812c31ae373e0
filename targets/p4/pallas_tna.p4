/* SPDX-License-Identifier: Apache-2.0 */
/* Pallas on Tofino. */
#include "arch_tna.p4"
#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "pallas.p4"

#define PROGRAM Pallas
#include "top_tna.p4"
