# What CMake asks a platform for: a program is linked statically and has no suffix of its own.
set(CMAKE_EXECUTABLE_SUFFIX "")
