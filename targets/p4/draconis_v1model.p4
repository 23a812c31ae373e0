/* SPDX-License-Identifier: Apache-2.0 */
/* Draconis on BMv2's v1model. */
#define V1MODEL
#include "arch_v1model.p4"
#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "draconis.p4"

#define PROGRAM Draconis
#include "top_v1model.p4"
