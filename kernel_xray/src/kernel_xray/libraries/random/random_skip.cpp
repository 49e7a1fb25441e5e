// random_skip.cpp: skips of n steps for generators whose step is linear: products with powers of the step's matrix.
#include <vector>

#include "simt/random_engines.h"

namespace simt::random {
namespace {

// ---------------------------------------------------------------------------------------------------------------
// XORWOW: 160 bits, a vector over the field of two elements

struct Bits {
  uint32_t words[5];
};

struct BitMatrix {
  Bits images[160];  // of each bit alone

  Bits times(const Bits& vector) const {
    Bits sum{};
    for (int word = 0; word < 5; ++word)
      for (uint32_t left = vector.words[word]; left; left &= left - 1) {
        const Bits& image = images[32 * word + __builtin_ctz(left)];
        for (int i = 0; i < 5; ++i) sum.words[i] ^= image.words[i];
      }
    return sum;
  }
};

constexpr int kSequence = 67;  // log2 of the numbers in a sequence

// The step's powers with exponents 2^0, 2^1, ... 2^(67 + 63).
const std::vector<BitMatrix>& powers() {
  static const std::vector<BitMatrix>* all = [] {
    auto* table = new std::vector<BitMatrix>(kSequence + 64);
    for (int bit = 0; bit < 160; ++bit) {
      Xorwow engine{};
      engine.v[bit / 32] = 1u << bit % 32;
      engine.bits();
      for (int i = 0; i < 5; ++i) (*table)[0].images[bit].words[i] = engine.v[i];
    }
    for (size_t power = 1; power < table->size(); ++power)
      for (int bit = 0; bit < 160; ++bit)
        (*table)[power].images[bit] = (*table)[power - 1].times((*table)[power - 1].images[bit]);
    return table;
  }();
  return *all;
}

// ---------------------------------------------------------------------------------------------------------------
// MRG32k3a: two vectors of three integers, each with a modulus

struct Matrix {
  uint64_t at[3][3];
};

Matrix product(const Matrix& a, const Matrix& b, uint64_t modulus) {
  Matrix c{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) c.at[i][j] = (c.at[i][j] + a.at[i][k] * b.at[k][j] % modulus) % modulus;
  return c;
}

constexpr size_t kMrgPowers = 127 + 64;

std::vector<Matrix> powers(Matrix step, uint64_t modulus) {  // of exponents 2^0, 2^1, ...
  std::vector<Matrix> table{step};
  while (table.size() < kMrgPowers) table.push_back(product(table.back(), table.back(), modulus));
  return table;
}

void skip(uint32_t* state, const std::vector<Matrix>& table, uint64_t modulus, uint64_t n, int log2_step) {
  for (const Matrix* power = &table[log2_step]; n; n >>= 1, ++power) {
    if (!(n & 1)) continue;
    uint64_t next[3] = {};
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) next[i] = (next[i] + power->at[i][k] * state[k] % modulus) % modulus;
    for (int i = 0; i < 3; ++i) state[i] = static_cast<uint32_t>(next[i]);
  }
}

}  // namespace

void xorwow_skip(uint32_t* v, uint64_t n, bool sequences) {
  Bits state;
  for (int i = 0; i < 5; ++i) state.words[i] = v[i];
  const BitMatrix* power = &powers()[sequences ? kSequence : 0];
  for (; n; n >>= 1, ++power)
    if (n & 1) state = power->times(state);
  for (int i = 0; i < 5; ++i) v[i] = state.words[i];
}

void mrg_skip(uint32_t* s1, uint32_t* s2, uint64_t n, int log2_step) {
  static const auto* one =
      new std::vector<Matrix>(powers({{{0, 1, 0}, {0, 0, 1}, {Mrg::kModulus1 - 810728, 1403580, 0}}}, Mrg::kModulus1));
  static const auto* two =
      new std::vector<Matrix>(powers({{{0, 1, 0}, {0, 0, 1}, {Mrg::kModulus2 - 1370589, 0, 527612}}}, Mrg::kModulus2));
  skip(s1, *one, Mrg::kModulus1, n, log2_step);
  skip(s2, *two, Mrg::kModulus2, n, log2_step);
}

}  // namespace simt::random
