// Says that there is a result, which the function does not return.
// expect: The operator takes x, y and factor, and returns nothing
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("register_mutation(Tensor(a!) x, Tensor y, float factor) -> Tensor(a!)");
}
