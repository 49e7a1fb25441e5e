// Says that the memory of x has a name, not that it is written to.
// expect: That x is written to, it does not say
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("register_mutation(Tensor(a) x, Tensor y, float factor) -> ()"); }
