// trace.h: the traced mode, which sees every access that a kernel makes to memory. A launch calls the functions below;
// the kernel's calls enter through traced_block.h.
//
// A traced kernel is compiled with -fsanitize=thread -fsanitize-coverage=trace-pc. The hooks that the compiler calls
// check each address before the access happens and append it to the lane's record. When the lanes of a warp have all
// stopped, their records are replayed in step: costs are counted, and races and uninitialised reads found. A race is
// what the kernel does not order, whatever happened to run first, so the verdict does not depend on the schedule, which
// is drawn from a seed.
//
// The files, each building on those before it:
//   lane, regions, film               events; what an address belongs to; the steps of a few blocks, if asked for
//   session, metrics                  what is counted and found; what requests cost
//   checks, hooks                     what is checked before an access happens; what the compiler calls
//   cluster                           the threads that run together; their findings and failures
//   vector_clock, access              the terms of race detection
//   clocks, shadow_memory, races      what threads know; the last accesses; the detector
//   kernel_before                     what the kernel before accessed, if this one may begin before its end
//   work, replay                      what each thread does; lanes in step
//   barriers, mbarriers, units        how threads wait: for each other, for TMA and wgmma
//   scheduler, deadlock               who runs next; a report if no thread can
//   traced_block                      connects all of that; shared memory; where a kernel's calls come in
//   traced_launch                     which blocks of a grid are traced
#pragma once

#include "trace/session.h"

namespace simt::trace {

bool launch(const Job& job, FaultRecord& fault);  // runs the grid on the calling thread; false after a fault
bool in_traced_block();
void forget_kernel_before();  // other work lies between it and the next launch
int told_sms(int own);        // how many SMs the device has for the function that is X-rayed; `own`: the simulator's

}  // namespace simt::trace
