// fft.cpp: the transform of one length.
#include "libraries/fft/fft.h"

#include <cmath>

namespace simt::fft {
namespace {

constexpr size_t kLargestFactor = 31;  // above, a convolution is faster than the sum of all terms

size_t smallest_factor(size_t n) {
  if (n % 4 == 0) return 4;
  for (size_t f = 2; f * f <= n; ++f)
    if (n % f == 0) return f;
  return n;
}

size_t largest_prime(size_t n) {
  size_t largest = 1;
  for (size_t f = 2; n > 1; ++f)
    for (; n % f == 0; n /= f) largest = f;
  return largest;
}

Complex turn(double part) {  // exp(-2 pi i part)
  const double angle = -2 * 3.14159265358979323846 * part;
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace

Transform::Transform(size_t length) : length_(length), turns_(length) {
  const double n = static_cast<double>(length);
  for (size_t k = 0; k < length; ++k) turns_[k] = turn(static_cast<double>(k) / n);
  if (largest_prime(length) <= kLargestFactor) return;

  size_t padded = 1;
  while (padded < 2 * length - 1) padded *= 2;
  padded_ = std::make_unique<Transform>(padded);
  chirp_.resize(length);
  for (size_t k = 0; k < length; ++k) chirp_[k] = turn(static_cast<double>(k * k % (2 * length)) / (2 * n));
  chirp_spectrum_.resize(padded);
  for (size_t k = 0; k < length; ++k) {
    chirp_spectrum_[k] = conjugate(chirp_[k]);
    if (k > 0) chirp_spectrum_[padded - k] = conjugate(chirp_[k]);
  }
  padded_->forward(chirp_spectrum_.data());
}

void Transform::forward(Complex* x) {
  if (padded_) return convolve(x);
  in_.assign(x, x + length_);
  split(in_.data(), 1, x, length_);
}

void Transform::split(const Complex* in, size_t stride, Complex* out, size_t length) {
  if (length == 1) {
    *out = *in;
    return;
  }
  const size_t factor = smallest_factor(length), part = length / factor;
  for (size_t r = 0; r < factor; ++r) split(in + r * stride, stride * factor, out + r * part, part);
  const size_t step = length_ / length;  // of the table, for one turn by 1 / length
  Complex terms[kLargestFactor];
  for (size_t k = 0; k < part; ++k) {
    for (size_t r = 0; r < factor; ++r) terms[r] = out[r * part + k] * turns_[r * k * step];
    if (factor == 2) {
      out[k] = terms[0] + terms[1];
      out[part + k] = terms[0] - terms[1];
    } else if (factor == 4) {
      const Complex a = terms[0] + terms[2], b = terms[0] - terms[2], c = terms[1] + terms[3], d = terms[1] - terms[3];
      out[k] = a + c;
      out[part + k] = {b.re + d.im, b.im - d.re};
      out[2 * part + k] = a - c;
      out[3 * part + k] = {b.re - d.im, b.im + d.re};
    } else {
      for (size_t q = 0; q < factor; ++q) {
        Complex sum = terms[0];
        for (size_t r = 1; r < factor; ++r) sum = sum + terms[r] * turns_[r * q % factor * (length_ / factor)];
        out[q * part + k] = sum;
      }
    }
  }
}

void Transform::convolve(Complex* x) {
  const size_t padded = chirp_spectrum_.size();
  std::vector<Complex> work(padded);
  for (size_t k = 0; k < length_; ++k) work[k] = x[k] * chirp_[k];
  padded_->forward(work.data());
  for (size_t k = 0; k < padded; ++k) work[k] = conjugate(work[k] * chirp_spectrum_[k]);
  padded_->forward(work.data());  // of the conjugated numbers: the inverse, conjugated and not scaled
  const double scale = 1 / static_cast<double>(padded);
  for (size_t k = 0; k < length_; ++k) {
    const Complex y = conjugate(work[k]);
    x[k] = chirp_[k] * Complex{y.re * scale, y.im * scale};
  }
}

}  // namespace simt::fft
