/* SPDX-License-Identifier: Apache-2.0 */
/* RackSched on BMv2's v1model. */
#define V1MODEL
#include "arch_v1model.p4"
#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "racksched.p4"

#define PROGRAM RackSched
#include "top_v1model.p4"
