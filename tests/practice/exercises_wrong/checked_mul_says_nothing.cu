// Refuses, but names neither the argument nor what was got.
// expect: b is float64: refused, but the message does not name b and say that float64 was got
void check_operands(const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&a, &b}) {
    STD_TORCH_CHECK(t->is_cuda() && t->is_contiguous() && t->scalar_type() == ScalarType::Float, "bad argument");
  }
  STD_TORCH_CHECK(ladder::shape_of(a) == ladder::shape_of(b), "bad shapes");
}
