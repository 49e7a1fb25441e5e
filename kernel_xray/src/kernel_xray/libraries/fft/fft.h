// fft.h: the discrete Fourier transform of one length.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace simt::fft {

struct Complex {
  double re, im;
};
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex conjugate(Complex a) { return {a.re, -a.im}; }

// Splits a transform by the smallest factor of its length (Cooley and Tukey). A length with a large prime factor becomes
// a convolution of twice the length, rounded up to a power of two (Bluestein).
class Transform {
 public:
  explicit Transform(size_t length);

  // Overwrites `length` numbers by sum over j of x[j] exp(-2 pi i j k / length).
  void forward(Complex* x);

 private:
  void split(const Complex* in, size_t stride, Complex* out, size_t length);
  void convolve(Complex* x);

  size_t length_;
  std::vector<Complex> turns_;  // exp(-2 pi i k / length)
  std::vector<Complex> in_;     // a copy of the input
  // Bluestein's: exp(-pi i k^2 / length), and the transform of its inverse
  std::unique_ptr<Transform> padded_;
  std::vector<Complex> chirp_, chirp_spectrum_;
};

}  // namespace simt::fft
