// standard.h: the headers of the standard library that most of the run-time library's files include. libsimt.py compiles
// them once for all of those files where the compiler is g++; each file includes what it needs all the same.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>
