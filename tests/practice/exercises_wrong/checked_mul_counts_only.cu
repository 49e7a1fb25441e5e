// Compares how many elements there are, not the shapes.
// expect: a has the shape \[6\], b \[2, 3\]: accepted
void check_operands(const Tensor& a, const Tensor& b) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(b, "b", ScalarType::Float);
  STD_TORCH_CHECK(a.numel() == b.numel(), "a and b must have as many elements, got ", a.numel(), " and ", b.numel());
}
