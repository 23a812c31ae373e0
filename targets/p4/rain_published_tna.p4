/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rain on Tofino with what the paper's switch has: nobody shows a key, an address or an epoch, and no packet comes
 * twice. Nothing is swept. The queue is then a stage earlier.
 */
#define TRUSTS_SENDERS
#define FIRST_STAGE 3

#include "rain_tna.p4"
