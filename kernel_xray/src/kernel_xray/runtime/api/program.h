// program.h: what differs in a program of its own (kernel_xray.program) from an extension in a Python process.
//
// The model is CUDA's. A kernel's fault is printed once, on stderr; from then on no kernel runs and every call of the
// run-time API that needs the device returns the fault's error (host_call.h). The program goes on, and ends with its
// own exit status. Deviation: launches are synchronous, so the call that follows a launch already sees its error, as
// with CUDA_LAUNCH_BLOCKING=1.
//
// A process becomes a program when it calls simt_program, which only kernel_xray/runtime/program/start.cpp does. The process
// that starts it may name a folder in KERNEL_XRAY_FINDINGS. There the program leaves a file `fault` (the fault's kind
// on the first line, then its message) and, if it is X-rayed, the findings so far as `xray.json`. For an X-ray,
// KERNEL_XRAY_XRAY holds the seed, the number of blocks that are traced per launch, the budget
// of a block, and the seconds in which blocks are traced beyond it.
//
// Limit: a program that a signal ends, its own abort included, leaves the findings as last written. They are written
// after each of the first 100 launches, and otherwise every half a second, between two blocks.
#pragma once

#include <mutex>

#include "threads/block.h"

namespace simt::program {

bool running();                         // in this process
bool device_lost();                     // a kernel of the program has faulted
void report(const FaultRecord& fault);  // of a launch that has ended

extern std::mutex tracing;  // held while a traced launch runs: several host threads may launch
// Of a traced launch, which holds `tracing`:
void block_ended();
void launch_ended();

}  // namespace simt::program
