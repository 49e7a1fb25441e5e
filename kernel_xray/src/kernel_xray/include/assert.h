// assert.h: the C library's header of this name; an assertion that fails ends the kernel and raises an error at its launch.
//
// In host code it raises the error too. As in C, NDEBUG counts at each inclusion, so there is no guard.
#include_next <assert.h>

#if defined(__cplusplus) && !defined(NDEBUG)
extern "C++" {
namespace simt {
[[noreturn]] __attribute__((visibility("default"))) void assert_failed(const char* expression, const char* file,
                                                                       int line, const char* function);
}
}
#undef assert
#define assert(...)                                      \
  (static_cast<bool>(__VA_ARGS__) ? static_cast<void>(0) \
                                  : ::simt::assert_failed(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#endif
