// failed_check.h: the exception of a failed STD_TORCH_CHECK, with PyTorch's words.
//
// PyTorch's macro writes each message through an std::ostringstream on the spot. A launcher has ten such checks, and
// compiling their streams took a third of a kernel's build. Here a check passes its arguments on, and the library
// writes them, also through an std::ostringstream. So whatever can be written to a stream is still an argument.
#pragma once

#include <initializer_list>
#include <memory>
#include <ostream>

namespace simt {

// One argument of a message. It refers to its value, which lives until the message is written.
struct Piece {
  const void* value;
  void (*write)(std::ostream&, const void*);

  Piece(const char* text)
      : value(text), write([](std::ostream& to, const void* from) { to << static_cast<const char*>(from); }) {}
  template <typename T>
  Piece(const T& any)
      : value(std::addressof(any)),
        write([](std::ostream& to, const void* from) { to << *static_cast<const T*>(from); }) {}
};

// Throws std::runtime_error: the function's name, its place in the source, and the pieces.
[[noreturn]] __attribute__((visibility("default"), cold)) void check_failed(const char* function, const char* file,
                                                                            int line,
                                                                            std::initializer_list<Piece> pieces);

}  // namespace simt
