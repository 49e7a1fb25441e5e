// library_call.h: what every call of a CUDA library does first: it is for host code, and its operands must be there.
#pragma once

#include <string>

#include "core.h"

namespace simt {

// For a call that begins work: raises a fault inside a kernel, and clears the fault of an earlier one.
SIMT_API void begin_library_call(const char* function);

// Raises a fault that names the operand if it is null, freed, or longer than its allocation. Memory that no cudaMalloc
// returned, such as a tensor's, is taken as it is. Of 0 bytes, any pointer is good.
SIMT_API void check_operand(const std::string& function, const char* operand, const void* pointer, size_t bytes);

}  // namespace simt
