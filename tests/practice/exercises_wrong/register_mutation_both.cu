// Says that y is written to as well.
// expect: so more may happen to y than that it is read
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("register_mutation(Tensor(a!) x, Tensor(b!) y, float factor) -> ()");
}
