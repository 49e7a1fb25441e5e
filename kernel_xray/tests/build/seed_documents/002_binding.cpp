// Seed document 002, as printed, repairs marked: the pybind11 + NumPy island, binding.
// clang-format off
// binding.cpp  -- pybind11 binding over NumPy arrays
#include <pybind11/pybind11.h>
#include <pybind11/numpy.h>
#include <stdexcept>

namespace py = pybind11;
extern "C" void vector_add_cuda(const float* a, const float* b, float* c, int n);

void vector_add(py::array_t<float> a, py::array_t<float> b, py::array_t<float> c) {
    if (a.ndim() != 1 || b.ndim() != 1 || c.ndim() != 1)
        throw std::runtime_error("arrays must be 1D");
    if (a.size() != b.size() || a.size() != c.size())
        throw std::runtime_error("arrays must have the same size");
    vector_add_cuda(a.data(), b.data(), c.mutable_data(),
                    static_cast<int>(a.size()));
}

PYBIND11_MODULE(vector_add_ext, m) {
    m.doc() = "CUDA vector addition extension";
    m.def("vector_add", &vector_add, "Add two vectors using CUDA");
}
