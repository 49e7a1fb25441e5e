// runtime_functions.h: the part of the run-time API for symbols (__device__ and __constant__ variables) and for kernels
// as functions: attributes and occupancy. Included by runtime_api.h.
//
// A symbol is an ordinary variable here, so its address and size are those of the variable. Occupancy follows the
// formula of CUDA's occupancy calculator with an assumed 32 registers per thread (nothing allocates registers here) and
// without static shared memory, which is known only once the kernel runs.
#pragma once

#include <type_traits>

#include "runtime_launch.h"
#include "runtime_types.h"

namespace simt {

// Bytes of dynamic shared memory that a launch of `function` may request: 48 KB, or what cudaFuncSetAttribute allowed
// it. With nullptr: the largest of these over all functions.
SIMT_API size_t dynamic_shared_limit(const void* function);

// True for the default streams and for those created and not destroyed.
SIMT_API bool stream_exists(cudaStream_t stream);

namespace detail {

SIMT_API cudaError_t copy_to_symbol(void* symbol, size_t size, const void* from, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream);
SIMT_API cudaError_t copy_from_symbol(void* to, const void* symbol, size_t size, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream);
SIMT_API cudaError_t give_symbol_address(void** pointer, void* symbol, size_t size);
SIMT_API cudaError_t set_attribute(const void* function, cudaFuncAttribute attribute, int value);
SIMT_API cudaError_t get_attributes(cudaFuncAttributes* attributes, const void* function);
SIMT_API cudaError_t active_blocks(int* blocks, const void* function, int block_size, size_t dynamic_bytes);
SIMT_API cudaError_t potential_block_size(int* min_grid_size, int* block_size, const void* function,
                                          size_t (*dynamic_bytes)(int block_size, const void* context),
                                          const void* context, int block_size_limit);

template <typename T>
void* symbol_address(T& symbol) {
  static_assert(!std::is_const_v<std::remove_all_extents_t<T>>,
                "a symbol that the host writes cannot be const: remove the const of its declaration");
  return const_cast<std::remove_cv_t<std::remove_all_extents_t<T>>*>(
      reinterpret_cast<std::remove_all_extents_t<T>*>(&symbol));
}

template <typename T>
const void* function_address(T* function) {
  return reinterpret_cast<const void*>(function);
}
inline const void* function_address(const void* function) { return function; }
inline const void* function_address(void* function) { return function; }

}  // namespace detail
}  // namespace simt

template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t count, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return simt::detail::copy_to_symbol(simt::detail::symbol_address(symbol), sizeof(T), from, count, offset, kind,
                                      nullptr);
}

template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t stream = nullptr) {
  return simt::detail::copy_to_symbol(simt::detail::symbol_address(symbol), sizeof(T), from, count, offset, kind,
                                      stream);
}

template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t count, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return simt::detail::copy_from_symbol(to, const_cast<const std::remove_volatile_t<T>*>(&symbol), sizeof(T), count,
                                        offset, kind, nullptr);
}

template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream = nullptr) {
  return simt::detail::copy_from_symbol(to, const_cast<const std::remove_volatile_t<T>*>(&symbol), sizeof(T), count,
                                        offset, kind, stream);
}

template <typename P, typename T>
cudaError_t cudaGetSymbolAddress(P** pointer, T& symbol) {
  return simt::detail::give_symbol_address(static_cast<void**>(static_cast<void*>(pointer)),
                                           simt::detail::symbol_address(symbol), sizeof(T));
}

template <typename T>
cudaError_t cudaGetSymbolSize(size_t* size, const T&) {
  *size = sizeof(T);
  return cudaSuccess;
}

template <typename T>
cudaError_t cudaFuncSetAttribute(T* function, cudaFuncAttribute attribute, int value) {
  return simt::detail::set_attribute(simt::detail::function_address(function), attribute, value);
}

template <typename T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* function) {
  return simt::detail::get_attributes(attributes, simt::detail::function_address(function));
}

template <typename T>
cudaError_t cudaFuncSetCacheConfig(T*, cudaFuncCache) {
  return cudaSuccess;  // a preference; there is no cache to partition
}

template <typename T>
cudaError_t cudaFuncSetSharedMemConfig(T*, cudaSharedMemConfig) {
  return cudaSuccess;
}

template <typename T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T* function, int block_size,
                                                          size_t dynamic_bytes) {
  return simt::detail::active_blocks(blocks, simt::detail::function_address(function), block_size, dynamic_bytes);
}

template <typename T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, T* function, int block_size,
                                                                   size_t dynamic_bytes, unsigned) {
  return simt::detail::active_blocks(blocks, simt::detail::function_address(function), block_size, dynamic_bytes);
}

// How many clusters of this launch the device holds at the same time: as many as their blocks fill its 108 SMs; none if
// they have more threads than the simulator runs together, or more than the 8 blocks that every GPU allows.
template <typename... Parameters>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, void (*kernel)(Parameters...),
                                           const cudaLaunchConfig_t* config) {
  int blocks = 0;
  const dim3 block = config->blockDim;
  cudaError_t result =
      simt::detail::active_blocks(&blocks, reinterpret_cast<const void*>(simt::known(nullptr, kernel)),
                                  static_cast<int>(block.x * block.y * block.z), config->dynamicSmemBytes);
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
      size = config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y * config->attrs[i].val.clusterDim.z;
  }
  const bool runs = size <= 8 && size * block.x * block.y * block.z <= 1536;
  *clusters = runs ? static_cast<int>(static_cast<unsigned>(blocks) * 108 / size) : 0;
  return result;
}

// The block size with the most resident threads, and the least grid that fills the device with such blocks.
template <typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, T* function,
                                               size_t dynamic_bytes = 0, int block_size_limit = 0) {
  auto constant = [](int, const void* bytes) { return *static_cast<const size_t*>(bytes); };
  return simt::detail::potential_block_size(min_grid_size, block_size, simt::detail::function_address(function),
                                            constant, &dynamic_bytes, block_size_limit);
}

template <typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid_size, int* block_size, T* function,
                                                        size_t dynamic_bytes = 0, int block_size_limit = 0,
                                                        unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSize(min_grid_size, block_size, function, dynamic_bytes, block_size_limit);
}

template <typename F, typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* min_grid_size, int* block_size, T* function,
                                                           F bytes_of_block_size, int block_size_limit = 0) {
  auto variable = [](int size, const void* bytes) -> size_t { return (*static_cast<const F*>(bytes))(size); };
  return simt::detail::potential_block_size(min_grid_size, block_size, simt::detail::function_address(function),
                                            variable, &bytes_of_block_size, block_size_limit);
}

template <typename F, typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int* min_grid_size, int* block_size, T* function,
                                                                    F bytes_of_block_size, int block_size_limit = 0,
                                                                    unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(min_grid_size, block_size, function, bytes_of_block_size,
                                                        block_size_limit);
}

// The most dynamic shared memory with which an SM holds so many of these blocks.
template <typename T>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, T* function, int blocks, int block_size) {
  int held = 0;
  size_t least = 0, most = 232448;
  if (cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, function, block_size, 0)) return error;
  if (held < blocks || blocks < 1) return cudaErrorInvalidValue;
  while (least < most) {
    const size_t middle = (least + most + 1) / 2;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, function, block_size, middle);
    held < blocks ? most = middle - 1 : least = middle;
  }
  *bytes = least;
  return cudaSuccess;
}
