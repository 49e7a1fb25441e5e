// lasting.h: the one object of a type that a library keeps for as long as the process lives.
#pragma once

namespace simt {

// It is never destroyed: static objects, other threads, and libraries that are unloaded may use it at exit.
template <typename T>
T& lasting() {
  static T* const one = new T;
  return *one;
}

}  // namespace simt
