// Refuses what is right: an empty tensor.
// expect: shape \[0\]: .*a is empty
void check_operands(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(a.numel() > 0, "a is empty");
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(b, "b", ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
}
