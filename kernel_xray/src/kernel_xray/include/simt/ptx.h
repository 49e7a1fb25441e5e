// ptx.h: inline PTX. A source whose `asm` statements the rewriter has translated (kernel_xray/translate/ptx.py) includes this.
//
// kernel_xray/translate/ptx_rules.py lists the instructions. This header includes no 16-bit types: the program chooses their
// operators and conversions before it includes cuda_fp16.h itself.
#pragma once

#include "ptx_async.h"
#include "ptx_bits.h"
#include "ptx_conversions.h"
#include "ptx_matrix.h"
#include "ptx_mma.h"
#include "ptx_tcgen05.h"
#include "ptx_tensor.h"
#include "ptx_warp.h"
#include "ptx_wgmma.h"
