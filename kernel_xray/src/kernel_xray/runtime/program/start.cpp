// start.cpp: linked into each program that kernel_xray.program builds, and into nothing else. It runs before main.
//
// Lines of output appear at once, so that they are not lost if the program is killed. On Linux, the program ends when
// the process that started it does (KERNEL_XRAY_PARENT holds its number). In the simulator it also makes a kernel's
// fault an error code, as in CUDA, where an extension gets an exception: see runtime/api/program.h.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#ifdef __SIMT__
extern "C" void simt_program(const void* inside);
#endif

namespace {

void end_with_parent() {
  const char* parent = getenv("KERNEL_XRAY_PARENT");
  if (!parent) return;
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != atoi(parent)) raise(SIGKILL);  // it has ended already
#endif
  unsetenv("KERNEL_XRAY_PARENT");  // not for programs that this one starts
}

__attribute__((constructor(101))) void start() {  // 101: before the program's own static objects
  end_with_parent();
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
#ifdef __SIMT__
  simt_program(reinterpret_cast<const void*>(&start));
#endif
}

}  // namespace
