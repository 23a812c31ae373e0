/* SPDX-License-Identifier: Apache-2.0 */
/* Rain on Tofino. */
#include "arch_tna.p4"
#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "rain.p4"

#define PROGRAM Rain
#include "top_tna.p4"
