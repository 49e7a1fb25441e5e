// headers.cu: headers of CUDA's beside its core, and what programs use of them.
#include <channel_descriptor.h>
#include <cuComplex.h>
#include <cudaTypedefs.h>
#include <device_launch_parameters.h>
#include <library_types.h>
#include <nvtx3/nvToolsExt.h>
#include <sm_61_intrinsics.h>
#include <vector_functions.h>

__global__ void complex_kernel(double* out) {
  const cuFloatComplex a = make_cuFloatComplex(1, 2), b = make_cuComplex(3, -4);
  const cuDoubleComplex c = cuComplexFloatToDouble(a), d = make_cuDoubleComplex(3, -4), huge = {3e200, -4e200};
  const cuFloatComplex narrow[] = {cuCaddf(a, b),
                                   cuCsubf(a, b),
                                   cuCmulf(a, b),
                                   cuCdivf(a, b),
                                   cuConjf(b),
                                   cuCfmaf(a, b, a),
                                   cuComplexDoubleToFloat(cuCmul(c, d))};
  const cuDoubleComplex wide[] = {cuCadd(c, d), cuCsub(c, d),    cuCmul(c, d),      cuCdiv(c, d),
                                  cuConj(d),    cuCfma(c, d, c), cuCdiv(huge, huge)};
  for (int i = 0; i < 7; ++i) {
    out[2 * i] = cuCrealf(narrow[i]), out[2 * i + 1] = cuCimagf(narrow[i]);
    out[14 + 2 * i] = cuCreal(wide[i]), out[14 + 2 * i + 1] = cuCimag(wide[i]);
  }
  out[28] = cuCabsf(b);
  out[29] = cuCabs(huge);
  out[30] = __dp4a(0x01020304, 0x02020202, 5) + __dp2a_lo(0x00030004, 0x05060708, 1);
}

extern "C" __attribute__((visibility("default"))) int run_headers(double* result) {
  static_assert(CUDA_R_32F == 0 && CUDA_R_16F == 2 && CUDA_R_16BF == 14 && CUDA_R_8F_E4M3 == 28);
#if CUDART_VERSION >= 13000
  static_assert(CUDA_EMULATION_MANTISSA_CONTROL_FIXED == cudaEmulationMantissaControl(1));
#endif
  cudaDataType type = CUDA_C_64F;
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "complex numbers";
  nvtxRangePushEx(&event);
  const nvtxRangeId_t range = nvtxRangeStart("all");
  nvtxRangePush("kernel");
  double* out;
  if (cudaMallocManaged(&out, 32 * sizeof(double)) != cudaSuccess) return -1;
  complex_kernel<<<1, 1>>>(out);
  nvtxMark("launched");
  const int done = cudaDeviceSynchronize();
  out[31] = type;
  for (int i = 0; i < 32; ++i) result[i] = out[i];
  cudaFree(out);
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangeEnd(range);
  return done;
}
