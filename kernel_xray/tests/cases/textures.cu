// textures.cu: textures and surfaces of arrays, linear and pitched memory, on either target.
#include <utility>

#include "case.h"

struct Modes {
  cudaTextureAddressMode address;
  cudaTextureFilterMode filter;
  cudaTextureReadMode read;
  bool normalised;
};

static cudaTextureDesc described(const Modes& modes) {
  cudaTextureDesc how{};
  for (auto& mode : how.addressMode) mode = modes.address;
  how.filterMode = modes.filter;
  how.readMode = modes.read;
  how.normalizedCoords = modes.normalised;
  return how;
}

// Numbers from `first` on: address mode, filter mode, read mode, normalised coordinates.
static Modes modes_of(const Call& call, size_t first) {
  return {static_cast<cudaTextureAddressMode>(call.number(first)),
          static_cast<cudaTextureFilterMode>(call.number(first + 1)),
          static_cast<cudaTextureReadMode>(call.number(first + 2)), call.number(first + 3) != 0};
}

static cudaResourceDesc of_array(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

// An array that holds a tensor's elements, as long as it lives.
struct Filled {
  cudaArray_t array = nullptr;
  cudaTextureObject_t texture = 0;

  Filled(const cudaChannelFormatDesc& format, cudaExtent extent, const void* elements, unsigned flags = 0) {
    EXPECT_SUCCESS(cudaMalloc3DArray(&array, &format, extent, flags));
    cudaMemcpy3DParms copy{};
    const size_t bytes = (format.x + format.y + format.z + format.w) / 8, rows = extent.height ? extent.height : 1;
    copy.srcPtr = make_cudaPitchedPtr(const_cast<void*>(elements), extent.width * bytes, extent.width, rows);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(extent.width, rows, extent.depth ? extent.depth : 1);
    copy.kind = cudaMemcpyDefault;
    EXPECT_SUCCESS(cudaMemcpy3D(&copy));
  }
  cudaTextureObject_t read_as(const Modes& modes) {
    const cudaResourceDesc resource = of_array(array);
    const cudaTextureDesc how = described(modes);
    EXPECT_SUCCESS(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    return texture;
  }
  ~Filled() {
    cudaDeviceSynchronize();
    if (texture) cudaDestroyTextureObject(texture);
    cudaFreeArray(array);
  }
};

template <typename T>
__global__ void read_kernel(cudaTextureObject_t texture, int dimensions, int layer, const float* at, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  at += 3 * i;
  if (layer >= 0)
    out[i] = dimensions == 1 ? tex1DLayered<T>(texture, at[0], layer) : tex2DLayered<T>(texture, at[0], at[1], layer);
  else
    out[i] = dimensions == 1   ? tex1D<T>(texture, at[0])
             : dimensions == 2 ? tex2D<T>(texture, at[0], at[1])
                               : tex3D<T>(texture, at[0], at[1], at[2]);
}

template <typename T, typename Element>
static void read(const Call& call) {
  const auto size = [&](int d) { return static_cast<size_t>(call.number(d)); };
  const int dimensions = call.number(2) ? 3 : call.number(1) ? 2 : 1, n = call.size(1) / 3;
  const int layer = static_cast<int>(call.number(3));
  const cudaExtent extent = make_cudaExtent(size(0), size(1), size(2));
  Filled filled(cudaCreateChannelDesc<Element>(), extent, call.data<Element>(0), layer >= 0 ? cudaArrayLayered : 0);
  read_kernel<T><<<(n + 63) / 64, 64>>>(filled.read_as(modes_of(call, 4)), layer >= 0 ? dimensions - 1 : dimensions,
                                        layer, call.data<float>(1), call.data<T>(2), n);
}

// elements, places float[n, 3], out; numbers: width, height, depth, layer or -1, the four modes
CASE(floats) { read<float, float>(call); }
CASE(float4s) { read<float4, float4>(call); }
CASE(bytes) { read<unsigned char, unsigned char>(call); }
CASE(bytes_as_fractions) { read<float, unsigned char>(call); }
CASE(signed_as_fractions) { read<float2, short2>(call); }
CASE(integers) { read<int2, int2>(call); }

// in float[n], out float[n + 2]: tex1Dfetch of each element, and of one before and one after
__global__ void fetch_kernel(cudaTextureObject_t texture, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n + 2) out[i] = tex1Dfetch<float>(texture, i - 1);
}
CASE(linear) {
  const int n = call.size(0);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = call.data<float>(0);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = n * sizeof(float);
  cudaTextureDesc how{};
  cudaTextureObject_t texture = 0;
  EXPECT_SUCCESS(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  fetch_kernel<<<1, n + 2>>>(texture, call.data<float>(1), n);
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  EXPECT_SUCCESS(cudaDestroyTextureObject(texture));
}

// in float[rows, columns], out float[rows, columns]: halfway between each element and its right neighbour
__global__ void halfway_kernel(cudaTextureObject_t texture, float* out, int rows, int columns) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (x < columns) tex2D(&out[y * columns + x], texture, x + 1.0f, y + 0.5f);
}
CASE(pitched) {
  const int rows = static_cast<int>(call.number(0)), columns = static_cast<int>(call.number(1));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  auto& pitched = resource.res.pitch2D;
  EXPECT_SUCCESS(cudaMallocPitch(&pitched.devPtr, &pitched.pitchInBytes, columns * sizeof(float), rows));
  EXPECT_SUCCESS(cudaMemcpy2D(pitched.devPtr, pitched.pitchInBytes, call.data<float>(0), columns * sizeof(float),
                              columns * sizeof(float), rows, cudaMemcpyDefault));
  pitched.desc = cudaCreateChannelDesc<float>();
  pitched.width = columns;
  pitched.height = rows;
  const cudaTextureDesc how = described({cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, false});
  cudaTextureObject_t texture = 0;
  EXPECT_SUCCESS(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  halfway_kernel<<<rows, columns>>>(texture, call.data<float>(1), rows, columns);
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  EXPECT_SUCCESS(cudaDestroyTextureObject(texture));
  EXPECT_SUCCESS(cudaFree(pitched.devPtr));
}

// in float[4, 4], out float4[9]: the four elements around each inner corner
__global__ void gather_kernel(cudaTextureObject_t texture, float4* out) {
  out[threadIdx.y * 3 + threadIdx.x] = tex2Dgather<float4>(texture, threadIdx.x + 1.0f, threadIdx.y + 1.0f);
}
CASE(gather) {
  Filled filled(cudaCreateChannelDesc<float>(), make_cudaExtent(4, 4, 0), call.data<float>(0), cudaArrayTextureGather);
  const Modes modes{cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeElementType, false};
  gather_kernel<<<1, dim3(3, 3)>>>(filled.read_as(modes), call.data<float4>(1));
}

// ------------------------------------------------------------------------------------------------------------------
// Surfaces

// Writes the transpose; then each thread reads `step` columns to the right, in the mode given.
__global__ void transpose_kernel(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int n) {
  const int x = threadIdx.x, y = threadIdx.y;
  if (x >= n || y >= n) return;
  short2 value;
  surf2Dread(&value, from, x * static_cast<int>(sizeof(short2)), y);
  surf2Dwrite(value, to, y * static_cast<int>(sizeof(short2)), x);
}
__global__ void shifted_kernel(cudaSurfaceObject_t from, short2* out, int n, int step, cudaSurfaceBoundaryMode mode) {
  const int x = threadIdx.x, y = threadIdx.y, at = (x + step) * static_cast<int>(sizeof(short2));
  out[y * n + x] = mode == cudaBoundaryModeZero    ? surf2Dread<short2>(from, at, y, cudaBoundaryModeZero)
                   : mode == cudaBoundaryModeClamp ? surf2Dread<short2>(from, at, y, cudaBoundaryModeClamp)
                                                   : surf2Dread<short2>(from, at, y);
}

// in short2[n, n], out short2[n, n]; numbers: n, step, mode
CASE(surfaces) {
  const int n = static_cast<int>(call.number(0));
  const cudaExtent extent = make_cudaExtent(n, n, 0);
  const auto format = cudaCreateChannelDesc<short2>();
  Filled from(format, extent, call.data<short2>(0), cudaArraySurfaceLoadStore);
  Filled to(format, extent, call.data<short2>(0), cudaArraySurfaceLoadStore);
  const cudaResourceDesc from_resource = of_array(from.array), to_resource = of_array(to.array);
  cudaSurfaceObject_t source = 0, target = 0;
  EXPECT_SUCCESS(cudaCreateSurfaceObject(&source, &from_resource));
  EXPECT_SUCCESS(cudaCreateSurfaceObject(&target, &to_resource));
  transpose_kernel<<<1, dim3(n, n)>>>(source, target, n);
  shifted_kernel<<<1, dim3(n, n)>>>(target, call.data<short2>(1), n, static_cast<int>(call.number(1)),
                                    static_cast<cudaSurfaceBoundaryMode>(call.number(2)));
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  EXPECT_SUCCESS(cudaDestroySurfaceObject(source));
  EXPECT_SUCCESS(cudaDestroySurfaceObject(target));
}

// ------------------------------------------------------------------------------------------------------------------
// Copies to, from and between arrays; wrong calls

CASE(copies) {
  const int rows = 6, columns = 10;
  std::vector<int> in(rows * columns), out(rows * columns, -1);
  for (int i = 0; i < rows * columns; ++i) in[i] = i;
  const auto format = cudaCreateChannelDesc<int>();
  cudaArray_t a, b;
  EXPECT_SUCCESS(cudaMallocArray(&a, &format, columns, rows));
  EXPECT_SUCCESS(cudaMallocArray(&b, &format, columns, rows));
  const size_t row = columns * sizeof(int);
  EXPECT_SUCCESS(cudaMemcpy2DToArray(a, 0, 0, in.data(), row, row, rows, cudaMemcpyHostToDevice));
  EXPECT_SUCCESS(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, row, rows, cudaMemcpyDeviceToDevice));
  EXPECT_SUCCESS(cudaMemcpy2DArrayToArray(b, 4, 1, a, 8, 2, 12, 3, cudaMemcpyDeviceToDevice));
  EXPECT_SUCCESS(cudaMemcpy2DFromArray(out.data(), row, b, 0, 0, row, rows, cudaMemcpyDeviceToHost));
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) {
      const bool moved = x >= 1 && x < 4 && y >= 1 && y < 4;
      EXPECT(out[y * columns + x] == (moved ? in[(y + 1) * columns + x + 1] : in[y * columns + x]));
    }
  EXPECT(cudaMemcpy2DToArray(a, 4, 0, in.data(), row, row, rows, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  EXPECT(cudaMemcpy2DToArray(a, 0, 1, in.data(), row, row, rows, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();

  // A box of 3 x 2 x 2 elements from pitched memory of ints into a three-dimensional array, and back into a row.
  const auto extent = make_cudaExtent(5, 4, 3);
  cudaArray_t cube;
  EXPECT_SUCCESS(cudaMalloc3DArray(&cube, &format, extent));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(in.data(), 5 * sizeof(int), 5, 4);
  copy.dstArray = cube;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  EXPECT_SUCCESS(cudaMemcpy3D(&copy));
  cudaMemcpy3DParms back{};
  back.srcArray = cube;
  back.srcPos = make_cudaPos(1, 2, 1);
  back.dstPtr = make_cudaPitchedPtr(out.data(), 3 * sizeof(int), 3, 2);
  back.extent = make_cudaExtent(3, 2, 2);
  back.kind = cudaMemcpyDeviceToHost;
  EXPECT_SUCCESS(cudaMemcpy3D(&back));
  for (int i = 0; i < 12; ++i) EXPECT(out[i] == (i / 6 + 1) * 20 + (i / 3 % 2 + 2) * 5 + i % 3 + 1);
  back.srcPos = make_cudaPos(3, 2, 1);
  EXPECT(cudaMemcpy3D(&back) == cudaErrorInvalidValue);
  cudaGetLastError();

  cudaPitchedPtr pitched;
  EXPECT_SUCCESS(cudaMalloc3D(&pitched, make_cudaExtent(20, 4, 3)));
  EXPECT_SUCCESS(cudaMemset3D(pitched, 1, make_cudaExtent(20, 4, 3)));
  cudaMemcpy3DParms plain{};
  plain.srcPtr = pitched;
  plain.dstPtr = make_cudaPitchedPtr(out.data(), 20, 20, 4);
  plain.extent = make_cudaExtent(20, 4, 3);
  plain.kind = cudaMemcpyDeviceToHost;
  EXPECT_SUCCESS(cudaMemcpy3D(&plain));
  for (int i = 0; i < 60; ++i) EXPECT(out[i] == 0x01010101);
  EXPECT_SUCCESS(cudaFree(pitched.ptr));
  for (cudaArray_t array : {a, b, cube}) EXPECT_SUCCESS(cudaFreeArray(array));
}

CASE(wrong_calls) {
  cudaArray_t array = nullptr;
  auto format = cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned);
  EXPECT(cudaMallocArray(&array, &format, 4, 4) != cudaSuccess);
  format = cudaCreateChannelDesc<int>();
  EXPECT(cudaMallocArray(&array, &format, 0, 4) == cudaErrorInvalidValue);
  EXPECT_SUCCESS(cudaMallocArray(&array, &format, 4, 4));
  cudaResourceDesc resource = of_array(array);
  cudaTextureDesc how{};
  cudaTextureObject_t texture = 0;
  how.filterMode = cudaFilterModeLinear;
  EXPECT(cudaCreateTextureObject(&texture, &resource, &how, nullptr) == cudaErrorInvalidFilterSetting);
  how.filterMode = cudaFilterModePoint;
  how.readMode = cudaReadModeNormalizedFloat;
  EXPECT(cudaCreateTextureObject(&texture, &resource, &how, nullptr) == cudaErrorInvalidNormSetting);
  EXPECT(cudaCreateTextureObject(&texture, nullptr, &how, nullptr) == cudaErrorInvalidValue);
  cudaSurfaceObject_t surface = 0;
  const cudaResourceDesc nothing = of_array(nullptr);
  EXPECT(cudaCreateSurfaceObject(&surface, &nothing) == cudaErrorInvalidResourceHandle);
  float* memory = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&memory, 1024));
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory + 64;  // 256 bytes from the start; an alignment of 512 is needed
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 512;
  how.readMode = cudaReadModeElementType;
  EXPECT(cudaCreateTextureObject(&texture, &resource, &how, nullptr) != cudaSuccess);
  resource.res.linear.devPtr = memory;
  EXPECT_SUCCESS(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  cudaResourceDesc same{};
  EXPECT_SUCCESS(cudaGetTextureObjectResourceDesc(&same, texture));
  EXPECT(same.resType == cudaResourceTypeLinear && same.res.linear.devPtr == memory);
  EXPECT_SUCCESS(cudaDestroyTextureObject(texture));
  EXPECT_SUCCESS(cudaFree(memory));
  EXPECT_SUCCESS(cudaFreeArray(array));
  cudaGetLastError();
}

// What a kernel must not do, by number; undefined on a GPU.
__global__ void misuse_kernel(cudaTextureObject_t texture, float* out, int which) {
  if (which == 0) *out = tex3D<float>(texture, 0.5f, 0.5f, 0.5f);
  if (which == 1) *out = static_cast<float>(tex2D<int>(texture, 0.5f, 0.5f));
  if (which == 2) *out = tex2D<float4>(texture, 1.5f, 0.5f).x + tex2D<float4>(texture, 1.5f, 0.5f).w;
  if (which == 3) *out = tex1Dfetch<float>(texture, 0);
  if (which >= 4) *out = tex2D<float>(texture, 0.5f, 0.5f);
}
CASE(misuse) {
  const int which = static_cast<int>(call.number(0));
  Filled filled(cudaCreateChannelDesc<float>(), make_cudaExtent(4, 4, 0), call.data<float>(0));
  cudaTextureObject_t texture =
      filled.read_as({cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeElementType, false});
  if (which == 5) EXPECT_SUCCESS(cudaDestroyTextureObject(std::exchange(filled.texture, 0)));
  if (which == 6) EXPECT_SUCCESS(cudaFreeArray(std::exchange(filled.array, nullptr)));
  if (which == 7) texture = 0;
  misuse_kernel<<<1, 1>>>(texture, call.data<float>(1), which);
}
