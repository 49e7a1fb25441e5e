// cub.cuh: CUB, the algorithms of warps, blocks and whole arrays, written for the simulator.
//
// The collectives of a warp and of a block run in the kernel, in shared memory and with CUB's rules, so a traced kernel
// shows their traffic and what reuses their storage without a barrier. The functions for whole arrays run on the host.
// All give CUB's results; where the order of a sum decides, they sum in another order.
//
// Not there: device-wide functions for two-dimensional and multi-channel histograms, segmented sorts by comparison,
// batched copies, adjacent differences and top-k; BlockMergeSort, BlockShuffle, BlockAdjacentDifference, WarpMergeSort,
// WarpExchange and BlockRadixRank.
#pragma once

#include "block/block_discontinuity.cuh"
#include "block/block_exchange.cuh"
#include "block/block_histogram.cuh"
#include "block/block_load.cuh"
#include "block/block_radix_sort.cuh"
#include "block/block_raking_layout.cuh"
#include "block/block_reduce.cuh"
#include "block/block_scan.cuh"
#include "block/block_store.cuh"
#include "device/device_histogram.cuh"
#include "device/device_merge_sort.cuh"
#include "device/device_partition.cuh"
#include "device/device_radix_sort.cuh"
#include "device/device_reduce.cuh"
#include "device/device_run_length_encode.cuh"
#include "device/device_scan.cuh"
#include "device/device_segmented_radix_sort.cuh"
#include "device/device_segmented_reduce.cuh"
#include "device/device_select.cuh"
#include "iterator/iterators.cuh"
#include "thread/thread_load.cuh"
#include "util_allocator.cuh"
#include "util_device.cuh"
#include "warp/warp_reduce.cuh"
#include "warp/warp_scan.cuh"
