// library_call.cpp: looks an operand up in the memory that cudaMalloc gave.
#include "../../include/simt/library_call.h"

#include "api/allocations.h"
#include "api/host_call.h"

namespace simt {

void begin_library_call(const char* function) { begin_work(function); }

void check_operand(const std::string& function, const char* operand, const void* pointer, size_t bytes) {
  if (bytes == 0) return;
  Allocations& allocations = Allocations::instance();
  Allocation found;
  const uintptr_t start = reinterpret_cast<uintptr_t>(pointer);
  const bool inside = allocations.in_range(pointer);
  if (pointer && !inside) return;
  if (inside && allocations.find(pointer, found) && bytes <= found.bytes - (start - found.start)) return;
  std::string message = function + ": " + operand + ", " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (!pointer)
    message += ", is a null pointer";
  else if (!allocations.find(pointer, found))
    message += ", begins " + allocations.describe(pointer);
  else
    message += ", ends " + std::to_string(start + bytes - found.start - found.bytes) +
               " bytes past the end of an allocation of " + std::to_string(found.bytes) + " bytes (cudaMalloc)";
  set_last_error(cudaErrorIllegalAddress);
  throw Fault("illegal-access", message);
}

}  // namespace simt
