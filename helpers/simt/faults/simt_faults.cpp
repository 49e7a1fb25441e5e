// simt_faults.cpp: lets a fault in a simulated kernel reach Python as helpers.KernelFault.
//
// pybind11 tries the translators of all modules that share its internals, PyTorch's operators among them, the newest
// first. So one registration here serves every extension, whatever it is bound with.
#include <pybind11/pybind11.h>

#include "simt/core.h"

namespace py = pybind11;

namespace {
PyObject* fault_type = nullptr;  // borrowed for the life of the process
}

PYBIND11_MODULE(simt_faults, m) {
  m.def("raise_as", [](const py::object& type) {
    fault_type = py::object(type).release().ptr();
    py::register_exception_translator([](std::exception_ptr pointer) {
      try {
        if (pointer) std::rethrow_exception(pointer);
      } catch (const simt::Fault& fault) {
        py::object error = py::reinterpret_borrow<py::object>(fault_type)(fault.message, fault.kind);
        PyErr_SetObject(fault_type, error.ptr());
      }
    });
  });
}
