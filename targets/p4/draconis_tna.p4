/* SPDX-License-Identifier: Apache-2.0 */
/* Draconis on Tofino. */
/* 65,536 tasks fit the stages behind the pointers. */
#define TASK_BITS 12
#include "arch_tna.p4"
#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "draconis.p4"

#define PROGRAM Draconis
#include "top_tna.p4"
