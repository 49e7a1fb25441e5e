// check.h: named checks for the C++ tests of the simulator's headers.
//
// Run plainly, a program exits 0 when every check holds. Run with --sabotage, every value under test is corrupted
// before it is compared: then each check must fail, which shows that it can. Either way the program prints one line for
// each check, `ok NAME` or `FAILED NAME ...`.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>

namespace check {

inline bool sabotage = false;
inline std::map<std::string, std::string> results;  // name -> "" or the first failure
inline std::mutex results_mutex;

template <typename T>
T spoilt(T value) {
  if (!sabotage) return value;
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  for (auto& byte : bytes) byte = static_cast<unsigned char>(byte ^ 0x15);
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
inline bool spoilt(bool value) { return sabotage ? !value : value; }

inline void record(const std::string& name, bool good, const std::string& what) {
  std::lock_guard<std::mutex> guard(results_mutex);
  std::string& failure = results[name];
  if (!good && failure.empty()) failure = what;
}

// Bit-for-bit equality of integers, equality of floating point (NaN equals NaN).
template <typename T, typename U>
void same(const std::string& name, T got_, U want_) {
  const T want = static_cast<T>(want_);
  const T got = spoilt(got_);
  const bool good = got == want || (got != got && want != want);
  record(name, good, "got " + std::to_string(got) + ", expected " + std::to_string(want));
}

inline void close(const std::string& name, double got_, double want, double relative) {
  const double got = !sabotage ? got_ : std::isfinite(got_) ? got_ * 1.01 + 0.01 : 0.5;
  const bool good =
      got == want || (got != got && want != want) || std::fabs(got - want) <= relative * std::fabs(want) + 1e-15;
  char text[96];
  std::snprintf(text, sizeof text, "got %.17g, expected %.17g", got, want);
  record(name, good, text);
}

inline uint64_t random_state = 0x9e3779b97f4a7c15ull;
inline uint64_t random_word() {  // xorshift64*
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1dull;
}

// Runs the tests, and prints and counts what they have recorded.
inline int run(int argc, char** argv, std::initializer_list<void (*)()> tests) {
  sabotage = argc > 1 && std::string(argv[1]) == "--sabotage";
  for (const auto test : tests) test();
  int failures = 0;
  for (const auto& [name, failure] : results) {
    std::printf(failure.empty() ? "ok %s\n" : "FAILED %s %s\n", name.c_str(), failure.c_str());
    failures += !failure.empty();
  }
  return failures != 0;
}

}  // namespace check
