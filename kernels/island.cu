// island.cu: out = a + b for NumPy arrays, with pybind11 and the CUDA run-time library,
// without PyTorch.
//
// A NumPy array is in the CPU's memory, which a kernel cannot read. So both inputs go
// to the GPU and the result comes back: for the 12 bytes per element that the kernel
// moves, 12 bytes cross a bus that is far slower than the GPU's own memory. The bus
// limits it. An island pays off if one upload serves many kernels, or if PyTorch is not
// wanted.
//
// Built without PyTorch:
//
//   nvcc -O3 -arch=native -shared -Xcompiler -fPIC $(python -m pybind11 --includes)
//     -DTORCH_EXTENSION_NAME=island island.cu -o island.so

#include <cuda_runtime.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace py = pybind11;

constexpr int kThreads = 256;  // per block

__global__ void island_add_kernel(const float* a, const float* b, float* out,
                                  int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] + b[i];
  }
}

// region errors
// Every call of the CUDA run-time library returns whether it succeeded. In Python, a
// failure is a RuntimeError.
void check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess)
    throw std::runtime_error(what + ": " + cudaGetErrorString(status));
}
// endregion

// region memory
// n floats in the GPU's memory, freed at the end of the scope, even if an exception is
// thrown.
class DeviceArray {
 public:
  explicit DeviceArray(int64_t n) : bytes_(n * sizeof(float)) {
    check(cudaMalloc(&data_, bytes_), "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  void upload(const float* from) {
    check(cudaMemcpy(data_, from, bytes_, cudaMemcpyHostToDevice), "upload");
  }
  void download(float* to) const {
    check(cudaMemcpy(to, data_, bytes_, cudaMemcpyDeviceToHost), "download");
  }
  float* data() { return data_; }

 private:
  float* data_ = nullptr;
  size_t bytes_;
};
// endregion

using Floats = py::array_t<float>;

void check_array(const py::array& x, const std::string& name) {
  if (!x.dtype().is(py::dtype::of<float>())) {
    throw std::invalid_argument(name + " must be float32, got " +
                                std::string(py::str(x.dtype())) + "; pass " + name +
                                ".astype(numpy.float32)");
  }
  if (!(x.flags() & py::array::c_style)) {
    throw std::invalid_argument(
        name + " must be contiguous; pass numpy.ascontiguousarray(" + name + ")");
  }
}

Floats add(const py::array& a, const py::array& b) {
  check_array(a, "a");
  check_array(b, "b");
  if (a.ndim() != b.ndim() || !std::equal(a.shape(), a.shape() + a.ndim(), b.shape())) {
    throw std::invalid_argument("a and b must have the same shape");
  }
  Floats out(std::vector<py::ssize_t>(a.shape(), a.shape() + a.ndim()));
  int64_t n = a.size();
  if (n == 0) return out;  // a grid of 0 blocks is an error
  DeviceArray da(n), db(n), dout(n);
  da.upload(static_cast<const float*>(a.data()));
  db.upload(static_cast<const float*>(b.data()));
  island_add_kernel<<<(n + kThreads - 1) / kThreads, kThreads>>>(da.data(), db.data(),
                                                                 dout.data(), n);
  check(cudaGetLastError(), "launch");
  // Waits for the kernel, and returns its error if it had one.
  dout.download(out.mutable_data());
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("add", &add, "a + b", py::arg("a"), py::arg("b"));
}
